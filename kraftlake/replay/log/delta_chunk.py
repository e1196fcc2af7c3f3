"""The results of a replay of the log: whole metadata deltas as columns, their ends and their begin. Imports numpy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import attrs
import numpy as np

from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.provenance import MetadataProvenance
from kraftlake.records.batch import RecordBatch
from kraftlake.replay.loader.quorum_state import QuorumChange, QuorumState
from kraftlake.replay.log.effective_records import NO_RECORDS, EffectiveRecords, LogPart, ShardRecords
from kraftlake.replay.log.other_records import OtherChange
from kraftlake.replay.log.partition_changes import PartitionChanges, PartitionRows


@attrs.frozen(kw_only=True, eq=False)
class DeltaBoundaries:
    """The last `offsets` (int64, ascending) of metadata deltas, with the `epochs` (int32) and `times` of their batches.

    A time (int64) is in epoch milliseconds, -1 for none. `leaders` (int32) has the leader of the quorum after each
    delta, as far as control records say so, else -1; `noop` (bool) is true for a batch of nothing but no-op records.
    """

    offsets: Any
    epochs: Any
    times: Any
    leaders: Any = attrs.field(default=attrs.Factory(lambda of: np.full(len(of), -1, np.int32), takes_self=True))
    noop: Any = attrs.field(default=attrs.Factory(lambda of: np.zeros(len(of), np.bool_), takes_self=True))

    @classmethod
    def single(cls, offset: int, epoch: int, time: int) -> DeltaBoundaries:
        """One delta alone."""
        return cls(
            offsets=np.array([offset], np.int64), epochs=np.array([epoch], np.int32), times=np.array([time], np.int64)
        )

    @classmethod
    def joined(cls, some: Sequence[DeltaBoundaries]) -> DeltaBoundaries:
        """The boundaries of consecutive parts; at least one."""
        if len(some) == 1:
            return some[0]
        names = [field.name for field in attrs.fields(cls)]
        return cls(**{name: np.concatenate([getattr(each, name) for each in some]) for name in names})

    def __len__(self) -> int:
        return len(self.offsets)

    def part(self, first: int, last: int) -> DeltaBoundaries:
        """The deltas [first, last)."""
        return self.where(np.s_[first:last])

    def where(self, some: Any) -> DeltaBoundaries:
        """The deltas that a slice or an array of indices names."""
        return DeltaBoundaries(
            **{field.name: getattr(self, field.name)[some] for field in attrs.fields(DeltaBoundaries)}
        )

    def by_offset(self, records: EffectiveRecords) -> DeltaBoundaries:
        """The boundaries with a delta's end at each offset at which a record other than a no-op takes effect."""
        last = self.offsets.max(initial=-1)
        effective = records.effective[(records.effective < last) & ~records.are_no_ops()]
        offsets = np.sort(np.concatenate((self.offsets, effective)))
        offsets = offsets[np.diff(offsets, prepend=-1) > 0]
        return attrs.evolve(self.where(np.searchsorted(self.offsets, offsets)), offsets=offsets)

    @classmethod
    def of_part(
        cls,
        part: LogPart,
        batches: Batches,
        records: EffectiveRecords,
        offsets: Any,
        leaders: Sequence[tuple[int, int]],
    ) -> DeltaBoundaries:
        """The boundaries at offsets of a part of the log and its batches; its `records` are as if each stood alone.

        `leaders` says from which offsets on who leads the quorum, the first of them in front of the part.
        """
        lasts, last_of = batches.last_offsets, batches.holding(offsets)
        if isinstance(part, ShardRecords):
            noop = part.noop
        elif len(records):
            noop = np.logical_and.reduceat(records.are_no_ops(), batches.base_offsets - part.base_offset)
        else:  # a control batch
            noop = np.zeros(len(lasts), np.bool_)
        return cls(
            offsets=offsets,
            epochs=batches.epochs[last_of].astype(np.int32),
            times=batches.timestamps[last_of],
            leaders=np.array([leader for _, leader in leaders], np.int32)[
                np.searchsorted([edge for edge, _ in leaders], offsets, side="right") - 1
            ],
            noop=noop[last_of] & (lasts[last_of] == offsets),
        )


class Batches(NamedTuple):
    """The batches of a part of a log (int64 each): their first and last offsets, their epochs and times."""

    base_offsets: Any
    last_offsets: Any
    epochs: Any
    timestamps: Any

    def holding(self, offsets: Any) -> Any:
        """The numbers of the batches that hold offsets."""
        return np.searchsorted(self.last_offsets, offsets)


