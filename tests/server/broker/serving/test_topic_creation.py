"""The request by which a broker has missing topics created."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from kraftlake.protocol.error_code import ErrorCode
from kraftlake.protocol.node_client import REQUEST_HEADER
from kraftlake.server.broker.serving.forwarding import ForwardingManager
from kraftlake.server.broker.serving.topic_creation import AutoTopicCreation
from kraftlake.server.requests.messages import request_in
from tests.server.requests.test_dispatcher import Node, describe_cluster, frame_of


def test_topics_are_created_in_the_clients_name_and_each_is_asked_for_once_at_a_time() -> None:
    asked: list[tuple[bytes, Callable[[Any], None]]] = []

    def ask(api: str, versions: range, make: Callable[[Any], Any], answered: Callable[[Any], None]) -> None:
        envelope = make(import_module("kio.schema.envelope.v0.request"))
        asked.append((envelope.request_data, answered))

    node = Node()
    node.ask(frame_of(describe_cluster()))
    (request,) = node.requests
    creation = AutoTopicCreation(ForwardingManager(ask))
    missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert creation(request, ["a", "b"]) == {"a": missing, "b": missing}
    assert creation(request, ["b", "c"]) == {"b": missing, "c": missing}
    names = [[topic.name for topic in request_in(frame).topics] for frame, _ in asked]
    assert names == [["a", "b"], ["c"]]
    start = REQUEST_HEADER.size
    assert {frame[start : start + 2] for frame, _ in asked} == {b"me"}
    asked[0][1](None)
    creation(request, ["b"])
    assert len(asked) == 3
