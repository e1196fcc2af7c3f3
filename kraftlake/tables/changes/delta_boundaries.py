"""Where the metadata deltas of a log end: at its batches, but for those inside of metadata transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
import pyarrow as pa

from kraftlake.records.batch import RecordBatch
from kraftlake.tables.changes.effective_records import EffectiveRecords
from kraftlake.tables.changes.transactions import BEGIN, marks_among, open_around
from kraftlake.tables.history.columns import times_of

if TYPE_CHECKING:
    from kraftlake.records.batch_values import BatchValues


@attrs.frozen(kw_only=True, eq=False)
class DeltaBoundaries:
    """The last `offsets` (int64, ascending) of metadata deltas, with the `epochs` and `times` of their batches.

    A time is in epoch milliseconds, -1 for none.
    """

    offsets: Any
    epochs: Any
    times: Any

    @classmethod
    def single(cls, offset: int, epoch: int, time: int) -> DeltaBoundaries:
        """One delta alone."""
        return cls(
            offsets=np.array([offset], np.int64), epochs=np.array([epoch], np.int32), times=np.array([time], np.int64)
        )

    def row(self, number: int) -> tuple[int, int, int | None]:
        """One delta's as the tables' rows have them: offset, epoch, and time (epoch microseconds or None)."""
        time = int(self.times[number])
        return int(self.offsets[number]), int(self.epochs[number]), None if time < 0 else time * 1000

    def columns(self, deltas: Any) -> dict[str, pa.Array]:
        """The columns of tables that say which delta a row is of and when, by their names, for some (int64[n])."""
        return {
            "offset": pa.array(self.offsets[deltas]),
            "epoch": pa.array(self.epochs[deltas]),
            "timestamp": times_of(self.times[deltas]),
        }

    @classmethod
    def of_part(
        cls, part: BatchValues | RecordBatch, records: EffectiveRecords, *, in_transaction: bool
    ) -> DeltaBoundaries:
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
        marks = marks_among(records.kinds)
        if in_transaction or len(marks):
            opened = open_around(records.kinds[marks], in_transaction)
            closed = opened[np.searchsorted(records.offsets[marks], lasts, side="right")] == 0
            before = records.offsets[marks[records.kinds[marks] == BEGIN]] - 1
            offsets = np.sort(np.concatenate((lasts[closed], before[before >= part.base_offset])))
            offsets = offsets[np.diff(offsets, prepend=-1) > 0]  # np.unique would import numpy.ma
        batches = np.searchsorted(lasts, offsets)
        return cls(offsets=offsets, epochs=epochs[batches].astype(np.int32), times=times[batches])
