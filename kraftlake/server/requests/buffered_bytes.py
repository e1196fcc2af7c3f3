"""The memory that slow clients hold."""

from __future__ import annotations

from typing import Protocol


class Abortable(Protocol):
    """What can be ended at once."""

    def abort(self) -> None:
        """End it."""


class BufferedBytes:
    """Counts the bytes of transfers that are under way; beyond `most`, the one that began first is aborted.

    By that, a client that sends or reads a byte now and then can't hold memory that others need.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: dict[Abortable, int] = {}
        """By each, in the order in which the transfers began."""
        self.total = 0

    def hold(self, owner: Abortable, size: int) -> None:
        """Say how many bytes the transfer of an owner holds now; 0 ends it."""
        self.total += size - self._held.get(owner, 0)
        if size:
            self._held[owner] = size
        else:
            self._held.pop(owner, None)
        while self.total > self._most:
            oldest = next(iter(self._held))
            self.hold(oldest, 0)
            oldest.abort()
