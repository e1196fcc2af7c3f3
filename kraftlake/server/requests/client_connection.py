"""One client's connection to a listener: requests in, answers out, one at a time."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import attrs

from kraftlake.runtime.log import get_logger
from kraftlake.server.requests.buffered_bytes import BufferedBytes
from kraftlake.server.requests.dispatcher import Peer
from kraftlake.server.requests.frame_buffer import LENGTH, FrameBuffer
from kraftlake.server.requests.request_queue import RequestQueue


class ClientConnection(asyncio.Protocol):
    """Reads one request, waits for its answer, and only then takes the next one; so the answers are in order.

    A client that sends ahead is read once more; then its connection is paused until the answer is sent. For other
    clients, pausing would cost two system calls a request in vain. A client above its quota is muted after the answer:
    what it sends meanwhile stays in the system's buffers, and it counts as idle.

    All work runs in the loop's thread, except that the thread that has an answer sends it, and wakes the loop only for
    remaining work. Source: org.apache.kafka.common.network.KafkaChannel, kafka.network.Processor.
    """

    def __init__(
        self,
        client: socket.socket,
        peer: Peer,
        frames: FrameBuffer,
        queue: RequestQueue,
        buffered: BufferedBytes,
        *,
        loop: asyncio.AbstractEventLoop,
        ended: Callable[[ClientConnection], None],
    ) -> None:
        self.peer = attrs.evolve(peer, mute=self._mute)
        self._client = client
        self._frames = frames
        self._queue = queue
        self._buffered = buffered
        self._loop = loop
        self._ended = ended
        self._transport: asyncio.Transport | None = None
        self._lock = threading.Lock()
        """Held to change the next four fields, and during the send of an answer, so that the socket stays open."""
        self._number = 0
        """The number of the answer that is awaited, or of the next one."""
        self._is_pending = False
        """Whether the newest request is not answered yet, or its answer is not fully processed."""
        self._wakes_loop = False
        """Whether the loop has to continue after the answer: the client has sent ahead, or reading is paused."""
        self._mute_ms = 0
        """The time in ms for which the connection is muted after the awaited answer."""
        self._unmutes: asyncio.TimerHandle | None = None
        """What ends the time for which the connection is muted; None if it is not."""
        self._waits = False
        """Whether the next request waits for room in the queue."""
        self._unsent = 0
        """The unsent length of the last answer."""
        self._used = loop.time()
        """The time at which a request or an answer was last complete, or part of an answer was read."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to read."""
        assert isinstance(transport, asyncio.Transport)
        transport.set_write_buffer_limits(high=0)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Process received data."""
        self._frames.add(data)
        self._proceed()

    def resume_writing(self) -> None:
        """Continue when the client has read all of an answer."""
        self._unsent = 0
        self._used = self._loop.time()
        self._proceed()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Drop pending requests and answers."""
        with self._lock:
            self._transport = None
            self._is_pending = False
        if self._unmutes is not None:
            self._unmutes.cancel()
        self._unsent = 0
        self._frames.clear()
        self._buffered.hold(self.abort, 0)
        self._ended(self)

    def close(self) -> None:
        """Send the finished answers, and close the connection."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    def abort_if_idle(self, since: float) -> None:
        """Close the connection if only the client is awaited, and it has been inactive since a time of the loop."""
        if self._transport is None or self._is_pending or self._waits:
            return
        unsent = self._transport.get_write_buffer_size()
        if unsent < self._unsent:
            self._unsent, self._used = unsent, self._loop.time()
            self._hold()
        if self._used < since:
            self._transport.abort()

    def _proceed(self) -> None:
        """Take the next request, or read on, or pause, whichever is possible now."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        if self._must_wait() or self._unsent or self._waits or self._unmutes is not None:
            transport.pause_reading()
        elif self._queue.has_room:
            self._take_request(transport)
        else:
            transport.pause_reading()
            self._waits = True
            self._queue.wait(self._stop_waiting)
        self._hold()

    def _must_wait(self) -> bool:
        """Return whether the newest request is pending; if so, its answer wakes the loop."""
        with self._lock:
            self._wakes_loop = self._wakes_loop or self._is_pending
            return self._is_pending

    def _mute(self, milliseconds: int) -> None:
        """Read nothing for a time after the awaited answer, which follows from the same thread."""
        self._mute_ms = milliseconds

    def _unmute(self) -> None:
        self._unmutes = None
        self._proceed()

    def _stop_waiting(self) -> None:
        self._waits = False
        self._proceed()

    def _take_request(self, transport: asyncio.Transport) -> None:
        try:
            frame = self._frames.next()
        except ValueError as fault:
            get_logger(__name__).warning("unreadable_request", cause=str(fault), host=self.peer.host)
            transport.abort()
            return
        if frame is None:
            transport.resume_reading()
            return
        with self._lock:
            self._is_pending = True
            self._wakes_loop = self._frames.size > 0 or not transport.is_reading()
        self._used = self._loop.time()
        self._buffered.hold(self.abort, 0)  # what is held from here on is of the next request
        self._put(frame)

    def _put(self, frame: bytes) -> None:
        self._queue.put(frame, self.peer, partial(self._respond, self._number))

    def _hold(self) -> None:
        self._buffered.hold(self.abort, self._frames.held + self._unsent)

    def _respond(self, number: int, answer: bytes | None) -> None:
        """Take an answer, from any thread; only the first counts."""
        with self._lock:
            if self._transport is None or number != self._number:
                return
            self._number += 1
            left = self._sent_at_once(answer) if answer else answer
            self._used = self._loop.time()
            mute_ms, self._mute_ms = self._mute_ms, 0
            if left == b"" and not self._wakes_loop and not mute_ms:
                self._is_pending = False
                return
        with suppress(RuntimeError):  # the listener was closed
            self._loop.call_soon_threadsafe(self._go_on, left, mute_ms)

    def _sent_at_once(self, answer: bytes) -> bytes:
        """Send the part of an answer that the system accepts; returns the rest."""
        head, answer = self._wire(answer)
        try:
            sent = self._client.sendmsg([head, answer])
        except OSError:  # there is no room, or the loop will find that the connection is broken
            sent = 0
        return head[sent:] + answer[max(sent - len(head), 0) :]

    def _wire(self, answer: bytes) -> tuple[bytes, bytes]:
        """Return the bytes that carry an answer to the client, in two parts."""
        return LENGTH.pack(len(answer)), answer

    def _go_on(self, left: bytes | None, mute_ms: int = 0) -> None:
        """Send the rest of an answer, and take the next request after `mute_ms`; None closes the connection."""
        transport = self._transport
        if transport is None:
            return
        with self._lock:
            self._is_pending = False
        if left is None:
            self.close()
            return
        if left:
            transport.write(left)
            self._unsent = transport.get_write_buffer_size()
        if mute_ms:
            self._unmutes = self._loop.call_later(mute_ms / 1_000, self._unmute)
        self._proceed()
