"""One TCP or TLS connection to a node: frames of four bytes of length and a payload, each way.

Source: org.apache.kafka.common.network.NetworkReceive and NetworkSend.
"""

from __future__ import annotations

import errno
import os
import select
import socket
import ssl
import struct
from contextlib import suppress
from typing import Any, Self

from kraftlake.protocol.abort import Abort
from kraftlake.protocol.address import Address
from kraftlake.protocol.node_error import ClosedConnectionError, NodeError, NotListeningError, SilentNodeError
from kraftlake.protocol.tls import Tls
from kraftlake.runtime.clock import Clock, SystemClock

MAX_RESPONSE_BYTES = 16 * 1024 * 1024
_LENGTH = struct.Struct(">i")
_NANOSECONDS = 1_000_000_000


class Connection:
    """Sends a payload and receives its answer, for one thread.

    `timeout` (seconds) bounds the connect together with the TLS handshake, and each exchange as a whole: a peer that
    sends single bytes does not extend it. After a NodeError the connection is closed. The connection is a context
    manager that closes itself. Another thread aborts a pending call by `abort`.
    """

    def __init__(
        self,
        address: Address,
        *,
        timeout: float,
        tls: Tls | None = None,
        max_response_bytes: int = MAX_RESPONSE_BYTES,
        clock: Clock | None = None,
        abort: Abort | None = None,
    ) -> None:
        self.address = address
        self._abort = abort or Abort()
        self._timeout = timeout
        self._limit = max_response_bytes
        self._clock = clock or SystemClock()
        self._tls = tls
        deadline = self._deadline(timeout)
        self._socket = self._connect()
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls is not None:
            self._secure(tls, deadline)

    def _connect(self) -> socket.socket:
        address = self.address
        try:
            return self._connect_to_host(address.host, address.port)
        except TimeoutError:
            raise NodeError(f"{address} does not answer: no connection within {self._timeout:g} s.") from None
        except socket.gaierror as fault:
            raise NodeError(f"{address}: the host is not known ({fault.strerror}).") from None
        except ConnectionRefusedError:
            raise NotListeningError(
                f"{address} refuses connections: is a node running, with a listener on it?"
            ) from None
        except (OSError, UnicodeError, OverflowError) as fault:
            raise NodeError(f"{address} can't be reached: {_reason(fault)}.") from None

    def _connect_to_host(self, host: str, port: int) -> socket.socket:
        """Connect to the first of the host's addresses that answers. Raises the OSError of the last address."""
        *others, last = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        for found in others:
            with suppress(OSError):
                return self._connect_to_found(found)
        return self._connect_to_found(last)

    def _connect_to_found(self, found: tuple[Any, ...]) -> socket.socket:
        family, kind, protocol, _, where = found
        connection = socket.socket(family, kind, protocol)
        try:
            connection.setblocking(False)
            code = connection.connect_ex(where)
            self._abort.watch(connection)  # from now on: what has not begun to connect can't be shut down
            if code == errno.EINPROGRESS:
                done = select.poll()
                done.register(connection, select.POLLOUT)
                if not done.poll(self._timeout * 1000):
                    raise TimeoutError
                code = connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if code:
                raise OSError(code, os.strerror(code))
        except BaseException:
            self._abort.close(connection)
            raise
        return connection

    def _secure(self, tls: Tls, deadline: int) -> None:
        """Replace the socket by a TLS socket."""
        try:
            self._socket = secured = tls.wrap(self._socket, self.address.host)
            self._abort.watch(secured)
            self._wait_until(deadline)
            secured.do_handshake()
        except TimeoutError:
            fault: NodeError = SilentNodeError(
                f"{self.address} took the connection and did not answer TLS within {self._timeout:g} s: is it a "
                f"listener for SSL or SASL_SSL?"
            )
        except ssl.SSLError as error:
            fault = tls.node_error(self.address, error)
        except (OSError, ValueError) as error:
            fault = NodeError(f"{self.address} broke TLS off ({_reason(error)}): is it a listener for SSL or SASL_SSL?")
        else:
            return
        self.close()
        raise fault

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close; closing again does nothing."""
        self._abort.close(self._socket)

    def exchange(self, payload: bytes, *, timeout: float | None = None) -> bytes:
        """Send a frame and receive one, within `timeout` seconds (default: the connection's). Raises NodeError."""
        allowed = self._timeout if timeout is None else timeout
        deadline = self._deadline(allowed)
        try:
            self._wait_until(deadline)
            self._socket.sendall(_LENGTH.pack(len(payload)) + payload)
            head = self._receive(_LENGTH.size, deadline)
            (size,) = _LENGTH.unpack(head)
            if not 0 <= size <= self._limit:
                raise NodeError(f"{self.address} {_stranger(head)}.")
            return self._receive(size, deadline)
        except TimeoutError:
            self.close()
            raise SilentNodeError(
                f"{self.address} took the connection and did not answer within {allowed:g} s."
            ) from None
        except ssl.SSLError as fault:
            self.close()
            assert self._tls is not None, "only TLS raises it"
            raise self._tls.node_error(self.address, fault) from None
        except OSError as fault:
            self.close()
            raise ClosedConnectionError(f"{self.address} broke the connection off ({_reason(fault)}).") from None
        except NodeError:
            self.close()
            raise

    def _deadline(self, seconds: float) -> int:
        return self._clock.nanoseconds() + round(seconds * _NANOSECONDS)

    def _wait_until(self, deadline: int) -> None:
        left = (deadline - self._clock.nanoseconds()) / _NANOSECONDS
        if left <= 0:
            raise TimeoutError
        self._socket.settimeout(left)

    def _receive(self, size: int, deadline: int) -> bytes:
        received = bytearray()
        while len(received) < size:
            self._wait_until(deadline)
            part = self._socket.recv(min(size - len(received), 1 << 16))
            if not part:
                raise ClosedConnectionError(f"{self.address} closed the connection instead of answering.")
            received += part
        return bytes(received)


def _stranger(head: bytes) -> str:
    """Describe the peer by four bytes that are no frame length."""
    if head == b"HTTP":
        return "is an HTTP server, no Kafka node"
    if head[:2] in (b"\x15\x03", b"\x16\x03"):
        return "wants TLS: set security.protocol to SSL or SASL_SSL in the file of --command-config"
    if head == b"SSH-":
        return "is an SSH server, no Kafka node"
    return f"does not speak Kafka's protocol: it began with the bytes {head.hex(' ')}"


def _reason(fault: OSError | ValueError | OverflowError) -> str:
    return (fault.strerror if isinstance(fault, OSError) else None) or str(fault)
