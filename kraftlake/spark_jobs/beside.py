"""A task that runs behind whoever has started it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from types import TracebackType
from typing import TypeVar

T = TypeVar("T")


class Behind:
    """One task at a time on a thread of its own: a context manager, which at its end waits for the last one."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, "kraftlake-behind")
        self._task: Future[None] | None = None

    def start(self, task: Callable[[], None]) -> None:
        """Begin a task, once the one before has ended. Raises what that one raised."""
        self.wait()
        self._task = self._pool.submit(task)

    def wait(self) -> None:
        """Wait for the task that runs, if one does. Raises what it raised, once."""
        task, self._task = self._task, None
        if task is not None:
            task.result()

    def along(self, task: Callable[[], None], own: Callable[[], T]) -> T:
        """What `own` gives, which is done on this thread while `task` runs. Raises what `own` raises, or else `task`.

        Both have ended when this returns or raises, but where the process is interrupted.
        """
        self.start(task)
        try:
            done = own()
        except Exception:
            with suppress(Exception):
                self.wait()
            raise
        self.wait()
        return done

    def __enter__(self) -> Behind:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: BaseException | TracebackType | None) -> None:
        self._pool.shutdown()
        if kind is None:
            self.wait()
