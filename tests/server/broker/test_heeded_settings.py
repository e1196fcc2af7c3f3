"""What settings of a lake's broker govern, made in its properties file."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest
from kio.static.primitive import Records, i32Timedelta
from structlog.testing import capture_logs

from kraftlake.protocol.error_code import ErrorCode
from kraftlake.server.requests.dispatcher import Peer
from kraftlake.server.requests.messages import request_type, response_in
from simulator.data_batches import batch
from tests.server.broker.lake_cluster import PATIENCE, LakeCluster
from tests.server.requests.test_dispatcher import frame_of

PEER = Peer(listener="PLAINTEXT", host="127.0.0.1")
SETTINGS = {
    "fetch.max.bytes": "1024", "max.request.partition.size.limit": "2", "socket.request.max.bytes": "65536",
    "log.message.timestamp.type": "LogAppendTime", "advertised.listeners": "PLAINTEXT://localhost:0",
    "controlled.shutdown.enable": "false", "log.initial.task.delay.ms": "1",
    "log.flush.offset.checkpoint.interval.ms": "3600000",
}  # fmt: skip


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LakeCluster]:
    made = LakeCluster(tmp_path_factory.mktemp("cluster"))
    try:
        made.start_controller(101)
        made.start_broker(1, SETTINGS)
        made.await_unfenced(1)
        made.wait_for(lambda: made.members[1].server.dispatcher)
        made.make_topic("t", 3)
        yield made
    finally:
        made.stop()


def asked(cluster: LakeCluster, api: str, version: int, **fields: Any) -> Any:
    request = frame_of(request_type(api, version)(**fields))
    answers = SimpleQueue[bytes | None]()
    cluster.members[1].server.dispatcher.handle(request, PEER, answers.put)
    answer = answers.get(timeout=PATIENCE)
    assert answer is not None, "the connection is closed"
    return response_in(request, answer)


def milliseconds(number: int) -> Any:
    return i32Timedelta.parse(timedelta(milliseconds=number))


def produced(cluster: LakeCluster, partition: int) -> Any:
    module = import_module("kio.schema.produce.v9.request")
    data = Records(batch(b"x" * 700, times=(int(time.time() * 1000) - 60_000,)))
    topic = module.TopicProduceData(
        name="t", partition_data=(module.PartitionProduceData(index=partition, records=data),)
    )
    response = asked(cluster, "produce", 9, acks=-1, timeout=milliseconds(60_000), topic_data=(topic,))
    (answer,) = response.responses[0].partition_responses
    assert answer.error_code == ErrorCode.NONE
    return answer


def test_a_record_gets_the_time_of_its_append(cluster: LakeCluster) -> None:
    before = time.time()
    stamp = produced(cluster, 0).log_append_time
    assert stamp is not None
    assert stamp.timestamp() >= before - 1


def test_an_answer_to_a_consumer_has_as_many_bytes_as_the_setting_allows(cluster: LakeCluster) -> None:
    for _ in range(3):
        produced(cluster, 1)
    module = import_module("kio.schema.fetch.v12.request")
    partition = module.FetchPartition(partition=1, fetch_offset=0, partition_max_bytes=1 << 20)
    fetched = asked(
        cluster, "fetch", 12, replica_id=-1, max_wait=milliseconds(0), min_bytes=1, max_bytes=1 << 20,
        topics=(module.FetchTopic(topic="t", partitions=(partition,)),), forgotten_topics_data=(), rack_id="",
    )  # fmt: skip
    (answer,) = fetched.responses[0].partitions
    assert answer.high_watermark == 3
    assert 700 < len(answer.records) <= 1024


def test_a_page_of_topics_has_as_many_partitions_as_the_setting_allows(cluster: LakeCluster) -> None:
    module = import_module("kio.schema.describe_topic_partitions.v0.request")
    answer = asked(
        cluster, "describe_topic_partitions", 0, topics=(module.TopicRequest(name="t"),),
        response_partition_limit=2_000, cursor=None,
    )  # fmt: skip
    assert [one.partition_index for one in answer.topics[0].partitions] == [0, 1]
    assert answer.next_cursor.partition_index == 2


def test_a_longer_request_closes_the_connection(cluster: LakeCluster) -> None:
    port = cluster.members[1].server.listeners[0].port
    with closing(socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)) as connection:
        connection.sendall(struct.pack(">i", 65_537) + b"x")
        assert connection.recv(1) == b""


def test_others_are_given_the_advertised_address(cluster: LakeCluster) -> None:
    server = cluster.members[1].server
    endpoint = server.broker.cache.image.cluster.brokers[1].listeners["PLAINTEXT"]
    assert (endpoint.host, endpoint.port) == ("localhost", server.listeners[0].port)


def test_the_first_work_on_logs_comes_after_the_initial_delay(cluster: LakeCluster) -> None:
    file: Path = cluster.folder / "broker-1" / "recovery-point-offset-checkpoint"
    cluster.wait_for(file.exists, "the first checkpoint, an interval before its time")


def test_a_broker_without_controlled_shutdown_is_not_fenced_when_it_ends(cluster: LakeCluster) -> None:
    controller = cluster.members[101].server
    cluster.start_broker(2, {"controlled.shutdown.enable": "false"})
    cluster.await_unfenced(1, 2)
    cluster.members.pop(2).stop()
    registration = controller.node.view.image.cluster.brokers[2]
    assert not registration.fenced
    assert not registration.in_controlled_shutdown


def test_a_setting_without_effect_is_logged_at_the_start(cluster: LakeCluster) -> None:
    with capture_logs() as logs:
        cluster.start_broker(3, {"num.network.threads": "5", "num.io.threads": "4", "num.replica.fetchers": "1"})
        cluster.await_unfenced(1, 3)
    cluster.members.pop(3).stop()
    logged = [(one["setting"], one["why"]) for one in logs if one["event"] == "setting_without_effect"]
    assert logged == [("num.network.threads", "one thread reads all connections of a listener")]
