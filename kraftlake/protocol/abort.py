"""Ends what one thread waits for on a connection, from another thread."""

from __future__ import annotations

import socket
from contextlib import suppress
from threading import Lock


class Abort:
    """Once it is `set`, shuts down the connection that it watches and each later one.

    What waits on the connection ends at once, with a NodeError: the connecting (except for the look-up of a host's
    name), the handshake of TLS, a login, an exchange. Given to the connections that one thread opens one after the
    other.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._watched: socket.socket | None = None
        self.is_set = False

    def watch(self, connection: socket.socket) -> None:
        """Watch a socket on which a connection has begun, in place of the last one."""
        with self._lock:
            self._watched = connection
            self._maybe_shut_down()

    def close(self, connection: socket.socket) -> None:
        """Close a socket, watched or not."""
        with self._lock:
            if self._watched is connection:
                self._watched = None
            connection.close()

    def set(self) -> None:
        """End what waits, and all that would wait later. Returns at once."""
        with self._lock:
            self.is_set = True
            self._maybe_shut_down()

    def _maybe_shut_down(self) -> None:
        if self.is_set and self._watched is not None:
            with suppress(OSError):  # the peer has ended the connection
                # not the method of an SSLSocket, which would make a plain socket of it while another thread reads
                socket.socket.shutdown(self._watched, socket.SHUT_RDWR)
