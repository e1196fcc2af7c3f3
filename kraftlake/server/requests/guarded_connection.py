"""One client's connection to a listener with TLS or logins."""

from __future__ import annotations

import asyncio
import ssl
from functools import partial
from typing import Any

from kraftlake.runtime.log import get_logger
from kraftlake.server.requests.buffered_bytes import BufferedBytes
from kraftlake.server.requests.client_connection import ClientConnection
from kraftlake.server.requests.guest import Guest
from kraftlake.server.requests.sasl_authenticator import Step

_log = get_logger(__name__)


class GuardedConnection(ClientConnection):
    """Takes a client's requests once it has shown who it is, and encrypts the answers where the listener has TLS.

    Until then, at most `guest.max_receive_bytes` are taken at once, and each step is done at the door, in turn with
    those of other newcomers. A failed login is answered, and its connection closed, after a delay. Source:
    org.apache.kafka.common.network.KafkaChannel, org.apache.kafka.common.network.Selector (delayedClosingChannels).
    """

    def __init__(self, *arguments: Any, guest: Guest, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._guest = guest
        self._tls = guest.tls
        self._inside: tuple[int, BufferedBytes] = (self._frames.longest, self._buffered)
        """The longest request, and the counter of the bytes held, after the login."""
        self._is_unwanted = False
        guest.door.enter(self.abort, self.peer.host)
        self._frames.longest, self._buffered = guest.max_receive_bytes, guest.door.bytes_of(self.peer.host)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to read, unless others have taken the place of the connection before it was set up."""
        super().connection_made(transport)
        if self._is_unwanted:
            self.abort()

    def abort(self) -> None:
        """Close the connection at once."""
        self._is_unwanted = True
        super().abort()

    def data_received(self, data: bytes) -> None:
        """Process received data."""
        if self._tls is None:
            super().data_received(data)
        elif self._tls.is_established:
            self._decrypt(data)
        elif self._transport is not None:
            self._transport.pause_reading()
            self._guest.door.later(partial(self._decrypt, data))

    def connection_lost(self, exc: Exception | None) -> None:
        """Drop pending requests and answers."""
        self._guest.door.leave(self.abort)
        super().connection_lost(exc)

    def close(self) -> None:
        """Send the finished answers and the end of TLS, and close the connection."""
        if self._transport is not None and self._tls is not None and not self._transport.is_closing():
            with self._lock:
                self._transport.write(self._tls.farewell())
        super().close()

    def _decrypt(self, data: bytes) -> None:
        """Take TLS bytes; those of the handshake are answered here."""
        transport, tls = self._transport, self._tls
        if transport is None or transport.is_closing() or tls is None:
            return
        was_established = tls.is_established
        try:
            with self._lock:  # a handler thread may encrypt an answer
                self._frames.add(tls.decrypted(data))
        except ssl.SSLError as fault:
            _log.info("tls_failed", cause=fault.reason, host=self.peer.host, listener=self.peer.listener)
            if not was_established:
                self._guest.tls_failed()
                transport.write(tls.outgoing())
            transport.close()
            return
        if not was_established:
            transport.write(tls.outgoing())
            transport.resume_reading()
            if tls.is_established and not self._guest.has_login:
                self._enter(self._guest.named(self.peer))
        if tls.is_over:
            transport.close()
        elif tls.is_established:
            self._proceed()

    def _enter(self, peer: Any) -> None:
        """Take the client's requests from now on; None ends the connection of a client that may send none."""
        if peer is None:
            self.close()
            return
        self.peer = peer
        self._guest.door.leave(self.abort)
        self._buffered.hold(self.abort, 0)
        self._frames.longest, self._buffered = self._inside

    def _put(self, frame: bytes) -> None:
        now = self._loop.time()
        if self._guest.takes(frame, now):
            self._guest.door.later(partial(self._log_in, frame))
        elif self._guest.is_over(now):
            self.close()
        else:
            super()._put(frame)

    def _log_in(self, frame: bytes) -> None:
        """Take a message of a login."""
        if self._transport is None or self._transport.is_closing():
            return
        step = self._guest.receive(frame, self._loop.time(), self.peer)
        if step.at_once:
            self.close()
        elif step.failed:
            self._loop.call_later(self._guest.failure_delay_seconds, self._refuse, step)
        else:
            if step.login is not None:
                self._enter(self._guest.logged_in(step.login, self.peer))
            self._go_on(self._sealed(step.answer))

    def _refuse(self, step: Step) -> None:
        """Answer a failed login, and close the connection."""
        if self._transport is not None:
            if step.answer is not None:
                self._transport.write(self._sealed(step.answer))
            self.close()

    def _sealed(self, answer: bytes | None) -> bytes:
        with self._lock:
            return b"" if answer is None else b"".join(self._wire(answer))

    def _wire(self, answer: bytes) -> tuple[bytes, bytes]:
        head, answer = super()._wire(answer)
        return (head, answer) if self._tls is None else (self._tls.encrypted(head, answer), b"")
