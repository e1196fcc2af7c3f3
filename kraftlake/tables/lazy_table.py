"""Rows of a table that are made when somebody asks for them, on whatever thread that is."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pyarrow as pa


class LazyTable:
    """Rows that are made once; nobody changes meanwhile what `make` uses."""

    def __init__(self, make: Callable[[], pa.Table], num_rows: int | None = None) -> None:
        """`num_rows` is how many there will be, None where nobody knows before they are made."""
        self._num_rows = num_rows
        self._make = make
        self._parts: Callable[[], Iterator[pa.Table]] | None = None
        self._lock = threading.Lock()
        self._made: pa.Table | None = None

    @classmethod
    def of(cls, rows: pa.Table) -> LazyTable:
        """Rows that are there."""
        return cls(lambda: rows, rows.num_rows)

    @classmethod
    def in_parts(cls, parts: Callable[[], Iterator[pa.Table]], schema: pa.Schema, num_rows: int) -> LazyTable:
        """Rows that are made part by part; there may be no part."""
        rows = cls(lambda: pa.concat_tables([schema.empty_table(), *parts()]), num_rows)
        rows._parts = parts
        return rows

    @property
    def num_rows(self) -> int:
        """How many there are; they are made where that is not known."""
        if self._num_rows is None:
            self._num_rows = self.table().num_rows
        return self._num_rows

    def table(self) -> pa.Table:
        """The rows."""
        with self._lock:
            if self._made is None:
                self._made = self._make()
                self._make, self._parts = _gone, None  # and what the rows were made of is let go
                assert self._num_rows in (None, self._made.num_rows), "the number of rows is known before"
            return self._made

    def tables(self) -> Iterator[pa.Table]:
        """The rows, each part made when it is asked for and not kept: nobody may ask for rows after that.

        So they take the memory of one part, and what they are made of is let go; `table` is for who wants them twice.
        """
        parts = self._parts
        made = [self.table()] if parts is None else parts()
        self._make, self._made, self._parts = _gone, None, None
        yield from made


def _gone() -> pa.Table:
    raise AssertionError("the rows are made already, or were taken part by part")
