"""The memory that requests hold until they are answered."""

from __future__ import annotations

from threading import Lock


class HeldMemory:
    """Adds up what the requests hold that are not answered; beyond `most` bytes none of them may wait. For any thread.

    By that, clients whose requests wait long, and are answered by nothing that this node does, can't take the memory
    that others need.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = Lock()
        self.total = 0

    @property
    def is_exceeded(self) -> bool:
        """Whether the requests hold more than they may."""
        return self.total > self._most

    def share(self, size: int) -> HeldShare:
        """What one request holds, in bytes."""
        share = HeldShare(self)
        share.become(size)
        return share

    def add(self, size: int) -> None:
        """Add bytes that a request holds now, or take them away."""
        with self._lock:
            self.total += size


class HeldShare:
    """What one request holds, until it is answered."""

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
        """Say what the request holds now, in bytes; it does not count once it is answered."""
        with self._lock:
            if not self._is_answered:
                self._memory.add(size - self._size)
                self._size = size

    def end(self) -> None:
        """The request is answered; it may be said twice."""
        with self._lock:
            self._memory.add(-self._size)
            self._size = 0
            self._is_answered = True
