from __future__ import annotations

import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.protocol.address import Address
from kraftlake.protocol.connection import Connection
from kraftlake.protocol.node_error import NodeError
from kraftlake.runtime.clock import ManualClock
from tests.protocol.fake_nodes import Talk, frame, receive_frame, serving
from tests.waiting import PATIENCE


def answer_to_hello(talk: Talk, **options: object) -> bytes:
    with serving(talk) as address, Connection(address, timeout=PATIENCE, **options) as connection:  # type: ignore[arg-type]
        return connection.exchange(b"hello")


def says(data: bytes) -> Talk:
    def talk(connection: socket.socket) -> None:
        receive_frame(connection)
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        connection.recv(1)

    return talk


def test_a_frame_is_answered_by_a_frame() -> None:
    def echo(connection: socket.socket) -> None:
        while True:
            connection.sendall(frame(receive_frame(connection)[::-1]))

    with serving(echo) as address, Connection(address, timeout=PATIENCE) as connection:
        for size in (0, 1, 100_000):
            data = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
            assert connection.exchange(data) == data[::-1]


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "is an HTTP server, no Kafka node"),
        (b"\x15\x03\x03\x00\x02\x02\x46", "wants TLS"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "is an SSH server"),
        (b"\xff\xff\xff\xff", "does not speak Kafka's protocol: it began with the bytes ff ff ff ff"),
        (b"\x7f\xff\xff\xff", "does not speak Kafka's protocol"),
        (b"", "closed the connection instead of answering"),
        (b"\0\0\0\x05abc", "closed the connection instead of answering"),
    ],
)
def test_the_error_names_an_address_that_is_no_kafka_node(said: bytes, message: str) -> None:
    with pytest.raises(NodeError, match=rf"^127\.0\.0\.1:\d+ .*{message}"):
        answer_to_hello(says(said))


@given(said=st.binary(max_size=40))
def test_any_bytes_of_a_peer_are_a_frame_or_one_error(said: bytes) -> None:
    size = int.from_bytes(said[:4], "big", signed=True)
    if len(said) >= 4 and 0 <= size <= len(said) - 4:
        assert answer_to_hello(says(said)) == said[4 : 4 + size]
    else:
        with pytest.raises(NodeError):
            answer_to_hello(says(said))


def test_a_frame_above_the_limit_is_not_received() -> None:
    assert answer_to_hello(says(frame(b"x" * 100)), max_response_bytes=100) == b"x" * 100
    with pytest.raises(NodeError, match="does not speak"):
        answer_to_hello(says(frame(b"x" * 101)), max_response_bytes=100)


def test_a_silent_node_times_out() -> None:
    def silent(connection: socket.socket) -> None:
        connection.recv(1000)
        connection.recv(1)

    with serving(silent) as address, Connection(address, timeout=PATIENCE) as connection:
        with pytest.raises(NodeError, match=r"did not answer within 0\.05 s"):
            connection.exchange(b"hello", timeout=0.05)
        with pytest.raises(NodeError, match="broke the connection off"):
            connection.exchange(b"again")


def test_a_slow_trickle_of_bytes_does_not_extend_the_timeout() -> None:
    clock = ManualClock()

    def trickle(connection: socket.socket) -> None:
        receive_frame(connection)
        connection.sendall(b"\0\0\0\x50")
        while True:
            clock.advance(1000)
            connection.sendall(b"x")
            connection.recv(0)

    with (
        serving(trickle) as address,
        Connection(address, timeout=5, clock=clock) as connection,
        pytest.raises(NodeError, match="did not answer within 5 s"),
    ):
        connection.exchange(b"hello")


def test_the_error_names_an_address_without_a_listener() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(NodeError, match=f"127.0.0.1:{port} refuses connections"):
        Connection(Address("127.0.0.1", port), timeout=5)
    with pytest.raises(NodeError, match=r"nowhere\.invalid:9092: the host is not known|can't be reached"):
        Connection(Address("nowhere.invalid", 9092), timeout=5)
    with pytest.raises(NodeError, match="can't be reached"):
        Connection(Address("x" * 70, 9092), timeout=5)
