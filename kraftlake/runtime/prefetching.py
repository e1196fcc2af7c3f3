"""Items of an iterator that another thread produces while the previous item is in use."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from typing import TypeVar

T = TypeVar("T")


@contextmanager
def prefetch(items: Iterable[T]) -> Iterator[Iterator[T]]:
    """Prefetch items: `with prefetch(items) as made: for item in made: …`, for items whose production releases the GIL.

    At most one item is produced ahead. An exception is raised in place of its item. The end of the `with` block waits
    for the item in progress, and closes `items` if it has a `close`. With a single processor no thread is started.
    """
    if _processors() < 2:
        yield iter(items)
        return
    maker = _Maker(items)
    maker.start()
    try:
        yield maker.taken()
    finally:
        maker.stop()


def _processors() -> int:
    """The number of processors available to this process, if the system reports it."""
    allowed = getattr(os, "sched_getaffinity", None)
    return (os.cpu_count() or 1) if allowed is None else len(allowed(0))


class _Maker(threading.Thread):
    """Produces an item for each permit; the last result is an exception, StopIteration at the end."""

    def __init__(self, items: Iterable[T]) -> None:
        super().__init__(name="one-ahead", daemon=True)
        self._items = items
        self._permits = threading.Semaphore(2)
        self._made: SimpleQueue[tuple[object, BaseException | None]] = SimpleQueue()
        self._stopped = False

    def run(self) -> None:
        items = iter(self._items)
        try:
            while self._permits.acquire() and not self._stopped:
                self._made.put((next(items), None))
        except BaseException as fault:
            self._made.put((None, fault))
        finally:
            close = getattr(items, "close", None)
            if close is not None:
                close()

    def taken(self) -> Iterator[T]:
        """Yield the items."""
        while True:
            item, fault = self._made.get()
            if isinstance(fault, StopIteration):
                return
            if fault is not None:
                raise fault
            yield item  # type: ignore[misc]
            self._permits.release()

    def stop(self) -> None:
        """Stop, and wait for the thread's end."""
        self._stopped = True
        self._permits.release()
        self.join()
