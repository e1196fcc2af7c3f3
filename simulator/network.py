"""A network between processes in place of sockets: frames are delayed, lost, and cut off one way or both.

It stands at `Connection` on the side of clients, and at `RequestListener` on that of nodes.
A connection is as TCP's: what is lost is sent again, so that frames are late, or the connection breaks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any, Self
from zlib import crc32

import attrs

from kraftlake.protocol.address import Address
from kraftlake.protocol.connection import MAX_RESPONSE_BYTES
from kraftlake.protocol.node_error import ClosedConnectionError, NodeError, NotListeningError, SilentNodeError
from kraftlake.server.listener_security import PLAINTEXT, ListenerSecurity
from kraftlake.server.requests.authentication_counts import AuthenticationCounts
from kraftlake.server.requests.dispatcher import Peer
from kraftlake.server.requests.messages import api_of
from simulator import threads
from simulator.scheduler import FOREVER, MILLISECOND, SECOND, Killed, Process, Scheduler, Task, active

Handle = Callable[[bytes, Peer, Callable[[bytes | None], None]], None]
_RETRANSMISSION_NS = 200 * MILLISECOND
_IO_THREADS = 3
_PEER = Peer(listener="PLAINTEXT", host="127.0.0.1")


@attrs.define
class NetworkTrouble:
    """Shares of frames with a fate."""

    lost: float = 0.0
    """Sent again after a time that doubles; after four losses in a row the connection breaks."""
    broken: float = 0.0
    """The connection is reset in place of the frame."""
    late: float = 0.0
    """Of requests: the connection is reset, and the request arrives within `late_ns` all the same."""
    late_ns: int = 120 * SECOND
    slow: float = 0.0
    """Takes up to `slow_ns`."""
    slow_ns: int = 5 * SECOND


class VirtualListener:
    """In place of `RequestListener`: handles the frames of clients on a few threads of the process that makes it."""

    def __init__(
        self,
        name: str,
        host: str,
        port: int,
        handle: Handle,
        *,
        limits: Any = None,
        security: ListenerSecurity = PLAINTEXT,
        **_: Any,
    ) -> None:
        """Create it; the other arguments of a listener are about its sockets and logins."""
        self.authentications = AuthenticationCounts()
        self.name, self.address, self._handle = name, Address(host, port), handle
        self.security = security
        self._threads = min(_IO_THREADS, getattr(limits, "num_io_threads", _IO_THREADS))
        scheduler = active()
        self.network: Network = scheduler.outside.extra["network"]
        self.process = scheduler.process
        self._frames: deque[tuple[VirtualConnection, int, bytes]] = deque()
        self._news = threads.Condition()
        self._closed = False
        self.connections: dict[VirtualConnection, None] = {}
        """Those that are open."""
        self.unanswered: dict[tuple[VirtualConnection, int], tuple[int, str]] = {}
        """When each request came that has no answer yet, and the name of its API."""

    @property
    def port(self) -> int:
        """The port that is listened on."""
        return self.address.port

    def limit(self, limits: Any) -> None:
        """Take other limits, which are about its sockets."""

    def start(self) -> None:
        """Begin to listen."""
        assert self.address not in self.network.listeners, f"{self.address} is listened on"
        self.network.listeners[self.address] = self
        for number in range(self._threads):
            threads.Thread(target=self._run, name=f"{self.name}-{number}").start()

    def connect(self, connection: VirtualConnection) -> bool:
        """Take a connection, which a suspended process does too; outside of all tasks."""
        if self._closed or not self.process.alive:
            return False
        self.connections[connection] = None
        return True

    def arrive(self, connection: VirtualConnection, number: int, frame: bytes) -> None:
        """Take a frame, also of a client that has closed the connection since; outside of all tasks."""
        if self._closed or not self.process.alive:
            if not self.process.extra.get("power_is_cut"):
                connection.reset()
            return
        self._frames.append((connection, number, frame))
        self.unanswered[connection, number] = self.network.scheduler.now_ns, api_of(frame) or "?"
        self._news.notify()

    def leave(self, connection: VirtualConnection) -> None:
        """Forget a connection that is closed."""
        self.connections.pop(connection, None)

    def close(self) -> None:
        """Close all connections, and take no more."""
        self._closed = True
        self.end()
        with self._news:
            self._news.notify_all()

    def end(self) -> None:
        """Close all connections, as when the process ends."""
        if self.network.listeners.get(self.address) is self:
            del self.network.listeners[self.address]
        for connection in list(self.connections):
            connection.reset()
        self.connections.clear()

    def _next(self) -> tuple[VirtualConnection, int, bytes] | None:
        with self._news:
            while not self._closed:
                if self._frames:
                    return self._frames.popleft()
                self._news.wait()
        return None

    def _run(self) -> None:
        while (work := self._next()) is not None:
            connection, number, frame = work
            if connection.is_reset:
                if not self.network.arrives_late(connection.process, frame):
                    del self.unanswered[connection, number]
                    continue
                self.network.late_ns = self.network.scheduler.now_ns
            self._handle(frame, _PEER, partial(self._respond, connection, number))

    def _respond(self, connection: VirtualConnection, number: int, answer: bytes | None) -> None:
        if not self.process.alive:
            raise Killed
        network = self.network
        self.unanswered.pop((connection, number), None)
        if answer is None:
            network.scheduler.after(network.latency(), connection.reset)
        elif answer:
            network.scheduler.note(crc32(answer))
            network.send(self.process, connection.process, lambda: connection.receive(number, answer), connection.reset)


class Network:
    """All links between processes, by their names."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.chance = Random(scheduler.chance.getrandbits(64))
        self.listeners: dict[Address, VirtualListener] = {}
        self.trouble = NetworkTrouble()
        self.cut: set[tuple[str, str]] = set()
        """Pairs of names: from one to the other nothing arrives."""
        self.refused: set[tuple[str, str]] = set()
        """Pairs of names: the other refuses connections of the one, as a firewall does."""
        self.failing: dict[str, str] = {}
        """What the listener of a process does with new connections: it "refuses", "drops" or "ignores" them."""
        self.hits = 0
        """How many frames were lost, late, or hit by a cut."""
        self.frames = 0
        self.arrives_late: Callable[[Process, bytes], bool] = lambda _sender, _frame: True
        """Whether a request of a client that has given it up arrives."""
        self.late_ns = -FOREVER
        """When a request was handled last whose client had given it up, as by a process that had been suspended."""

    def process_ended(self, process: Process) -> None:
        """Close the connections of a process; after a power cut nobody learns of it."""
        for listener in [one for one in self.listeners.values() if one.process is process]:
            if process.extra.get("power_is_cut"):
                del self.listeners[listener.address]
            else:
                listener.end()

    def refuse(self, pairs: set[tuple[str, str]]) -> None:
        """Reset the connections of pairs of processes, by name, and refuse new ones."""
        self.refused |= pairs
        for listener in self.listeners.values():
            for connection in list(listener.connections):
                if (connection.process.name, listener.process.name) in pairs:
                    self.hits += 1
                    connection.reset()

    def refuses(self, sender: Process, receiver: Process) -> bool:
        """Whether a process refuses a connection of another one."""
        if self.failing.get(receiver.name) == "refuses":
            self.hits += 1
            return True
        return (sender.name, receiver.name) in self.refused

    def fail_listener(self, name: str, how: str, *, resets: bool) -> None:
        """Let a process take no new connections, and perhaps reset those that it has."""
        self.failing[name] = how
        for listener in self.listeners.values() if resets else ():
            for connection in list(listener.connections) if listener.process.name == name else ():
                self.hits += 1
                connection.reset()

    def latency(self) -> int:
        """The time that a frame takes."""
        return self.chance.randrange(MILLISECOND // 5, 2 * MILLISECOND)

    def is_cut(self, sender: Process, receiver: Process) -> bool:
        """Whether nothing arrives."""
        return bool(self.cut) and (sender.name, receiver.name) in self.cut

    def send(
        self, sender: Process, receiver: Process, arrive: Callable[[], None], lose: Callable[[], None], tries: int = 0
    ) -> None:
        """Let `arrive` happen at the receiver, or `lose` where the connection breaks."""
        chance, trouble = self.chance, self.trouble
        self.frames += 1
        if self.is_cut(sender, receiver) or (trouble.lost and chance.random() < trouble.lost):
            self.hits += 1
            if tries > 5:
                self.scheduler.after(self.latency(), lose)
                return
            again = lambda: self.send(sender, receiver, arrive, lose, tries + 1)  # noqa: E731
            self.scheduler.after(_RETRANSMISSION_NS << (2 * tries), again)
            return
        if trouble.broken and chance.random() < trouble.broken:
            self.hits += 1
            self.scheduler.after(self.latency(), lose)
            return
        delay_ns = self.latency()
        if trouble.slow and chance.random() < trouble.slow:
            self.hits += 1
            delay_ns = chance.randrange(trouble.slow_ns)
        self.scheduler.after(delay_ns, arrive)

    def ask(self, sender: Process, receiver: Process, arrive: Callable[[], None], lose: Callable[[], None]) -> None:
        """Send a request, as `send` does, or let it arrive when the sender has given it up."""
        chance, trouble = self.chance, self.trouble
        if not trouble.late or self.is_cut(sender, receiver) or chance.random() >= trouble.late:
            self.send(sender, receiver, arrive, lose)
            return
        self.hits += 1
        self.scheduler.after(self.latency(), lose)
        self.scheduler.after(chance.randrange(trouble.late_ns), arrive)


class VirtualAbort:
    """In place of `Abort`."""

    def __init__(self) -> None:
        self._watched: VirtualConnection | None = None
        self.is_set = False

    def watch(self, connection: VirtualConnection) -> None:
        self._watched = connection
        if self.is_set:
            connection.reset()

    def close(self, connection: VirtualConnection) -> None:
        if self._watched is connection:
            self._watched = None

    def set(self) -> None:
        self.is_set = True
        if self._watched is not None:
            self._watched.reset()


class VirtualConnection:
    """In place of `Connection`."""

    def __init__(
        self,
        address: Address,
        *,
        timeout: float,
        tls: Any = None,
        max_response_bytes: int = MAX_RESPONSE_BYTES,
        clock: Any = None,
        abort: VirtualAbort | None = None,
    ) -> None:
        assert tls is None, "virtual connections are plain"
        scheduler = active()
        self.address, self.process = address, scheduler.process
        self._abort = abort or VirtualAbort()
        self._timeout, self._limit = timeout, max_response_bytes
        self._scheduler = scheduler
        self._network: Network = scheduler.outside.extra["network"]
        self._number = 0
        self._answer: bytes | None = None
        self.is_reset = False
        """Whether its client takes no more answers; requests that were sent may arrive later all the same."""
        self._waiting: Task | None = None
        self._abort.watch(self)
        listener = self._network.listeners.get(address)
        if listener is None or self._network.refuses(self.process, listener.process):
            scheduler.sleep(self._network.latency())
            raise NotListeningError(f"{address} refuses connections: is a node running, with a listener on it?")
        self._listener = listener
        self._connect()

    def _connect(self) -> None:
        """A handshake: once to the listener and back."""
        network, there, here = self._network, self._listener.process, self.process

        def back() -> None:
            network.send(there, here, lambda: self.receive(0, b""), self.reset)

        def arrive() -> None:
            fate = network.failing.get(there.name)
            network.hits += fate is not None
            if fate == "ignores":
                return
            if fate is None and self._listener.connect(self):
                back()
            elif not there.extra.get("power_is_cut"):
                self.reset()

        network.send(here, there, arrive, self.reset)
        if self._wait(self._timeout) is None:
            self.close()
            if self.is_reset:
                raise NodeError(f"{self.address} can't be reached: it was reset.")
            raise NodeError(f"{self.address} does not answer: no connection within {self._timeout:g} s.")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close; closing again does nothing."""
        self._abort.close(self)
        self.is_reset = True
        listener = getattr(self, "_listener", None)
        if listener is not None:
            listener.leave(self)

    def reset(self) -> None:
        """The connection is gone: the task that waits on it is woken."""
        self.is_reset = True
        if self._waiting is not None:
            self._scheduler.wake(self._waiting)

    def receive(self, number: int, answer: bytes) -> None:
        """An answer has arrived; one to an earlier request than that which waits is dropped."""
        if number == self._number and not self.is_reset and self.process.alive:
            self._answer = answer
            if self._waiting is not None:
                self._scheduler.wake(self._waiting)

    def _wait(self, timeout: float) -> bytes | None:
        """The answer, None where it does not come in time or the connection ends."""
        deadline_ns = self._scheduler.now_ns + round(timeout * SECOND)
        self._waiting = self._scheduler.current
        try:
            while self._answer is None and not self.is_reset:
                if not self._scheduler.park(deadline_ns):
                    break
        finally:
            self._waiting = None
        answer, self._answer = self._answer, None
        return None if self.is_reset else answer

    def exchange(self, payload: bytes, *, timeout: float | None = None) -> bytes:
        """Send a frame and receive one. Raises NodeError."""
        allowed = self._timeout if timeout is None else timeout
        if self.is_reset:
            raise ClosedConnectionError(f"{self.address} broke the connection off (it was closed).")
        if allowed <= 0:
            self.close()
            raise SilentNodeError(f"{self.address} took the connection and did not answer within {allowed:g} s.")
        self._number += 1
        number, listener = self._number, self._listener
        self._scheduler.note(crc32(payload))
        self._network.ask(self.process, listener.process, lambda: listener.arrive(self, number, payload), self.reset)
        answer = self._wait(allowed)
        if answer is not None and len(answer) <= self._limit:
            return answer
        was_reset = self.is_reset
        self.close()
        if answer is not None:
            raise NodeError(f"{self.address} answers with {len(answer)} bytes.")
        if was_reset:
            raise ClosedConnectionError(f"{self.address} closed the connection instead of answering.")
        raise SilentNodeError(f"{self.address} took the connection and did not answer within {allowed:g} s.")
