"""The items of an iterator, each made on another thread while the one before it is in use."""

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
    """`with prefetch(items) as made: for item in made: …`, for items whose making leaves the GIL to others.

    At most one is made before somebody asks for it. What the making raises comes where its item would. Leaving the
    `with` waits for the item that is being made, and closes `items` where that can be. Where there is one processor
    only, no thread is started.
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
    """How many of them this process may use, where the system tells."""
    allowed = getattr(os, "sched_getaffinity", None)
    return (os.cpu_count() or 1) if allowed is None else len(allowed(0))


class _Maker(threading.Thread):
    """Makes an item for each permit; an exception stands for the end."""

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
        """The items as they come."""
        while True:
            item, fault = self._made.get()
            if isinstance(fault, StopIteration):
                return
            if fault is not None:
                raise fault
            yield item  # type: ignore[misc]
            self._permits.release()

    def stop(self) -> None:
        """Make no more, and wait until nothing is made."""
        self._stopped = True
        self._permits.release()
        self.join()
