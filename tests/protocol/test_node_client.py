from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

import pytest

from kraftlake.protocol.client_config import ClientConfig
from kraftlake.protocol.node_client import NodeClient
from kraftlake.protocol.node_connector import NodeConnector
from kraftlake.protocol.node_error import NodeError
from kraftlake.records.varint import MalformedError
from tests.protocol.fake_nodes import FakeController, encoded, frame, receive_frame, serving

FETCH = 1


class EchoNode(FakeController):
    """Answers Fetch with the rest of the request, after `head`."""

    def __init__(self, head: bytes = b"") -> None:
        super().__init__()
        self.versions = {18: (0, 4), FETCH: (4, 17)}
        self.head = head

    def __call__(self, connection: socket.socket) -> None:
        while True:
            request = receive_frame(connection)
            api_key, _, correlation_id = struct.unpack(">hhi", request[:8])
            if api_key in self.silent_apis:
                continue
            answer = encoded(self._api_versions()) if api_key == 18 else self.head + request
            connection.sendall(frame(struct.pack(">i", correlation_id + self.shift) + answer))


@pytest.fixture
def node() -> EchoNode:
    return EchoNode()


@pytest.fixture
def client(node: EchoNode) -> Iterator[NodeClient]:
    with serving(node) as address, NodeConnector(config=ClientConfig(client_id="näme"))(address) as client:
        yield client


def test_the_versions_of_an_api_are_known(client: NodeClient) -> None:
    assert client.versions_of(FETCH) == range(4, 18)
    assert not client.versions_of(2)


def echoed(client: NodeClient, *, versions: range = range(12, 14), timeout: float | None = None) -> bytes:
    return client.ask_encoded(
        FETCH, versions, lambda version: b"body of %d" % version, lambda data, at: data[at:], timeout=timeout
    )


def test_a_request_that_the_caller_encodes_has_the_header_and_the_newest_common_version(
    node: EchoNode, client: NodeClient
) -> None:
    client.versions_of(FETCH)
    node.head = b"\0"
    for correlation_id, (versions, version) in enumerate([(range(12, 14), 13), (range(12, 30), 17)], 2):
        header = struct.pack(">hhih", FETCH, version, correlation_id, 5) + "näme".encode()
        assert echoed(client, versions=versions) == header + b"\0body of %d" % version


def test_a_version_that_the_node_lacks_is_not_sent(client: NodeClient) -> None:
    with pytest.raises(NodeError, match=r"^127\.0\.0\.1:\d+ offers only versions 4 to 17 of API 1"):
        echoed(client, versions=range(18, 19))


@pytest.mark.parametrize("fault", [ValueError("?"), IndexError("?"), MalformedError("?"), struct.error("?")])
def test_an_answer_that_cannot_be_decoded_is_one_error_and_the_last(
    node: EchoNode, client: NodeClient, fault: Exception
) -> None:
    def decode(data: bytes, position: int) -> object:
        raise fault

    client.versions_of(FETCH)
    node.head = b"\0"
    with pytest.raises(NodeError, match=r"it sent \d+ bytes that are no answer of API 1"):
        client.ask_encoded(FETCH, range(12, 14), lambda _: b"", decode)
    with pytest.raises(NodeError, match="broke the connection off"):
        echoed(client)


@pytest.mark.parametrize("head", [b"\xff\xff\xff\xff\xff\xff", b"\x01\x07\xff\x7fxy"])
def test_an_answer_without_a_readable_header_is_one_error(node: EchoNode, client: NodeClient, head: bytes) -> None:
    client.versions_of(FETCH)
    node.head = head
    with pytest.raises(NodeError, match=r"does not speak Kafka's protocol: it sent .* without a response header"):
        echoed(client)


def test_tagged_fields_of_a_header_that_are_not_known_are_passed_over(node: EchoNode, client: NodeClient) -> None:
    client.versions_of(FETCH)
    node.head = b"\x01\x07\x02xy"
    echoed(client)


def test_the_answer_to_another_request_is_one_error(node: EchoNode, client: NodeClient) -> None:
    client.versions_of(FETCH)
    node.shift, node.head = 1, b"\0"
    with pytest.raises(NodeError, match="the answer to request 3, not to 2"):
        echoed(client)


def test_one_request_may_wait_for_a_time_of_its_own(node: EchoNode, client: NodeClient) -> None:
    client.versions_of(FETCH)
    node.silent_apis.add(FETCH)
    with pytest.raises(NodeError, match=r"did not answer within 0\.01 s"):
        echoed(client, timeout=0.01)
