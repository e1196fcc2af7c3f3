"""Kafka's controller counts after each metadata delta, of its changes and the counts before it. Imports numpy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import attrs
import numpy as np

from kraftlake.image import ClusterCounts, ClusterImage, MetadataImage, count_cluster
from kraftlake.image.cluster_counts import count_brokers
from kraftlake.image.topics.partition_registration import NO_LEADER
from kraftlake.image.topics.partition_rows import HEAP_LISTS, LEADER, SHAPE
from kraftlake.records import metadata_records as r
from kraftlake.tables.changes.effective_records import UNKNOWN_KIND
from kraftlake.tables.changes.log_deltas import DeltaChunk
from kraftlake.tables.changes.object_deltas import object_deltas
from kraftlake.tables.changes.partition_changes import HAD, HAS, Heaps, PartitionChanges

BROKER_KINDS: Final = tuple(
    cls.API_KEY
    for cls in (
        r.RegisterBrokerRecord,
        r.UnregisterBrokerRecord,
        r.FenceBrokerRecord,
        r.UnfenceBrokerRecord,
        r.BrokerRegistrationChangeRecord,
    )
)
"""The api keys of the records that make a broker active or fenced, or remove it."""

TOPICS, PARTITIONS, OFFLINE, IMBALANCED, UNCLEAN, ELIGIBLE = range(6)
"""The columns of a delta's changes: the growth of each count of topics, then the number of elections of each kind."""


class Counted(NamedTuple):
    """The counts after a delta, by its number, and the elections in it."""

    delta: int
    counts: ClusterCounts
    unclean: int
    eligible: int


class ClusterCounter:
    """Updates the counts delta by delta; `counts` are those after the last delta."""

    def __init__(self, image: MetadataImage = MetadataImage.EMPTY) -> None:
        """Begin with the counts of an image."""
        self.counts = count_cluster(image)
        self._cluster = image.cluster

    def take(self, chunk: DeltaChunk) -> Iterator[Counted]:
        """The deltas that change a count or have an election, of a chunk that follows the chunks before.

        Raises ReplayError or CorruptDataError, with the offset, for a record that contradicts the state so far.
        """
        changes = _topic_changes(chunk.partitions, len(chunk.boundaries))
        brokers = dict(self._take_brokers(chunk))
        for delta in sorted({*np.flatnonzero(changes.any(axis=1)).tolist(), *brokers}):
            before, change = self.counts, changes[delta].tolist()
            self.counts = attrs.evolve(
                before,
                global_topic_count=before.global_topic_count + change[TOPICS],
                global_partition_count=before.global_partition_count + change[PARTITIONS],
                offline_partitions_count=before.offline_partitions_count + change[OFFLINE],
                preferred_replica_imbalance_count=before.preferred_replica_imbalance_count + change[IMBALANCED],
                **brokers.get(delta, {}),
            )
            if self.counts != before or change[UNCLEAN] or change[ELIGIBLE]:
                yield Counted(delta, self.counts, change[UNCLEAN], change[ELIGIBLE])

    def _take_brokers(self, chunk: DeltaChunk) -> Iterator[tuple[int, dict[str, int]]]:
        """The deltas with records of brokers, with the counts of brokers after each."""
        chosen = chunk.records.are_of((*BROKER_KINDS, UNKNOWN_KIND))
        records, deltas = chunk.records.where(chosen), chunk.deltas[chosen]
        for number, delta in object_deltas(records, deltas, BROKER_KINDS, lambda: MetadataImage(cluster=self._cluster)):
            self._cluster = delta.apply(delta.image.provenance).cluster
            yield number, _broker_counts(self._cluster)


def _broker_counts(cluster: ClusterImage) -> dict[str, int]:
    fenced, shutting_down = count_brokers(cluster)
    return {
        "active_broker_count": len(cluster.brokers) - fenced,
        "fenced_broker_count": fenced,
        "controlled_shutdown_broker_count": shutting_down,
    }


def _topic_changes(changes: PartitionChanges, deltas: int) -> Any:
    """The changes of counts by each of `deltas` deltas: int64[deltas, 6], in the order of TOPICS to ELIGIBLE."""
    counts = np.zeros((deltas, ELIGIBLE + 1), np.int64)

    def add(column: int, of: Any, amounts: Any) -> None:
        if len(of):
            counts[:, column] += np.bincount(of, amounts, deltas).astype(np.int64)

    for topics, sign in ((changes.created, 1), (changes.removed, -1)):
        add(TOPICS, topics[:, 0], np.full(len(topics), sign))
    changes = changes.by_delta()
    counted = np.flatnonzero(~_counts_stay(changes))
    for flag, rows, sign in ((HAD, changes.before, -1), (HAS, changes.after, 1)):
        some = counted[changes.flags[counted] & flag != 0]
        leaders, of = rows[some, LEADER], changes.deltas[some]
        add(PARTITIONS, of, np.full(len(of), sign))
        add(OFFLINE, of, sign * (leaders == NO_LEADER))
        add(IMBALANCED, of, sign * (leaders != _preferred(rows, some, changes.heaps)))
    existing = changes.flags & HAS != 0  # Kafka counts the elections of partitions that still exist
    for column, elections in ((UNCLEAN, changes.unclean), (ELIGIBLE, changes.eligible)):
        some = np.flatnonzero(existing & (elections != 0))
        add(column, changes.deltas[some], elections[some])
    return counts


def _counts_stay(changes: PartitionChanges) -> Any:
    """The changes (bool[n]) that keep the partition's leader and replicas, and so all counts: most changes do."""
    stay = changes.flags & (HAD | HAS) == HAD | HAS
    for column in (LEADER, 0, SHAPE):
        stay &= changes.before[:, column] == changes.after[:, column]
    return stay


def _preferred(rows: Any, some: Any, heaps: Heaps) -> Any:
    """The first replica of each of `some` rows, NO_LEADER without one."""
    shapes, first = rows[some, SHAPE], rows[some, 0]
    rare = np.flatnonzero(shapes < 0)
    starts = first[rare].astype(np.int64)
    first[shapes & 0xFF == 0] = NO_LEADER
    in_base = starts < len(heaps.base)
    for heap, mine, begin in ((heaps.base, in_base, 0), (heaps.added, ~in_base, len(heaps.base))):
        at = starts[mine] - begin
        if len(at):
            replicas = heap[np.minimum(at + HEAP_LISTS, len(heap) - 1)]
            first[rare[mine]] = np.where(heap[at] > 0, replicas, NO_LEADER)
    return first
