"""The ends of the metadata deltas of a log: at its batches, except inside of metadata transactions. Imports numpy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs
import numpy as np

from kraftlake.records.batch import RecordBatch
from kraftlake.replay.log.effective_records import EffectiveRecords
from kraftlake.replay.log.shard_records import ShardRecords

if TYPE_CHECKING:
    from kraftlake.replay.log.effective_records import LogPart


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
