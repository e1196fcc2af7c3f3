"""The topics of a large image at one glance, and those that hold partitions in trouble. Imports numpy."""

from __future__ import annotations

import heapq
from typing import Any, NamedTuple

import attrs
import numpy as np

from kraftlake.image.packed_topics import PackedTopics
from kraftlake.image.partition_columns import rows_hosting
from kraftlake.image.partition_registration import NO_LEADER
from kraftlake.image.partition_rows import LEADER, RARE, RECOVERY, SHAPE


class Health(NamedTuple):
    """How many partitions are not as usual: each one without a leader is offline, not under-replicated as well."""

    offline: int
    under_replicated: int
    being_reassigned: int
    recovering: int


@attrs.frozen(kw_only=True)
class TopicsOverview:
    """How many there are and how they are; `worst` are the names of those that want attention, then of the others."""

    topic_count: int
    partition_count: int
    health: Health
    worst: tuple[str, ...]


def overview_of(topics: PackedTopics, limit: int) -> TopicsOverview:
    """The overview with the names of at most so many: those with offline partitions first, then under-replicated."""
    troubles = _Troubles.of(topics)
    recovering = topics.merged_rows()[:, RECOVERY] != 0
    ranks = 3 - 2 * _any_of(topics, troubles.offline) - _any_of(topics, troubles.under_replicated)
    worst: list[str] = []
    for rank in range(4):
        names = (topics.table.names[number] for number in np.flatnonzero(ranks == rank).tolist())
        worst += heapq.nsmallest(limit - len(worst), names)
    return TopicsOverview(
        topic_count=topics.table.topic_count,
        partition_count=topics.partition_count,
        health=Health(
            offline=int(troubles.offline.sum()),
            under_replicated=int((troubles.under_replicated & ~troubles.offline).sum()),
            being_reassigned=int(troubles.moving.sum()),
            recovering=int(recovering.sum()),
        ),
        worst=tuple(worst),
    )


def topics_in_trouble(topics: PackedTopics, *, offline: bool, under_replicated: bool) -> set[str]:
    """The names of the topics that have partitions without a leader, or that lack a replica in sync: either if both."""
    troubles = _Troubles.of(topics)
    rows = troubles.offline & offline | troubles.under_replicated & under_replicated
    return _names_at(topics, np.flatnonzero(rows))


def topics_hosted(topics: PackedTopics, broker: int) -> set[str]:
    """The names of all topics that a broker has replicas of, and maybe of others."""
    return _names_at(topics, rows_hosting(topics, broker))


@attrs.frozen(kw_only=True, eq=False)
class _Troubles:
    """bool[N]: which partitions have no leader, fewer members of the ISR than replicas, replicas that come or go."""

    offline: Any
    under_replicated: Any
    moving: Any

    @classmethod
    def of(cls, topics: PackedTopics) -> _Troubles:
        rows = topics.merged_rows()
        shape = rows[:, SHAPE]
        replicas, in_sync, moving = shape & 0xFF, shape >> 8, np.zeros(len(rows), np.bool_)
        rare = np.flatnonzero(shape == RARE)
        if len(rare):
            starts = rows[rare, 0]  # of seven lengths: replicas, ISR, directories, adding, removing, …
            replicas[rare], in_sync[rare] = topics.heap[starts], topics.heap[starts + 1]
            moving[rare] = (topics.heap[starts + 3] > 0) | (topics.heap[starts + 4] > 0)
        return cls(offline=rows[:, LEADER] == NO_LEADER, under_replicated=in_sync < replicas, moving=moving)


def _any_of(topics: PackedTopics, rows: Any) -> Any:
    """int64[T]: 1 for each topic that has one of the rows (bool[N])."""
    found = np.zeros(topics.table.topic_count, np.int64)
    found[_numbers_at(topics, np.flatnonzero(rows))] = 1
    return found


def _names_at(topics: PackedTopics, rows: Any) -> set[str]:
    return {topics.table.names[number] for number in np.unique(_numbers_at(topics, rows)).tolist()}


def _numbers_at(topics: PackedTopics, rows: Any) -> Any:
    """The numbers of the topics that have rows."""
    return np.searchsorted(topics.table.starts, rows, side="right") - 1
