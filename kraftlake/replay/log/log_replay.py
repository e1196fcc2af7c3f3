"""The replay of a log: cut into metadata deltas, decoded and folded once. Imports numpy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain, islice
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.provenance import MetadataProvenance
from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.records.no_ops import NO_OP_VALUE
from kraftlake.records.row_values import values_of_rows
from kraftlake.records.serde import AnyMessage, UnknownRecord
from kraftlake.replay.loader.fold import loader_at, snapshot_image
from kraftlake.replay.loader.quorum_state import QuorumChange, QuorumState
from kraftlake.replay.loader.record_faults import RECORD_FAULTS, UNDECODABLE, type_of
from kraftlake.replay.log.delta_chunk import Batches, DeltaBoundaries, DeltaChunk, LogBegin, ReplayState, batches_in
from kraftlake.replay.log.effective_records import (
    NO_RECORDS,
    EffectiveRecords,
    control_batches,
    in_runs,
    joined,
    marks_among,
    standing_alone,
)
from kraftlake.replay.log.log_position import LogPosition, order_fault
from kraftlake.replay.log.other_records import OtherRecords
from kraftlake.replay.log.partition_store import PartitionStore
from kraftlake.replay.reading.chunks import Chunk, chunks_of, cut
from kraftlake.replay.reading.open_reader import LakeReader, LogReader
from kraftlake.replay.reading.replay_base import has_beginning, oldest_snapshot
from kraftlake.runtime.errors import CorruptDataError, KraftlakeError

if TYPE_CHECKING:
    from kraftlake.replay.log.effective_records import LogPart

_PARTS_AT_ONCE, _RECORDS_AT_ONCE = 1_000, 1 << 15
"""The most batches, and about the most records, whose changes are looked at together.

