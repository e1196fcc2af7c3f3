"""The events of a log that is read in bulk, up to the first record that only objects can replay."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import numpy as np

from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch
from kraftlake.records.serde import UnknownRecord
from kraftlake.replay.loader.record_faults import decode_record
from kraftlake.replay.log.effective_records import EffectiveRecords, standing_alone
from kraftlake.replay.log.log_replay import LogReplay
from kraftlake.replay.log.partition_store import TOPIC_KINDS
from kraftlake.replay.reading.chunks import Chunk, chunks_of
from kraftlake.replay.reading.log_reader import LogReader
from kraftlake.runtime.errors import ReplayError
from kraftlake.tables.events.delta_events import DeltaEvents, EventChunk
from kraftlake.tables.events.non_topic_events import NON_TOPIC_KINDS

if TYPE_CHECKING:
    from kraftlake.replay.loader.batch_loader import MetadataBatchLoader

_TAKEN: Final = (
    *TOPIC_KINDS,
    *NON_TOPIC_KINDS,
    r.BeginTransactionRecord.API_KEY,
    r.EndTransactionRecord.API_KEY,
    r.AbortTransactionRecord.API_KEY,
)
_NO_OP_BYTES: Final = 4
"""The length of a no-op record's value without tagged fields."""


class BulkLogEvents:
    """The deltas of the log after a loader's image, which ends between two batches, up to an offset.

    Iterate it once. At the end, and after an error, the deltas up to the offset `told_to` were given. No
    transaction is open at the offset `safe_from`: a replay can go on from there.
    """

    def __init__(
        self,
        reader: LogReader,
        loader: MetadataBatchLoader,
        to_offset: int,
        *,
        show_secrets: bool = False,
        of_brokers: frozenset[int] | None = None,
    ) -> None:
        self._reader = reader
        self._to_offset = to_offset
        self._deltas = LogReplay()
        begin = self._deltas.begin(loader.image, loader.quorum)
        self._events = DeltaEvents(begin, show_secrets=show_secrets, of_brokers=of_brokers)
        self._epoch = loader.provenance.epoch
        self.safe_from = loader.last_offset + 1
        self.told_to = loader.last_offset

    def __iter__(self) -> Iterator[EventChunk]:
        """The deltas, up to the batch that the last offset splits.

        Raises ReplayError or CorruptDataError for a record that has to be replayed by a loader, or contradicts the
        image.
        """
        for part in chunks_of(self._reader, self.safe_from, self._to_offset):
            if part.last_offset > self._to_offset:
                return
            _check(part, self.told_to + 1, self._epoch)
            chunks = [self._events.take(chunk) for chunk in self._deltas.take_parts([part])]
            self.told_to = part.last_offset
            self._epoch = part.epoch if isinstance(part, RecordBatch) else part.last_epoch
            if not self._deltas.in_transaction:
                self.safe_from = self.told_to + 1
            yield from chunks


def _check(part: Chunk, expected: int, epoch: int) -> None:
    """Raise ReplayError for a chunk that does not follow the one before it, and for unknown records."""
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
