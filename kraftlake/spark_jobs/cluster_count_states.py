"""Kafka's controller counts after each metadata delta: a pure function of records and of a first image.

Most records of topics go through compiled code; what is odd about one makes the rest of its piece go by objects.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import attrs
import numpy as np

from kraftlake import kernels
from kraftlake.delta import MetadataDelta
from kraftlake.image import ClusterCounts, ClusterImage, MetadataImage, count_cluster
from kraftlake.image.topics_image import TopicsImage
from kraftlake.publisher.controller_metrics import ControllerMetadataMetrics
from kraftlake.records.metadata_records import (
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    RegisterBrokerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)
from kraftlake.replay.manifest import LogDeltaManifest
from kraftlake.spark_jobs.delta_heads import DeltaHeads
from kraftlake.spark_jobs.history.effective_records import UNKNOWN_KIND, EffectiveRecords
from kraftlake.spark_jobs.history.partition_states import BULK_FROM, TOPIC_KINDS
from kraftlake.spark_jobs.record_messages import message_at

if TYPE_CHECKING:
    from kraftlake.spark_jobs.partition_places import PartitionPlaces

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
        self._bulk_wanted = bulk
        self._places: PartitionPlaces | None = None
        self._topics, self._cluster = image.topics, image.cluster

    def take(self, records: EffectiveRecords, heads: DeltaHeads) -> Iterator[Counted]:
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
        chosen = np.flatnonzero(np.isin(records.kinds, (*TOPIC_KINDS, UNKNOWN_KIND)))
        records, deltas = records.where(chosen), deltas[chosen]
        if self._places is not None and self._places.is_worn:
            self._topics, self._places = self._places.topics(), None
        if self._places is None and self._wants_bulk(len(records)):
            from kraftlake.spark_jobs.partition_places import PartitionPlaces, fits  # imports numba

            if fits(self._topics):
                self._places, self._topics = PartitionPlaces(self._topics), TopicsImage.EMPTY
        done = 0
        if self._places is not None:
            from kraftlake.spark_jobs.bulk_cluster_counts import count_changes

            done = count_changes(self._places, records, deltas, changes)
            if done < len(records):
                self._topics, self._places = self._places.topics(), None
        if done < len(records):
            self._take_objects(records.where(np.s_[done:]), deltas[done:], changes)

    def _take_objects(self, records: EffectiveRecords, deltas: Any, changes: Any) -> None:
        for first, last in _runs(deltas):
            image = MetadataImage(topics=self._topics)
            delta = MetadataDelta(image, of_log=True)
            for index in range(first, last):
                message = message_at(records, index)
                if getattr(message, "API_KEY", None) in TOPIC_KINDS:
                    delta.replay(message, int(records.offsets[index]))
            after = delta.apply(image.provenance)
            metrics = ControllerMetadataMetrics()
            metrics.on_metadata_update(delta, after, _manifest(after))
            self._topics = after.topics
            changes[deltas[first]] = (
                after.topics.topic_count - image.topics.topic_count,
                metrics.counts.global_partition_count,
                metrics.counts.offline_partitions_count,
                metrics.counts.preferred_replica_imbalance_count,
                metrics.unclean_leader_elections,
                metrics.elections_from_eligible_leader_replicas,
            )

    def _take_brokers(self, records: EffectiveRecords, deltas: Any) -> Iterator[tuple[int, dict[str, int]]]:
        """The deltas that name brokers, with the brokers' counts behind each."""
        chosen = np.flatnonzero(np.isin(records.kinds, (*BROKER_KINDS, UNKNOWN_KIND)))
        records, deltas = records.where(chosen), deltas[chosen]
        for first, last in _runs(deltas):
            image = MetadataImage(cluster=self._cluster)
            delta = MetadataDelta(image, of_log=True)
            for index in range(first, last):
                message = message_at(records, index)
                if getattr(message, "API_KEY", None) in BROKER_KINDS:
                    delta.replay(message, int(records.offsets[index]))
            self._cluster = delta.apply(image.provenance).cluster
            yield int(deltas[first]), _broker_counts(self._cluster)

    def _wants_bulk(self, count: int) -> bool:
        if self._bulk_wanted is None:
            return count >= BULK_FROM and kernels.available()
        return self._bulk_wanted


def _runs(deltas: Any) -> Iterator[tuple[int, int]]:
    """Where the records of each delta begin and end."""
    if len(deltas):
        yield from pairwise([0, *(np.flatnonzero(np.diff(deltas)) + 1).tolist(), len(deltas)])


def _broker_counts(cluster: ClusterImage) -> dict[str, int]:
    counts = count_cluster(MetadataImage(cluster=cluster))
    names = ("active_broker_count", "fenced_broker_count", "controlled_shutdown_broker_count")
    return {name: getattr(counts, name) for name in names}


def _manifest(image: MetadataImage) -> LogDeltaManifest:
    return LogDeltaManifest(provenance=image.provenance, base_offset=0, num_batches=0, num_bytes=0)
