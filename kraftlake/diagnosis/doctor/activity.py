"""The frequency of lost leaderships and of replicas that left the ISR: in a window before the image, and earlier.

Imports numpy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from kraftlake.diagnosis.doctor.group import LogPosition
from kraftlake.image.topics.partition_registration import NO_LEADER
from kraftlake.replay.log.broker_lists import BrokerLists
from kraftlake.replay.log.delta_chunk import DeltaChunk
from kraftlake.replay.log.partition_changes import HAD, HAS, PartitionChanges
from kraftlake.tables.events.distinct_changes import event_columns
from kraftlake.tables.events.partition_events import PartitionColumns


@attrs.frozen(kw_only=True)
class Dropout:
    """A replica that left the ISR: its partition and its broker."""

    at: LogPosition
    partition: str
    broker: int


@attrs.frozen(kw_only=True)
class QuorumElection:
    """A new epoch of the quorum; `leader` is -1 where no control record names it."""

    at: LogPosition
    epoch: int
    leader: int


@attrs.define(kw_only=True)
class ActivityCounts:
    """Counts by broker: leaderships lost to others or to none, and replicas that left an ISR."""

    lost_leaderships: Counter[int] = attrs.field(factory=Counter)
    dropouts: Counter[int] = attrs.field(factory=Counter)


class Activity:
    """The lost leaderships, changes of ISRs and elections of the quorum in a log, before a window and within it.

    The window begins at `since` (epoch ms). `first` is the time of the first delta that was added, -1 for none.
    """

    def __init__(self, since: int, epoch: int) -> None:
        """Initialize with an image of an epoch of the quorum."""
        self.since = since
        self.first = -1
        self.earlier, self.recent = ActivityCounts(), ActivityCounts()
        self.quorum_elections: list[QuorumElection] = []
        self._epoch = epoch
        self._left: list[tuple[PartitionChanges, Any, Any]] = []
        """The changes of the window, and by replica that left the row of its change and its broker (int64, int32)."""

    def take(self, chunk: DeltaChunk) -> None:
        """Add the deltas that follow the earlier ones."""
        ends = chunk.boundaries
        timed = ends.times[ends.times >= 0]
        if len(timed) and self.first < 0:
            self.first = int(timed[0])
        for row in np.flatnonzero(np.diff(ends.epochs, prepend=self._epoch) > 0).tolist():
            at = LogPosition.of(int(ends.offsets[row]), int(ends.times[row]))
            self.quorum_elections.append(
                QuorumElection(at=at, epoch=int(ends.epochs[row]), leader=int(ends.leaders[row]))
            )
        self._epoch = max(self._epoch, int(ends.epochs[-1])) if len(ends) else self._epoch
        for changes, before, after in altered_partitions(chunk.partitions):
            self._count(changes, before, after)

    def _count(self, changes: PartitionChanges, before: PartitionColumns, after: PartitionColumns) -> None:
        moved, left = moved_leaders(before, after), replicas_that_left(before, after)
        rows, recent = np.repeat(np.arange(len(left)), left.lengths), changes.times >= self.since
        for counts, chosen in ((self.earlier, ~recent), (self.recent, recent)):
            counts.lost_leaderships.update(_counted(before.leader[moved & chosen]))
            counts.dropouts.update(_counted(left.members[chosen[rows]]))
        some = recent[rows]
        if some.any():
            kept, places = np.unique(rows[some], return_inverse=True)
            self._left.append((changes.take(kept), places, left.members[some]))

    def dropouts(self) -> Iterator[Dropout]:
        """The replicas that left an ISR within the window, in the order of the log."""
        for changes, rows, brokers in self._left:
            names = changes.names.topics.take(pa.array(changes.topics)).to_pylist()
            for row, broker in zip(rows.tolist(), brokers.tolist(), strict=True):
                yield Dropout(
                    at=LogPosition.of(int(changes.offsets[row]), int(changes.times[row])),
                    partition=f"{names[row]}-{changes.partitions[row]}",
                    broker=broker,
                )


def altered_partitions(
    changes: PartitionChanges,
) -> Iterator[tuple[PartitionChanges, PartitionColumns, PartitionColumns]]:
    """The changes of partitions that were there before and after, and both states; nothing for none."""
    both = np.flatnonzero((changes.flags & (HAD | HAS) == HAD | HAS) & changes.altered)
    if len(both):
        some = changes.take(both)
        yield some, event_columns(some, some.before), event_columns(some, some.after)


def moved_leaders(before: PartitionColumns, after: PartitionColumns) -> Any:
    """Whether the broker that led each partition leads it no more (bool[n])."""
    return (before.leader != after.leader) & (before.leader != NO_LEADER)


def replicas_that_left(before: PartitionColumns, after: PartitionColumns) -> BrokerLists:
    """The brokers that left the ISR of each partition, without replicas that were moved away."""
    left = before.isr.without(after.isr)
    return left.without(left.without(after.hosts.replicas))


def _counted(brokers: Any) -> dict[int, int]:
    ids, counts = np.unique(brokers, return_counts=True)
    return dict(zip(ids.tolist(), counts.tolist(), strict=True))
