"""What several make of the same tables of rows, made once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar
from weakref import ref

import pyarrow as pa

from kraftlake.tables.catch_up.background import CHUNKS_AHEAD

T = TypeVar("T")


class ChunkCache(Generic[T]):
    """What `make` has made of the tables that were asked about last, as long as somebody holds these.

    Of these are as many as one who takes tables may be ahead of another. What is not one object is not the same table.
    """

    def __init__(self, make: Callable[[pa.Table], T]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._newest: list[tuple[ref[pa.Table], T]] = []

    def of(self, table: pa.Table) -> T:
        """What is made of a table, on whatever threads it is asked for; raises what `make` does."""
        with self._lock:
            for known, made in self._newest:
                if known() is table:
                    return made
            made = self._make(table)
            self._newest[:] = [*self._newest[-CHUNKS_AHEAD:], (ref(table, self._forget), made)]
            return made

    def _forget(self, gone: ref[pa.Table]) -> None:
        """Called on any thread, be it within `of`: at worst something is forgotten that would have been of use.

        When the process ends this may be called with no global name left.
        """
        self._newest[:] = [one for one in list(self._newest) if one[0] is not gone]
