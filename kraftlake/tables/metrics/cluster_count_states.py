"""Kafka's controller counts after each metadata delta: a pure function of records and of a first image.

Most records of topics go through compiled code; what is odd about one makes the rest of its piece go by objects.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import attrs
import numpy as np

from kraftlake.image import ClusterCounts, ClusterImage, MetadataImage, count_cluster
from kraftlake.image.cluster_counts import count_brokers
from kraftlake.publisher.controller_metrics import ControllerMetadataMetrics
from kraftlake.records.metadata_records import (
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    RegisterBrokerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)
from kraftlake.replay.loader.manifest import LogDeltaManifest
from kraftlake.tables.changes.delta_boundaries import DeltaBoundaries
from kraftlake.tables.changes.effective_records import UNKNOWN_KIND, EffectiveRecords
from kraftlake.tables.changes.object_deltas import object_deltas
from kraftlake.tables.changes.topics_state import TopicsInTurn
from kraftlake.tables.history.partition_states import TOPIC_KINDS

BROKER_KINDS: Final = tuple(
    cls.API_KEY
    for cls in (
        RegisterBrokerRecord,
        UnregisterBrokerRecord,
        FenceBrokerRecord,
        UnfenceBrokerRecord,
        BrokerRegistrationChangeRecord,
    )
)
"""The api keys of the records that make a broker active, fenced, or none of both."""

TOPICS, PARTITIONS, OFFLINE, IMBALANCED, UNCLEAN, ELIGIBLE = range(6)
"""What a delta changes of topics: by how much the counts grow, then how many elections of which kind there were."""


class Counted(NamedTuple):
    """The counts behind a delta, by its number, and the elections in it."""

    delta: int
    counts: ClusterCounts
    unclean: int
    eligible: int


class ClusterCountStates:
    """The counts after a metadata delta; `take` moves them on over further deltas."""

    def __init__(self, image: MetadataImage = MetadataImage.EMPTY, *, bulk: bool | None = None) -> None:
        """Begin with an image; `bulk` says whether to use compiled code, None: where there is enough to do for it."""
        self.counts = count_cluster(image)
        self._topics = TopicsInTurn(image.topics, bulk=bulk)
        self._cluster = image.cluster

    def take(self, records: EffectiveRecords, heads: DeltaBoundaries) -> Iterator[Counted]:
        """Replay the records of whole deltas, which follow those before: the deltas that have changed a count.

        A delta with an election is one. A record is of the first delta whose last offset is at or behind the one at
        which it takes effect. Raises ReplayError or CorruptDataError, naming the offset, for a record that contradicts
        what is there.
        """
        deltas = np.searchsorted(heads.offsets, records.effective)
        changes = np.zeros((len(heads.offsets), ELIGIBLE + 1), np.int64)
        self._take_topics(records, deltas, changes)
        brokers = dict(self._take_brokers(records, deltas))
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

    def _take_topics(self, records: EffectiveRecords, deltas: Any, changes: Any) -> None:
        chosen = records.are_of((*TOPIC_KINDS, UNKNOWN_KIND))
        records, deltas = records.where(chosen), deltas[chosen]
        done, places = 0, self._topics.places(len(records))
        if places is not None:
            from kraftlake.tables.metrics.bulk_cluster_counts import count_changes

            done = count_changes(places, records, deltas, changes)
        if done < len(records):
            self._take_objects(records.where(np.s_[done:]), deltas[done:], changes)

    def _take_objects(self, records: EffectiveRecords, deltas: Any, changes: Any) -> None:
        for number, delta in object_deltas(
            records, deltas, TOPIC_KINDS, lambda: MetadataImage(topics=self._topics.image())
        ):
            image = delta.apply(delta.image.provenance)
            self._topics.become(image.topics)
            metrics = ControllerMetadataMetrics()
            metrics.on_metadata_update(delta, image, _manifest(image))
            changes[number] = (
                image.topics.topic_count - delta.image.topics.topic_count,
                metrics.counts.global_partition_count,
                metrics.counts.offline_partitions_count,
                metrics.counts.preferred_replica_imbalance_count,
                metrics.unclean_leader_elections,
                metrics.elections_from_eligible_leader_replicas,
            )

    def _take_brokers(self, records: EffectiveRecords, deltas: Any) -> Iterator[tuple[int, dict[str, int]]]:
        """The deltas that name brokers, with the brokers' counts behind each."""
        chosen = records.are_of((*BROKER_KINDS, UNKNOWN_KIND))
        records, deltas = records.where(chosen), deltas[chosen]
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


def _manifest(image: MetadataImage) -> LogDeltaManifest:
    return LogDeltaManifest(provenance=image.provenance, base_offset=0, num_batches=0, num_bytes=0)
