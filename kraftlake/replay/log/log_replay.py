"""The replay of a log: cut into metadata deltas, decoded and folded once. Imports numpy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraftlake.image import MetadataImage, MetadataProvenance
from kraftlake.records.batch import RecordBatch
from kraftlake.records.metadata_records import NoOpRecord
from kraftlake.records.row_values import values_of_rows
from kraftlake.replay.loader.fold import loader_at, snapshot_image
from kraftlake.replay.loader.quorum_state import QuorumState
from kraftlake.replay.log.delta_boundaries import DeltaBoundaries
from kraftlake.replay.log.delta_chunk import DeltaChunk, LogBegin, TopicsState
from kraftlake.replay.log.effective_records import (
    EffectiveRecords,
    TransactionReader,
    joined,
    refuse_newer,
    standing_alone,
)
from kraftlake.replay.log.partition_store import PartitionStore
from kraftlake.replay.reading.open_reader import LakeReader
from kraftlake.replay.reading.replay_base import has_beginning, oldest_snapshot
from kraftlake.runtime.errors import ReplayError

if TYPE_CHECKING:
    from kraftlake.replay.log.effective_records import LogPart

_NO_OP: Final = NoOpRecord.API_KEY


class LogReplay:
    """Cuts a log into deltas from an offset on. `store` has the partitions after the last of them.

    `provenance` is that of an image there; it moves on over batches of nothing but no-op records too. `quorum` is the
    state of the quorum by the control records so far.
    """

    def __init__(self, *, bulk: bool = True, of_shard: bool = False) -> None:
        """Begin with an empty log; `bulk` and `of_shard` are those of PartitionStore."""
        self.store = PartitionStore(bulk=bulk, of_shard=of_shard)
        self.provenance = MetadataProvenance.EMPTY
        self.quorum = QuorumState()
        self._transactions = TransactionReader()
        self._epoch: int | None = None

    @property
    def in_transaction(self) -> bool:
        """Whether a metadata transaction is open after what was taken."""
        return self._transactions.open_since is not None

    @property
    def state(self) -> TopicsState:
        """The topics, and what waits for the end of a transaction: `go_on` goes on from there."""
        topics, since, since_times = self.store.image()
        open_since, held = self._transactions.open_since, self._transactions.held
        return TopicsState(topics=topics, since=since, since_times=since_times, open_since=open_since, held=held)

    def go_on(self, state: TopicsState, at: MetadataProvenance, quorum: QuorumState) -> None:
        """Begin where other deltas have ended, with the provenance of an image there."""
        self.provenance = at
        self.store.begin(state.topics, state.since, state.since_times)
        if state.open_since is not None:
            self._transactions.go_on(state.held, state.open_since)
        self.quorum = quorum

    def open(self, reader: LakeReader, covers: int | None) -> LogBegin:
        """Begin after the offset that tables cover, None for nothing; to be called at most once, before all else.

        Inside of a metadata transaction it is with the image before its begin, as of which the last delta was.

        Raises OffsetError where the log lacks its beginning and has no snapshot that covers its start, or has no image
        at `covers`.
        """
        if covers is None:
            if has_beginning(reader):
                return LogBegin()
            replay = snapshot_image(oldest_snapshot(reader))
            return self.begin(replay.image, replay.quorum, is_load=True)
        loader = loader_at(reader, covers)
        begins, quorum = loader.transaction_begin_offset, loader.quorum
        image = loader.take_image()
        if begins is None:
            return self.begin(image, quorum)
        waiting = joined([standing_alone(batch) for batch in reader.batches(begins, covers)])
        self._transactions.go_on(waiting.where(waiting.offsets > begins), begins)
        before = loader_at(reader, begins - 1).provenance
        return self.begin(attrs.evolve(image, provenance=before), quorum, any_delta=begins > 0)

    def begin(
        self,
        image: MetadataImage,
        quorum: QuorumState,
        *,
        is_load: bool = False,
        any_delta: bool = True,
    ) -> LogBegin:
        """Begin with an image."""
        self.provenance = at = image.provenance
        self.store.begin(image.topics, at.offset, at.timestamp)
        self.quorum = quorum
        self._epoch = at.epoch
        return LogBegin(image=image, is_load=is_load, any_delta=any_delta)

    def take(self, rows: pa.Table) -> list[DeltaChunk]:
        """The deltas that end in rows of the log, whole batches sorted by offset, which follow those before.

        Raises ReplayError, UnknownRecordError or CorruptDataError, naming the offset, for a record that contradicts
        what is there, or can't be replayed.
        """
        if self._is_quiet(rows):
            self._pass_over(rows)
            return []
        return [*self.take_parts(values_of_rows(rows))]

    def take_parts(self, parts: Iterable[LogPart]) -> Iterator[DeltaChunk]:
        """As `take`, of parts of the log."""
        taken: list[EffectiveRecords] = []
        boundaries: list[DeltaBoundaries] = []
        for part in parts:
            self._check_epoch(part)
            in_transaction, alone = self.in_transaction, standing_alone(part)
            refuse_newer(alone)
            taken += self._transactions.take(alone) if len(alone) else [alone]
            if isinstance(part, RecordBatch) and part.control:
                for record in part.messages():
                    self.quorum = self.quorum.after(record.message)
            leader = -1 if self.quorum.leader_id is None else self.quorum.leader_id
            ends = DeltaBoundaries.of_part(part, alone, in_transaction=in_transaction, leader=leader)
            self._epoch = part.epoch if isinstance(part, RecordBatch) else part.last_epoch
            if len(ends):
                last = int(ends.offsets[-1])
                lasts = [part.last_offset] if isinstance(part, RecordBatch) else part.last_offsets
                self.provenance = attrs.evolve(
                    self.provenance,
                    offset=last,
                    epoch=int(ends.epochs[-1]),
                    timestamp=int(ends.times[-1]),
                    batch_aligned=last in lasts,
                )
            boundaries.append(ends)
        if boundaries:
            yield from self._chunks(joined(taken or [alone.part(0, 0)]), DeltaBoundaries.joined(boundaries))

    def _pass_over(self, rows: pa.Table) -> None:
        """Move over batches that no table says anything of."""
        last_batch = pc.equal(rows.column("batch"), rows.column("batch")[-1])
        latest = pc.max(rows.column("timestamp").filter(last_batch).cast(pa.int64())).as_py()
        self.provenance = attrs.evolve(
            self.provenance,
            offset=rows.column("offset")[-1].as_py(),
            timestamp=-1 if latest is None else latest // 1000,
            batch_aligned=True,
        )

    def _check_epoch(self, part: LogPart) -> None:
        if self._epoch is not None and part.epoch < self._epoch:
            raise ReplayError(
                f"The batch at offset {part.base_offset} has epoch {part.epoch}, "
                f"but offset {part.base_offset - 1} before it has epoch {self._epoch}."
            )

    def _is_quiet(self, rows: pa.Table) -> bool:
        """Whether rows are nothing but no-op records of the same epoch as before: no table says anything of them."""
        if self._epoch is None or self.in_transaction:
            return False
        quiet = (rows.column("api_key").to_numpy() == _NO_OP) & (rows.column("epoch").to_numpy() == self._epoch)
        return bool(quiet.all()) and not rows.column("control").to_numpy(zero_copy_only=False).any()

    def _chunks(self, records: EffectiveRecords, boundaries: DeltaBoundaries) -> Iterator[DeltaChunk]:
        deltas = np.searchsorted(boundaries.offsets, records.effective)
        first = of_first = 0
        for last, changes in self.store.fold(records, deltas):
            of_last = len(boundaries) if last == len(records) else int(deltas[last])
            yield DeltaChunk(
                boundaries=boundaries.part(of_first, of_last),
                records=records.part(first, last),
                deltas=deltas[first:last] - of_first,
                partitions=changes.counted_from(of_first, first),
            )
            first, of_first = last, of_last
