"""The address of a node's listener: HOST:PORT."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Final

import attrs

from kraftlake.runtime.errors import UsageError


@attrs.frozen
class Address:
    """A host name or IP address, and a TCP port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


SCHEME: Final = "kafka://"
"""The optional prefix of an address, where a path could stand, too."""
_ADDRESSES = re.compile(r"(\[[0-9a-fA-F:.%]+\]|[\w.-]+):\d{1,5}(,(\[[0-9a-fA-F:.%]+\]|[\w.-]+):\d{1,5})*")


def are_addresses(text: str) -> bool:
    """Whether a SOURCE names the nodes of a quorum, `kafka://…` or `HOST:PORT[,…]`, and is not an existing path."""
    return text.startswith(SCHEME) or (_ADDRESSES.fullmatch(text) is not None and not os.path.lexists(text))


def joined_addresses(sources: Sequence[str]) -> tuple[str, ...]:
    """Join all sources that are addresses into one, at the place of the first: they belong to one quorum."""
    of_quorum = [source.removeprefix(SCHEME) for source in sources if are_addresses(source)]
    first = next((index for index, source in enumerate(sources) if are_addresses(source)), len(sources))
    if len(of_quorum) < 2:
        return tuple(sources)
    return (*sources[:first], ",".join(of_quorum), *(one for one in sources[first:] if not are_addresses(one)))


def parse_addresses(text: str) -> tuple[Address, ...]:
    """Parse `HOST:PORT[,HOST:PORT…]` into distinct addresses in order; IPv6 in brackets.

    Also with the prefix `kafka://`. Raises UsageError for an invalid address.
    """
    return tuple(dict.fromkeys(_parse(part.strip()) for part in text.removeprefix(SCHEME).split(",")))


def _parse(part: str) -> Address:
    host, colon, port = part.rpartition(":")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not colon or not bare or (":" in bare and bare == host) or not (port.isascii() and port.isdecimal()):
        raise UsageError(f"{part!r} is no HOST:PORT of a Kafka node, such as localhost:9092 or [::1]:9093.")
    if not 0 < int(port) < 65536:
        raise UsageError(f"{part!r} names port {port}: ports go from 1 to 65535.")
    return Address(bare, int(port))
