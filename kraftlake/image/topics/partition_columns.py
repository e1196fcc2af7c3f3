"""The partitions of a topics image as arrays. Imports numpy."""

from __future__ import annotations

from typing import Any, TypeAlias, TypeVar

import attrs
import numpy as np
import numpy.typing as npt

from kraftlake.image.short_repr import short_repr
from kraftlake.image.topics.packed_topics import PackedTopics
from kraftlake.image.topics.partition_rows import (
    DIRECTORIES,
    ISR,
    LEADER,
    LEADER_EPOCH,
    PARTITION_EPOCH,
    RARE,
    RECOVERY,
    SHAPE,
    WIDTH,
)
from kraftlake.records.uuid import Uuid

Int32s: TypeAlias = npt.NDArray[np.int32]
A = TypeVar("A", bound=npt.NDArray[Any])


@attrs.frozen(eq=False, repr=False)
class PartitionColumns:
    """N partitions of T topics, grouped by topic, in the order of partition ids.

    Arrays are read-only; views share the image's memory. If `is_rare` is true (more than three replicas or ISR members,
    replicas being added or removed, eligible leader replicas), the rows of `replicas`, `isr` and `directories` have no
    meaning: `TopicsImage.get_partition` has the lists.
    """

    _rows: PackedTopics

    def __repr__(self) -> str:
        return short_repr(self, topics=self._rows.table.topic_count, partitions=self._rows.partition_count)

    @property
    def topic_names(self) -> tuple[str, ...]:
        """The names of the T topics."""
        return tuple(self._rows.table.names)

    @property
    def topic_ids(self) -> npt.NDArray[np.uint8]:
        """uint8[T, 16], a view: the topics' ids."""
        return self._rows.table.ids

    @property
    def starts(self) -> Int32s:
        """int32[T + 1], a view: topic t has the partitions starts[t] to starts[t + 1], exclusive."""
        return self._rows.table.starts

    @property
    def partition_ids(self) -> Int32s:
        """int32[N], a copy: the partition ids."""
        return _frozen(self._rows.table.partition_ids())

    @property
    def leader(self) -> Int32s:
        """int32[N], a view: the leaders' broker ids, -1 for none."""
        return self._rows.rows[:, LEADER]

    @property
    def leader_epoch(self) -> Int32s:
        """int32[N], a view."""
        return self._rows.rows[:, LEADER_EPOCH]

    @property
    def partition_epoch(self) -> Int32s:
        """int32[N], a view."""
        return self._rows.rows[:, PARTITION_EPOCH]

    @property
    def leader_recovery_state(self) -> Int32s:
        """int32[N], a view: the values of `LeaderRecoveryState`."""
        return self._rows.rows[:, RECOVERY]

    @property
    def replicas(self) -> Int32s:
        """int32[N, 3], a view: broker ids, `replica_count` of them; the other places are 0."""
        return self._rows.rows[:, :WIDTH]

    @property
    def isr(self) -> Int32s:
        """int32[N, 3], a view: broker ids, `isr_count` of them; the other places are 0."""
        return self._rows.rows[:, ISR : ISR + WIDTH]

    @property
    def directories(self) -> Int32s:
        """int32[N, 3], a view: for each replica the index of its directory in `directory_ids`."""
        return self._rows.rows[:, DIRECTORIES : DIRECTORIES + WIDTH]

    @property
    def directory_ids(self) -> tuple[Uuid, ...]:
        """The ids of the replicas' log directories, and possibly some that are no longer used."""
        return self._rows.directories

    @property
    def is_rare(self) -> npt.NDArray[np.bool_]:
        """bool[N], a copy: see above."""
        return _frozen(self._rows.rows[:, SHAPE] == RARE)

    @property
    def replica_count(self) -> npt.NDArray[np.int32]:
        """int32[N], a copy: the number of replicas, -1 where `is_rare`."""
        shape = self._rows.rows[:, SHAPE]
        return _frozen(np.where(shape == RARE, np.int32(-1), shape & 0xFF))

    @property
    def isr_count(self) -> npt.NDArray[np.int32]:
        """int32[N], a copy: the number of ISR members, -1 where `is_rare`."""
        shape = self._rows.rows[:, SHAPE]
        return _frozen(np.where(shape == RARE, np.int32(-1), shape >> 8))


def _frozen(array: A) -> A:
    array.flags.writeable = False
    return array
