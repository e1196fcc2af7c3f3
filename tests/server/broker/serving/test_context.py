"""What the handlers share: a request that has waited, and that a fault ends, is answered all the same."""

from __future__ import annotations

from datetime import timedelta
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest
from kio.static.primitive import Records, i32Timedelta

from kraftlake.replica_manager.requests.fetch_contexts import FetchManager
from kraftlake.replica_manager.requests.fetch_session_cache import FetchSessionCache
from kraftlake.runtime.clock import ManualClock
from kraftlake.server.broker.serving.context import ServingContext
from kraftlake.server.broker.serving.fetch import FetchHandler
from kraftlake.server.broker.serving.offsets import OffsetsHandler
from kraftlake.server.broker.serving.produce import ProduceHandler
from kraftlake.server.requests.dispatcher import Request
from kraftlake.server.requests.messages import request_type, response_in
from simulator.data_batches import batch
from tests.server.requests.test_dispatcher import Node, frame_of

A_SECOND = i32Timedelta.parse(timedelta(seconds=1))


class Waiting:
    """Takes requests in place of a replica manager, and answers none."""

    def __init__(self) -> None:
        self.faults: list[Any] = []

    def take(self, *_: Any, on_fault: Any, **__: Any) -> None:
        self.faults.append(on_fault)

    append_records = fetch_messages = delete_records = take


def asked(name: str, version: int, **fields: Any) -> bytes:
    """A request for partition 0 of a topic."""
    kind = request_type(name, version)
    module = import_module(kind.__module__)
    if name == "produce":
        one = module.PartitionProduceData(index=0, records=Records(batch(b"a")))
        topics = (module.TopicProduceData(name="t", partition_data=(one,)),)
        return frame_of(kind(**{"transactional_id": None, "acks": -1} | fields, timeout=A_SECOND, topic_data=topics))
    if name == "delete_records":
        one = module.DeleteRecordsPartition(partition_index=0, offset=1)
        topics = (module.DeleteRecordsTopic(name="t", partitions=(one,)),)
        return frame_of(kind(topics=topics, timeout=A_SECOND))
    one = module.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1)
    topics = (module.FetchTopic(topic="t", partitions=(one,)),)
    return frame_of(
        kind(replica_id=-1, max_wait=A_SECOND, min_bytes=1, topics=topics, forgotten_topics_data=(), rack_id="")
    )


def node(name: str, version: int, waiting: Waiting) -> Node:
    everything: Any = SimpleNamespace(
        contains=lambda _: True,
        allows=lambda *_, **__: True,
        allows_on_cluster=lambda *_, **__: True,
        topic_name=lambda _: "t",
    )
    context = ServingContext(
        broker_id=1, cluster_id="c", cache=everything, manager=everything, authorization=everything
    )
    server: Any = waiting
    handlers = {
        "produce": ProduceHandler(context, server),
        "fetch": FetchHandler(context, server, FetchManager(FetchSessionCache(ManualClock(), 10))),
        "delete_records": OffsetsHandler(context, server).delete_records,
    }
    return Node(handlers[name], api=name, versions=range(version, version + 1))


@pytest.mark.parametrize(("name", "version"), [("produce", 9), ("fetch", 12), ("delete_records", 2)])
def test_a_fault_after_a_wait_ends_in_an_answer(name: str, version: int) -> None:
    waiting = Waiting()
    made, frame = node(name, version, waiting), asked(name, version)
    made.ask(frame)
    assert made.answers == []
    waiting.faults[0]()
    (answer,) = made.answers
    assert answer is not None
    assert "unknown_server_error" in repr(response_in(frame, answer))


def test_a_produce_that_wants_no_answer_ends_its_connection_with_a_fault() -> None:
    waiting = Waiting()
    made = node("produce", 9, waiting)
    made.ask(asked("produce", 9, acks=0))
    waiting.faults[0]()
    assert made.answers == [None]


def test_a_connection_ends_where_not_even_a_fault_can_be_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("no answer can be made")

    waiting = Waiting()
    made = node("produce", 9, waiting)
    made.ask(asked("produce", 9))
    monkeypatch.setattr(Request, "fail", fail)
    with pytest.raises(RuntimeError, match="no answer"):
        waiting.faults[0]()
    assert made.answers == [None]
