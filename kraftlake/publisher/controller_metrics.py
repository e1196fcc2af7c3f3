"""The controller's metrics of the cluster, updated by each change."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.delta.topics.topic_delta import TopicDelta
from kraftlake.image.broker_registration import BrokerRegistration
from kraftlake.image.cluster_counts import ClusterCounts, count_brokers, count_cluster, is_imbalanced, is_offline
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.topics.partition_registration import PartitionRegistration
from kraftlake.replay.loader.manifest import LoaderManifest, SnapshotManifest
from kraftlake.replay.loader.metadata_publisher import MetadataPublisher
from kraftlake.runtime.metrics import MetricName, MetricsRegistry, Tags


class ControllerMetadataMetrics(MetadataPublisher):
    """A publisher that counts brokers, topics, partitions, and leader elections since the start.

    An update costs as much as the change; a snapshot is counted as a whole.
    Source: org.apache.kafka.controller.metrics.ControllerMetadataMetricsPublisher, ControllerMetricsChanges.
    """

    name = "ControllerMetadataMetricsPublisher"
    """Kafka's name of the publisher."""

    def __init__(self, image: MetadataImage = MetadataImage.EMPTY) -> None:
        """Start with the counts of the image before the first change."""
        self.counts: ClusterCounts = count_cluster(image)
        self.unclean_leader_elections = 0
        self.elections_from_eligible_leader_replicas = 0
        self._registrations = _registrations(image)

    def on_metadata_update(self, delta: MetadataDelta, new_image: MetadataImage, manifest: LoaderManifest) -> None:
        """Update the counts."""
        if isinstance(manifest, SnapshotManifest):
            self.counts = count_cluster(new_image)
        else:
            self._count_change(delta, new_image)
        self._registrations = _registrations(new_image)

    def register(self, registry: MetricsRegistry) -> None:
        """Register the counts as gauges."""
        for name in self.counts.by_metric():
            registry.gauge(
                MetricName("kafka.controller", "KafkaController", name),
                "As the controller counts it.",
                lambda n=name: self.counts.by_metric()[n],  # type: ignore[misc]
            )
        registry.gauge(
            MetricName("kafka.controller", "KafkaController", "BrokerRegistrationState"),
            "10 fenced, 20 in controlled shutdown, 30 active.",
            self._states,
        )
        registry.gauge(
            MetricName("kafka.controller", "ControllerStats", "UncleanLeaderElectionsPerSecCount"),
            "Unclean leader elections since the start (the meter's Count).",
            lambda: self.unclean_leader_elections,
        )
        registry.gauge(
            MetricName("kafka.controller", "ControllerStats", "ElectionFromEligibleLeaderReplicasPerSecCount"),
            "Leaders elected from the eligible leader replicas since the start.",
            lambda: self.elections_from_eligible_leader_replicas,
        )

    def _states(self) -> dict[Tags, float]:
        return {(("broker", str(broker)),): state for broker, state in self._registrations.items()}

    def _count_change(self, delta: MetadataDelta, new_image: MetadataImage) -> None:
        fenced, shutting_down = count_brokers(new_image.cluster)
        partitions = offline = imbalanced = 0
        topics = delta.topics_delta
        if topics is not None:
            gone = (topics.image.get_topic_by_id(topic_id) for topic_id in topics.deleted_topic_ids)
            for partition in (p for topic in gone if topic is not None for p in topic.partitions.values()):
                partitions -= 1
                offline -= is_offline(partition)
                imbalanced -= is_imbalanced(partition)
            for change in topics.changed_topics.values():
                was = topics.image.get_topic_by_id(change.id)
                for number, partition in change.partition_changes.items():
                    before = None if was is None else was.partitions.get(number)
                    partitions += before is None
                    offline += is_offline(partition) - _counts(is_offline, before)
                    imbalanced += is_imbalanced(partition) - _counts(is_imbalanced, before)
                self._count_elections(change)
        self.counts = attrs.evolve(
            self.counts,
            active_broker_count=len(new_image.cluster.brokers) - fenced,
            fenced_broker_count=fenced,
            controlled_shutdown_broker_count=shutting_down,
            global_topic_count=new_image.topics.topic_count,
            global_partition_count=self.counts.global_partition_count + partitions,
            offline_partitions_count=self.counts.offline_partitions_count + offline,
            preferred_replica_imbalance_count=self.counts.preferred_replica_imbalance_count + imbalanced,
        )

    def _count_elections(self, change: TopicDelta) -> None:
        self.unclean_leader_elections += sum(change.unclean_elections.values())
        self.elections_from_eligible_leader_replicas += sum(change.elr_elections.values())


def _counts(question: Callable[[PartitionRegistration], bool], partition: PartitionRegistration | None) -> bool:
    return partition is not None and question(partition)


def _registrations(image: MetadataImage) -> dict[int, int]:
    return {broker.id: _registration_state(broker) for broker in image.cluster.brokers.values()}


def _registration_state(broker: BrokerRegistration) -> int:
    if broker.fenced:
        return 10
    return 20 if broker.in_controlled_shutdown else 30
