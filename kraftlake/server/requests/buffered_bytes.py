"""The memory held by slow clients."""

from __future__ import annotations

from collections.abc import Callable


class BufferedBytes:
    """Counts the bytes of transfers in progress; beyond `most`, the oldest transfer is aborted.

    Therefore a client that sends or reads a byte now and then can't hold memory that others need.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: dict[Callable[[], None], int] = {}
        """The bytes held by each transfer, by the function that aborts it, in the order in which they began."""
        self.total = 0

    def hold(self, abort: Callable[[], None], size: int) -> None:
        """Set the number of bytes that a transfer holds, which `abort` ends; 0 if it is over."""
        self.total += size - self._held.get(abort, 0)
        if size:
            self._held[abort] = size
        else:
            self._held.pop(abort, None)
        while self.total > self._most:
            oldest = next(iter(self._held))
            self.hold(oldest, 0)
            oldest()
