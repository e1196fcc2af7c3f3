"""Rows of a table that are made when somebody asks for them, on whatever thread that is."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pyarrow as pa


class LaterRows:
    """Rows that are made once; nobody changes meanwhile what `make` uses."""

    def __init__(self, make: Callable[[], pa.Table], num_rows: int | None = None) -> None:
        """`num_rows` is how many there will be, None where nobody knows before they are made."""
        self._num_rows = num_rows
        self._make = make
        self._lock = threading.Lock()
        self._made: pa.Table | None = None

    @classmethod
    def of(cls, rows: pa.Table) -> LaterRows:
        """Rows that are there."""
        return cls(lambda: rows, rows.num_rows)

    @property
    def num_rows(self) -> int:
        """How many there are; they are made where that is not known."""
        return self.table().num_rows if self._num_rows is None else self._num_rows

    def table(self) -> pa.Table:
        """The rows."""
        with self._lock:
            if self._made is None:
                self._made = self._make()
                self._make = lambda: self._made
                assert self._num_rows in (None, self._made.num_rows), "the number of rows is known before"
            return self._made
