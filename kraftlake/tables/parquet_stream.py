"""A data file of a table that a thread encodes and compresses while its rows are made.

The caller makes the next rows meanwhile, so that two cores work on a file.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

from kraftlake.metadata_log.delta_table.row_files import EncodedFile, RowFile
from kraftlake.tables.lazy_table import LazyTable

_AHEAD: Final = 2
"""The number of tables that may wait for the thread."""


class ParquetStream:
    """A file of the rows that are added to it."""

    def __init__(self, file: RowFile) -> None:
        self._file = file
        self._thread = ThreadPoolExecutor(1, "kraftlake-file")
        self._waiting: deque[Future[None]] = deque()
        self._has_rows = False

    def add(self, rows: LazyTable) -> None:
        """Add rows; the thread makes them."""
        if rows.is_empty:
            return
        while len(self._waiting) >= _AHEAD:
            self._waiting.popleft().result()
        self._waiting.append(self._thread.submit(self._write, rows))
        self._has_rows = True

    def _write(self, rows: LazyTable) -> None:
        for made in rows.tables():
            self._file.add(made)

    def done(self) -> Future[EncodedFile | None]:
        """The file of all rows, once the thread has encoded them; None without rows."""
        if not self._has_rows:  # then the thread has not begun
            none: Future[EncodedFile | None] = Future()
            none.set_result(None)
            return none
        file = self._thread.submit(self._finished)
        self._thread.shutdown(wait=False)
        return file

    def _finished(self) -> EncodedFile | None:
        while self._waiting:
            self._waiting.popleft().result()  # raises what writing the rows raised
        return self._file.encoded() if self._file.rows else None
