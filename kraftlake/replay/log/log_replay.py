"""The replay of a log: cut into metadata deltas, decoded and folded once. Imports numpy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain, islice
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraftlake.image import MetadataImage, MetadataProvenance, TopicsImage
from kraftlake.records.batch import RecordBatch
from kraftlake.records.no_ops import NO_OP_VALUE
from kraftlake.records.row_values import values_of_rows
from kraftlake.replay.loader.fold import loader_at, snapshot_image
from kraftlake.replay.loader.manifest import SkippedRecord
from kraftlake.replay.loader.quorum_state import QuorumState
from kraftlake.replay.loader.record_faults import RECORD_FAULTS, UNDECODABLE, UNREADABLE, type_of
from kraftlake.replay.log.batch_order import first_out_of_order
from kraftlake.replay.log.delta_boundaries import DeltaBoundaries
from kraftlake.replay.log.delta_chunk import DeltaChunk, LogBegin, ReplayState
from kraftlake.replay.log.effective_records import (
    NO_RECORDS,
    EffectiveRecords,
    Stop,
    TransactionReader,
    joined,
    standing_alone,
)
from kraftlake.replay.log.other_records import OtherRecords
from kraftlake.replay.log.partition_changes import PartitionChanges
from kraftlake.replay.log.partition_store import PartitionStore
from kraftlake.replay.reading.chunks import Chunk, chunks_of, cut
from kraftlake.replay.reading.log_reader import LogReader
from kraftlake.replay.reading.open_reader import LakeReader
from kraftlake.replay.reading.replay_base import has_beginning, oldest_snapshot
from kraftlake.runtime.errors import CorruptDataError, KraftlakeError

if TYPE_CHECKING:
    from kraftlake.replay.log.effective_records import LogPart

_PARTS_AT_ONCE, _RECORDS_AT_ONCE = 1_000, 1 << 15
"""The most batches, and about the most records, whose changes are looked at together.

