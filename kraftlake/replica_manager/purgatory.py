"""Requests that wait for something, each of them answered exactly once: when it comes, or when their time is over.

Source: org.apache.kafka.server.purgatory. Without a thread: whoever owns a purgatory calls `expire` as time passes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from heapq import heappop, heappush
from itertools import count
from threading import Lock, RLock

from kraftlake.runtime.clock import Clock

PURGE_INTERVAL = 1_000


class DelayedOperation:
    """Something that can't be done yet. A subclass says when it can be, and what happens then.

    `try_complete` returns what `force_complete` does where it finds that nothing is left to wait for, else False. It
    may be called by any thread, and by one at a time.
    """

    def __init__(self) -> None:
        self._lock = RLock()
        self._decided = Lock()
        self._completed = False
        self.watcher: Callable[[], None] | None = None
        """Told when it is completed; set by the purgatory that it waits in."""

    @property
    def is_completed(self) -> bool:
        """Whether it has been completed, or is just being."""
        return self._completed

    def try_complete(self) -> bool:
        """Complete it if nothing is left to wait for; whether this call has."""
        raise NotImplementedError

    def on_complete(self) -> None:
        """It is completed: called once, whatever the reason."""
        raise NotImplementedError

    def on_expiration(self) -> None:
        """Its time was over; called after `on_complete`."""

    def force_complete(self) -> bool:
        """Complete it in any case; False if somebody else did before."""
        with self._decided:
            if self._completed:
                return False
            self._completed = True
        if self.watcher is not None:
            self.watcher()
        self.on_complete()
        return True

    def safe_try_complete(self) -> bool:
        """`try_complete` under the operation's lock; False for one that is completed."""
        with self._lock:
            return not self._completed and self.try_complete()


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
        if operation.safe_try_complete():
            return True
        operation.watcher = self._count_gone
        with self._lock:
            for key in keys:
                if operation.is_completed:
                    break
                self._watchers.setdefault(key, []).append(operation)
        if operation.safe_try_complete() or operation.is_completed:
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
        with self._lock:
            operations = list(self._watchers.get(key, ()))
        if not operations:
            return 0
        completed = sum(operation.safe_try_complete() for operation in operations)
        self._forget_completed((key,))
        return completed

    def expire(self) -> int:
        """Complete what has waited long enough; how many operations that were."""
        expired = 0
        while (operation := self._overdue()) is not None:
            if operation.force_complete():
                operation.on_expiration()
                expired += 1
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
