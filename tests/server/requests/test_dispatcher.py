"""Which frames are answered, by what, and what happens to the others."""

from __future__ import annotations

import io
from datetime import timedelta
from importlib import import_module
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.serial import entity_reader, entity_writer

from kraftlake.image.endpoint import VersionRange
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.protocol.message_scan import MOST_ELEMENTS
from kraftlake.protocol.node_client import REQUEST_HEADER
from kraftlake.records.varint import uvarint
from kraftlake.server.requests.dispatcher import Dispatcher, Handler, Peer, Request
from kraftlake.server.requests.messages import request_type, response_in, response_type
from kraftlake.server.requests.versions_answers import NodeFeatures
from tests.memory import peak_memory

PEER = Peer(listener="PLAINTEXT", host="127.0.0.1")


def frame_of(request: Any, *, correlation: int = 7, version: int | None = None) -> bytes:
    """A request behind its header, of the client `me`."""
    kind = type(request)
    made = io.BytesIO()
    number = kind.__version__ if version is None else version
    made.write(REQUEST_HEADER.pack(kind.__api_key__, number, correlation, 2) + b"me")
    made.write(b"\0" if kind.__flexible__ else b"")
    entity_writer(kind)(made, request)
    return made.getvalue()


def api_versions(version: int = 4) -> bytes:
    kind = request_type("api_versions", version)
    names = {"client_software_name": "x", "client_software_version": "1"}
    return frame_of(kind(**names))


def describe_cluster(version: int = 0) -> Any:
    module = import_module(f"kio.schema.describe_cluster.v{version}.request")
    return module.DescribeClusterRequest(include_cluster_authorized_operations=False)


class Node:
    """A dispatcher of one API, what it has answered, and what it has logged."""

    def __init__(self, handle: Any = None, *, api: str = "describe_cluster", versions: range = range(1)) -> None:
        self.requests: list[Request] = []
        self.answers: list[bytes | None] = []
        self.logged: list[str] = []
        served = Handler(versions=versions, begin=handle or self.requests.append)
        self.dispatcher = Dispatcher(
            {api: served},
            features=lambda: NodeFeatures(
                supported={"metadata.version": VersionRange(7, 29), "group.version": VersionRange(0, 1)},
                finalized={"metadata.version": 29}, epoch=12,
            ),
            on_fault=lambda event, _: self.logged.append(event),
        )  # fmt: skip

    def ask(self, frame: bytes) -> None:
        self.dispatcher.handle(frame, PEER, self.answers.append)


def test_a_request_reaches_its_handler_which_answers_it_at_any_time() -> None:
    node = Node()
    frame = frame_of(describe_cluster(), correlation=99)
    node.ask(frame)
    (request,) = node.requests
    assert (request.name, request.version, request.client_id, request.peer) == ("describe_cluster", 0, "me", PEER)
    assert node.answers == []
    response = request.module.DescribeClusterResponse(
        throttle_time=import_module("kraftlake.server.requests.messages").AT_ONCE, error_code=ErrorCode.NONE,
        cluster_id="c", brokers=(),
    )  # fmt: skip
    request.answer(response)
    (answer,) = node.answers
    assert answer is not None
    assert int.from_bytes(answer[:4], "big") == 99
    assert response_in(frame, answer) == response


def test_a_request_may_be_answered_by_nothing_and_by_the_end_of_its_connection() -> None:
    node = Node()
    for _ in range(2):
        node.ask(frame_of(describe_cluster()))
    node.requests[0].answer_nothing()
    node.requests[1].close()
    assert node.answers == [b"", None]


@pytest.mark.parametrize(
    "frame",
    [
        frame_of(describe_cluster(1), version=1),
        frame_of(describe_cluster(), version=77),
        REQUEST_HEADER.pack(19, 7, 1, -1) + b"\0" * 9,
        REQUEST_HEADER.pack(999, 0, 1, -1),
    ],
)
def test_what_is_not_served_closes_the_connection(frame: bytes) -> None:
    node = Node()
    node.ask(frame)
    assert (node.answers, node.requests) == ([None], [])


@pytest.mark.parametrize("fault", [RuntimeError, ValueError, IndexError])
def test_a_handlers_fault_is_answered_and_logged(fault: type[Exception]) -> None:
    def fail(_: Request) -> None:
        raise fault("a bug")

    node = Node(fail)
    frame = frame_of(describe_cluster())
    node.ask(frame)
    (answer,) = node.answers
    assert answer is not None
    assert response_in(frame, answer).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert node.logged == ["request_failed"]


def test_bytes_that_are_no_request_end_the_connection() -> None:
    node = Node()
    node.ask(frame_of(describe_cluster())[:-1])
    assert (node.answers, node.requests, node.logged) == ([None], [], ["unreadable_request"])


def test_tagged_fields_of_newer_clients_are_ignored() -> None:
    node = Node()
    request = describe_cluster()
    node.ask(frame_of(request)[:-1] + b"\x02\x63\x00\x64\x02xy")
    assert [one.body for one in node.requests] == [request]
    assert node.logged == []


def metadata_with(header: int = 0, body: int = 0) -> bytes:
    """A request whose header and body have so many tagged fields that are not known."""
    tags = [uvarint(count) + b"\x63\x00" * count for count in (header, body)]
    return REQUEST_HEADER.pack(3, 12, 7, 1) + b"x" + tags[0] + b"\1\0\0" + tags[1]


