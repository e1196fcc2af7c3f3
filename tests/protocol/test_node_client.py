from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

import pytest

from kraftlake.protocol import ClientConfig, NodeClient, NodeConnector, NodeError
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


def test_a_raw_request_has_the_header_of_its_version_and_its_answer_is_returned_without_one(
    node: EchoNode, client: NodeClient
) -> None:
    header = struct.pack(">hhih", FETCH, 11, 2, 5) + "näme".encode()
    assert client.ask_raw(FETCH, 11, b"body", flexible=False) == header + b"body"
    node.head = b"\0"
    header = struct.pack(">hhih", FETCH, 12, 3, 5) + "näme".encode()
    assert client.ask_raw(FETCH, 12, b"body", flexible=True) == header + b"\0body"


def test_a_version_that_the_node_lacks_is_not_sent(client: NodeClient) -> None:
    with pytest.raises(NodeError, match=r"^127\.0\.0\.1:\d+ does not offer version 18 of API 1"):
        client.ask_raw(FETCH, 18, b"", flexible=True)


@pytest.mark.parametrize("head", [b"\xff\xff\xff\xff\xff\xff", b"\x01\x07\x02xy"])
def test_an_answer_without_a_readable_header_is_one_error(node: EchoNode, client: NodeClient, head: bytes) -> None:
    client.versions_of(FETCH)
    node.head = head
    with pytest.raises(NodeError, match=r"does not speak Kafka's protocol: it sent .* without a response header"):
        client.ask_raw(FETCH, 12, b"", flexible=True)


def test_the_answer_to_another_request_is_one_error(node: EchoNode, client: NodeClient) -> None:
    client.versions_of(FETCH)
    node.shift = 1
    with pytest.raises(NodeError, match="the answer to request 3, not to 2"):
        client.ask_raw(FETCH, 11, b"", flexible=False)


def test_one_request_may_wait_for_a_time_of_its_own(node: EchoNode, client: NodeClient) -> None:
    client.versions_of(FETCH)
    node.silent_apis.add(FETCH)
    with pytest.raises(NodeError, match=r"did not answer within 0\.01 s"):
        client.ask_raw(FETCH, 12, b"", flexible=True, timeout=0.01)
