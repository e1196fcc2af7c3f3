"""What partitions ask of the cluster's metadata."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from kraftlake.delta import TopicPartition
from kraftlake.image import ConfigResource, MetadataImage
from kraftlake.image.configurations_image import TOPIC_RESOURCE


class MetadataView(Protocol):
    """The questions that replication asks of the newest image. Source: org.apache.kafka.metadata.MetadataCache."""

    def alive_broker_epoch(self, broker_id: int) -> int | None:
        """The broker epoch of a broker that is registered and not fenced, None of any other."""

    def is_broker_fenced(self, broker_id: int) -> bool:
        """Whether a registered broker is fenced."""

    def is_broker_shutting_down(self, broker_id: int) -> bool:
        """Whether a registered broker is in controlled shutdown."""

    def has_alive_broker(self, broker_id: int) -> bool:
        """Whether a broker is registered and not fenced."""

    def contains(self, topic_partition: TopicPartition) -> bool:
        """Whether there is such a partition."""

    def leader_of(self, topic_partition: TopicPartition) -> int | None:
        """The leader of a partition, −1 where it has none; None where there is no such partition."""

    def rack_of(self, broker_id: int) -> str | None:
        """The rack of a broker that is registered and not fenced."""


class ImageView:
    """A `MetadataView` of an image; whoever has a newer one sets it before the replica manager is told of it."""

    def __init__(self, image: MetadataImage = MetadataImage.EMPTY) -> None:
        self.image = image

    def alive_broker_epoch(self, broker_id: int) -> int | None:
        """The epoch of a broker that is not fenced."""
        broker = self.image.cluster.brokers.get(broker_id)
        return None if broker is None or broker.fenced else broker.epoch

    def is_broker_fenced(self, broker_id: int) -> bool:
        """Whether it is registered and fenced."""
        broker = self.image.cluster.brokers.get(broker_id)
        return broker is not None and broker.fenced

    def is_broker_shutting_down(self, broker_id: int) -> bool:
        """Whether it is registered and in controlled shutdown."""
        broker = self.image.cluster.brokers.get(broker_id)
        return broker is not None and broker.in_controlled_shutdown

    def has_alive_broker(self, broker_id: int) -> bool:
        """Whether it is registered and not fenced."""
        return self.alive_broker_epoch(broker_id) is not None

    def contains(self, topic_partition: TopicPartition) -> bool:
        """Whether the image has the partition."""
        topic = self.image.topics.get_topic(topic_partition.topic)
        return topic is not None and topic_partition.partition in topic.partitions

    def leader_of(self, topic_partition: TopicPartition) -> int | None:
        """The leader in the image."""
        topic = self.image.topics.get_topic(topic_partition.topic)
        partition = None if topic is None else topic.partitions.get(topic_partition.partition)
        return None if partition is None else partition.leader

    def topic_configs(self, topic: str) -> Mapping[str, str]:
        """What is set for a topic."""
        return self.image.configs.config_map(ConfigResource(TOPIC_RESOURCE, topic))

    def rack_of(self, broker_id: int) -> str | None:
        """The rack of a broker that is alive."""
        broker = self.image.cluster.brokers.get(broker_id)
        return None if broker is None or broker.fenced else broker.rack
