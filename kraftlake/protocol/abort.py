"""Aborts a thread's pending network calls from another thread."""

from __future__ import annotations

import socket
from contextlib import suppress
from threading import Lock


class Abort:
    """Once `set`, shuts down the watched connection and each later one.

    A pending call on the connection ends at once, with a NodeError: connecting (except for the look-up of a host name),
    the TLS handshake, a login, an exchange. One instance serves the connections that one thread opens in sequence.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._watched: socket.socket | None = None
        self.is_set = False

    def watch(self, connection: socket.socket) -> None:
        """Watch a socket from the start of its connection, in place of the last one."""
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
        """Abort the pending call, and all later ones. Returns at once."""
        with self._lock:
            self.is_set = True
            self._maybe_shut_down()

    def _maybe_shut_down(self) -> None:
        if self.is_set and self._watched is not None:
            with suppress(OSError):  # the peer has ended the connection
                # not the method of an SSLSocket, which would make a plain socket of it while another thread reads
                socket.socket.shutdown(self._watched, socket.SHUT_RDWR)
