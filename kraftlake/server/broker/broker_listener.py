"""The listener of a broker that serves no clients."""

from __future__ import annotations

import socket
import struct
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from socketserver import BaseRequestHandler, ThreadingTCPServer
from typing import Final

from kraftlake.protocol.abort import Abort
from kraftlake.protocol.address import Address
from kraftlake.protocol.connection import Connection
from kraftlake.protocol.node_error import NodeError
from kraftlake.runtime.log import get_logger
from kraftlake.server.broker.refusals import api_versions, is_of_any_broker, refusal
from kraftlake.server.requests.listener import bound_socket
from kraftlake.server.requests.listener_limits import ListenerLimits
from kraftlake.server.requests.messages import UNREADABLE

_LENGTH: Final = struct.Struct(">i")
_LONGEST: Final = 16 * 1024 * 1024
"""The maximum size of a request: far above any, except requests with data, which are refused at any size."""
_LONGEST_ANSWER: Final = 100 * 1024 * 1024
_AT_ONCE: Final = 500
"""The maximum number of open connections, each with a thread; more are closed."""
_IDLE_SECONDS: Final = 600.0
"""The value of connections.max.idle.ms, in seconds."""
_CONNECT_SECONDS: Final = 3.0
_ANSWER_SECONDS: Final = 120.0
_CONTROLLER_SECONDS: Final = 10.0
_POLL_SECONDS: Final = 0.1
_BACKLOG: Final = 50


class BrokerListener:
    """Answers clients, each in a thread, from `start` to `close`.

    A `RequestListener` handles requests in a few threads; one neighbour that hangs would block all of them here.

    Clients send requests to any broker of a cluster. A request that every broker answers alike goes to the first
    reachable broker of `neighbours`, and its answer back; requests for data are refused, see `refusal`. Without a
    neighbour, only ApiVersions is answered besides. If no neighbour may be queried (`neighbours` returns None), each
    connection is closed at once: clients treat a broker that goes away as a transient fault. A request for controllers,
    as `controllers` decides, goes to the first controller that can be reached. `own` answers requests about this broker
    itself. `amend` gets each request with a neighbour's answer, and turns it into this broker's answer.
    """

    def __init__(
        self,
        host: str,
        port: int,
        neighbours: Callable[[], Sequence[Address] | None],
        controllers: Callable[[bytes], Sequence[Address] | None] = lambda _: None,
        own: Callable[[bytes], bytes | None] = lambda _: None,
        *,
        amend: Callable[[bytes, bytes], bytes] = lambda _, answer: answer,
    ) -> None:
        self._where = (host, port)
        self._neighbours = neighbours
        self._controllers = controllers
        self._own = own
        self._amend = amend
        self._lock = threading.Lock()
        self._clients: dict[socket.socket, Abort] = {}
        """The open connections, each with the abort of its connection to the neighbour."""
        self._server: ThreadingTCPServer | None = None
        self._log = get_logger(__name__)

    @property
    def port(self) -> int:
        """The bound port, once started."""
        assert self._server is not None, "it was started"
        return int(self._server.server_address[1])

    def start(self) -> None:
        """Start to listen. Raises EnvironmentFaultError where that is not possible."""
        bound = bound_socket(*self._where, ListenerLimits(socket_listen_backlog_size=_BACKLOG))
        self._server = _Server(bound, self._talk)
        serve = partial(self._server.serve_forever, poll_interval=_POLL_SECONDS)
        threading.Thread(target=serve, name="broker-listener", daemon=True).start()

    def close(self) -> None:
        """Close all connections, and end the threads."""
        if self._server is None:
            return
        self._server.shutdown()
        with self._lock:
            for client, abort in self._clients.items():
                abort.set()
                with suppress(OSError):
                    client.shutdown(socket.SHUT_RDWR)
        self._server.server_close()

    def _talk(self, client: socket.socket) -> None:
        abort = Abort()
        with self._lock:
            self._clients[client] = abort
            is_one_too_many = len(self._clients) > _AT_ONCE
        upstream: Connection | None = None
        try:
            neighbours = None if is_one_too_many else self._neighbours()
            if neighbours is None:
                return
            upstream = _connected(neighbours, abort)
            while (frame := _read_frame(client)) is not None:
                answer = self._answer(frame, upstream)
                if answer is None:
                    return
                client.sendall(_LENGTH.pack(len(answer)) + answer)
        except (OSError, NodeError):
            pass  # the client or its neighbour went away
        except UNREADABLE as fault:
            self._log.warning("unreadable_request", cause=f"{type(fault).__name__}: {fault}")
        finally:
            if upstream is not None:
                upstream.close()
            with self._lock:
                del self._clients[client]

    def _answer(self, frame: bytes, upstream: Connection | None) -> bytes | None:
        """Return the answer to a request; None if the connection has to be closed."""
        if not is_of_any_broker(frame):
            return self._own(frame) or refusal(frame)
        controllers = self._controllers(frame)
        if controllers is None:
            if upstream is None:
                return api_versions(frame)
            return self._amend(frame, upstream.exchange(frame, timeout=_ANSWER_SECONDS))
        controller = _connected(controllers)
        if controller is None:
            return None
        with controller:
            return controller.exchange(frame, timeout=_CONTROLLER_SECONDS)


class _Server(ThreadingTCPServer):
    """Runs `talk` for each connection, in a thread of its own."""

    def __init__(self, bound: socket.socket, talk: Callable[[socket.socket], None]) -> None:
        class Handler(BaseRequestHandler):
            def handle(self) -> None:
                talk(self.request)

        super().__init__(bound.getsockname()[:2], Handler, bind_and_activate=False)
        self.socket.close()
        self.socket, self.server_address = bound, bound.getsockname()

    def handle_error(self, request: object, client_address: object) -> None:  # noqa: ARG002
        """Log an internal error that has ended one connection."""
        get_logger(__name__).error("request_failed", cause=repr(sys.exception()))


def _connected(addresses: Sequence[Address], abort: Abort | None = None) -> Connection | None:
    """Return a connection to the first reachable address."""
    for address in addresses:
        with suppress(NodeError):
            return Connection(address, timeout=_CONNECT_SECONDS, max_response_bytes=_LONGEST_ANSWER, abort=abort)
    return None


def _read_frame(client: socket.socket) -> bytes | None:
    """Return the next request; None at the end."""
    client.settimeout(_IDLE_SECONDS)
    head = _receive(client, _LENGTH.size)
    if head is None:
        return None
    (size,) = _LENGTH.unpack(head)
    if not 0 < size <= _LONGEST:
        raise ValueError(f"a message of {size} bytes")
    return _receive(client, size)


def _receive(client: socket.socket, size: int) -> bytes | None:
    received = bytearray()
    while len(received) < size:
        part = client.recv(min(size - len(received), 1 << 16))
        if not part:
            return None
        received += part
    return bytes(received)