The events of 1 M records take 2.0 s and 410 MB with twice as many records at once, 1.8 s and 340 MB with these.
"""


class LogReplay(LogPosition[EffectiveRecords]):
    """Cuts a log into metadata deltas from an offset on, decoded and folded as columns.

    A delta ends with each batch after which no metadata transaction (KIP-868) is open, and before each record that
    begins one; the records of a transaction take effect at its end. `store` has the partitions after the last delta,
    `others` all else. `provenance` is that of an image there; it moves on over batches of nothing but no-op records
    too.

    Strict: a record that can't be replayed raises ReplayError, UnknownRecordError or CorruptDataError with its offset,
    after the deltas before its own; nothing is to be taken after that. Lenient: the record is left out.

    Source: org.apache.kafka.image.loader.MetadataBatchLoader.
    """

    def __init__(self, *, lenient: bool = False, of_shard: bool = False, by_offset: bool = False) -> None:
        """Begin with an empty log; `of_shard` is that of PartitionStore.

        `by_offset`: a delta ends at each offset at which records take effect, too.
        """
        super().__init__(lenient=lenient)
        self._by_offset = by_offset
        self.store = PartitionStore(of_shard=of_shard)
        self.provenance = MetadataProvenance.EMPTY
        self._others = OtherRecords()
        self._topics: TopicsImage | None = TopicsImage.EMPTY
        """The topics as an image, None where the store has newer ones."""
        self.delta_quorum = self.quorum
        """The state of the quorum after the last delta; `quorum` may be newer within a metadata transaction."""
        self._quorum_changes: list[QuorumChange] = []
        """Those of parts that were taken, but are in no chunk yet."""
        self._is_whole = True
        """Whether no batches are left out, as they are between those of a shard."""

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
            delta_quorum=self.delta_quorum,
            since=since,
            since_times=since_times,
            open_since=self.transaction_begin_offset,
            held=joined([*self.transaction.held()] or [NO_RECORDS]),
        )

    def go_on(self, state: ReplayState) -> None:
        """Begin where a replay of a shard or of the driver has ended; the parts that follow may have gaps."""
        image, self._is_whole = state.image, False
        self.provenance, self.quorum, self._others = image.provenance, state.quorum, OtherRecords(image)
        self.delta_quorum = state.delta_quorum
        self.store.begin(image.topics, state.since, state.since_times)
        self._topics = image.topics
        self.transaction.begin_offset = state.open_since
        if len(state.held):
            self.transaction.hold(state.held.kept())

    def load(self, parts: Iterable[LogPart], at: MetadataProvenance) -> None:
        """Take a part of a snapshot onto the empty image, and what came before of the snapshot, which ends `at` there.

        Raises as `take_parts`; no record of a snapshot is a mark of a transaction.
        """
        boundaries = DeltaBoundaries.single(at.offset, at.epoch, at.timestamp)
        for part in parts:
            for batch in control_batches(part):
                self.take_control(batch, batch.base_offset, batch.last_offset)
            for _ in self._chunks(standing_alone(part).taking_effect(at.offset, at.timestamp), boundaries):
                pass  # nobody asks for the changes
        self.provenance, self.delta_quorum = at, self.quorum
        self.move_behind(at)

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
        if offset < 0:
            return LogBegin()
        loader = loader_at(reader, offset, lenient=self.lenient)
        begins, last = loader.transaction_begin_offset, loader.last
        if begins is not None:
            loader = loader_at(reader, begins - 1, lenient=self.lenient)
        loader.cluster_id = cluster_id or loader.cluster_id
        self.skipped += loader.skipped
        begin = self.begin(loader.take_image(), loader.quorum, any_delta=begins != 0)
        if begins is not None:
            for _ in self.take_parts(cut(batch, begins, offset) for batch in reader.batches(begins, offset)):
                pass  # no delta ends there
            self.move_behind(last)
        return attrs.evolve(begin, newest_quorum=self.quorum)

    def begin(
        self,
        image: MetadataImage,
        quorum: QuorumState | None = None,
        *,
        is_load: bool = False,
        any_delta: bool = True,
    ) -> LogBegin:
        """Begin with an image."""
        self.provenance = at = image.provenance
        self.store.begin(image.topics, at.offset, at.timestamp)
        self.quorum = self.delta_quorum = quorum or QuorumState()
        self._others, self._topics = OtherRecords(image), image.topics
        self.cluster_id = at.cluster_id
        self.move_behind(at)
        return LogBegin(image=image, is_load=is_load, any_delta=any_delta, quorum=self.quorum)

    def read(self, reader: LogReader, to_offset: int) -> Iterator[DeltaChunk]:
        """The deltas that end in the offsets after the last one that was taken, up to `to_offset`, of a log.

        Of a batch that goes beyond it they have the records up to there. Raises as `take_parts`, and what reading the
        log raises; if lenient, what can't be read is noted in `skipped`.
        """
        return chain.from_iterable(self.steps(reader, to_offset))

    def steps(self, reader: LogReader, to_offset: int) -> Iterator[Iterator[DeltaChunk]]:
        """Yields, as `read`, the deltas of a bounded number of batches; each is to be iterated before the next."""
        first = self.last_offset + 1
        yield from self.steps_of(cut(part, first, to_offset) for part in chunks_of(reader, first, to_offset, self.lost))

    def steps_of(self, parts: Iterator[Chunk]) -> Iterator[Iterator[DeltaChunk]]:
        """The same of parts of a log that follow what was taken."""
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
        """Takes parts of the log, as `take`; an error of `parts` is raised after the deltas before it.

        `in_one_delta`: all deltas of the parts count as one.
        """
        taken: list[EffectiveRecords] = []
        boundaries: list[DeltaBoundaries] = []
        fault: KraftlakeError | None = None
        try:
            for part in in_runs(parts, most=1 if self.lenient else None):  # what is lost comes between two batches
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
        alone, batches, quorum = standing_alone(part), batches_in(part), self.quorum
        stop, leaders, changes = self._out_of_order(batches), [(-1, self._leader)], list[QuorumChange]()
        for batch in control_batches(part):
            try:
                changes += self.take_control(batch, batch.base_offset, batch.last_offset)
            except CorruptDataError as error:
                stop = min(stop or (batch.base_offset, error), (batch.base_offset, error), key=itemgetter(0))
            leaders.append((batch.base_offset, self._leader))
        self._quorum_changes += [change for change in changes if stop is None or change.offset < stop[0]]
        count = len(alone) if stop is None else int(np.searchsorted(alone.offsets, stop[0]))
        taken, offsets, done, ended = list[EffectiveRecords](), [batches.last_offsets[:0]], 0, 0
        try:
            for place in (*marks_among(alone.kinds[:count]).tolist(), count):
                if done < place:
                    taken += self._passing(alone if place - done == len(alone) else alone.part(done, place))
                number = len(batches.last_offsets) if place == count else batches.holding(int(alone.offsets[place]))
                if not self.in_transaction:
                    offsets.append(batches.last_offsets[ended:number])
                if place < count:
                    taken += self._marked(alone, place, int(batches.base_offsets[number]), offsets)
                done, ended = place + 1, number
        except RECORD_FAULTS as error:
            stop = getattr(error, "offset", part.base_offset), error
        ends = DeltaBoundaries.of_part(part, batches, alone, np.concatenate(offsets), leaders)
        if stop is not None:
            return taken, ends.part(0, int(np.searchsorted(ends.offsets, stop[0]))), stop[1]
        last = [int(numbers[-1]) for numbers in (batches.last_offsets, batches.epochs, batches.timestamps)]
        self.last_offset, self.epoch, self.time = last
        self._batch_aligned = True
        if len(ends):
            end = int(ends.offsets[-1])
            self.delta_quorum = [quorum, *(change.state for change in changes if change.offset <= end)][-1]
            self.provenance = attrs.evolve(
                self.provenance,
                offset=end,
                epoch=int(ends.epochs[-1]),
                timestamp=int(ends.times[-1]),
                batch_aligned=end in batches.last_offsets,
            )
        return taken, ends, None

    @property
    def _leader(self) -> int:
        """The quorum's leader, -1 where it is not known."""
        return -1 if self.quorum.leader_id is None else self.quorum.leader_id

    def _passing(self, records: EffectiveRecords) -> list[EffectiveRecords]:
        """The records that take effect of some that are no marks; those of an open transaction are decoded and held."""
        if not self.in_transaction:
            return [records]
        good = [place for place in range(len(records)) if self._decoded(records, place) is not None]
        if good:
            self.transaction.hold((records if len(good) == len(records) else records.where(good)).kept())
        return []

    def _marked(self, records: EffectiveRecords, place: int, base: int, offsets: list[Any]) -> list[EffectiveRecords]:
        """The records that take effect with a mark, of a batch from `base` on; one in an unknown version is no mark.

        The end of a delta in front of it is added to `offsets`.
        """
        offset, mark = int(records.offsets[place]), self._decoded(records, place)
        if isinstance(mark, UnknownRecord):
            return self._passing(records.part(place, place + 1))
        if mark is None:
            return []
        if self.ends_before(mark, has_records=offset > base):
            offsets.append([offset - 1])
        held = self.take_record(mark, offset, NO_RECORDS)
        return [joined(held).taking_effect(offset, int(records.times[place]))] if held else []

    def _decoded(self, records: EffectiveRecords, place: int) -> AnyMessage | None:
        """A record's message; None where it can't be decoded and is left out."""
        try:
            return records.message(place)
        except CorruptDataError as error:
            self.leave_out(int(records.offsets[place]), UNDECODABLE, error)
            return None

    def _out_of_order(self, batches: Batches) -> tuple[int, KraftlakeError] | None:
        """The offset of the first batch that does not follow the one before it, and what is wrong; None for none."""
        bases, epochs = batches.base_offsets, batches.epochs
        first = int(bases[0])
        last = self.last_offset if self._is_whole else first - 1
        fault = order_fault(first, int(epochs[0]), last=last, last_epoch=self.epoch)
        for place in (epochs[1:] < epochs[:-1]).nonzero()[0].tolist()[:1] if fault is None else ():
            first, (before, epoch) = int(bases[place + 1]), epochs[place : place + 2].tolist()
            fault = order_fault(first, epoch, last=first - 1, last_epoch=before)
        return None if fault is None else (first, fault)

    def _chunks(self, records: EffectiveRecords, boundaries: DeltaBoundaries) -> Iterator[DeltaChunk]:
        """The deltas of records; those behind the last boundary stand in front of a fault in their own delta."""
        deltas, left_out = np.searchsorted(boundaries.offsets, records.effective), list[int]()
        skip = partial(self._skip, records, left_out) if self.lenient else None
        changes, fault = self.store.fold(records, deltas, len(boundaries), skip)
        if left_out:
            kept = np.delete(np.arange(len(records)), left_out)
            records, deltas, left_out = records.where(kept), deltas[kept], []
            changes.removed[:, 2] = np.searchsorted(kept, changes.removed[:, 2])
        names = changes.names.topics
        removed = {record: names[topic].as_py() for _, topic, record in changes.removed.tolist()}
        some = records if fault is None else records.part(0, fault[0])
        skip = partial(self._skip, records, left_out) if self.lenient else None
        last = len(boundaries) if fault is None else min(len(boundaries), int(deltas[fault[0]]))
        others, earlier = self._others.replay(some, deltas, removed, last, skip)
        if earlier is not None:
            fault, last = earlier, min(last, int(deltas[earlier[0]]))
        self.skipped.sort(key=attrgetter("offset"))
        if changes.touches_topics:
            self._topics = None
        quorum, self._quorum_changes = self._quorum_changes, []
        if last or quorum:  # an election within a metadata transaction is in no delta yet
            chunk = DeltaChunk(
                boundaries=boundaries,
                records=records,
                deltas=deltas,
                partitions=changes,
                others=others,
                partitions_after=self.store.rows() if any(other.racks for other in others) else None,
                quorum=quorum,
            )
            yield chunk if int(np.searchsorted(deltas, last)) == len(deltas) else chunk.in_front_of(last)
        if fault is not None:
            raise fault[1]

    def _skip(self, records: EffectiveRecords, left_out: list[int], place: int, error: KraftlakeError) -> None:
        """Leave out one of the records."""
        is_corrupt = isinstance(error, CorruptDataError)
        type_ = UNDECODABLE if is_corrupt else type_of(records.message(place))
        self.leave_out(int(records.offsets[place]), type_, error)
        left_out.append(place)

    def _is_quiet(self, rows: pa.Table) -> bool:
        """Whether rows are nothing but no-op records of the same epoch as before: no table says anything of them."""
        if self.in_transaction:
            return False
        no_ops = pc.and_not(pc.equal(rows.column("payload"), NO_OP_VALUE), rows.column("control"))
        return bool(pc.all(pc.and_(no_ops, pc.equal(rows.column("epoch"), self.epoch))).as_py())

    def _pass_over(self, rows: pa.Table) -> None:
        """Move over batches that no table says anything of."""
        last_batch = pc.equal(rows.column("batch"), rows.column("batch")[-1])
        latest = pc.max(rows.column("timestamp").filter(last_batch).cast(pa.int64())).as_py()
        offset, time = rows.column("offset")[-1].as_py(), -1 if latest is None else latest // 1000
        self.provenance = attrs.evolve(self.provenance, offset=offset, timestamp=time, batch_aligned=True)
        self.move_behind(self.provenance)


def _some(part: Chunk, following: Iterator[Chunk]) -> Iterator[Chunk]:
    """A part of a log and some of those that follow it."""
    records = part.record_count
    yield part
    for more in islice(following, _PARTS_AT_ONCE - 1) if records < _RECORDS_AT_ONCE else ():
        yield more
        records += more.record_count
        if records >= _RECORDS_AT_ONCE:
            return
