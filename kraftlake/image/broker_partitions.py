"""The partitions of a broker: led, followed, out of the ISR, under min ISR and offline."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

import attrs

from kraftlake.image.configurations_image import BROKER_RESOURCE, TOPIC_RESOURCE, ConfigResource
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.partition_health import MIN_ISR, is_under_min_isr, min_isr_among
from kraftlake.image.topics.partition_registration import NO_LEADER, PartitionRegistration
from kraftlake.image.topics.topics_image import TopicsImage

if TYPE_CHECKING:
    from kraftlake.image.topics.row_queries import Int32s

PartitionName: TypeAlias = tuple[str, int]
"""A topic's name and a partition id."""


@attrs.frozen(kw_only=True)
class BrokerCounts:
    """The number of a broker's partitions of each kind; see `BrokerPartitions`."""

    led: int = 0
    followed: int = 0
    out_of_isr: int = 0
    under_min_isr: int = 0
    offline: int = 0


@attrs.frozen(kw_only=True)
class BrokerPartitions:
    """The partitions that have a replica on a broker, each list by topic name and partition id.

    Each partition is in `led` or `followed` (one without a leader is followed). `out_of_isr`: this broker is not in the
    ISR. `under_min_isr`: the ISR has fewer members than `min.insync.replicas` requires. `offline`: no leader.
    """

    led: tuple[PartitionName, ...] = ()
    followed: tuple[PartitionName, ...] = ()
    out_of_isr: tuple[PartitionName, ...] = ()
    under_min_isr: tuple[PartitionName, ...] = ()
    offline: tuple[PartitionName, ...] = ()

    def counts(self) -> BrokerCounts:
        """The lengths of the lists."""
        return BrokerCounts(**{name: len(getattr(self, name)) for name in _KINDS})


_KINDS = tuple(field.name for field in attrs.fields(BrokerPartitions))


def partitions_of(image: MetadataImage, broker: int) -> BrokerPartitions:
    """The partitions that have a replica on `broker`."""
    lists: dict[str, list[PartitionName]] = {kind: [] for kind in _KINDS}
    for name, id_, partition in hosted_partitions(image.topics, broker):
        for kind in _kinds(partition, broker, min_insync_replicas(image, name)):
            lists[kind].append((name, id_))
    return BrokerPartitions(**{kind: tuple(sorted(names)) for kind, names in lists.items()})


def hosted_partitions(topics: TopicsImage, broker: int) -> Iterator[tuple[str, int, PartitionRegistration]]:
    """Topic name, partition id and state of every partition that has a replica on a broker, unordered."""
    if topics.is_large:
        from kraftlake.image.topics.row_queries import partitions_at, rows_hosting

        packed = topics.rows()
        return partitions_at(packed, rows_hosting(packed, broker))
    return (found for found in _every(topics) if broker in found[2].replicas)


def partitions_with_elr(topics: TopicsImage) -> Iterator[tuple[str, int, PartitionRegistration]]:
    """Topic name, partition id and state of every partition with eligible leader replicas, unordered.

    These need not be replicas: a reassignment removes a replica and leaves the ELR unchanged.
    """
    if topics.is_large:
        from kraftlake.image.topics.row_queries import partitions_at, rows_with_elr

        packed = topics.rows()
        return partitions_at(packed, rows_with_elr(packed))
    return (found for found in _every(topics) if found[2].elr)


def _every(topics: TopicsImage) -> Iterator[tuple[str, int, PartitionRegistration]]:
    every = topics.topics_by_name().items()
    return ((name, id_, partition) for name, topic in every for id_, partition in topic.partitions.items())


def count_partitions_of_brokers(image: MetadataImage) -> dict[int, BrokerCounts]:
    """The counts of every broker that is registered or hosts a partition, by broker id."""
    if image.topics.is_large:
        from kraftlake.image.topics.row_queries import count_replicas

        numbers = count_replicas(image.topics.rows(), min_insync_replicas_column(image))
        counts = {broker: dict(zip(_KINDS, of_broker, strict=True)) for broker, of_broker in numbers.items()}
    else:
        counts = {}
        for name, _, partition in _every(image.topics):
            min_isr = min_insync_replicas(image, name)
            for broker in partition.replicas:
                of_broker = counts.setdefault(broker, {})
                for kind in _kinds(partition, broker, min_isr):
                    of_broker[kind] = of_broker.get(kind, 0) + 1
    return {broker: BrokerCounts(**counts.get(broker, {})) for broker in sorted({*image.cluster.brokers, *counts})}


def min_insync_replicas(image: MetadataImage, topic: str) -> int:
    """`min.insync.replicas` of a topic: the topic's config, else the cluster's, else Kafka's default, 1.

    Values in brokers' property files are not in the log. A value that is not an integer is ignored.
    """
    sources = (ConfigResource(TOPIC_RESOURCE, topic), ConfigResource(BROKER_RESOURCE, ""))
    return min_isr_among(image.configs.config_map(source).get(MIN_ISR, "") for source in sources)


def min_insync_replicas_column(image: MetadataImage) -> Int32s:
    """int32[T]: `min_insync_replicas` of each topic, in the order of the image's packed rows. Imports numpy."""
    from kraftlake.image.topics.row_queries import min_isr_of_topics

    configured = [resource.name for resource in image.configs.resource_data if resource.type == TOPIC_RESOURCE]
    default = min_insync_replicas(image, "")
    of_topic = {name: min_insync_replicas(image, name) for name in configured}
    return min_isr_of_topics(image.topics.rows(), default, of_topic)


def _kinds(partition: PartitionRegistration, broker: int, min_isr: int) -> Iterator[str]:
    """The kinds that a partition has for one of its replicas."""
    yield "led" if partition.leader == broker else "followed"
    if broker not in partition.isr:
        yield "out_of_isr"
    if is_under_min_isr(len(partition.isr), len(partition.replicas), min_isr):
        yield "under_min_isr"
    if partition.leader == NO_LEADER:
        yield "offline"
