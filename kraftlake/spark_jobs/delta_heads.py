"""Where the metadata deltas of a log end: at its batches, but for those inside of metadata transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from kraftlake.records.batch import RecordBatch
from kraftlake.spark_jobs.history.effective_records import ABORT, BEGIN, EffectiveRecords

if TYPE_CHECKING:
    from kraftlake.records.batch_values import BatchValues


@attrs.frozen(kw_only=True, eq=False)
class DeltaHeads:
    """The last `offsets` (int64, ascending) of metadata deltas, with the `epochs` and `times` of their batches.

    A time is in epoch milliseconds, -1 for none.
    """

    offsets: Any
    epochs: Any
    times: Any

    @classmethod
    def single(cls, offset: int, epoch: int, time: int) -> DeltaHeads:
        """One delta alone."""
        return cls(
            offsets=np.array([offset], np.int64), epochs=np.array([epoch], np.int32), times=np.array([time], np.int64)
        )

    @classmethod
    def of_part(cls, part: BatchValues | RecordBatch, records: EffectiveRecords, *, in_transaction: bool) -> DeltaHeads:
        """Those of a part of the log, whose `records` are given as if each stood alone.

        A delta ends with each batch behind which no transaction is open, and in front of each that begins.
        `in_transaction`: one is open in front of the part.
        """
        if isinstance(part, RecordBatch):
            of_batch: tuple[Any, Any, Any] = ([part.last_offset], [part.epoch], [part.timestamp])
        else:
            of_batch = (part.last_offsets, part.epochs, part.timestamps)
        lasts, epochs, times = (np.asarray(values, np.int64) for values in of_batch)
        offsets = lasts
        marks = np.flatnonzero((records.kinds >= BEGIN) & (records.kinds <= ABORT))
        if in_transaction or len(marks):
            begins = records.kinds[marks] == BEGIN
            # How many transactions are open behind each mark: 0 or 1.
            opened = int(in_transaction) + np.concatenate((np.zeros(1, np.int64), np.cumsum(np.where(begins, 1, -1))))
            closed = opened[np.searchsorted(records.offsets[marks], lasts, side="right")] == 0
            before = records.offsets[marks[begins]] - 1
            offsets = np.union1d(lasts[closed], before[before >= part.base_offset])
        batches = np.searchsorted(lasts, offsets)
        return cls(offsets=offsets, epochs=epochs[batches].astype(np.int32), times=times[batches])
