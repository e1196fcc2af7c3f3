"""Requests that the active controller answers, by way of a broker."""

from __future__ import annotations

import io
import queue
from contextlib import suppress
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from kio.schema.create_topics.v7 import request as create_topics
from kio.schema.envelope.v0 import request as envelope_request
from kio.schema.envelope.v0.response import EnvelopeResponse
from kio.serial import entity_writer
from kio.static.primitive import i32Timedelta

from kraftlake.protocol.error_code import ErrorCode
from kraftlake.protocol.node_client import REQUEST_HEADER
from kraftlake.publisher.dynamic_configs import ConfigType
from kraftlake.server.broker.broker_config import BrokerConfig
from kraftlake.server.broker.serving.config_changes import ConfigChangesHandler
from kraftlake.server.broker.serving.forwarding import LONGEST_FORWARDED, ForwardingManager
from kraftlake.server.node_config import ListenerAddress
from kraftlake.server.requests.dispatcher import Dispatcher, Handler, Peer
from kraftlake.server.requests.listener_limits import ListenerLimits
from kraftlake.server.requests.messages import UNREADABLE, request_type, response_in
from tests.server.broker.lake_cluster import PATIENCE, lake_cluster
from tests.server.broker.serving.test_config_changes import Context
from tests.server.requests.test_dispatcher import frame_of as request_frame_of

PEER = Peer(listener="PLAINTEXT", host="127.0.0.1")
LONG = 30_000
LONG_REQUEST = 2 * 1024 * 1024


