"""Two thin drivers of threads: what is read ahead of who works on it, and what is written behind him."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Final, TypeVar

T = TypeVar("T")

_END: Final = object()


def ahead(items: Iterator[T]) -> Iterator[T]:
    """The same items, each made on a thread of its own while the one before is worked on. Raises what making raises."""
    with ThreadPoolExecutor(1, "kraftlake-ahead") as pool:
        coming: Future[T | object] = pool.submit(next, items, _END)
        while (item := coming.result()) is not _END:
            coming = pool.submit(next, items, _END)
            yield item  # type: ignore[misc]


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

    def __enter__(self) -> Behind:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: BaseException | TracebackType | None) -> None:
        self._pool.shutdown()
        if kind is None:
            self.wait()
