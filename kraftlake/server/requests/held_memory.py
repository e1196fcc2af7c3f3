"""The memory that requests hold until they are answered."""

from __future__ import annotations

from threading import Lock


class HeldMemory:
    """Sums up the memory of unanswered requests; beyond `most` bytes no request may wait. Thread-safe.

    Therefore clients whose requests wait long, for events outside this node, can't take the memory that others need.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = Lock()
        self.total = 0

    @property
    def is_exceeded(self) -> bool:
        """Whether the requests hold more than the maximum."""
        return self.total > self._most

    def share(self, size: int) -> HeldShare:
        """Reserve `size` bytes for one request."""
        share = HeldShare(self)
        share.become(size)
        return share

    def add(self, size: int) -> None:
        """Add the bytes of a request, or subtract them if negative."""
        with self._lock:
            self.total += size


class HeldShare:
    """The memory that one request holds, until it is answered."""

    def __init__(self, memory: HeldMemory) -> None:
        self._memory = memory
        self._lock = Lock()
        self._size = 0
        self._is_answered = False

    @property
    def may_wait(self) -> bool:
        """Whether the request may wait for its answer."""
        return not self._memory.is_exceeded

    def become(self, size: int) -> None:
        """Set the size of the request in bytes; ignored once the request is answered."""
        with self._lock:
            if not self._is_answered:
                self._memory.add(size - self._size)
                self._size = size

    def end(self) -> None:
        """Mark the request as answered; may be called twice."""
        with self._lock:
            self._memory.add(-self._size)
            self._size = 0
            self._is_answered = True