def frame_of(size: int) -> bytes:
    """A request of so many bytes that creates topics whose names are too long."""

    def made(lengths: list[int]) -> bytes:
        topics = tuple(
            create_topics.CreatableTopic(
                name="x" * length, num_partitions=1, replication_factor=1, assignments=(), configs=()
            )
            for length in lengths
        )
        frame = io.BytesIO()
        frame.write(REQUEST_HEADER.pack(19, 7, 1, -1) + b"\0")
        timeout = i32Timedelta.parse(timedelta(seconds=1))
        asked = create_topics.CreateTopicsRequest(topics=topics, timeout=timeout, validate_only=True)
        entity_writer(create_topics.CreateTopicsRequest)(frame, asked)
        return frame.getvalue()

    lengths = [LONG + number for number in range(size // (LONG + 100))]
    return made([*lengths, LONG - 1 - len(made([*lengths, LONG - 1])) + size])


def test_a_long_request_is_passed_on(tmp_path: Path) -> None:
    frame = frame_of(LONG_REQUEST)
    assert len(frame) == LONG_REQUEST
    answers: queue.Queue[bytes | None] = queue.Queue()
    with lake_cluster(tmp_path, brokers=(1,)) as cluster:
        server = cluster.members[1].server
        cluster.wait_for(lambda: server.dispatcher is not None)
        server._handle(frame, PEER, answers.put)
        answer = answers.get(timeout=PATIENCE)
    assert answer is not None
    assert {one.error_code for one in response_in(frame, answer).topics} == {ErrorCode.INVALID_TOPIC_EXCEPTION}


def test_the_longest_request_that_is_passed_on_fits_into_an_envelope() -> None:
    """Else it would be sent again and again, and all that come behind it would wait."""
    made: list[Any] = []
    forwarding = ForwardingManager(lambda _name, _versions, make, _answered: made.append(make(envelope_request)))
    peer = Peer(listener="PLAINTEXT", host="2001:db8::1", principal="User:" + "x" * 250)
    forwarding.forward(b"x" * LONGEST_FORWARDED, peer, lambda _: None)
    assert len(request_frame_of(made[0])) <= ListenerLimits().socket_request_max_bytes


def test_a_request_that_does_not_fit_into_an_envelope_is_refused() -> None:
    asked: list[bytes] = []
    forwarding = ForwardingManager(lambda *_: asked.append(b""))
    frame = frame_of(LONG) + b"\0" * LONGEST_FORWARDED
    answers: list[bytes | None] = []
    api = Handler(begin=forwarding)
    Dispatcher({"create_topics": api}, on_fault=lambda *_: None).handle(frame, PEER, answers.append)
    (response,) = answers
    assert response is not None
    assert {one.error_code for one in response_in(frame, response).topics} == {ErrorCode.INVALID_REQUEST}
    assert asked == []


def envelope(error: ErrorCode, data: bytes | None = None) -> Any:
    return EnvelopeResponse(error_code=error, response_data=data)


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (None, ErrorCode.REQUEST_TIMED_OUT),
        (envelope(ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE), ErrorCode.UNKNOWN_SERVER_ERROR),
        (envelope(ErrorCode.NONE), ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_what_no_controller_answers_is_an_error_and_the_connection_lives_on(answer: Any, error: ErrorCode) -> None:
    forwarding = ForwardingManager(lambda _name, _versions, _make, answered: answered(answer))
    answers: list[bytes | None] = []
    api = Handler(begin=forwarding)
    frame = frame_of(LONG)
    Dispatcher({"create_topics": api}, on_fault=lambda *_: None).handle(frame, PEER, answers.append)
    (response,) = answers
    assert response is not None
    assert {one.error_code for one in response_in(frame, response).topics} == {error}


def test_a_controller_without_the_version_ends_the_connection_so_that_the_client_asks_for_versions() -> None:
    unsupported = envelope(ErrorCode.UNSUPPORTED_VERSION)
    forwarding = ForwardingManager(lambda _name, _versions, _make, answered: answered(unsupported))
    answers: list[bytes | None] = []
    api = Handler(begin=forwarding)
    Dispatcher({"create_topics": api}, on_fault=lambda *_: None).handle(frame_of(LONG), PEER, answers.append)
    assert answers == [None]


def response_to_changes(answer: Any) -> Any:
    """The response to changes of a topic's configs, and of another broker's; `answer` is the controller's."""
    listener = ListenerAddress(name="PLAINTEXT", host="127.0.0.1", port=9092)
    config = BrokerConfig(broker_id=1, lake="lake", log_dirs=("logs",), listener=listener)

    def ask(_name: str, _versions: range, _make: Any, answered: Any) -> None:
        with suppress(*UNREADABLE):  # a channel's thread goes on, too
            answered(answer)

    kind = request_type("incremental_alter_configs", 1)
    module = import_module(kind.__module__)
    resources = tuple(
        module.AlterConfigsResource(
            resource_type=resource_type, resource_name="2",
            configs=(module.AlterableConfig(name="compression.type", config_operation=0, value="zstd"),),
        )
        for resource_type in (ConfigType.TOPIC, ConfigType.BROKER)
    )  # fmt: skip
    frame = request_frame_of(kind(resources=resources, validate_only=False))
    answers: list[bytes | None] = []
    api = Handler(versions=range(2), begin=ConfigChangesHandler(Context(), config, ForwardingManager(ask)))
    Dispatcher({"incremental_alter_configs": api}, on_fault=lambda *_: None).handle(frame, PEER, answers.append)
    response = answers[0]
    return response if response is None else response_in(frame, response)


def test_what_a_broker_refuses_itself_is_answered_although_no_controller_answers() -> None:
    assert {int(one.resource_type): one.error_code for one in response_to_changes(None).responses} == {
        ConfigType.TOPIC: ErrorCode.REQUEST_TIMED_OUT,
        ConfigType.BROKER: ErrorCode.INVALID_REQUEST,
    }


def test_an_answer_of_a_controller_that_can_not_be_read_is_an_error_and_no_silence() -> None:
    response = response_to_changes(envelope(ErrorCode.NONE, b"\0\0\0\7 no answer"))
    assert {int(one.resource_type): one.error_code for one in response.responses} == {
        ConfigType.TOPIC: ErrorCode.UNKNOWN_SERVER_ERROR,
        ConfigType.BROKER: ErrorCode.INVALID_REQUEST,
    }
