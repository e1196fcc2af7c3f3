"""Threads, locks, conditions, events, queues and futures of virtual time, with the interfaces of the real ones."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future as RealFuture
from queue import Empty
from typing import Any

from simulator.scheduler import SECOND, Running, Task, active

TIMEOUT_MAX = threading.TIMEOUT_MAX


def _wake_first(waiting: deque[Task]) -> bool:
    """Wake the first task that still waits; one whose time has come, and that has not run since, does not."""
    while waiting:
        task = waiting.popleft()
        if task.is_parked:
            Running.scheduler.wake(task)
            return True
    return False


def _forget(waiting: deque[Task], task: Task) -> None:
    if task in waiting:
        waiting.remove(task)


def _deadline(timeout: float | None) -> int | None:
    return None if timeout is None or timeout < 0 else Running.scheduler.now_ns + round(timeout * SECOND)


class Lock:
    """A lock, which a process that ends takes with it."""

    __slots__ = ("_owner", "_waiting")

    def __init__(self) -> None:
        self._owner: object | None = None
        self._waiting: deque[Task] = deque()

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        scheduler = Running.scheduler
        scheduler.until_interruption -= 1
        if scheduler.until_interruption <= 0:
            scheduler.interrupt()
        if self._owner is not None and not self._wait(blocking, timeout):
            return False
        self._owner = scheduler.current or self
        return True

    def _wait(self, blocking: bool, timeout: float) -> bool:
        """Wait until nobody has the lock; False where that does not come in time."""
        scheduler = active()
        me = scheduler.current
        if not blocking:
            return False
        assert me is not None, "a lock that is held can't be waited for outside of tasks"
        deadline_ns = _deadline(timeout)
        while self._owner is not None:
            self._waiting.append(me)
            if not scheduler.park(deadline_ns):
                _forget(self._waiting, me)
                return False
        return True

    def release(self, *_: object) -> None:
        self._owner = None
        if self._waiting:
            _wake_first(self._waiting)

    def locked(self) -> bool:
        return self._owner is not None

    __enter__, __exit__ = acquire, release


class RLock(Lock):
    """A lock that its owner may take again."""

    __slots__ = ("_count",)

    def __init__(self) -> None:
        self._owner = None
        self._waiting = deque()
        self._count = 0

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        scheduler = Running.scheduler
        if self._count and self._owner is (scheduler.current or self):
            self._count += 1
            return True
        scheduler.until_interruption -= 1
        if scheduler.until_interruption <= 0:
            scheduler.interrupt()
        if self._owner is not None and not self._wait(blocking, timeout):
            return False
        self._owner = scheduler.current or self
        self._count = 1
        return True

    def release(self, *_: object) -> None:
        self._count -= 1
        if self._count <= 0:
            self._count = 0
            self._owner = None
            if self._waiting:
                _wake_first(self._waiting)

    __enter__, __exit__ = acquire, release

    def release_all(self) -> int:
        count, self._count, self._owner = self._count, 0, None
        if self._waiting:
            _wake_first(self._waiting)
        return count

    def take_back(self, count: int) -> None:
        self.acquire()
        self._count = count


class Condition(RLock):
    """A condition, and its lock, which a thread may take again."""

    __slots__ = ("_waiting_for",)

    def __init__(self) -> None:
        super().__init__()
        self._waiting_for: deque[Task] = deque()

    def wait(self, timeout: float | None = None) -> bool:
        scheduler = Running.scheduler
        me = scheduler.current
        assert me is not None, "only a task can wait"
        if timeout is not None and timeout <= 0:
            return False
        count = self.release_all()
        self._waiting_for.append(me)
        woken = scheduler.park(_deadline(timeout))
        if not woken:
            _forget(self._waiting_for, me)
        self.take_back(count or 1)
        return woken

    def wait_for(self, predicate: Callable[[], Any], timeout: float | None = None) -> Any:
        deadline_ns = _deadline(timeout)
        while not (result := predicate()):
            left = None if deadline_ns is None else (deadline_ns - Running.scheduler.now_ns) / SECOND
            if left is not None and left <= 0:
                break
            self.wait(left)
        return result

    def notify(self, n: int = 1) -> None:
        while n > 0 and _wake_first(self._waiting_for):
            n -= 1

    def notify_all(self) -> None:
        if self._waiting_for:
            self.notify(len(self._waiting_for))


class Event:
    """A flag that is waited for."""

    def __init__(self) -> None:
        self._set = False
        self._waiting: deque[Task] = deque()

    def is_set(self) -> bool:
        return self._set

    def set(self) -> None:
        self._set = True
        while _wake_first(self._waiting):
            pass

    def clear(self) -> None:
        self._set = False

    def wait(self, timeout: float | None = None) -> bool:
        scheduler = active()
        deadline_ns = _deadline(timeout)
        while not self._set:
            assert scheduler.current is not None, "only a task can wait"
            self._waiting.append(scheduler.current)
            if not scheduler.park(deadline_ns):
                _forget(self._waiting, scheduler.current)
                break
        return self._set


class Semaphore:
    """A counter that is waited for."""

    def __init__(self, value: int = 1) -> None:
        self._value = value
        self._changed = Condition()

    def acquire(self, blocking: bool = True, timeout: float | None = None) -> bool:
        with self._changed:
            if not blocking and not self._value:
                return False
            if not self._changed.wait_for(lambda: self._value > 0, timeout):
                return False
            self._value -= 1
            return True

    def release(self, n: int = 1) -> None:
        with self._changed:
            self._value += n
            self._changed.notify(n)

    __enter__ = acquire

    def __exit__(self, *_: object) -> None:
        self.release()


class SimpleQueue:
    """A queue without a limit."""

    def __init__(self, maxsize: int = 0) -> None:
        self._maxsize = maxsize
        self._items: deque[Any] = deque()
        self._changed = Condition()

    def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
        with self._changed:
            self._items.append(item)
            self._changed.notify()

    put_nowait = put

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        with self._changed:
            if not self._items and (not block or not self._changed.wait_for(lambda: self._items, timeout)):
                raise Empty
            return self._items.popleft()

    def get_nowait(self) -> Any:
        return self.get(block=False)

    def qsize(self) -> int:
        return len(self._items)

    def empty(self) -> bool:
        return not self._items


class Future(RealFuture[Any]):
    """A future that is waited for in virtual time."""

    def __init__(self) -> None:
        super().__init__()
        self._condition = Condition()  # type: ignore[assignment]


class Thread:
    """A thread of the process that makes it."""

    def __init__(
        self,
        group: None = None,
        target: Callable[..., object] | None = None,
        name: str | None = None,
        args: Iterable[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        *,
        daemon: bool | None = None,
    ) -> None:
        self._target, self._args, self._kwargs = target, tuple(args), dict(kwargs or {})
        self.name = name or "thread"
        self.daemon = bool(daemon)
        self.ident: int | None = None
        self._ended = Event()

    def run(self) -> None:
        if self._target is not None:
            self._target(*self._args, **self._kwargs)

    def start(self) -> None:
        scheduler = active()
        task = scheduler.start(scheduler.process, self.name, self._run)
        task.thread = self
        self.ident = task.number

    def _run(self) -> None:
        try:
            self.run()
        finally:
            self._ended.set()

    def is_alive(self) -> bool:
        return self.ident is not None and not self._ended.is_set()

    def join(self, timeout: float | None = None) -> None:
        self._ended.wait(timeout)


class _Outside(Thread):
    """What runs outside of all threads."""


_OUTSIDE = _Outside(name="outside")


def current_thread() -> Thread:
    """The running thread."""
    task = active().current
    return _OUTSIDE if task is None or task.thread is None else task.thread


def get_ident() -> int:
    """The number of the running thread."""
    task = active().current
    return 0 if task is None else task.number
