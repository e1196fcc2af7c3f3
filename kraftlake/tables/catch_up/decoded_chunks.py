"""Rows of the log as the values of batches, made once for all who take the same rows. Imports numpy and numba."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pyarrow as pa

from kraftlake.records.batch import RecordBatch
from kraftlake.records.batch_values import BatchValues
from kraftlake.records.row_values import values_of_rows
from kraftlake.tables.catch_up.chunk_cache import ChunkCache


class _Parts:
    """Parts that are made as they are asked for, by several at once; all of them are told the same fault."""

    def __init__(self, rows: pa.Table) -> None:
        self._more = values_of_rows(rows)
        self._made: list[BatchValues | RecordBatch] = []
        self._fault: Exception | None = None
        self._lock = threading.Lock()

    def __iter__(self) -> Iterator[BatchValues | RecordBatch]:
        number = 0
        while (part := self._part(number)) is not None:
            yield part
            number += 1

    def _part(self, number: int) -> BatchValues | RecordBatch | None:
        with self._lock:
            if self._fault is not None and number == len(self._made):
                raise self._fault
            if number == len(self._made):
                try:
                    part = next(self._more, None)
                except Exception as fault:
                    self._fault = fault
                    raise
                if part is None:
                    return None
                self._made.append(part)
            return self._made[number]


_shared = ChunkCache(_Parts)


def decoded_chunks(rows: pa.Table) -> Iterator[BatchValues | RecordBatch]:
    """As `values_of_rows`, and raises as it does; what is not one object is not the same table.

    Nobody may change the arrays, which others have too, on whatever threads.
    """
    return iter(_shared.of(rows))
