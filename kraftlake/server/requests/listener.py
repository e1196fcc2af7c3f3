"""Listens for clients, and passes their requests to handler threads."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final

from kraftlake.image.endpoint import Endpoint
from kraftlake.runtime.clock import Clock
from kraftlake.runtime.errors import EnvironmentFaultError
from kraftlake.runtime.log import get_logger
from kraftlake.server.listener_security import PLAINTEXT, ListenerSecurity
from kraftlake.server.node_config import ListenerAddress
from kraftlake.server.quotas.connection_rates import ConnectionRates
from kraftlake.server.requests.authentication_counts import AuthenticationCounts
from kraftlake.server.requests.buffered_bytes import BufferedBytes
from kraftlake.server.requests.client_connection import ClientConnection
from kraftlake.server.requests.dispatcher import Peer
from kraftlake.server.requests.doorway import Doorway
from kraftlake.server.requests.entrance import Entrance
from kraftlake.server.requests.frame_buffer import FrameBuffer
from kraftlake.server.requests.guarded_connection import GuardedConnection
from kraftlake.server.requests.listener_limits import ConnectionPace, ListenerLimits
from kraftlake.server.requests.login_users import LoginUsers
from kraftlake.server.requests.request_queue import Handle, RequestQueue

_FLUSH_SECONDS: Final = 1.0
"""The time for which the close waits until clients have read the answers already given."""
_ACCEPT_AGAIN_SECONDS: Final = 1.0
"""The delay before connections are accepted again after the system ran out of file descriptors."""
_LONGEST_SWEEP_SECONDS: Final = 5.0
_MOST_THROTTLED: Final = 1_000
"""The maximum number of connections of throttled addresses that are kept open; beyond it, one is closed at once."""


class RequestListener:
    """Accepts connections from `start` to `close`, and passes their requests to a few handler threads.

    `handle` is that of a `Dispatcher`: it gets a frame, its sender, and a function that takes the answer, see
    `Respond`; only the first answer to a request counts. `ended` gets the sender of each connection at its end. The
    requests of a connection are handled in order, the next one after the answer to the last; those of several
    connections at the same time. The limits bound connections and memory, so that no client can starve others; an
    address whose connections exceed its quota by `rates` is not served. The
    sockets belong to an asyncio loop in a separate thread. `security` is asked of each connection before its requests
    are taken, `users` can log in; raises UsageError if the stores can't be opened. Source: kafka.network.SocketServer.
    """

    def __init__(
        self,
        name: str,
        host: str,
        port: int,
        handle: Handle,
        *,
        limits: ListenerLimits | None = None,
        rates: ConnectionRates | None = None,
        ended: Callable[[Peer], object] = lambda _: None,
        security: ListenerSecurity = PLAINTEXT,
        users: LoginUsers | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._entrance = Entrance(name, handle, security, users=users, clock=clock)
        self._name = name
        self._where = (host, port)
        self._handle = handle
        self._rates = rates
        self._peer_ended = ended
        self.limits = limits or ListenerLimits()
        """The limits of the listener."""
        self._running: _Running | None = None

    @property
    def name(self) -> str:
        """The listener's name."""
        return self._name

    @property
    def port(self) -> int:
        """The bound port, once started."""
        return self._run.port

    @property
    def connections(self) -> int:
        """The number of open connections."""
        return len(self._run.connections)

    @property
    def buffered_bytes(self) -> int:
        """The number of bytes in incomplete requests and in answers that clients have not read."""
        return self._run.buffered.total

    @property
    def security(self) -> ListenerSecurity:
        """What the listener asks of a connection."""
        return self._entrance.security

    @property
    def authentications(self) -> AuthenticationCounts:
        """The counts of TLS handshakes and logins."""
        return self._entrance.counts

    def secure(self, security: ListenerSecurity) -> None:
        """Ask other security of new connections, of the same protocol; stores are read anew. Raises UsageError."""
        assert security.protocol is self.security.protocol, "a listener keeps its protocol"
        self._entrance.secure(security)

    def limit(self, limits: ListenerLimits) -> None:
        """Apply other limits to connections from now on; existing requests keep the limits of the start."""
        self.limits = limits
        if self._running is not None:
            self._running.limit(limits)

    def start(self) -> None:
        """Start to listen. Raises EnvironmentFaultError where that is not possible."""
        assert self._running is None, "it is started once"
        bound = bound_socket(*self._where, self.limits)
        self._running = _Running(
            self._entrance, bound, self._handle, self.limits, rates=self._rates, peer_ended=self._peer_ended
        )
        self._running.start()

    def close(self) -> None:
        """Take no more requests, send the finished answers, and close all connections; within about two seconds."""
        if self._running is not None:
            self._running.close()

    @property
    def _run(self) -> _Running:
        assert self._running is not None, "it was started"
        return self._running


