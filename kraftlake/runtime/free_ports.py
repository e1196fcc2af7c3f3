"""Ports of loopback for nodes that are started later, and started again."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator
from typing import Final

_HOST: Final = "127.0.0.1"
_RANGE: Final = range(10_000, 32_000)
"""Below those that systems give to clients (32768 and more on Linux): no connection takes a node's port while it is
down."""


def free_ports(count: int) -> list[int]:
    """Return ports that are free now, and which no earlier call in this process has returned lately."""
    found: list[int] = []
    while len(found) < count:
        port = next(_candidates)
        if port not in found and _is_free(port):
            found.append(port)
    return found


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((_HOST, port))
        except OSError:
            return False
    return True


def _all_in_turn() -> Iterator[int]:
    """Yield all ports again and again; each process begins elsewhere."""
    at = random.SystemRandom().randrange(len(_RANGE))
    while True:
        yield _RANGE[at]
        at = (at + 1) % len(_RANGE)


_candidates: Final = _all_in_turn()
