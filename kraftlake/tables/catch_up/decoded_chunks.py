"""Chunks of the log decoded into values of batches, once for all users of a chunk. Imports numpy and numba."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pyarrow as pa

from kraftlake.records.batch import RecordBatch
from kraftlake.records.batch_values import BatchValues
from kraftlake.records.row_values import values_of_rows
from kraftlake.tables.catch_up.chunk_cache import ChunkCache


class _Parts:
    """Parts that are decoded on demand, for several threads; each of them gets the same parts and the same fault."""

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
    """As `values_of_rows`, and raises as it does. Two chunks are the same only if they are one object.

    The arrays are shared between threads: never change them.
    """
    return iter(_shared.of(rows))
