"""The memory held by slow clients."""

from __future__ import annotations

from typing import Protocol


class Abortable(Protocol):
    """An object that can be ended at once."""

    def abort(self) -> None:
        """End the transfer."""


class BufferedBytes:
    """Counts the bytes of transfers in progress; beyond `most`, the oldest transfer is aborted.

    Therefore a client that sends or reads a byte now and then can't hold memory that others need.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: dict[Abortable, int] = {}
        """The bytes held by each transfer, in the order in which the transfers began."""
        self.total = 0

    def hold(self, owner: Abortable, size: int) -> None:
        """Set the number of bytes that an owner's transfer holds; 0 ends it."""
        self.total += size - self._held.get(owner, 0)
        if size:
            self._held[owner] = size
        else:
            self._held.pop(owner, None)
        while self.total > self._most:
            oldest = next(iter(self._held))
            self.hold(oldest, 0)
            oldest.abort()
