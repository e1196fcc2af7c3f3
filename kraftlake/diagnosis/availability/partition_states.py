"""The states of partitions over a log, as far as they matter to availability. Imports numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import attrs
import numpy as np

from kraftlake.diagnosis.image_columns import pair_keys
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.topics.partition_registration import NO_LEADER
from kraftlake.replay.log.broker_lists import BrokerLists
from kraftlake.replay.log.partition_changes import HAD, HAS, PartitionChanges, changes_of_image
from kraftlake.tables.events.distinct_changes import event_columns

GONE: Final = NO_LEADER - 1
"""The leader of a partition that does not exist."""


@attrs.frozen(kw_only=True, eq=False)
class PartitionStates:
    """n states: `keys` (topic's number << 32 | partition), ascending; of one key in the order of the log.

    A state begins with the delta at `positions` (its number), at `times` (epoch ms) by a record at `offsets`. `leaders`
    are the leaders, GONE from the removal of a partition on; `in_sync` and `replicas` are the lengths of these lists.
    `led_by` led before, NO_LEADER for none and GONE for a new partition; `left` are the replicas that left the ISR. All
    are int64[n]; of an earlier state, that of the log's begin, no offset is known: -1.
    """

    keys: Any
    positions: Any
    times: Any
    offsets: Any
    leaders: Any
    in_sync: Any
    replicas: Any
    led_by: Any
    left: BrokerLists

    def take(self, rows: Any) -> PartitionStates:
        """Some states (int64[m])."""
        columns = {name: getattr(self, name)[rows] for name in _COLUMNS}
        return PartitionStates(**columns, left=self.left.take(rows))

    def until(self, end: Any) -> tuple[Any, Any]:
        """The position and the time at which each state ended; those of `end` for a state that did not."""
        last = np.append(self.keys[1:] != self.keys[:-1], True)[: len(self.keys)]
        return tuple(
            np.where(last, at, np.append(column[1:], at)[: len(column)])
            for column, at in zip((self.positions, self.times), end, strict=True)
        )  # type: ignore[return-value]


_COLUMNS: Final = ("keys", "positions", "times", "offsets", "leaders", "in_sync", "replicas", "led_by")


class PartitionStateLog:
    """The states of partitions at the deltas that were added, of topics whose names are wanted."""

    def __init__(self, image: MetadataImage, is_wanted: Callable[[str], bool]) -> None:
        """Begin with the partitions of an image, at the position 0."""
        self.topics: list[tuple[str, str]] = []
        """Name and id of each topic, by number."""
        self._is_wanted = is_wanted
        self._numbers: dict[str, int] = {}
        self._pieces: list[PartitionStates] = []
        rows = changes_of_image(image.topics)
        self._take(rows, np.zeros(len(rows), np.int64), np.array([image.provenance.timestamp]), is_begin=True)

    def take(self, changes: PartitionChanges, position: int, times: Any) -> None:
        """Add changes that follow the earlier ones; `times` are those of the deltas from `position` on."""
        changes = changes.by_delta()
        some = np.flatnonzero(changes.altered & (changes.flags & (HAD | HAS) != 0))
        if len(some):
            changes = changes.take(some)
            self._take(changes, changes.deltas + position, times)

    def states(self) -> PartitionStates:
        """All states."""
        columns = {name: np.concatenate([getattr(one, name) for one in self._pieces]) for name in _COLUMNS}
        lengths = np.concatenate([one.left.lengths for one in self._pieces])
        members = np.concatenate([one.left.members for one in self._pieces])
        bounds = np.append(0, np.cumsum(lengths)).astype(np.int32)
        made = PartitionStates(**columns, left=BrokerLists(bounds, members))
        return made.take(np.argsort(made.keys, kind="stable"))

    def _take(self, changes: PartitionChanges, positions: Any, times: Any, *, is_begin: bool = False) -> None:
        topics = self._numbers_of(changes)
        before, after = event_columns(changes, changes.before), event_columns(changes, changes.after)
        had, has = changes.flags & HAD != 0, changes.flags & HAS != 0
        sizes = [[lists.lengths for lists in (of.isr, of.hosts.replicas)] for of in (before, after)]
        differ = (before.leader != after.leader) | (had != has)
        for was, now in zip(*sizes, strict=True):
            differ |= was != now
        rows = np.flatnonzero(differ & (topics >= 0))
        has, had = has[rows], had[rows]
        left = before.isr.take(rows).without(after.isr.take(rows))
        self._pieces.append(
            PartitionStates(
                keys=pair_keys(topics[rows], changes.partitions[rows]),
                positions=positions[rows],
                times=times[changes.deltas[rows]],
                offsets=np.full(len(rows), -1) if is_begin else changes.offsets[rows],
                leaders=np.where(has, after.leader[rows], GONE),
                in_sync=sizes[1][0][rows],
                replicas=sizes[1][1][rows],
                led_by=np.where(had, before.leader[rows], GONE),
                left=left,
            )
        )

    def _numbers_of(self, changes: PartitionChanges) -> Any:
        """The number of the topic of each change, -1 where it is not wanted."""
        known, which = np.unique(changes.topics, return_inverse=True)
        numbers = np.empty(len(known), np.int64)
        ids, names = (of.take(known).to_pylist() for of in (changes.names.ids, changes.names.topics))
        for place, (id_, name) in enumerate(zip(ids, names, strict=True)):
            number = self._numbers.get(id_)
            if number is None:
                is_wanted = self._is_wanted(name)
                number = self._numbers[id_] = len(self.topics) if is_wanted else -1
                if is_wanted:
                    self.topics.append((name, id_))
            numbers[place] = number
        return numbers[which]
