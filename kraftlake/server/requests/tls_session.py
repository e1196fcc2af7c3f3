"""TLS of one connection, without I/O: received bytes in, bytes to send out.

asyncio's own TLS ends a connection whose handshake fails without the alert that gives the client the reason, and takes
256 KiB for each connection. Source: org.apache.kafka.common.network.SslTransportLayer.
"""

from __future__ import annotations

import ssl
from contextlib import suppress
from typing import Final

_CHUNK: Final = 256 * 1024


class TlsSession:
    """The server's side of a TLS connection; one thread at a time may use it.

    Bytes to send collect in order until `outgoing` or `encrypted` takes them.
    """

    def __init__(self, context: ssl.SSLContext) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self.is_established = False
        """Whether the handshake is over."""
        self.is_over = False
        """Whether the client has ended the session."""

    def decrypted(self, data: bytes) -> bytes:
        """Take received bytes, and return their content; empty during the handshake.

        Raises ssl.SSLError if the handshake fails or the bytes are no TLS; `outgoing` then has the alert.
        """
        self._incoming.write(data)
        content: list[bytes] = []
        try:
            if not self.is_established:
                self._tls.do_handshake()
                self.is_established = True
            while part := self._tls.read(_CHUNK):
                content.append(part)
            self.is_over = True
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            self.is_over = True
        return b"".join(content)

    def encrypted(self, *parts: bytes) -> bytes:
        """Return the bytes that carry `parts` to the client, after those that were not taken yet."""
        for part in parts:
            if part:
                self._tls.write(part)
        return self._outgoing.read()

    def outgoing(self) -> bytes:
        """Take the bytes of the handshake, or the alert, that wait to be sent."""
        return self._outgoing.read()

    def farewell(self) -> bytes:
        """End the session; returns the bytes that inform the client."""
        with suppress(ssl.SSLError, ValueError):
            self._tls.unwrap()
        return self._outgoing.read()

    @property
    def certificate(self) -> bytes | None:
        """The certificate (DER) that the client has shown."""
        return self._tls.getpeercert(binary_form=True) if self.is_established else None
