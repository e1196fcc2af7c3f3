"""A proxy before a controller, which resets its connections, and may refuse new ones."""

from __future__ import annotations

import socket
import struct
import threading
from contextlib import suppress
from typing import Self

_HOST = "127.0.0.1"
_RESET = struct.pack("ii", 1, 0)


class ResettingProxy:
    """Passes bytes on to `port` of this machine; `own_port` is where it listens itself."""

    def __init__(self) -> None:
        self._listener = socket.create_server((_HOST, 0))
        self.own_port = int(self._listener.getsockname()[1])
        self.port = 0
        self.accepted = 0
        """How many connections it has taken."""
        self._ends: list[socket.socket] = []

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.refuse()
        self.reset()

    def reset(self) -> None:
        """Reset all connections."""
        ends, self._ends = self._ends, []
        for end in ends:
            with suppress(OSError):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                end.shutdown(socket.SHUT_RD)  # wakes the thread that reads from it
            end.close()

    def refuse(self) -> None:
        """Refuse connections from now on."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                try:
                    server = socket.create_connection((_HOST, self.port))
                except OSError:
                    client.close()
                    continue
                self._ends += [client, server]
                self.accepted += 1
                for pair in ((client, server), (server, client)):
                    threading.Thread(target=self._pass, args=pair, daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                target.sendall(data)
