"""Operations that wait for a condition, each completed exactly once: by the condition or at its timeout.

Source: org.apache.kafka.server.purgatory. A purgatory has no thread: its owner calls `expire` as time passes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from heapq import heappop, heappush
from itertools import count
from threading import Lock, RLock

from kraftlake.runtime.clock import Clock
from kraftlake.runtime.log import get_logger

_log = get_logger(__name__)

PURGE_INTERVAL = 1_000


class DelayedOperation:
    """An operation that can't be completed yet. A subclass defines the condition and the completion.

    `can_complete` runs under the operation's lock, in one thread at a time and never after the completion, so
    `on_complete` may use what `can_complete` has changed. `on_complete` runs without the lock and may complete other
    operations, even while another thread's `on_complete` does. An exception of either is logged and not raised: the
    thread that completes an operation has another request to serve.
    """

    def __init__(self) -> None:
        self._lock = RLock()
        self._completed = False
        self.watcher: Callable[[], None] | None = None
        """Called on completion; set by the purgatory that the operation waits in."""

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
        """Called after `on_complete` when the operation has timed out."""

    def expire(self) -> bool:
        """Complete the operation at its timeout; False if it was completed before."""

        def on_expired() -> None:
            try:
                self.on_complete()
            finally:
                self.on_expiration()

        return self._complete_if(lambda: True, on_expired)

    def try_complete(self) -> bool:
        """Complete the operation if its condition holds; returns whether this call completed it."""
        return self._complete_if(self.can_complete, self.on_complete)

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

    def _contained(self, call: Callable[[], bool | None], what: str) -> bool:
        """Call a function and log what it raises; False then."""
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

    A completed operation stays on the lists of its other keys until a check of such a key, or until more than
    `purge_interval` operations have completed.
    """

    def __init__(self, clock: Clock, purge_interval: int = PURGE_INTERVAL) -> None:
        self._clock = clock
        self._purge_interval = purge_interval
        self._lock = Lock()
        self._watchers: dict[Hashable, list[DelayedOperation]] = {}
        self._deadlines: list[tuple[int, int, DelayedOperation]] = []
        self._order = count()
        self._gone = 0
        self.wake_by: Callable[[int], None] | None = None
        """Called with a deadline (clock nanoseconds) that is earlier than all others; `expire` is due at that time."""

    @property
    def watched(self) -> int:
        """The number of list entries, one for each operation and key, including completed operations."""
        with self._lock:
            return sum(map(len, self._watchers.values()))

    @property
    def delayed(self) -> int:
        """The number of operations that wait."""
        with self._lock:
            return sum(not operation.is_completed for _, _, operation in self._deadlines)

    def try_complete_else_watch(self, operation: DelayedOperation, keys: Sequence[Hashable], delay_ms: float) -> bool:
        """Complete an operation now, or let it `watch` the keys; returns whether it is completed."""
        return operation.try_complete() or self.watch(operation, keys, delay_ms)

    def watch(self, operation: DelayedOperation, keys: Sequence[Hashable], delay_ms: float) -> bool:
        """Let an operation watch the keys for at most `delay_ms`; returns whether it is completed.

        The condition may come to hold before the entry on the last list, so the operation is tried after that.
        """
        assert keys, "an operation without a key could only time out"
        operation.watcher = self._count_gone
        with self._lock:
            for key in keys:
                if operation.is_completed:
                    break
                self._watchers.setdefault(key, []).append(operation)
        if operation.try_complete() or operation.is_completed:
            return True
        deadline = self._clock.nanoseconds() + round(delay_ms * 1_000_000)
        with self._lock:
            heappush(self._deadlines, (deadline, next(self._order), operation))
            is_next = self._deadlines[0][2] is operation
        if is_next and self.wake_by is not None:
            self.wake_by(deadline)
        self._purge_now_and_then()
        return False

    def check_and_complete(self, key: Hashable) -> int:
        """Try to complete the operations that watch `key`; returns the number completed."""
        if not self._watchers:
            return 0
        with self._lock:
            operations = list(self._watchers.get(key, ()))
        if not operations:
            return 0
        completed = sum(operation.try_complete() for operation in operations)
        self._forget_completed((key,))
        return completed

    def expire(self) -> int:
        """Complete the operations whose deadline has passed; returns their number."""
        expired = 0
        while (operation := self._overdue()) is not None:
            expired += operation.expire()
        self._purge_now_and_then()
        return expired

    def next_deadline(self) -> int | None:
        """The next time at which `expire` has work, in the clock's nanoseconds; None while no operation waits."""
        with self._lock:
            while self._deadlines and self._deadlines[0][2].is_completed:
                heappop(self._deadlines)
            return self._deadlines[0][0] if self._deadlines else None

    def _overdue(self) -> DelayedOperation | None:
        now = self._clock.nanoseconds()
        with self._lock:
            if self._deadlines and self._deadlines[0][0] <= now:
                return heappop(self._deadlines)[2]
        return None

    def _count_gone(self) -> None:
        self._gone += 1

    def _purge_now_and_then(self) -> None:
        if self._gone <= self._purge_interval:
            return
        self._gone = 0
        with self._lock:
            # a list that is sorted is a heap
            self._deadlines = sorted(entry for entry in self._deadlines if not entry[2].is_completed)
            keys = tuple(self._watchers)
        self._forget_completed(keys)

    def _forget_completed(self, keys: Sequence[Hashable]) -> None:
        with self._lock:
            for key in keys:
                left = [operation for operation in self._watchers.get(key, ()) if not operation.is_completed]
                if left:
                    self._watchers[key] = left
                else:
                    self._watchers.pop(key, None)