class _Running:
    """The state of a running listener; everything but `start` and `close` runs in the loop's thread."""

    def __init__(
        self,
        entrance: Entrance,
        bound: socket.socket,
        handle: Handle,
        limits: ListenerLimits,
        *,
        rates: ConnectionRates | None,
        peer_ended: Callable[[Peer], object],
    ) -> None:
        self._entrance = entrance
        self._name = name = entrance.listener
        self._rates = rates
        self._too_many: set[socket.socket] = set()
        """The connections of addresses that create them too fast; each is closed after its throttle time."""
        self._peer_ended = peer_ended
        self._socket = bound
        self.port = int(bound.getsockname()[1])
        self._limits = limits
        self._pace = ConnectionPace(limits.max_connection_creation_rate)
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(_log_loop_error)
        self._queue = RequestQueue(name, handle, limits, self._loop)
        self.buffered = BufferedBytes(limits.buffered_max_bytes)
        self._door = Doorway(self._loop) if entrance.is_guarded else None
        self.connections: set[ClientConnection] = set()
        self._by_host: Counter[str] = Counter()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._idle_seconds = limits.connections_max_idle_ms / 1000
        self._is_ending = False
        self._thread = threading.Thread(target=self._run, name=f"{name}-listener", daemon=True)

    def start(self) -> None:
        self._queue.start()
        self._thread.start()

    def close(self) -> None:
        with suppress(RuntimeError):  # it was closed before
            self._loop.call_soon_threadsafe(self._end)
        self._thread.join()
        self._queue.close()

    def limit(self, limits: ListenerLimits) -> None:
        def change() -> None:
            if limits.max_connection_creation_rate != self._limits.max_connection_creation_rate:
                self._pace = ConnectionPace(limits.max_connection_creation_rate)
            self._limits = limits
            self._accept_on()

        with suppress(RuntimeError):  # it was closed before
            self._loop.call_soon_threadsafe(change)

    def _run(self) -> None:
        self._accept_on()
        self._sweep()
        self._loop.run_forever()
        self._loop.close()

    def _end(self) -> None:
        self._is_ending = True
        self._loop.remove_reader(self._socket)
        self._socket.close()
        for client in tuple(self._too_many):
            self._close_throttled(client)
        for connection in tuple(self.connections):
            connection.close()
        self._loop.call_later(_FLUSH_SECONDS, self._abort)
        self._stop_if_done()

    def _abort(self) -> None:
        for connection in tuple(self.connections):
            connection.abort()

    def _stop_if_done(self) -> None:
        if self._is_ending and not self.connections and not self._tasks:
            self._loop.stop()

    def _accept_on(self) -> None:
        if not self._is_ending:
            self._loop.add_reader(self._socket, self._accept)

    def _accept(self) -> None:
        # Newcomers that cost more than an accept come in one at a time: others are served in between.
        for _ in range(self._limits.socket_listen_backlog_size if self._door is None else 1):
            if len(self.connections) >= self._limits.max_connections:
                self._loop.remove_reader(self._socket)  # until one ends
                return
            if wait_seconds := self._pace.wait_seconds(self._loop.time()):
                self._loop.remove_reader(self._socket)
                self._loop.call_later(wait_seconds, self._accept_on)
                return
            try:
                client, address = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as fault:  # no descriptor is left
                self._loop.remove_reader(self._socket)
                self._loop.call_later(_ACCEPT_AGAIN_SECONDS, self._accept_on)
                with suppress(OSError):  # what logs is imported when it is first needed
                    get_logger(__name__).warning("cannot_accept", cause=str(fault), listener=self._name)
                return
            host = str(address[0])
            wait_ms = 0 if self._rates is None else self._rates.record(host, int(self._loop.time() * 1_000))
            if wait_ms:
                self._throttle(client, wait_ms)
            else:
                self._pace.count()
                self._take(client, host)

    def _throttle(self, client: socket.socket, wait_ms: int) -> None:
        """Close a connection later, so that its client does not come back at once (KIP-612)."""
        self._too_many.add(client)
        if len(self._too_many) > _MOST_THROTTLED:
            self._close_throttled(next(iter(self._too_many)))
        self._loop.call_later(wait_ms / 1_000, self._close_throttled, client)

    def _close_throttled(self, client: socket.socket) -> None:
        self._too_many.discard(client)
        client.close()

    def _take(self, client: socket.socket, host: str) -> None:
        limits = self._limits
        if self._by_host[host] >= limits.max_connections_per_ip_overrides.get(host, limits.max_connections_per_ip):
            client.close()
            return
        client.setblocking(False)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection = self._connection(client, self._entrance.peer(host))
        self.connections.add(connection)
        self._by_host[host] += 1
        task = self._loop.create_task(self._loop.connect_accepted_socket(lambda: connection, client))
        self._tasks.add(task)

        def is_set_up(task: asyncio.Task[Any]) -> None:
            self._tasks.discard(task)
            if task.exception() is not None:
                client.close()
                self._ended(connection)
            elif self._is_ending:
                connection.close()
            self._stop_if_done()  # the connection may have ended before the task

        task.add_done_callback(is_set_up)

    def _connection(self, client: socket.socket, peer: Peer) -> ClientConnection:
        frames = FrameBuffer(longest=self._limits.socket_request_max_bytes)
        make: Callable[..., ClientConnection] = ClientConnection
        if self._door is not None:
            make = partial(GuardedConnection, guest=self._entrance.guest(self._door, peer))
        return make(client, peer, frames, self._queue, self.buffered, loop=self._loop, ended=self._ended)

    def _ended(self, connection: ClientConnection) -> None:
        if connection not in self.connections:
            return
        self.connections.remove(connection)
        self._peer_ended(connection.peer)
        self._by_host[connection.peer.host] -= 1
        if not self._by_host[connection.peer.host]:
            del self._by_host[connection.peer.host]
        if len(self.connections) < self._limits.max_connections:
            self._accept_on()
        self._stop_if_done()

    def _sweep(self) -> None:
        since = self._loop.time() - self._idle_seconds
        for connection in tuple(self.connections):
            connection.abort_if_idle(since)
        self._loop.call_later(min(self._idle_seconds / 4, _LONGEST_SWEEP_SECONDS), self._sweep)


