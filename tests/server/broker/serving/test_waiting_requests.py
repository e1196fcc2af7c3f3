"""What the requests hold that wait for their answers."""

from __future__ import annotations

import gc
import threading
import time
import tracemalloc
from collections.abc import Iterator
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import attrs
import pytest
from kio.static.primitive import Records, i32Timedelta

from kraftlake.protocol.error_code import ErrorCode
from kraftlake.records.varint import uvarint
from kraftlake.server.requests.dispatcher import Dispatcher, Peer, Request
from kraftlake.server.requests.messages import request_type, response_in
from simulator.data_batches import batch
from tests.server.broker.lake_cluster import PATIENCE, LakeCluster, lake_cluster
from tests.server.requests.test_dispatcher import frame_of

PEER = Peer(listener="PLAINTEXT", host="127.0.0.1")
REQUESTS = 20
LITTLE = 10 * 1024 * 1024
"""Far less than the requests of a test have; half of it is what is imported at the first of them."""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LakeCluster]:
    with lake_cluster(tmp_path, brokers=(1, 2)) as made:
        made.make_topic("t", partitions=1, replicas=2)
        made.wait_for(lambda: all(made.members[id_].server.broker.cache.contains("t") for id_ in (1, 2)))
        yield made


def dispatcher_of_the_leader(cluster: LakeCluster) -> Dispatcher:
    image = cluster.members[1].server.broker.cache.image
    topic = image.topics.get_topic("t")
    assert topic is not None
    found = cluster.members[topic.partitions[0].leader].server.dispatcher
    assert found is not None
    return found


def produce() -> bytes:
    kind = request_type("produce", 9)
    module = import_module(kind.__module__)
    partition = module.PartitionProduceData(index=0, records=Records(batch(b"x" * 900_000, times=(_now(),))))
    topic = module.TopicProduceData(name="t", partition_data=(partition,))
    return frame_of(kind(acks=-1, timeout=_timeout(3600), topic_data=(topic,)))


def fetch(*, version: int = 12, wait: float = 3600, offset: int = 0, ignored: int = 0) -> bytes:
    """A consumer's fetch with a field of `ignored` bytes that no version has."""
    kind = request_type("fetch", version)
    module = import_module(kind.__module__)
    partition = module.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    topic = module.FetchTopic(topic="t", partitions=(partition,))
    asked = kind(
        replica_id=-1, max_wait=_timeout(wait), min_bytes=1, topics=(topic,), forgotten_topics_data=(), rack_id=""
    )
    return frame_of(asked)[:-1] + b"\1" + uvarint(99) + uvarint(ignored) + bytes(ignored)


def _now() -> int:
    return int(time.time() * 1000)


def _timeout(seconds: float) -> Any:
    return i32Timedelta.parse(timedelta(seconds=seconds))


def test_requests_that_wait_hold_neither_records_nor_frames(cluster: LakeCluster) -> None:
    dispatcher = dispatcher_of_the_leader(cluster)
    served, is_held, go = dispatcher._handlers["fetch"], threading.Event(), threading.Event()

    def of_a_slow_follower(request: Request) -> None:
        if int(request.body.replica_state.replica_id if request.version > 14 else request.body.replica_id) >= 0:
            is_held.set()
            assert go.wait(PATIENCE)
        served.begin(request)

    answers: SimpleQueue[bytes | None] = SimpleQueue()
    produced, fetched = produce(), fetch(ignored=1_000_000)
    gc.collect()
    tracemalloc.start()
    try:
        dispatcher._handlers["fetch"] = attrs.evolve(served, begin=of_a_slow_follower)
        assert is_held.wait(PATIENCE), "no other fetch of the follower waits"
        for _ in range(REQUESTS):
            dispatcher.handle(bytes(bytearray(produced)), PEER, answers.put)  # a copy of its own, as from a listener
            dispatcher.handle(bytes(bytearray(fetched)), PEER, answers.put)
        gc.collect()
        held = tracemalloc.get_traced_memory()[0]
        assert answers.empty(), "all of them wait"
        assert dispatcher.held.total < 100_000
        assert held < LITTLE
        go.set()
        received = [answers.get(timeout=PATIENCE) for _ in range(2 * REQUESTS)]
    finally:
        go.set()
        tracemalloc.stop()
    assert all(received)
    cluster.wait_for(lambda: dispatcher.held.total < 10_000, "what they held to be given back")


def test_a_fetch_does_not_wait_while_others_that_wait_hold_too_much(cluster: LakeCluster) -> None:
    answers: SimpleQueue[bytes | None] = SimpleQueue()
    dispatcher = dispatcher_of_the_leader(cluster)
    frame = fetch()
    dispatcher.handle(frame, PEER, answers.put)
    other = dispatcher.held.share(1 << 30)
    dispatcher.handle(frame, PEER, answers.put)
    answer = answers.get(timeout=PATIENCE)
    assert answer is not None
    response = response_in(frame, answer)
    assert [one.error_code for topic in response.responses for one in topic.partitions] == [ErrorCode.NONE]
    assert answers.empty(), "the first goes on waiting"
    other.end()
