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
    """N partitions of T topics, those of a topic one after the other, by partition id.

    Arrays are read-only; those that are said to be views share the image's memory. Where `is_rare` is true (more than
    three replicas or ISR members, or any that are being added or removed, or eligible leader replicas), the rows of
    `replicas`, `isr` and `directories` say nothing: `TopicsImage.get_partition` has the lists.
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
        """int32[N], made anew: the ids of the partitions within their topics."""
        return _frozen(self._rows.table.partition_ids())

    @property
    def leader(self) -> Int32s:
        """int32[N], a view: the leaders' broker ids, -1 where there is none."""
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
        """int32[N, 3], a view: broker ids, as many as `replica_count` says; the places behind them are 0."""
        return self._rows.rows[:, :WIDTH]

    @property
    def isr(self) -> Int32s:
        """int32[N, 3], a view: broker ids, as many as `isr_count` says; the places behind them are 0."""
        return self._rows.rows[:, ISR : ISR + WIDTH]

    @property
    def directories(self) -> Int32s:
        """int32[N, 3], a view: for each replica the place of its directory in `directory_ids`."""
        return self._rows.rows[:, DIRECTORIES : DIRECTORIES + WIDTH]

    @property
    def directory_ids(self) -> tuple[Uuid, ...]:
        """The directories that replicas lie in, and maybe some that none lies in any more."""
        return self._rows.directories

    @property
    def is_rare(self) -> npt.NDArray[np.bool_]:
        """bool[N], made anew: see above."""
        return _frozen(self._rows.rows[:, SHAPE] == RARE)

    @property
    def replica_count(self) -> npt.NDArray[np.int32]:
        """int32[N], made anew: how many replicas there are, -1 where `is_rare`."""
        shape = self._rows.rows[:, SHAPE]
        return _frozen(np.where(shape == RARE, np.int32(-1), shape & 0xFF))

    @property
    def isr_count(self) -> npt.NDArray[np.int32]:
        """int32[N], made anew: how many members the ISR has, -1 where `is_rare`."""
        shape = self._rows.rows[:, SHAPE]
        return _frozen(np.where(shape == RARE, np.int32(-1), shape >> 8))


def _frozen(array: A) -> A:
    array.flags.writeable = False
    return array
