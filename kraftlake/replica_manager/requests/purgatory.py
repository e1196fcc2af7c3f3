"""Requests that wait for something, each of them answered exactly once: when it comes, or when their time is over.

Source: org.apache.kafka.server.purgatory. Without a thread: whoever owns a purgatory calls `expire` as time passes.
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
    """Something that can't be done yet. A subclass says when it can be, and what happens then.

    `can_complete` runs under the operation's lock, which expiry takes too: by one thread at a time, and never once the
    operation is completed, so `on_complete` may use what it has changed. `on_complete` runs without the lock: it may
    complete other operations, also those that another thread's `on_complete` waits to complete. What either of them
    raises is logged and ends there, for the thread that runs it does so for somebody else.
    """

    def __init__(self) -> None:
        self._lock = RLock()
        self._completed = False
        self.watcher: Callable[[], None] | None = None
        """Told when it is completed; set by the purgatory that it waits in."""

    @property
    def is_completed(self) -> bool:
        """Whether it has been completed, or is just being."""
        return self._completed

    def can_complete(self) -> bool:
        """Whether nothing is left to wait for. An operation that can't say so waits for its time."""
        raise NotImplementedError

    def on_complete(self) -> None:
        """It is completed: called once, whatever the reason."""
        raise NotImplementedError

    def on_expiration(self) -> None:
        """Its time was over; called after `on_complete`."""

    def force_complete(self) -> bool:
        """Complete it in any case; False if it was completed before."""
        return self._complete_if(lambda: True, self.on_complete)

    def expire(self) -> bool:
        """`force_complete`, because its time is over."""

        def on_expired() -> None:
            try:
                self.on_complete()
            finally:
                self.on_expiration()

        return self._complete_if(lambda: True, on_expired)

    def try_complete(self) -> bool:
        """Complete it if nothing is left to wait for; whether this call has."""
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
        """Call it; False for what raises."""
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
    """Operations by the keys that they wait for, and by the time at which they wait no longer.

    Completed ones stay on the lists of their other keys until somebody looks there, or `purge_interval` of them have
    gathered.
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
        """Told of a deadline that is before all others, on the clock's nanoseconds: `expire` is due then."""

    @property
    def watched(self) -> int:
        """How many places on the lists are taken, an operation once for each key; completed ones may be among them."""
        with self._lock:
            return sum(map(len, self._watchers.values()))

    @property
    def delayed(self) -> int:
        """How many operations wait."""
        with self._lock:
            return sum(not operation.is_completed for _, _, operation in self._deadlines)

    def try_complete_else_watch(self, operation: DelayedOperation, keys: Sequence[Hashable], delay_ms: float) -> bool:
        """Complete an operation now, or let it wait for any of the keys, `delay_ms` at most; whether it is completed.

        What it waits for may come between its first try and its place on the last list, so it is tried once more
        before its time begins.
        """
        assert keys, "what waits for nothing would only wait for its time to be over"
        if operation.try_complete():
            return True
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
        """Something has happened to `key`: complete what waited for just that; how many were completed."""
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
        """Complete what has waited long enough; how many operations that were."""
        expired = 0
        while (operation := self._overdue()) is not None:
            expired += operation.expire()
        self._purge_now_and_then()
        return expired

    def next_deadline(self) -> int | None:
        """When `expire` has something to do next, on the clock's nanoseconds; None while nothing waits."""
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
