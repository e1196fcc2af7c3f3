"""A proxy before real nodes that drops, delays, cuts and garbles what they answer."""

from __future__ import annotations

import random
import socket
import threading
import time
from contextlib import ExitStack, closing, suppress
from typing import Self

from kraftlake.protocol.address import Address, parse_addresses


class BadNetwork:
    """Each answer is spoiled with a small probability; `break_connections` ends all that are open."""

    def __init__(self, seed: int = 20) -> None:
        self._chance = random.Random(seed)
        self._stack = ExitStack()
        self._open: set[socket.socket] = set()
        self._copiers: list[threading.Thread] = []
        self.spoiled = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.break_connections()
        self._stack.close()
        for thread in self._copiers:
            thread.join()
        for one in self._open:
            one.close()

    def to(self, address: str) -> Address:
        """The proxy's address for a node's."""
        (node,) = parse_addresses(address)
        server = socket.create_server(("127.0.0.1", 0))
        self._stack.enter_context(closing(server))
        threading.Thread(target=self._accept, args=[server, node], daemon=True).start()
        return Address("127.0.0.1", server.getsockname()[1])

    def break_connections(self) -> None:
        for one in list(self._open):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def _accept(self, server: socket.socket, node: Address) -> None:
        with suppress(OSError):
            while True:
                client, _ = server.accept()
                with suppress(OSError):
                    upstream = socket.create_connection((node.host, node.port), 5)
                    upstream.settimeout(None)
                    self._open |= {client, upstream}
                    for ends in ((client, upstream, False), (upstream, client, True)):
                        copier = threading.Thread(target=self._copy, args=ends, daemon=True)
                        self._copiers.append(copier)
                        copier.start()
                    continue
                client.close()

    def _copy(self, source: socket.socket, target: socket.socket, spoil: bool) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                target.sendall(self._spoiled(data) if spoil else data)
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _spoiled(self, data: bytes) -> bytes:
        dice = self._chance.random()
        if dice > 0.08:
            return data
        self.spoiled += 1
        if dice > 0.06:
            time.sleep(self._chance.random() * 2)
            return data
        if dice > 0.03:
            raise OSError("cut")
        return self._chance.randbytes(len(data))
