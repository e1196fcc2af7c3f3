from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, closing

import pytest

from kraftlake.protocol.abort import Abort
from kraftlake.protocol.address import Address
from kraftlake.protocol.client_config import ClientConfig
from kraftlake.protocol.connection import Connection
from kraftlake.protocol.node_connector import NodeConnector
from kraftlake.protocol.node_error import NodeError
from kraftlake.protocol.tls_config import TlsConfig
from tests.protocol.fake_nodes import frame, receive_frame, serving
from tests.protocol.test_tls import TRUST
from tests.protocol.test_tls import server as tls_server

LONG = 600.0
"""Seconds that nothing in this file waits."""


def aborted(abort: Abort, wait: Callable[[], object]) -> None:
    """Check that `wait` begins to wait, and ends by a NodeError once it is aborted."""
    faults: list[NodeError] = []

    def run() -> None:
        try:
            wait()
        except NodeError as fault:
            faults.append(fault)

    thread = threading.Thread(target=run)
    thread.start()
    time.sleep(0.1)
    assert thread.is_alive(), "it has to wait for what does not come"
    abort.set()
    thread.join(LONG)
    assert not thread.is_alive()
    assert len(faults) == 1


def silent(connection: socket.socket) -> None:
    while connection.recv(1000):
        pass


def test_an_exchange_in_flight_ends_and_each_later_one() -> None:
    abort = Abort()
    with serving(silent) as address, Connection(address, timeout=LONG, abort=abort) as connection:
        aborted(abort, lambda: connection.exchange(b"hello"))
        with pytest.raises(NodeError):
            connection.exchange(b"again")


def test_a_connection_that_is_being_made_ends() -> None:
    abort = Abort()
    with ExitStack() as stack:
        server = stack.enter_context(closing(socket.socket()))
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        where = server.getsockname()
        for _ in range(4):  # more than wait in a queue of length 0: the packets of the next ones are dropped
            waiting = stack.enter_context(closing(socket.socket()))
            waiting.setblocking(False)
            waiting.connect_ex(where)
        aborted(abort, lambda: Connection(Address(*where), timeout=LONG, abort=abort))


def test_a_handshake_of_tls_ends() -> None:
    abort = Abort()
    connect = NodeConnector(config=ClientConfig(tls=TlsConfig(truststore=TRUST)), timeout=LONG)
    with serving(silent) as address:
        aborted(abort, lambda: connect(address, abort=abort))


def test_an_exchange_over_tls_ends() -> None:
    abort = Abort()
    connect = NodeConnector(config=ClientConfig(tls=TlsConfig(truststore=TRUST)), timeout=LONG)
    with serving(tls_server()) as address, connect(address, abort=abort) as node:
        node.versions_of(18)
        # the controller of the server waits for a whole frame
        aborted(abort, lambda: node._connection._receive(1, node._connection._deadline(LONG)))


def test_a_connection_after_the_abort_ends_at_once() -> None:
    abort = Abort()
    abort.set()
    with serving(silent) as address, pytest.raises(NodeError), Connection(address, timeout=LONG, abort=abort) as late:
        late.exchange(b"hello")


def test_what_is_not_aborted_goes_on_and_a_closed_connection_is_left_alone() -> None:
    def echo(connection: socket.socket) -> None:
        while True:
            connection.sendall(frame(receive_frame(connection)))

    abort = Abort()
    with serving(echo) as address:
        with Connection(address, timeout=LONG, abort=abort) as first:
            assert first.exchange(b"first") == b"first"
        with Connection(address, timeout=LONG, abort=abort) as second:
            first.close()
            assert second.exchange(b"second") == b"second"
    abort.set()
    assert abort.is_set
