"""The events of a log whose parts are taken in whole and as columns, up to where something is odd about one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch
from kraftlake.records.serde import UnknownRecord
from kraftlake.replay.loader.record_faults import decode_record
from kraftlake.replay.reading.chunks import Chunk, chunks_of
from kraftlake.replay.reading.log_reader import LogReader
from kraftlake.runtime.errors import ReplayError
from kraftlake.tables.changes.effective_records import EffectiveRecords, standing_alone
from kraftlake.tables.events.states import EVENT_KINDS
from kraftlake.tables.events.table import EVENTS
from kraftlake.tables.events.writer import EventsWriter

if TYPE_CHECKING:
    from kraftlake.replay.loader.batch_loader import MetadataBatchLoader

_TAKEN: Final = (
    *EVENT_KINDS,
    r.BeginTransactionRecord.API_KEY,
    r.EndTransactionRecord.API_KEY,
    r.AbortTransactionRecord.API_KEY,
)
_NO_OP_BYTES: Final = 4
"""The length of a no-op record's value without tagged fields."""


class WholeParts:
    """The rows of `events/` of the log behind a loader's image, between two batches, up to an offset.

    To be iterated once, a table for each part of the log; then, and where that has raised, another can go on from the
    offset `safe_from`, in front of which no transaction is open, for what lies behind the offset `told_to`.
    """

    def __init__(
        self, reader: LogReader, loader: MetadataBatchLoader, to_offset: int, *, show_secrets: bool = False
    ) -> None:
        self._reader = reader
        self._to_offset = to_offset
        self._writer = EventsWriter(show_secrets=show_secrets)
        self._writer.start(loader.image, loader.quorum, loader.provenance.epoch)
        self._epoch = loader.provenance.epoch
        self.safe_from = loader.last_offset + 1
        self.told_to = loader.last_offset

    def __iter__(self) -> Iterator[pa.Table]:
        """The tables, up to the batch that the last offset splits.

        Raises what the records raise, and ReplayError for what a loader has to look at.
        """
        for part in chunks_of(self._reader, self.safe_from, self._to_offset):
            if part.last_offset > self._to_offset:
                return
            _check(part, self.told_to + 1, self._epoch)
            self._writer.take_part(part)
            self.told_to = part.last_offset
            self._epoch = part.epoch if isinstance(part, RecordBatch) else part.last_epoch
            if not self._writer.in_transaction:
                self.safe_from = self.told_to + 1
            yield self._writer.drain().cast(EVENTS.schema)


def _check(part: Chunk, expected: int, epoch: int) -> None:
    """Raises for what a loader wouldn't take, where that shows only there."""
    epochs = np.array([part.epoch]) if isinstance(part, RecordBatch) else part.epochs
    if part.base_offset != expected or (np.diff(epochs, prepend=epoch) < 0).any():
        raise ReplayError(f"the batch at offset {part.base_offset} does not follow the one before it")
    records = standing_alone(part)
    plain = (records.kinds == r.NoOpRecord.API_KEY) & (records.stops - records.starts == _NO_OP_BYTES)
    for place in np.flatnonzero(~(records.are_of(_TAKEN) | plain)).tolist():
        _check_record(records, place)


def _check_record(records: EffectiveRecords, place: int) -> None:
    offset = int(records.offsets[place])
    if isinstance(decode_record(records.value(place), offset), UnknownRecord):
        raise ReplayError(f"offset {offset}: the record is not known")
