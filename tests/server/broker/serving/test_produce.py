"""Produce: what is answered where an answer is hard to give."""

from __future__ import annotations

from datetime import timedelta
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest
from kio.static.primitive import Records, i32Timedelta

from kraftlake.replica_manager.requests.delayed_answers import ProduceAnswer
from kraftlake.server.broker.serving.context import ServingContext
from kraftlake.server.broker.serving.produce import ProduceHandler
from kraftlake.server.requests.messages import request_type, versions_of
from simulator.data_batches import batch
from tests.server.requests.test_dispatcher import Node, frame_of

NAMED = [version for version in versions_of("produce") if version < 13]


def produce(version: int) -> bytes:
    """A request with a batch for a partition."""
    kind = request_type("produce", version)
    module = import_module(kind.__module__)
    one = module.PartitionProduceData(index=0, records=Records(batch(b"a")))
    topic = module.TopicProduceData(name="t", partition_data=(one,))
    timeout = i32Timedelta.parse(timedelta(seconds=1))
    return frame_of(kind(transactional_id=None, acks=-1, timeout=timeout, topic_data=(topic,)))


def node(append_records: Any) -> Node:
    """A node that serves Produce by a function in place of a replica manager."""
    everything: Any = SimpleNamespace(contains=lambda _: True, allows=lambda *_, **__: True)
    context = ServingContext(
        broker_id=1, cluster_id="c", cache=everything, manager=everything, authorization=everything
    )
    server: Any = SimpleNamespace(append_records=append_records)
    return Node(ProduceHandler(context, server), api="produce", versions=versions_of("produce"))


@pytest.mark.parametrize("version", NAMED)
@pytest.mark.parametrize("ms", [-(2**63), -1, 0, 1_700_000_000_123, 2**53 + 1, 2**63 - 1])
def test_any_time_of_a_batch_that_was_appended_before_is_answered(version: int, ms: int) -> None:
    def append(entries: Any, *, on_answer: Any, **_: Any) -> None:
        on_answer(dict.fromkeys(entries, ProduceAnswer(base_offset=7, log_append_time=ms)))

    made = node(append)
    made.ask(produce(version))
    (answer,) = made.answers
    assert answer is not None
    assert (7).to_bytes(8, "big") + ms.to_bytes(8, "big", signed=True) in answer
    assert made.logged == []
