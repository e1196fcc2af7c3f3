"""The listener of a broker that serves no clients."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Final

import attrs

from kraftlake.protocol.abort import Abort
from kraftlake.protocol.address import Address
from kraftlake.protocol.connection import Connection
from kraftlake.protocol.node_error import NodeError
from kraftlake.runtime.log import get_logger
from kraftlake.server.broker.refusals import api_versions, is_of_any_broker, refusal
from kraftlake.server.requests.dispatcher import Peer, Respond
from kraftlake.server.requests.listener import RequestListener
from kraftlake.server.requests.listener_limits import ListenerLimits
from kraftlake.server.requests.messages import UNREADABLE

_LONGEST_ANSWER: Final = 100 * 1024 * 1024
_LIMITS: Final = ListenerLimits(
    socket_request_max_bytes=16 * 1024 * 1024, max_connections=500, socket_listen_backlog_size=50, num_io_threads=1
)
"""Requests are short, except those with data, which are refused at any size; each connection may need a thread."""
_CONNECT_SECONDS: Final = 3.0
_ANSWER_SECONDS: Final = 120.0
_CONTROLLER_SECONDS: Final = 10.0


@attrs.define(eq=False)
class _Upstream:
    """The connection to a serving broker on behalf of one client; None if none could be reached.

    The broker is chosen at the client's first request.
    """

    lock: threading.Lock = attrs.field(factory=threading.Lock)
    abort: Abort = attrs.field(factory=Abort)
    connection: Connection | None = None
    is_chosen: bool = False

    def close(self) -> None:
        """Close the connection once no request uses it."""
        with self.lock:
            if self.connection is not None:
                self.connection.close()


class BrokerListener:
    """Answers clients from `start` to `close`, each request in a thread: a broker that hangs blocks one client.

    Clients send requests to any broker of a cluster. A request that every broker answers alike goes to the first
    reachable broker of `serving`, and its answer back; requests for data are refused, see `refusal`. Without a serving
    broker, only ApiVersions is answered besides. If none may be queried (`serving` returns None), each connection is
    closed at its first request: clients treat a broker that goes away as a transient fault. A request for controllers,
    as `controllers` decides, goes to the first controller that can be reached. `own` answers requests about this broker
    itself. `amend` gets each request with a serving broker's answer, and turns it into this broker's answer.
    """

    def __init__(
        self,
        host: str,
        port: int,
        serving: Callable[[], Sequence[Address] | None],
        controllers: Callable[[bytes], Sequence[Address] | None] = lambda _: None,
        own: Callable[[bytes], bytes | None] = lambda _: None,
        *,
        amend: Callable[[bytes, bytes], bytes] = lambda _, answer: answer,
    ) -> None:
        self._serving = serving
        self._controllers = controllers
        self._own = own
        self._amend = amend
        self._listener = RequestListener("broker", host, port, self._handle, limits=_LIMITS, ended=self._ended)
        self._threads = ThreadPoolExecutor(_LIMITS.max_connections, "broker-listener")
        self._upstream: dict[Peer, _Upstream] = {}
        self._log = get_logger(__name__)

    @property
    def port(self) -> int:
        """The bound port, once started."""
        return self._listener.port

    def start(self) -> None:
        """Start to listen. Raises EnvironmentFaultError where that is not possible."""
        self._listener.start()

    def close(self) -> None:
        """Close all connections, and end the threads."""
        self._listener.close()
        self._threads.shutdown()

    def _handle(self, frame: bytes, peer: Peer, respond: Respond) -> None:
        upstream = self._upstream.setdefault(peer, _Upstream())
        self._threads.submit(self._respond, frame, upstream, respond)

    def _ended(self, peer: Peer) -> None:
        upstream = self._upstream.pop(peer, None)
        if upstream is not None:
            upstream.abort.set()
            self._threads.submit(upstream.close)

    def _respond(self, frame: bytes, upstream: _Upstream, respond: Respond) -> None:
        answer = None
        try:
            with upstream.lock:
                answer = self._answer(frame, upstream)
        except NodeError:
            pass  # the serving broker went away
        except UNREADABLE as fault:
            self._log.warning("unreadable_request", cause=f"{type(fault).__name__}: {fault}")
        except Exception as fault:  # a fault of ours ends one connection
            self._log.error("request_failed", cause=repr(fault))
        respond(answer)

    def _answer(self, frame: bytes, upstream: _Upstream) -> bytes | None:
        """Return the answer to a request; None if the connection has to be closed."""
        if not upstream.is_chosen:
            serving = self._serving()
            if serving is None:
                return None
            upstream.connection = _connected(serving, upstream.abort)
            upstream.is_chosen = True
        if not is_of_any_broker(frame):
            return self._own(frame) or refusal(frame)
        controllers = self._controllers(frame)
        if controllers is None:
            if upstream.connection is None:
                return api_versions(frame)
            return self._amend(frame, upstream.connection.exchange(frame, timeout=_ANSWER_SECONDS))
        controller = _connected(controllers)
        if controller is None:
            return None
        with controller:
            return controller.exchange(frame, timeout=_CONTROLLER_SECONDS)


def _connected(addresses: Sequence[Address], abort: Abort | None = None) -> Connection | None:
    """Return a connection to the first reachable address."""
    for address in addresses:
        with suppress(NodeError):
            return Connection(address, timeout=_CONNECT_SECONDS, max_response_bytes=_LONGEST_ANSWER, abort=abort)
    return None
