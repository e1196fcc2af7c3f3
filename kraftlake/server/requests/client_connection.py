"""One client's connection to a listener: frames in, answers out, one request at a time."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final

from kraftlake.runtime import get_logger
from kraftlake.server.requests.buffered_bytes import BufferedBytes
from kraftlake.server.requests.dispatcher import Peer
from kraftlake.server.requests.request_queue import RequestQueue

_LENGTH: Final = struct.Struct(">i")
_JOINED: Final = 64 * 1024
"""Answers up to this length are copied behind their length, and so go out in one packet."""


class ClientConnection(asyncio.Protocol):
    """Reads a request, has it answered, and only then reads the next one; the answers are in order by that.

    While a request is not answered, one read goes ahead at most: then the connection is paused. A muted channel costs
    two system calls, so it is one only where a client does send ahead. Everything but `respond` happens in the loop's
    thread. Source: org.apache.kafka.common.network.KafkaChannel, kafka.network.Processor.
    """

    def __init__(
        self,
        peer: Peer,
        queue: RequestQueue,
        buffered: BufferedBytes,
        longest: int,
        *,
        loop: asyncio.AbstractEventLoop,
        ended: Callable[[ClientConnection], None],
    ) -> None:
        self._peer = peer
        self._queue = queue
        self._buffered = buffered
        self._longest = longest
        self._ended = ended
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._number = 0
        """That of the newest request."""
        self._is_pending = False
        """Whether the newest request is not answered yet."""
        self._waits = False
        self._unsent = 0
        self._used = self._loop.time()
        """When the last request or answer was whole, or some of an answer was read."""

    @property
    def host(self) -> str:
        """The client's IP address."""
        return self._peer.host

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to read."""
        assert isinstance(transport, asyncio.Transport)
        transport.set_write_buffer_limits(high=0)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Take what has arrived."""
        self._received += data
        self._proceed()

    def resume_writing(self) -> None:
        """Go on when the client has read the whole answer."""
        self._unsent = 0
        self._proceed()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Forget what was on its way."""
        self._is_pending = False
        self._transport = None
        self._received.clear()
        self._buffered.hold(self, 0)
        self._ended(self)

    def close(self) -> None:
        """Send what was answered, and end."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """End at once."""
        if self._transport is not None:
            self._transport.abort()

    def abort_if_idle(self, since: float) -> None:
        """End where nothing came to its end since a time of the loop, and nobody but the client is to blame."""
        if self._transport is None or self._is_pending or self._waits:
            return
        unsent = self._transport.get_write_buffer_size()
        if unsent < self._unsent:
            self._unsent, self._used = unsent, self._loop.time()
            self._hold()
        if self._used < since:
            self._transport.abort()

    def _proceed(self) -> None:
        """Hand on the next request, or read on; whichever is possible now."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        if self._is_pending or self._unsent or self._waits:
            transport.pause_reading()
        elif not self._queue.has_room:
            transport.pause_reading()
            self._waits = True
            self._queue.wait(self._after_waiting)
        else:
            self._next()
        self._hold()

    def _after_waiting(self) -> None:
        self._waits = False
        self._proceed()

    def _next(self) -> None:
        assert self._transport is not None
        received = self._received
        if len(received) >= _LENGTH.size:
            (size,) = _LENGTH.unpack_from(received)
            if not 0 <= size <= self._longest:
                get_logger(__name__).warning(
                    "unreadable_request", cause=f"a message of {size} bytes", host=self._peer.host
                )
                self._transport.abort()
                return
            end = _LENGTH.size + size
            if len(received) >= end:
                frame = bytes(memoryview(received)[_LENGTH.size : end])
                del received[:end]
                self._number += 1
                self._is_pending = True
                self._used = self._loop.time()
                self._buffered.hold(self, 0)  # what follows is another transfer
                self._queue.put(frame, self._peer, partial(self._respond, self._number))
                return
        self._transport.resume_reading()

    def _hold(self) -> None:
        self._buffered.hold(self, len(self._received) + self._unsent)

    def _respond(self, number: int, answer: bytes | None) -> None:
        with suppress(RuntimeError):  # the listener was closed
            self._loop.call_soon_threadsafe(self._answer, number, answer)

    def _answer(self, number: int, answer: bytes | None) -> None:
        transport = self._transport
        if transport is None or not self._is_pending or number != self._number:
            return
        self._is_pending = False
        if answer is None:
            transport.close()
            return
        self._used = self._loop.time()
        if answer:
            head = _LENGTH.pack(len(answer))
            if len(answer) <= _JOINED:
                transport.write(head + answer)
            else:
                transport.write(head)
                transport.write(answer)
            self._unsent = transport.get_write_buffer_size()
        self._proceed()
