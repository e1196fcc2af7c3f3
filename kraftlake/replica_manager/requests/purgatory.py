"""Operations that wait for a condition, each completed exactly once: by the condition or at its timeout.

Source: org.apache.kafka.server.purgatory. A purgatory has no thread: its owner calls `expire` as time passes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from heapq import heapify, heappop, heappush
from itertools import count
from threading import Lock, RLock
from typing import Final

from kraftlake.runtime.clock import Clock
from kraftlake.runtime.log import get_logger

_log = get_logger(__name__)

_DEADLINES_LEFT: Final = 1_000
"""The number of deadlines of completed operations that are kept however few operations wait."""


class DelayedOperation:
    """An operation that can't be completed yet. A subclass defines the condition and the completion.

    `can_complete` runs under the operation's lock, in one thread at a time and never after the completion, so
    `on_complete` may use the state that `can_complete` has changed. `on_complete` runs without the lock and may
    complete other operations, even while another thread's `on_complete` does. An exception of either is logged and not
    raised: the thread that completes an operation is serving another request. `on_fault` is called after an exception
    of `on_complete`.
    """

    def __init__(self) -> None:
        self._lock = RLock()
        self._completed = False
        self.watcher: Callable[[], None] | None = None
        """Called on completion; set by the operation's purgatory."""
        self.on_fault: Callable[[], object] | None = None
        """Callback that answers the operation's waiting client after a fault, since no other answer will come."""

    @property
    def is_completed(self) -> bool:
        """Whether the operation is completed, or its completion has begun."""
        return self._completed

    def can_complete(self) -> bool:
        """Whether the condition holds; an operation whose check raises waits for its timeout."""
        raise NotImplementedError

    def on_complete(self) -> None:
        """Finish the operation; called once, by the condition or the timeout."""
        raise NotImplementedError

    def on_expiration(self) -> None:
        """Handle the timeout of the operation; called after `on_complete`."""

    def expire(self) -> bool:
        """Complete the operation at its timeout; False if it was completed before."""

        def on_expired() -> None:
            try:
                self._finish()
            finally:
                self.on_expiration()

        return self._complete_if(lambda: True, on_expired)

    def try_complete(self) -> bool:
        """Complete the operation if its condition holds; returns whether this call completed it."""
        return self._complete_if(self.can_complete, self._finish)

    def _complete_if(self, condition: Callable[[], bool], then: Callable[[], None]) -> bool:
        if self._completed:
            return False  # without the lock: most of those that are looked at have been completed through another key
        with self._lock:
            if self._completed or not self._contained(condition, "can_complete"):
                return False
            self._completed = True
        if self.watcher is not None:
            self.watcher()
        self._contained(then, "on_complete")
        return True

    def _finish(self) -> None:
        try:
            self.on_complete()
        except Exception:
            if self.on_fault is not None:
                self._contained(self.on_fault, "on_fault")
            raise

    def _contained(self, call: Callable[[], object], what: str) -> bool:
        """Call a function; an exception is logged, and False returned."""
        try:
            return bool(call())
        except Exception as fault:
            _log.error(
                "delayed_operation_failed",
                operation=type(self).__name__,
                at=what,
                cause=f"{type(fault).__name__}: {fault}",
            )
            return False


class Purgatory:
    """Operations by the keys that they watch and by their deadlines.

    A completed operation is forgotten at once, since it may hold a large request. (Kafka keeps it on the lists of its
    keys up to `purge.interval.requests`.)
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = Lock()
        self._watchers: dict[Hashable, dict[int, DelayedOperation]] = {}
        """The watching operations by key and number, in the order of the numbers."""
        self._waiting: dict[int, DelayedOperation] = {}
        """The operations with a deadline, by number."""
        self._deadlines: list[tuple[int, int]] = []
        """A heap of the deadlines and the numbers, also of operations that have been completed."""
        self._numbers = count()
        self.wake_by: Callable[[int], None] | None = None
        """Called with a deadline (clock nanoseconds) that is earlier than all others; `expire` is due at that time."""

    @property
    def watched(self) -> int:
        """The number of pairs of a waiting operation and a key."""
        with self._lock:
            return sum(map(len, self._watchers.values()))

    @property
    def delayed(self) -> int:
        """The number of waiting operations."""
        return len(self._waiting)

    def try_complete_else_watch(self, operation: DelayedOperation, keys: Sequence[Hashable], delay_ms: float) -> bool:
        """Complete an operation now, or `watch` the keys for it; returns whether it is completed."""
        return operation.try_complete() or self.watch(operation, keys, delay_ms)

    def watch(self, operation: DelayedOperation, keys: Sequence[Hashable], delay_ms: float) -> bool:
        """Watch the keys for an operation, for at most `delay_ms`; returns whether the operation is completed.

        The condition may become true before the operation is on the last list, so a final attempt follows.
        """
        assert keys, "an operation without a key could only time out"
        number = next(self._numbers)
        operation.watcher = partial(self._forget, number, keys)
        with self._lock:
            for key in keys:
                if operation.is_completed:
                    break  # it is forgotten when the lock is free
                self._watchers.setdefault(key, {})[number] = operation
        if operation.try_complete() or operation.is_completed:
            return True
        deadline = self._clock.nanoseconds() + round(delay_ms * 1_000_000)
        with self._lock:
            if operation.is_completed:
                return True
            self._waiting[number] = operation
            heappush(self._deadlines, (deadline, number))
            is_next = self._deadlines[0][1] == number
        if is_next and self.wake_by is not None:
            self.wake_by(deadline)
        return False

    def check_and_complete(self, key: Hashable) -> int:
        """Try to complete the operations that watch `key`; returns the number completed."""
        if not self._watchers:
            return 0
        with self._lock:
            operations = list(self._watchers.get(key, {}).values())
        return sum(operation.try_complete() for operation in operations)

    def expire(self) -> int:
        """Complete the operations whose deadline has passed; returns their number."""
        expired = 0
        while (operation := self._overdue()) is not None:
            expired += operation.expire()
        return expired

    def next_deadline(self) -> int | None:
        """The next time at which `expire` has work, in the clock's nanoseconds; None while no operation waits."""
        with self._lock:
            while self._deadlines and self._deadlines[0][1] not in self._waiting:
                heappop(self._deadlines)
            return self._deadlines[0][0] if self._deadlines else None

    def _overdue(self) -> DelayedOperation | None:
        now = self._clock.nanoseconds()
        with self._lock:
            while self._deadlines and self._deadlines[0][0] <= now:
                operation = self._waiting.get(heappop(self._deadlines)[1])
                if operation is not None:
                    return operation
        return None

    def _forget(self, number: int, keys: Iterable[Hashable]) -> None:
        with self._lock:
            self._waiting.pop(number, None)
            for key in keys:
                watchers = self._watchers.get(key)
                if watchers is not None:
                    watchers.pop(number, None)
                    if not watchers:
                        del self._watchers[key]
            if len(self._deadlines) > 2 * len(self._waiting) + _DEADLINES_LEFT:
                self._deadlines = [one for one in self._deadlines if one[1] in self._waiting]
                heapify(self._deadlines)
