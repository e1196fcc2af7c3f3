"""Rows of the log cut into runs of batches that are replayed at once, and batches that are replayed one by one.

Imports numpy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, Final

import attrs
import numpy as np
import pyarrow as pa

from kraftlake.image import MetadataProvenance
from kraftlake.records.batch import RecordBatch
from kraftlake.records.batch_values import BatchValues
from kraftlake.records.metadata_records import NoOpRecord
from kraftlake.records.row_values import values_of_rows
from kraftlake.replay.log.transaction_marks import marks_among, open_around

_NO_OP: Final = NoOpRecord.API_KEY


@attrs.frozen(kw_only=True, eq=False)
class BatchRun:
    """Consecutive data batches outside of metadata transactions: some of the batches of `values`.

    By batch: `ends` (int64) are the offsets after its last record, `noop` (bool) is true where all its records are
    no-op records. `begin` is the first batch's first offset.
    """

    values: BatchValues = attrs.field(repr=False)
    begin: int
    ends: Any
    noop: Any

    @property
    def last_offset(self) -> int:
        """The last offset of the last batch."""
        return int(self.ends[-1]) - 1

    @property
    def epoch(self) -> int:
        """The epoch of the first batch; epochs don't go down within a run."""
        return self.values.end_at(self.begin).epoch

    @property
    def provenance(self) -> MetadataProvenance:
        """The provenance of an image at the last offset."""
        end = self.values.end_at(self.last_offset)
        return MetadataProvenance(offset=end.last_offset, epoch=end.epoch, timestamp=end.timestamp)

    def batches(self) -> Iterator[RecordBatch]:
        """The batches as objects."""
        for batch in self.values.batches(self.begin):
            if batch.base_offset > self.last_offset:
                return
            yield batch

    def part(self, first: int, last: int) -> BatchRun:
        """The batches [first, last), by number."""
        some = slice(first, last)
        begin = int(self.ends[first - 1]) if first else self.begin
        return attrs.evolve(self, begin=begin, ends=self.ends[some], noop=self.noop[some])

    def split(self, by: Any) -> Iterator[tuple[BatchRun, bool]]:
        """The parts within which a property `by` of batches (bool by batch) stays the same, with its value there."""
        edges = [0, *(np.flatnonzero(np.diff(by)) + 1).tolist(), len(by)]
        return ((self.part(first, last), bool(by[first])) for first, last in pairwise(edges))


def bulk_batches(rows: pa.Table, in_transaction: Callable[[], bool]) -> Iterator[BatchRun | RecordBatch]:
    """Rows of whole batches, sorted by offset, as runs and the batches between them.

    `in_transaction` tells, whenever it is called, whether a metadata transaction is open after what was yielded last.
    """
    first = rows.column("offset")[0].as_py()
    keys = rows.column("api_key").to_numpy()
    for values in values_of_rows(rows):
        if isinstance(values, RecordBatch):
            yield values
            continue
        at = values.base_offset - first
        of_values = keys[at : at + values.record_count]
        ends = values.last_offsets + 1
        begins = np.append(values.base_offset, ends[:-1]) - values.base_offset
        run = BatchRun(
            values=values,
            begin=values.base_offset,
            ends=ends,
            noop=np.logical_and.reduceat(of_values == _NO_OP, begins),
        )
        for part, involved in run.split(_involved(of_values, begins, in_transaction())):
            if involved:
                yield from part.batches()
            else:
                yield part


def _involved(keys: Any, begins: Any, in_transaction: bool) -> Any:
    """Which batches (bool by batch) hold a mark or a record of a metadata transaction."""
    marks = marks_among(keys)
    if not len(marks):
        return np.full(len(begins), in_transaction)
    involved = open_around(keys[marks], in_transaction)[np.searchsorted(marks, begins)] > 0
    involved[np.searchsorted(begins, marks, side="right") - 1] = True
    return involved