The events of 1 M records take 2.0 s and 410 MB with twice as many records at once, 1.8 s and 340 MB with these.
"""


class LogReplay:
    """Cuts a log into metadata deltas from an offset on: the one place that knows order, epochs and transactions.

    A delta ends with each batch after which no metadata transaction (KIP-868) is open, and before each record that
    begins one; the records of a transaction take effect at its end. `store` has the partitions after the last delta,
    `others` all else. `provenance` is that of an image there; it moves on over batches of nothing but no-op records
    too. `quorum` is the state of the quorum by the control records so far.

    Strict: a record that can't be replayed raises ReplayError, UnknownRecordError or CorruptDataError with its offset,
    after the deltas before its own; nothing is to be taken after that. Lenient: the record is left out and noted in
    `skipped`.

    Source: org.apache.kafka.image.loader.MetadataBatchLoader.
    """

    def __init__(self, *, lenient: bool = False, of_shard: bool = False, by_offset: bool = False) -> None:
        """Begin with an empty log; `of_shard` is that of PartitionStore.

        `by_offset`: a delta ends at each offset at which records take effect, too.
        """
        self._by_offset = by_offset
        self.lenient = lenient
        self.skipped: list[SkippedRecord] = []
        self.store = PartitionStore(of_shard=of_shard)
        self.provenance = MetadataProvenance.EMPTY
        self.quorum = QuorumState()
        self._others = OtherRecords()
        self._topics: TopicsImage | None = TopicsImage.EMPTY
        """The topics as an image, None where the store has newer ones."""
        self._transactions = TransactionReader()
        self._is_whole = True
        """Whether no batches are left out, as they are between those of a shard."""
        self._last_offset: int | None = None
        self._epoch: int | None = None
        self._time = -1

    @property
    def in_transaction(self) -> bool:
        """Whether a metadata transaction is open after what was taken."""
        return self._transactions.open_since is not None

    @property
    def last_offset(self) -> int:
        """The last offset that was taken, -1 for none."""
        return -1 if self._last_offset is None else self._last_offset

    @property
    def last(self) -> MetadataProvenance:
        """The last offset that was taken with its batch's epoch and time, also where its delta has not ended."""
        if self._last_offset is None or self._epoch is None:
            return self.provenance
        return attrs.evolve(self.provenance, offset=self._last_offset, epoch=self._epoch, timestamp=self._time)

    @property
    def others(self) -> MetadataImage:
        """The image without topics after the last delta; its provenance is that of the begin."""
        return self._others.image

    @property
    def image(self) -> MetadataImage:
        """The image after the last delta."""
        if self._topics is None:
            self._topics = self.store.topics()
        return attrs.evolve(self._others.image, topics=self._topics, provenance=self.provenance)

    @property
    def state(self) -> ReplayState:
        """The state after the last delta: `go_on` goes on from there."""
        self._topics, since, since_times = self.store.image()
        return ReplayState(
            image=self.image,
            quorum=self.quorum,
            since=since,
            since_times=since_times,
            open_since=self._transactions.open_since,
            held=self._transactions.held,
        )

    def go_on(self, state: ReplayState) -> None:
        """Begin where a replay of a shard or of the driver has ended; the parts that follow may have gaps."""
        image, self._is_whole = state.image, False
        self.provenance, self.quorum, self._others = image.provenance, state.quorum, OtherRecords(image)
        self.store.begin(image.topics, state.since, state.since_times)
        self._topics = image.topics
        if state.open_since is not None:
            self._transactions.go_on(state.held, state.open_since)

    def load(self, parts: Iterable[LogPart], at: MetadataProvenance) -> None:
        """Take a part of a snapshot onto the empty image, and what came before of the snapshot, which ends `at` there.

        Raises as `take_parts`; no record of a snapshot is a mark of a transaction.
        """
        boundaries = DeltaBoundaries.single(at.offset, at.epoch, at.timestamp)
        for part in parts:
            if isinstance(part, RecordBatch) and part.control:
                self._take_control(part)
            for _ in self._chunks(standing_alone(part).taking_effect(at.offset, at.timestamp), boundaries):
                pass  # nobody asks for the changes
        self.provenance, self._last_offset, self._epoch = at, at.offset, at.epoch

    def open(self, reader: LakeReader, covers: int | None) -> LogBegin:
        """Begin after the offset that tables cover, None for nothing; to be called at most once, before all else.

        Raises OffsetError where the log lacks its beginning and has no snapshot that covers its start, or has no image
        at `covers`.
        """
        if covers is not None:
            return self.begin_at(reader, covers)
        if has_beginning(reader):
            return LogBegin()
        replay = snapshot_image(oldest_snapshot(reader))
        return self.begin(replay.image, replay.quorum, is_load=True)

    def begin_at(self, reader: LogReader, offset: int, *, cluster_id: str | None = None) -> LogBegin:
        """Begin after any offset of a log, -1 for its first; to be called at most once, before all else.

        Inside of a metadata transaction it is with the image before its begin, as of which the last delta was. Raises
        OffsetError where the log has no image there, and, if strict, what the replay up to there raises.
        """
        loader = loader_at(reader, offset, lenient=self.lenient)
        loader.cluster_id = cluster_id or loader.cluster_id
        begins, quorum = loader.transaction_begin_offset, loader.quorum
        self.skipped += loader.skipped
        if offset < 0:
            return LogBegin()
        image = loader.take_image()
        if begins is None:
            return self.begin(image, quorum)
        waiting = joined([standing_alone(cut(batch, begins, offset)) for batch in reader.batches(begins, offset)])
        self._transactions.go_on(waiting.where(waiting.offsets > begins), begins)
        before = loader_at(reader, begins - 1, lenient=self.lenient).provenance
        begin = self.begin(attrs.evolve(image, provenance=before), quorum, any_delta=begins > 0)
        at = image.provenance
        self._last_offset, self._epoch, self._time = offset, at.epoch, at.timestamp
        return begin

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
        self.quorum, self._others, self._topics = quorum, OtherRecords(image), image.topics
        self._last_offset, self._epoch, self._time = at.offset, at.epoch, at.timestamp
        return LogBegin(image=image, is_load=is_load, any_delta=any_delta)

    def read(self, reader: LogReader, to_offset: int) -> Iterator[DeltaChunk]:
        """The deltas that end in the offsets after the last one that was taken, up to `to_offset`, of a log.

        Of a batch that goes beyond it they have the records up to there. Raises as `take_parts`, and what reading the
        log raises; if lenient, what can't be read is noted in `skipped`.
        """
        return chain.from_iterable(self.steps(reader, to_offset))

    def steps(self, reader: LogReader, to_offset: int) -> Iterator[Iterator[DeltaChunk]]:
        """As `read`, the deltas of a bounded number of batches at once; each is to be iterated before the next."""
        first = self.last_offset + 1
        lost = self._pass_lost if self.lenient else None
        parts = (cut(part, first, to_offset) for part in chunks_of(reader, first, to_offset, lost))
        for part in parts:
            yield self.take_parts(_some(part, parts))

    def take(self, rows: pa.Table) -> list[DeltaChunk]:
        """The deltas that end in rows of the log, whole batches sorted by offset, which follow those before.

        Raises ReplayError, UnknownRecordError or CorruptDataError, naming the offset, for a record that contradicts
        what is there, or can't be replayed.
        """
        if self._is_quiet(rows):
            self._pass_over(rows)
            return []
        return [*self.take_parts(values_of_rows(rows))]

    def take_parts(self, parts: Iterable[LogPart], *, in_one_delta: bool = False) -> Iterator[DeltaChunk]:
        """As `take`, of parts of the log; what getting them raises is raised after the deltas before it.

        `in_one_delta`: all deltas of the parts count as one.
        """
        taken: list[EffectiveRecords] = []
        boundaries: list[DeltaBoundaries] = []
        fault: KraftlakeError | None = None
        try:
            for part in parts:
                records, ends, fault = self._take(part)
                taken += records
                boundaries.append(ends)
                if fault is not None:
                    break
        except KraftlakeError as error:
            fault = error
        if boundaries:
            ends, effective = DeltaBoundaries.joined(boundaries), joined(taken or [NO_RECORDS])
            ends = ends.by_offset(effective) if self._by_offset else ends
            yield from self._chunks(effective, ends.where(np.s_[-1:]) if in_one_delta else ends)
        if fault is not None:
            raise fault

    def _take(self, part: LogPart) -> tuple[list[EffectiveRecords], DeltaBoundaries, KraftlakeError | None]:
        """The records that take effect with a part, the ends of its deltas, and what is wrong with what follows."""
        in_transaction = self.in_transaction
        alone = standing_alone(part)
        skip = partial(self._skip, alone) if self.lenient else None
        alone, some, bad_mark = self._transactions.with_good_marks(alone, skip)
        stops = [stop for stop in (bad_mark, self._out_of_order(part)) if stop is not None]
        stop = min(stops, key=itemgetter(0), default=None)
        if stop is not None:
            some = some.part(0, int(np.searchsorted(some.offsets, stop[0])))
        elif isinstance(part, RecordBatch) and part.control:
            self._take_control(part)
        records = [*self._transactions.take(some)] if len(some) else [some]
        leader = -1 if self.quorum.leader_id is None else self.quorum.leader_id
        ends = DeltaBoundaries.of_part(part, alone, in_transaction=in_transaction, leader=leader)
        if stop is not None:
            return records, ends.part(0, int(np.searchsorted(ends.offsets, stop[0]))), stop[1]
        self._move_behind(part, ends)
        return records, ends, None

    def _move_behind(self, part: LogPart, ends: DeltaBoundaries) -> None:
        self._epoch = part.epoch if isinstance(part, RecordBatch) else part.last_epoch
        lasts = [part.last_offset] if isinstance(part, RecordBatch) else part.last_offsets
        self._time = part.timestamp if isinstance(part, RecordBatch) else int(part.timestamps[-1])
        self._last_offset = int(lasts[-1])
        if len(ends):
            last = int(ends.offsets[-1])
            self.provenance = attrs.evolve(
                self.provenance,
                offset=last,
                epoch=int(ends.epochs[-1]),
                timestamp=int(ends.times[-1]),
                batch_aligned=last in lasts,
            )

    def _take_control(self, batch: RecordBatch) -> None:
        try:
            for record in batch.messages():
                self.quorum = self.quorum.after(record.message)
        except CorruptDataError as error:
            if not self.lenient:
                raise
            self._note_skipped(batch.base_offset, "CONTROL", error)

    def _out_of_order(self, part: LogPart) -> Stop | None:
        last = self._last_offset if self._is_whole else None
        return first_out_of_order(part, last=last, last_epoch=self._epoch)

    def _chunks(self, records: EffectiveRecords, boundaries: DeltaBoundaries) -> Iterator[DeltaChunk]:
        """The deltas of records; those behind the last boundary stand in front of a fault in their own delta."""
        deltas = np.searchsorted(boundaries.offsets, records.effective)
        whole, first = int(np.searchsorted(deltas, len(boundaries))), 0
        for run in self._folded(records.part(0, whole), deltas[:whole]):
            last = len(boundaries) if run.ends_at is None else run.ends_at
            if first == last:
                continue
            names = run.changes.names.topics
            removed = {record: names[topic].as_py() for _, topic, record in run.changes.removed.tolist()}
            skip = partial(self._skip, run.records) if self.lenient else None
            others, fault = self._others.replay(run.records, run.deltas - first, removed, skip)
            chunk = DeltaChunk(
                boundaries=boundaries.part(first, last),
                records=run.records,
                deltas=run.deltas - first,
                partitions=run.changes.counted_from(first, 0),
                others=others,
                partitions_after=self.store.rows() if any(other.racks for other in others) else None,
            )
            first = last
            if chunk.partitions.touches_topics:
                self._topics = None
            if fault is not None:
                yield chunk.in_front_of(int(chunk.deltas[fault[0]]))
                raise fault[1]
            yield chunk
        self.skipped.sort(key=attrgetter("offset"))
        if whole < len(records):
            self._raise_first(records.part(whole, len(records)), deltas[whole:])

    def _raise_first(self, records: EffectiveRecords, deltas: Any) -> None:
        """Raise the fault of the first of some records that can't be replayed, if there is one."""
        for run in self._folded(records, deltas):
            skip = partial(self._skip, run.records) if self.lenient else None
            _, fault = self._others.replay(run.records, run.deltas, {}, skip)
            if fault is not None:
                raise fault[1]

    def _folded(self, records: EffectiveRecords, deltas: Any) -> Iterator[_Run]:
        """The changes of topics by runs of whole deltas, at least one run."""
        done = 0
        while True:
            try:
                for last, changes in self.store.fold(records, deltas):
                    ends_at = None if last == len(records) else int(deltas[last])
                    yield _Run(records.part(done, last), deltas[done:last], changes.counted_from(0, done), ends_at)
                    done = last
                return
            except RECORD_FAULTS as error:
                place = done + int(np.flatnonzero(records.offsets[done:] == getattr(error, "offset", None))[0])
                if not self.lenient:
                    _, earlier = self._others.replay(records.part(done, place), deltas[done:place], {}, None)
                    raise (error if earlier is None else earlier[1]) from None
                self._skip(records, place, error)
                kept = np.delete(np.arange(done, len(records)), place - done)
                records, deltas, done = records.where(kept), deltas[kept], 0

    def _skip(self, records: EffectiveRecords, place: int, error: KraftlakeError) -> None:
        """Note that one of the records is left out."""
        offset = int(records.offsets[place])
        is_corrupt = isinstance(error, CorruptDataError)
        self._note_skipped(offset, UNDECODABLE if is_corrupt else type_of(records.message(place)), error)

    def _note_skipped(self, offset: int, type_: str, reason: object) -> None:
        self.skipped.append(SkippedRecord(offset=offset, type=type_, reason=str(reason)))

    def _pass_lost(self, first: int, last: int, reason: str) -> None:
        """Pass over offsets that can't be read. A transaction may have ended there, so an open one is dropped."""
        self._note_skipped(first, UNREADABLE, reason)
        self._transactions = TransactionReader()
        self._last_offset = max(self.last_offset, last)

    def _is_quiet(self, rows: pa.Table) -> bool:
        """Whether rows are nothing but no-op records of the same epoch as before: no table says anything of them."""
        if self._epoch is None or self.in_transaction:
            return False
        no_ops = pc.and_not(pc.equal(rows.column("payload"), NO_OP_VALUE), rows.column("control"))
        return bool(pc.all(pc.and_(no_ops, pc.equal(rows.column("epoch"), self._epoch))).as_py())

    def _pass_over(self, rows: pa.Table) -> None:
        """Move over batches that no table says anything of."""
        last_batch = pc.equal(rows.column("batch"), rows.column("batch")[-1])
        latest = pc.max(rows.column("timestamp").filter(last_batch).cast(pa.int64())).as_py()
        self._time = -1 if latest is None else latest // 1000
        self._last_offset = rows.column("offset")[-1].as_py()
        self.provenance = attrs.evolve(
            self.provenance,
            offset=self._last_offset,
            timestamp=self._time,
            batch_aligned=True,
        )


class _Run(NamedTuple):
    """Whole deltas whose records of topics were folded: `ends_at` is the first delta behind them, None for all."""

    records: EffectiveRecords
    deltas: Any
    changes: PartitionChanges
    ends_at: int | None


def _some(part: Chunk, following: Iterator[Chunk]) -> Iterator[Chunk]:
    """A part of a log and some of those that follow it."""
    records = part.record_count
    yield part
    for more in islice(following, _PARTS_AT_ONCE - 1) if records < _RECORDS_AT_ONCE else ():
        yield more
        records += more.record_count
        if records >= _RECORDS_AT_ONCE:
            return
