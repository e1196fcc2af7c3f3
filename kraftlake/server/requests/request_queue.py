"""The queue of requests between a listener's connections and its handler threads."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Final, TypeAlias

from kraftlake.runtime.log import get_logger
from kraftlake.server.requests.dispatcher import Peer, Respond
from kraftlake.server.requests.listener_limits import ListenerLimits
from kraftlake.server.requests.messages import is_large

Handle: TypeAlias = Callable[[bytes, Peer, Respond], None]
_Queue: TypeAlias = SimpleQueue[tuple[bytes, Peer, Respond] | None]
_ENDS_WITHIN_SECONDS: Final = 1.0
"""The time for which the close waits for handlers that are at work."""


class RequestQueue:
    """Queues requests for a few handler threads; a caller that finds the queue full waits until it has room.

    Requests with very many elements are handled by a separate thread, one at a time: together they take the memory of
    one, and other requests do not wait for them. All work but the handling runs in the thread of `loop`. Source:
    kafka.network.RequestChannel.
    """

    def __init__(self, name: str, handle: Handle, limits: ListenerLimits, loop: asyncio.AbstractEventLoop) -> None:
        self._handle = handle
        self._limits = limits
        self._loop = loop
        self._queue: _Queue = SimpleQueue()
        self._large: _Queue = SimpleQueue()
        self._waiting: deque[Callable[[], None]] = deque()
        self._lock = threading.Lock()
        self._bytes = 0
        """The size of all requests that are queued or being handled."""
        self._threads = [
            threading.Thread(target=self._work, args=(queue,), name=f"{name}-request-handler-{number}", daemon=True)
            for number, queue in enumerate([self._queue] * limits.num_io_threads + [self._large])
        ]

    def start(self) -> None:
        """Begin to handle requests."""
        for thread in self._threads:
            thread.start()

    @property
    def has_room(self) -> bool:
        """Whether the queue has room for a request."""
        limits = self._limits
        return self._queue.qsize() < limits.queued_max_requests and self._bytes < limits.queued_max_request_bytes

    def put(self, frame: bytes, peer: Peer, respond: Respond) -> None:
        """Queue a request for the next free thread."""
        with self._lock:
            self._bytes += len(frame)
        self._queue.put((frame, peer, respond))

    def wait(self, go_on: Callable[[], None]) -> None:
        """Call `go_on`, in order, when the queue has room."""
        self._waiting.append(go_on)
        self._admit()  # room that was made before a thread could see who waits

    def close(self) -> None:
        """Drop the queued requests, and end the threads; a thread that is still at work ends after its request."""
        for queue in (self._queue, self._large):
            with suppress(Empty):
                while True:
                    queue.get_nowait()
            for _ in self._threads:
                queue.put(None)
        until = time.monotonic() + _ENDS_WITHIN_SECONDS
        for thread in self._threads:
            thread.join(max(until - time.monotonic(), 0))

    def _work(self, queue: _Queue) -> None:
        while (work := queue.get()) is not None:
            self._wake()
            frame, peer, respond = work
            if queue is self._queue and is_large(frame):
                self._large.put(work)
                del work, frame, respond
                continue
            try:
                self._handle(frame, peer, respond)
            except Exception as fault:  # a fault of ours ends one connection, not the thread
                get_logger(__name__).error("request_failed", cause=repr(fault))
                respond(None)
            with self._lock:
                self._bytes -= len(frame)
            self._wake()
            del work, frame, respond  # not held while the next one is waited for

    def _wake(self) -> None:
        if self._waiting:
            with suppress(RuntimeError):  # the listener was closed
                self._loop.call_soon_threadsafe(self._admit)

    def _admit(self) -> None:
        while self._waiting and self.has_room:
            self._waiting.popleft()()
