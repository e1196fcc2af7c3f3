"""The metrics that a controller shows of the cluster, counted on an image: so they can be asked for at any offset."""

from __future__ import annotations

import attrs

from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.partition_registration import NO_LEADER, PartitionRegistration


@attrs.frozen(kw_only=True)
class ClusterCounts:
    """Kafka's metrics of kafka.controller:type=KafkaController.

    A broker is fenced or active; one in controlled shutdown is counted there too, whatever it is else. A partition is
    offline without a leader, and imbalanced unless its first replica leads it, so offline ones are imbalanced as well.
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
    brokers = image.cluster.brokers.values()
    fenced = sum(broker.fenced for broker in brokers)
    topics = image.topics.topics_by_id().values()
    partitions = offline = imbalanced = 0
    for topic in topics:
        for partition in topic.partitions.values():
            partitions += 1
            offline += is_offline(partition)
            imbalanced += is_imbalanced(partition)
    return ClusterCounts(
        active_broker_count=len(image.cluster.brokers) - fenced,
        fenced_broker_count=fenced,
        controlled_shutdown_broker_count=sum(broker.in_controlled_shutdown for broker in brokers),
        global_topic_count=len(topics),
        global_partition_count=partitions,
        offline_partitions_count=offline,
        preferred_replica_imbalance_count=imbalanced,
    )


def is_offline(partition: PartitionRegistration) -> bool:
    """Whether nobody leads the partition."""
    return partition.leader == NO_LEADER


def is_imbalanced(partition: PartitionRegistration) -> bool:
    """Whether another than the first replica leads the partition, or nobody does."""
    return partition.leader != (partition.replicas[0] if partition.replicas else NO_LEADER)
