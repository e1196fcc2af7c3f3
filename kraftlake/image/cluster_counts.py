"""The cluster metrics that a controller reports, counted on an image, and so known at any offset."""

from __future__ import annotations

import attrs

from kraftlake.image.cluster_image import ClusterImage
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.topics.partition_registration import NO_LEADER, PartitionRegistration
from kraftlake.image.topics.topics_image import TopicsImage


@attrs.frozen(kw_only=True)
class ClusterCounts:
    """The metrics of Kafka's kafka.controller:type=KafkaController.

    A broker is either fenced or active; a broker in controlled shutdown is counted there as well. A partition without
    a leader is offline. A partition is imbalanced unless its first replica is the leader: offline ones are, too.
    Source: org.apache.kafka.controller.metrics.ControllerMetadataMetrics.
    """

    active_broker_count: int
    fenced_broker_count: int
    controlled_shutdown_broker_count: int
    global_topic_count: int
    global_partition_count: int
    offline_partitions_count: int
    preferred_replica_imbalance_count: int

    def by_metric(self) -> dict[str, int]:
        """The counts under Kafka's names: `ActiveBrokerCount`, …"""
        counts = attrs.asdict(self)
        return {"".join(word.capitalize() for word in name.split("_")): count for name, count in counts.items()}


def count_cluster(image: MetadataImage) -> ClusterCounts:
    """The metrics of an image."""
    fenced, shutting_down = count_brokers(image.cluster)
    offline, imbalanced = _count_offline_and_imbalanced(image.topics)
    return ClusterCounts(
        active_broker_count=len(image.cluster.brokers) - fenced,
        fenced_broker_count=fenced,
        controlled_shutdown_broker_count=shutting_down,
        global_topic_count=image.topics.topic_count,
        global_partition_count=image.topics.partition_count,
        offline_partitions_count=offline,
        preferred_replica_imbalance_count=imbalanced,
    )


def count_brokers(cluster: ClusterImage) -> tuple[int, int]:
    """The numbers of fenced brokers and of brokers in controlled shutdown."""
    brokers = cluster.brokers.values()
    fenced = [broker.fenced for broker in brokers]
    shutting_down = [broker.in_controlled_shutdown for broker in brokers]
    return fenced.count(True), shutting_down.count(True)


def _count_offline_and_imbalanced(topics: TopicsImage) -> tuple[int, int]:
    if topics.is_large:
        from kraftlake.image.topics.row_queries import count_offline_and_imbalanced

        return count_offline_and_imbalanced(topics.rows())
    every = [partition for topic in topics.topics_by_id().values() for partition in topic.partitions.values()]
    return sum(map(is_offline, every)), sum(map(is_imbalanced, every))


def is_offline(partition: PartitionRegistration) -> bool:
    """Whether the partition has no leader."""
    return partition.leader == NO_LEADER


def is_imbalanced(partition: PartitionRegistration) -> bool:
    """Whether the partition's leader is not its first replica, or there is none."""
    return partition.leader != (partition.replicas[0] if partition.replicas else NO_LEADER)
