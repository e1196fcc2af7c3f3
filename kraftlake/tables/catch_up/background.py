"""Tasks that run behind whoever has started them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from types import TracebackType
from typing import Final, TypeVar

T = TypeVar("T")

PIECES_AHEAD: Final = 8
"""So many pieces of the log may be taken in before the last of those who make something of them has had the first."""


class Behind:
    """Tasks on a thread of their own, one after the other: a context manager, which at its end waits for all of them.

    What comes behind a task that has failed isn't begun: nobody goes on where something is missing.
    """

    def __init__(self, ahead: int = 1) -> None:
        """So many tasks at most are begun or wait for their turn."""
        self._pool = ThreadPoolExecutor(1, "kraftlake-behind")
        self._ahead = ahead
        self._tasks: deque[Future[None]] = deque()
        self._failed = False

    def start(self, task: Callable[[], None]) -> None:
        """Begin a task, once there is room for it. Raises what one before raised."""
        while len(self._tasks) >= self._ahead:
            self._end_first()
        self._tasks.append(self._pool.submit(self._run, task))

    def wait(self) -> None:
        """Wait for all tasks. Raises what one of them raised, once."""
        while self._tasks:
            self._end_first()

    def along(self, task: Callable[[], None], own: Callable[[], T]) -> T:
        """What `own` gives, which is done on this thread; the task is done meanwhile, or later.

        Raises what `own` raises, or else one of the tasks; a task before this one goes first. None of them goes on when
        this raises, but where the process is interrupted.
        """
        self.start(task)
        try:
            return own()
        except Exception:
            while len(self._tasks) > 1:
                self._end_first()
            with suppress(Exception):
                self.wait()
            raise

    def _run(self, task: Callable[[], None]) -> None:
        if self._failed:
            return
        try:
            task()
        except BaseException:
            self._failed = True
            raise

    def _end_first(self) -> None:
        first = self._tasks.popleft()
        try:
            first.result()
        except BaseException:
            while self._tasks:  # they end at once
                with suppress(Exception):
                    self._tasks.popleft().result()
            self._failed = False
            raise

    def __enter__(self) -> Behind:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: BaseException | TracebackType | None) -> None:
        self._pool.shutdown(cancel_futures=kind is not None)
        if kind is None:
            self.wait()
