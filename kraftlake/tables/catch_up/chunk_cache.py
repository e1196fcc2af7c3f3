"""A cache of what is made of chunks of the log, for several users of the same chunk."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar
from weakref import ref

import pyarrow as pa

from kraftlake.tables.catch_up.background import CHUNKS_AHEAD

T = TypeVar("T")


class ChunkCache(Generic[T]):
    """The results of `make` for the newest chunks, each kept for as long as its chunk is referenced.

    It keeps as many as one user may be ahead of another. Two chunks are the same only if they are one object.
    """

    def __init__(self, make: Callable[[pa.Table], T]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._newest: list[tuple[ref[pa.Table], T]] = []

    def of(self, table: pa.Table) -> T:
        """The result for a chunk, made once whichever threads ask for it; raises what `make` raises."""
        with self._lock:
            for known, made in self._newest:
                if known() is table:
                    return made
            made = self._make(table)
            self._newest[:] = [*self._newest[-CHUNKS_AHEAD:], (ref(table, self._forget), made)]
            return made

    def _forget(self, gone: ref[pa.Table]) -> None:
        """Drop a chunk that was freed. Any thread may call it, also within `of`: then a result may be made again.

        It must use no global name, as the interpreter may have cleared them when the process ends.
        """
        self._newest[:] = [one for one in list(self._newest) if one[0] is not gone]