def end_points(advertised: Mapping[str, ListenerAddress], listeners: Iterable[RequestListener]) -> dict[str, Endpoint]:
    """The addresses of running listeners for a registration, by name."""
    return {
        one.name: Endpoint(host=at.host, port=at.port or one.port, security_protocol=one.security.protocol)
        for one in listeners
        if (at := advertised[one.name])
    }


def bound_socket(host: str, port: int, limits: ListenerLimits) -> socket.socket:
    """Return a socket that listens at an address, without blocking. Raises EnvironmentFaultError on failure."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        bound = socket.socket(family, socket.SOCK_STREAM)
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            for option, size in (
                (socket.SO_RCVBUF, limits.socket_receive_buffer_bytes),
                (socket.SO_SNDBUF, limits.socket_send_buffer_bytes),
            ):
                if size > 0:  # its connections inherit it
                    bound.setsockopt(socket.SOL_SOCKET, option, size)
            bound.bind(address)
            bound.listen(limits.socket_listen_backlog_size)
            bound.setblocking(False)
        except OSError:
            bound.close()
            raise
    except (OSError, UnicodeError) as fault:  # also a name that no host can have
        reason = (fault.strerror if isinstance(fault, OSError) else None) or fault
        raise EnvironmentFaultError(
            f"{host}:{port} can't be listened on: {reason}. Give an address of this machine and a free port with "
            f"--listener."
        ) from None
    return bound


def _log_loop_error(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an internal error in the loop that has ended one connection."""
    get_logger(__name__).error("connection_failed", cause=repr(context.get("exception") or context["message"]))
