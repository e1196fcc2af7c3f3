"""Rows of a table that are made when somebody asks for them, on whatever thread that is."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pyarrow as pa


class LaterRows:
    """So many rows, made once; nobody changes meanwhile what `make` uses."""

    def __init__(self, num_rows: int, make: Callable[[], pa.Table]) -> None:
        self.num_rows = num_rows
        self._make = make
        self._lock = threading.Lock()
        self._made: pa.Table | None = None

    @classmethod
    def of(cls, rows: pa.Table) -> LaterRows:
        """Rows that are there."""
        return cls(rows.num_rows, lambda: rows)

    def table(self) -> pa.Table:
        """The rows."""
        with self._lock:
            if self._made is None:
                self._made = self._make()
                self._make = lambda: self._made
                assert self._made.num_rows == self.num_rows, "the number of rows is known before"
            return self._made
