"""Tasks on a background thread, run in the order in which they were started."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from types import TracebackType
from typing import Final

CHUNKS_AHEAD: Final = 3
"""The number of chunks of the log that may wait for the background thread."""


class BackgroundWorker:
    """A thread that runs tasks one after the other. A context manager: leaving it waits for all tasks.

    After a task has failed, the tasks that were queued after it are not begun.
    """

    def __init__(self, ahead: int = 1) -> None:
        """`ahead` is the largest number of tasks that are running or queued."""
        self._pool = ThreadPoolExecutor(1, "kraftlake-background")
        self._ahead = ahead
        self._tasks: deque[Future[None]] = deque()
        self._failed = False

    def start(self, task: Callable[[], None]) -> None:
        """Queue a task; blocks while the queue is full. Raises the error of an earlier task."""
        while len(self._tasks) >= self._ahead:
            self._end_first()
        self._tasks.append(self._pool.submit(self._run, task))

    def wait(self) -> None:
        """Wait for all tasks. Raises the error of one of them, once."""
        while self._tasks:
            self._end_first()

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

    def __enter__(self) -> BackgroundWorker:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: BaseException | TracebackType | None) -> None:
        self._pool.shutdown(cancel_futures=kind is not None)
        if kind is None:
            self.wait()