def test_a_header_and_a_body_have_10_000_tagged_fields_each_at_most() -> None:
    node = Node(api="metadata", versions=range(13))
    node.ask(metadata_with(header=10_000, body=10_000))
    assert [one.body.topics for one in node.requests] == [()]
    node.ask(metadata_with(header=10_001))
    node.ask(metadata_with(body=10_001))
    assert (node.answers, node.logged) == ([None, None], ["unreadable_request"] * 2)


@pytest.mark.parametrize("where", ["header", "body"])
def test_megabytes_of_tagged_fields_cost_no_memory(where: str) -> None:
    node = Node(api="metadata", versions=range(13))
    frame = metadata_with(**{where: 2 * 1024 * 1024})
    assert peak_memory(lambda: node.ask(frame)) < 1024 * 1024
    assert (node.answers, node.requests) == ([None], [])


def metadata(count: int) -> bytes:
    """A request for topics without a name, in two bytes each."""
    return REQUEST_HEADER.pack(3, 0, 7, -1) + count.to_bytes(4, "big") + b"\0\0" * count


def test_a_request_of_more_elements_than_memory_is_kept_for_is_not_read() -> None:
    node = Node(api="metadata")
    node.ask(metadata(MOST_ELEMENTS + 1))
    assert (node.answers, node.requests, node.logged) == ([None], [], ["unreadable_request"])


def test_what_a_request_holds_counts_until_it_is_answered_and_less_once_it_is_reduced() -> None:
    node = Node(api="metadata")
    frame = metadata(10)
    node.ask(frame)
    node.ask(frame)
    assert node.dispatcher.held.total == 2 * (len(frame) + 10 * 1024)
    first, second = node.requests
    reduced = first.reduced(None)
    assert (reduced.frame, reduced.body) == (frame[: REQUEST_HEADER.size], None)
    assert node.dispatcher.held.total == len(frame) + 2 * 10 * 1024
    reduced.answer_nothing()
    first.reduced(None)
    first.answer_nothing()
    assert node.dispatcher.held.total == len(frame) + 10 * 1024
    second.close()
    assert node.dispatcher.held.total == 0


def test_a_request_waits_as_long_as_it_asks_for_while_there_is_memory() -> None:
    node = Node(api="metadata")
    node.ask(metadata(1))
    (first,) = node.requests
    assert (first.may_wait, first.wait_ms(timedelta(seconds=9))) == (True, 9_000)
    node.ask(metadata(300_000))
    assert (first.may_wait, first.wait_ms(timedelta(seconds=9))) == (False, 0)
    node.requests[1].answer_nothing()
    assert (first.may_wait, first.wait_ms(timedelta(seconds=9))) == (True, 9_000)


@given(st.binary(max_size=40), st.integers(0, 3))
def test_no_bytes_make_it_raise(noise: bytes, kept: int) -> None:
    node = Node()
    node.ask(frame_of(describe_cluster())[:kept] + noise)
    assert node.answers in ([], [None]) or node.answers[0]


def versions_response(node: Node, version: int) -> Any:
    node.ask(api_versions(min(version, 4)) if version <= 4 else _newer(version))
    answer = node.answers[-1]
    assert answer is not None
    kind = response_type("api_versions", version if version <= 4 else 0)
    response, size = entity_reader(kind)(answer, 4)  # the header of this response has no tags
    assert size == len(answer) - 4
    return response


def _newer(version: int) -> bytes:
    frame = bytearray(api_versions(4))
    frame[2:4] = version.to_bytes(2, "big")
    return bytes(frame)


def test_api_versions_lists_what_is_served_and_the_features() -> None:
    response = versions_response(Node(versions=range(1, 3)), 4)
    assert {int(one.api_key): (int(one.min_version), int(one.max_version)) for one in response.api_keys} == {
        18: (0, 4),
        60: (1, 2),
    }
    assert {one.name: int(one.max_version) for one in response.supported_features} == {
        "metadata.version": 29,
        "group.version": 1,
    }
    assert [(one.name, int(one.max_version_level)) for one in response.finalized_features] == [("metadata.version", 29)]
    assert response.finalized_features_epoch == 12


def test_a_client_that_takes_a_level_of_0_for_an_error_does_not_get_it() -> None:
    response = versions_response(Node(), 3)
    assert [one.name for one in response.supported_features] == ["metadata.version"]


@pytest.mark.parametrize("name", ["a b", "", "-a", "a\n"])
def test_software_without_a_proper_name_learns_nothing(name: str) -> None:
    kind = request_type("api_versions", 4)
    node = Node()
    node.ask(frame_of(kind(client_software_name=name, client_software_version="1")))
    (answer,) = node.answers
    assert answer is not None
    response, _ = entity_reader(response_type("api_versions", 4))(answer, 4)
    assert response.error_code == ErrorCode.INVALID_REQUEST
    assert response.api_keys == ()


def test_an_unknown_version_of_api_versions_is_answered_in_the_oldest_with_an_error() -> None:
    response = versions_response(Node(), 9)
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [int(one.api_key) for one in response.api_keys] == [18]  # with which version to ask again (KIP-511)