def batches_in(part: LogPart) -> Batches:
    """The batches of a part of a log."""
    if isinstance(part, RecordBatch):
        return Batches(*np.array([[part.base_offset], [part.last_offset], [part.epoch], [part.timestamp]], np.int64))
    return Batches(part.base_offsets, part.last_offsets, part.epochs, part.timestamps)


@attrs.frozen(kw_only=True, eq=False)
class DeltaChunk:
    """Whole metadata deltas that follow each other: what a table makes its rows of. Never modified.

    Delta i ends at `boundaries.offsets[i]`. `records` are those that take effect, of all kinds; `deltas` (int64,
    ascending) are the numbers of their deltas. `partitions` are the changes that the records of topics make; the
    records' numbers in it are those of `records`. `others` are the changes of all other parts, in order;
    where one of them changes what tables say of partitions, a broker's rack, `partitions_after` are all partitions
    after the deltas. `quorum` are the changes of the quorum, in order, up to where the next chunk begins: within a
    metadata transaction, which no delta ends, there may be nothing but such changes.
    """

    boundaries: DeltaBoundaries
    records: EffectiveRecords
    deltas: Any
    partitions: PartitionChanges
    others: Sequence[OtherChange] = ()
    partitions_after: PartitionRows | None = None
    quorum: Sequence[QuorumChange] = ()

    def in_front_of(self, delta: int) -> DeltaChunk:
        """The deltas in front of one, by number."""
        last = int(np.searchsorted(self.deltas, delta))
        return DeltaChunk(
            boundaries=self.boundaries.part(0, delta),
            records=self.records.part(0, last),
            deltas=self.deltas[:last],
            partitions=self.partitions.in_front_of(delta),
            others=[change for change in self.others if change.delta < delta],
            partitions_after=self.partitions_after,
            quorum=[change for change in self.quorum if delta and change.offset <= self.boundaries.offsets[delta - 1]],
        )


@attrs.frozen(kw_only=True, eq=False)
class LogBegin:
    """The begin of a table's next rows: the `image` that it covers.

    `is_load`: it covers nothing, and the image is the snapshot that a log begins with which starts above 0: loading it
    is the first delta. `any_delta`: the log has at least one delta up to there. `in_shards`: partitions are in shards,
    which make the rows of topics and partitions.

    `quorum` is the state of the quorum as of that image, and `newest_quorum` that at the offset that is covered, which
    may be within a metadata transaction.
    """

    image: MetadataImage = MetadataImage.EMPTY
    is_load: bool = False
    any_delta: bool = False
    in_shards: bool = False
    quorum: QuorumState = QuorumState()
    newest_quorum: QuorumState = attrs.field(default=attrs.Factory(lambda begin: begin.quorum, takes_self=True))

    @property
    def epoch(self) -> int:
        """The epoch there, -1 for none."""
        return self.image.provenance.epoch

    @property
    def boundaries(self) -> DeltaBoundaries:
        """The delta that ends here."""
        at = self.image.provenance
        return DeltaBoundaries.single(at.offset, at.epoch, at.timestamp)


@attrs.frozen(kw_only=True, eq=False)
class ReplayState:
    """A replay after some deltas, which another one goes on from.

    `image` is that after the last delta, and `delta_quorum` the quorum there; `quorum` may be newer within a metadata
    transaction. `since` and `since_times` (int64; epoch ms, -1 for none) are where the state
    of each partition began, in the order of `image.topics.rows()`. `open_since` is the offset of the
    BeginTransactionRecord of the metadata transaction that is open, None without one; `held` are its records.
    """

    image: MetadataImage = MetadataImage.EMPTY
    quorum: QuorumState = attrs.field(factory=QuorumState)
    since: Any = attrs.field(factory=lambda: np.empty(0, np.int64))
    since_times: Any = attrs.field(factory=lambda: np.empty(0, np.int64))
    open_since: int | None = None
    held: EffectiveRecords = NO_RECORDS
    delta_quorum: QuorumState = attrs.field(default=attrs.Factory(lambda state: state.quorum, takes_self=True))

    def ending(self, at: MetadataProvenance) -> ReplayState:
        """The same at a later offset, up to which the log has no other records of it.

        Inside of a metadata transaction the epoch stays that of the last delta.
        """
        epoch = at.epoch if self.open_since is None else self.image.provenance.epoch
        return attrs.evolve(self, image=attrs.evolve(self.image, provenance=attrs.evolve(at, epoch=epoch)))

    def begun(self, at: MetadataProvenance) -> ReplayState:
        """The same as far as the image at an offset alone says: all partitions are so since then."""
        count = self.image.topics.partition_count
        return attrs.evolve(
            self,
            since=np.full(count, at.offset, np.int64),
            since_times=np.full(count, at.timestamp, np.int64),
        )
