"""Rows of the log cut into what can be replayed at once, and batches that go one by one. Imports numpy and numba."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, Final

import attrs
import numpy as np
import pyarrow as pa

from kraftlake.records.batch import RecordBatch
from kraftlake.records.batch_values import BatchValues
from kraftlake.records.metadata_records import NoOpRecord
from kraftlake.records.row_values import values_of_rows
from kraftlake.tables.changes.transactions import marks_among, open_around

_NO_OP: Final = NoOpRecord.API_KEY


@attrs.frozen(kw_only=True, eq=False)
class BatchRun:
    """Data batches that follow each other, outside of metadata transactions; they are some of those of `values`.

    By batch: `ends` (int64) are the offsets behind them, `sizes` (int64) the bytes of their records, `quiet` (bool) is
    true where there is nothing but no-op records. `begin` is the first one's first offset.
    """

    values: BatchValues = attrs.field(repr=False)
    begin: int
    ends: Any
    sizes: Any
    quiet: Any

    @property
    def last_offset(self) -> int:
        """The last offset of the last batch."""
        return int(self.ends[-1]) - 1

    def size_from(self, offset: int) -> int:
        """The bytes of the records from an offset on to the end of its batch."""
        base = self.values.base_offset
        end = int(self.ends[np.searchsorted(self.ends, offset, side="right")])
        places = slice(offset - base, end - base)
        return int((self.values.stops[places] - self.values.starts[places]).sum())


def bulk_batches(rows: pa.Table, in_transaction: Callable[[], bool]) -> Iterator[BatchRun | RecordBatch]:
    """Rows of whole batches, sorted by offset, as stretches and the batches between them.

    `in_transaction` says, when it is asked, whether a metadata transaction is open behind what was given last.
    """
    first = rows.column("offset")[0].as_py()
    keys = rows.column("api_key").to_numpy()
    for part in values_of_rows(rows):
        if isinstance(part, RecordBatch):
            yield part
        else:
            at = part.base_offset - first
            yield from _cut(part, keys[at : at + part.record_count], in_transaction())


def _cut(values: BatchValues, keys: Any, in_transaction: bool) -> Iterator[BatchRun | RecordBatch]:
    ends = values.last_offsets + 1
    begins = np.append(values.base_offset, ends[:-1]) - values.base_offset
    involved = _involved(keys, begins, in_transaction)
    sizes = np.add.reduceat(values.stops - values.starts, begins)
    quiet = np.logical_and.reduceat(keys == _NO_OP, begins)
    edges = [0, *(np.flatnonzero(np.diff(involved)) + 1).tolist(), len(ends)]
    for first, last in pairwise(edges):
        begin = int(begins[first]) + values.base_offset
        if not involved[first]:
            some = slice(first, last)
            yield BatchRun(values=values, begin=begin, ends=ends[some], sizes=sizes[some], quiet=quiet[some])
            continue
        for batch in values.batches(begin):
            if batch.base_offset >= ends[last - 1]:
                break
            yield batch


def _involved(keys: Any, begins: Any, in_transaction: bool) -> Any:
    """Which batches hold a mark of a metadata transaction, or any of its records."""
    marks = marks_among(keys)
    if not len(marks):
        return np.full(len(begins), in_transaction)
    involved = open_around(keys[marks], in_transaction)[np.searchsorted(marks, begins)] > 0
    involved[np.searchsorted(begins, marks, side="right") - 1] = True
    return involved
