"""Rows of a table that are made on request, on any thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pyarrow as pa


class LazyTable:
    """Rows that `make` makes once; the data that it uses does not change before."""

    def __init__(self, make: Callable[[], pa.Table], num_rows: int | None = None) -> None:
        """`num_rows` is the number of rows, None if it is unknown before the rows are made."""
        self._num_rows = num_rows
        self._make = make
        self._chunks: Callable[[], Iterator[pa.Table]] | None = None
        self._lock = threading.Lock()
        self._made: pa.Table | None = None

    @classmethod
    def of(cls, rows: pa.Table) -> LazyTable:
        """Rows that exist already."""
        return cls(lambda: rows, rows.num_rows)

    @classmethod
    def in_chunks(cls, chunks: Callable[[], Iterator[pa.Table]], schema: pa.Schema, num_rows: int) -> LazyTable:
        """Rows that are made chunk by chunk; there may be no chunk."""
        rows = cls(lambda: pa.concat_tables([schema.empty_table(), *chunks()]), num_rows)
        rows._chunks = chunks
        return rows

    def mapped(self, change: Callable[[pa.Table], pa.Table]) -> LazyTable:
        """The same rows in the form that `change` gives each table of them; use these instead."""
        rows = LazyTable(lambda: change(self.table()), self._num_rows)
        rows._chunks = lambda: map(change, self.tables())
        return rows

    @property
    def is_empty(self) -> bool:
        """Whether there are no rows, as far as is known before they are made."""
        return self._num_rows == 0

    @property
    def num_rows(self) -> int:
        """The number of rows; the rows are made if it is unknown."""
        if self._num_rows is None:
            self._num_rows = self.table().num_rows
        return self._num_rows

    def table(self) -> pa.Table:
        """The rows."""
        with self._lock:
            if self._made is None:
                self._made = self._make()
                self._make, self._chunks = _already_made, None  # frees the data that the rows were made of
                assert self._num_rows in (None, self._made.num_rows), "num_rows is the number of rows"
            return self._made

    def tables(self) -> Iterator[pa.Table]:
        """The rows chunk by chunk, in the memory of one chunk: none is kept, and neither method works afterwards.

        Use `table` for rows that are needed twice.
        """
        chunks = self._chunks
        made = [self.table()] if chunks is None else chunks()
        self._make, self._made, self._chunks = _already_made, None, None
        yield from made


def _already_made() -> pa.Table:
    raise AssertionError("the rows are made already, or were taken chunk by chunk")
