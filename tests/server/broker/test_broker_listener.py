"""The listener of a broker that serves nobody, on real sockets."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager

import pytest
from structlog.testing import capture_logs

from kraftlake.protocol.address import Address
from kraftlake.protocol.message_scan import MOST_ELEMENTS
from kraftlake.protocol.node_connector import NodeConnector
from kraftlake.protocol.node_error import NodeError
from kraftlake.runtime.errors import EnvironmentFaultError
from kraftlake.server.broker.broker_listener import BrokerListener
from tests.protocol.fake_nodes import frame, receive, receive_frame, serving
from tests.server.broker.test_refusals import framed, read, request

NOWHERE = Address("127.0.0.1", 1)


@contextmanager
def listening(serving: Sequence[Address] | None) -> Iterator[int]:
    listener = BrokerListener("127.0.0.1", 0, lambda: serving)
    listener.start()
    try:
        yield listener.port
    finally:
        listener.close()


@contextmanager
def connected(port: int) -> Iterator[socket.socket]:
    with closing(socket.create_connection(("127.0.0.1", port), timeout=120)) as connection:
        yield connection


def is_closed(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True


def test_without_serving_brokers_a_client_learns_the_versions_and_that_it_leads_nothing() -> None:
    with listening([]) as port:
        with NodeConnector()(Address("127.0.0.1", port)) as node:
            assert node.versions_of(1) == range(4, 19)
            with pytest.raises(NodeError, match="closed the connection"):
                node.ask(
                    "describe_cluster",
                    range(2),
                    lambda module: module.DescribeClusterRequest(include_cluster_authorized_operations=False),
                )
        with connected(port) as client:
            client.sendall(frame(request("produce", 9)) + frame(request("fetch", 13)))
            for name, version in (("produce", 9), ("fetch", 13)):
                assert read(name, version, receive_frame(client))


def test_what_every_broker_answers_alike_is_asked_of_a_neighbour_in_order() -> None:
    heard: list[bytes] = []

    def neighbour(connection: socket.socket) -> None:
        while True:
            heard.append(receive_frame(connection))
            connection.sendall(frame(b"answer %d" % len(heard)))

    metadata = framed("metadata", 9, b"what there is", flexible=True)
    with serving(neighbour) as address, listening([NOWHERE, address]) as port, connected(port) as client:
        client.sendall(frame(metadata) + frame(request("produce", 9)) + frame(metadata))
        assert receive_frame(client) == b"answer 1"
        assert read("produce", 9, receive_frame(client)).responses
        assert receive_frame(client) == b"answer 2"
        assert heard == [metadata, metadata]
        client.sendall(frame(framed("describe_log_dirs", 4, b"", flexible=True)))
        assert is_closed(client)
    assert len(heard) == 2


def test_what_is_for_a_controller_goes_there_and_the_rest_still_to_the_neighbour() -> None:
    def answering(answer: bytes) -> Callable[[socket.socket], None]:
        def talk(connection: socket.socket) -> None:
            while True:
                receive_frame(connection)
                connection.sendall(frame(answer))

        return talk

    change, metadata = (
        framed(name, version, b"", flexible=True)
        for name, version in (("incremental_alter_configs", 1), ("metadata", 9))
    )
    with serving(answering(b"a neighbour")) as neighbour, serving(answering(b"a controller")) as controller:
        known = [NOWHERE, controller]
        listener = BrokerListener("127.0.0.1", 0, lambda: [neighbour], lambda asked: known if asked == change else None)
        listener.start()
        with closing(listener), connected(listener.port) as client:
            client.sendall(frame(metadata) + frame(change) + frame(metadata))
            answers = [receive_frame(client) for _ in range(3)]
            assert answers == [b"a neighbour", b"a controller", b"a neighbour"]
            known.clear()
            client.sendall(frame(change))
            assert is_closed(client)


def test_a_neighbour_that_goes_away_takes_the_client_along() -> None:
    with (
        serving(lambda connection: receive(connection, 5) and None) as address,
        listening([address]) as port,
        connected(port) as client,
    ):
        client.sendall(frame(framed("metadata", 9, b"", flexible=True)))
        assert is_closed(client)


def test_where_no_neighbour_may_be_asked_nobody_is_answered() -> None:
    with listening(None) as port, connected(port) as client:
        client.sendall(frame(framed("api_versions", 3, b"\1\1\0", flexible=True)))
        assert is_closed(client)


TOO_MANY = MOST_ELEMENTS + 1


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        struct.pack(">i", -1),
        struct.pack(">i", 0),
        struct.pack(">i", 17 << 20),
        frame(b"\0\1"),
        frame(framed("list_offsets", 1, bytes(4) + struct.pack(">i", TOO_MANY) + bytes(6 * TOO_MANY), flexible=False)),
    ],
)
def test_what_is_no_request_ends_the_connection_alone(sent: bytes) -> None:
    with listening([]) as port:
        with connected(port) as stranger:
            stranger.sendall(sent)
            assert is_closed(stranger)
        with connected(port) as client:
            client.sendall(frame(request("fetch", 13)))
            assert receive_frame(client)


def test_a_fault_of_our_own_ends_the_connection_alone_and_shows_no_traceback(
    capfd: pytest.CaptureFixture[str],
) -> None:
    def fails(_: bytes) -> None:
        raise RuntimeError("not foreseen")

    listener = BrokerListener("127.0.0.1", 0, list, own=fails)
    listener.start()
    with capture_logs() as logs, closing(listener), connected(listener.port) as client:
        client.sendall(frame(request("fetch", 13)))
        assert is_closed(client)
        with connected(listener.port) as other:
            other.sendall(frame(framed("api_versions", 3, b"\1\1\0", flexible=True)))
            assert receive_frame(other)
    assert [one["cause"] for one in logs] == ["RuntimeError('not foreseen')"]
    assert "Traceback" not in capfd.readouterr().err


def test_many_clients_are_answered_at_a_time() -> None:
    with listening([]) as port, ExitStack() as stack:
        clients = [stack.enter_context(connected(port)) for _ in range(50)]
        for client in clients:
            client.sendall(frame(request("fetch", 13)))
        for client in reversed(clients):
            assert receive_frame(client)


def test_a_port_that_is_taken_is_named() -> None:
    with listening([]) as port, pytest.raises(EnvironmentFaultError, match=f"127.0.0.1:{port} can't be listened on"):
        BrokerListener("127.0.0.1", port, list).start()


def test_a_name_that_no_host_can_have_is_named() -> None:
    with pytest.raises(EnvironmentFaultError, match=r"^a\.\.b:9092 can't be listened on: "):
        BrokerListener("a..b", 9092, list).start()


def test_its_end_closes_all_connections() -> None:
    before = set(threading.enumerate())
    with listening([]) as port, connected(port) as client:
        client.sendall(frame(request("fetch", 13)))
        assert receive_frame(client)
        with ExitStack() as stack:
            stack.enter_context(connected(port))
    assert set(threading.enumerate()) <= before
