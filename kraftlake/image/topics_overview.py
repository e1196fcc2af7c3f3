"""A summary of the topics of a large image, and the topics with unhealthy partitions. Imports numpy."""

from __future__ import annotations

import heapq
from collections.abc import Collection
from typing import Any, NamedTuple

import attrs
import numpy as np

from kraftlake.image.broker_partitions import min_insync_replicas_column
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.partition_health import TROUBLES
from kraftlake.image.topics.packed_topics import PackedTopics
from kraftlake.image.topics.partition_registration import NO_LEADER
from kraftlake.image.topics.row_queries import lists_of, rows_hosting
from kraftlake.kernels.partition_row import LEADER, RECOVERY


class Health(NamedTuple):
    """The numbers of unhealthy partitions; one without a leader is counted as offline, not as under-replicated."""

    offline: int
    under_replicated: int
    being_reassigned: int
    recovering: int


@attrs.frozen(kw_only=True)
class TopicsOverview:
    """Counts of topics and partitions, health, and in `worst` topic names, unhealthy topics first."""

    topic_count: int
    partition_count: int
    health: Health
    worst: tuple[str, ...]


def overview_of(topics: PackedTopics, limit: int) -> TopicsOverview:
    """The overview with at most `limit` names: topics with offline partitions first, then under-replicated ones."""
    health = _PartitionHealth.of(topics)
    ranks = 3 - 2 * _any_of(topics, health.offline) - _any_of(topics, health.under_replicated)
    worst: list[str] = []
    for rank in range(4):
        names = (topics.table.names[number] for number in np.flatnonzero(ranks == rank).tolist())
        worst += heapq.nsmallest(limit - len(worst), names)
    return TopicsOverview(
        topic_count=topics.table.topic_count,
        partition_count=topics.partition_count,
        health=Health(
            offline=int(health.offline.sum()),
            under_replicated=int((health.under_replicated & ~health.offline).sum()),
            being_reassigned=int(health.being_reassigned.sum()),
            recovering=int(health.recovering.sum()),
        ),
        worst=tuple(worst),
    )


def unhealthy_topics(image: MetadataImage, kinds: Collection[str]) -> set[str]:
    """The names of the topics that have partitions of any of these kinds.

    The kinds are `unavailable` (no leader), `under-replicated` (a replica is not in sync), `under-min-isr` (no leader,
    or an ISR smaller than min.insync.replicas) and `at-min-isr` (an ISR of exactly that size).
    Source: org.apache.kafka.tools.TopicCommand.
    """
    topics = image.topics.rows()
    health = _PartitionHealth.of(topics)
    min_isr = np.repeat(min_insync_replicas_column(image), np.diff(topics.table.starts))
    columns = (topics.merged_rows()[:, LEADER], health.in_sync, health.replicas, min_isr)
    found = [TROUBLES[kind](*columns) for kind in kinds]
    return _names_at(topics, np.flatnonzero(np.logical_or.reduce(found))) if found else set()


def topics_hosted(topics: PackedTopics, broker: int) -> set[str]:
    """The names of the topics of which a broker has replicas."""
    return _names_at(topics, rows_hosting(topics, broker))


@attrs.frozen(kw_only=True, eq=False)
class _PartitionHealth:
    """The health of each partition: bool[N]. `replicas` and `in_sync` are int32[N], the lengths of these lists.

    A partition is `offline` without a leader, `under_replicated` if a replica is not in the ISR, and `recovering` after
    an unclean election.
    """

    replicas: Any
    in_sync: Any
    offline: Any
    under_replicated: Any
    being_reassigned: Any
    recovering: Any

    @classmethod
    def of(cls, topics: PackedTopics) -> _PartitionHealth:
        rows, lists = topics.merged_rows(), lists_of(topics)
        replicas, in_sync = lists.lengths("replicas"), lists.lengths("isr")
        return cls(
            replicas=replicas,
            in_sync=in_sync,
            being_reassigned=(lists.lengths("adding_replicas") > 0) | (lists.lengths("removing_replicas") > 0),
            offline=rows[:, LEADER] == NO_LEADER,
            under_replicated=in_sync < replicas,
            recovering=rows[:, RECOVERY] != 0,
        )


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
