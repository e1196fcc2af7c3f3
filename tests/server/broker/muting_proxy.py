"""A proxy between clients and a cluster's brokers, which can keep a broker's answers to itself."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from struct import pack
from typing import Self

_HOST = "127.0.0.1"


class MutingProxy:
    """Passes requests on, and answers back, with its own ports in place of the brokers'."""

    def __init__(self, ports: Iterable[int]) -> None:
        self._listeners = {port: socket.create_server((_HOST, 0)) for port in ports}
        own = {port: int(listener.getsockname()[1]) for port, listener in self._listeners.items()}
        self.addresses = ",".join(f"{_HOST}:{port}" for port in own.values())
        """HOST:PORT,… for clients."""
        self._replaced = [(_in_answers(port), _in_answers(own[port])) for port in own]
        self._connections: list[_Connection] = []

    def __enter__(self) -> Self:
        for port, listener in self._listeners.items():
            threading.Thread(target=self._accept, args=(port, listener), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for listener in self._listeners.values():
            listener.close()
        for connection in self._connections:
            connection.close()

    def mute(self, port: int) -> None:
        """Pass no answer of a broker on over the connections that there are."""
        for connection in self._connections:
            connection.is_muted |= connection.port == port

    def _accept(self, port: int, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                try:
                    broker = socket.create_connection((_HOST, port))
                except OSError:
                    client.close()
                    continue
                self._connections.append(_Connection(port, client, broker, self._replaced))


def _in_answers(port: int) -> bytes:
    return _HOST.encode() + pack(">i", port)


class _Connection:
    def __init__(
        self, port: int, client: socket.socket, broker: socket.socket, replaced: list[tuple[bytes, bytes]]
    ) -> None:
        self.port = port
        self.is_muted = False
        self._client, self._broker, self._replaced = client, broker, replaced
        for work in (self._pass_requests, self._pass_answers):
            threading.Thread(target=self._until_closed, args=(work,), daemon=True).start()

    def _until_closed(self, work: Callable[[], None]) -> None:
        with suppress(OSError):
            work()
        self.close()

    def _pass_requests(self) -> None:
        while data := self._client.recv(1 << 16):
            self._broker.sendall(data)

    def _pass_answers(self) -> None:
        while data := self._broker.recv(1 << 16):
            for theirs, ours in self._replaced:
                data = data.replace(theirs, ours)
            if not self.is_muted:
                self._client.sendall(data)

    def close(self) -> None:
        for one in (self._client, self._broker):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
