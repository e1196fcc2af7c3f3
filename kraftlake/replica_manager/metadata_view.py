"""The parts of the newest image that replication reads."""

from __future__ import annotations

from collections.abc import Mapping

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.image.broker_registration import BrokerRegistration
from kraftlake.image.configurations_image import TOPIC_RESOURCE, ConfigResource
from kraftlake.image.metadata_image import MetadataImage


class MetadataView:
    """Answers questions about the brokers and partitions of `image`. Source: org.apache.kafka.metadata.MetadataCache.

    Set a newer `image` before the replica manager applies the delta that leads to it.
    """

    def __init__(self, image: MetadataImage = MetadataImage.EMPTY) -> None:
        self.image = image

    def _alive(self, broker_id: int) -> BrokerRegistration | None:
        broker = self.image.cluster.brokers.get(broker_id)
        return None if broker is None or broker.fenced else broker

    def alive_broker_epoch(self, broker_id: int) -> int | None:
        """The broker epoch of a broker that is registered and not fenced, None for any other broker."""
        broker = self._alive(broker_id)
        return None if broker is None else broker.epoch

    def has_alive_broker(self, broker_id: int) -> bool:
        """Whether a broker is registered and not fenced."""
        return self._alive(broker_id) is not None

    def is_broker_fenced(self, broker_id: int) -> bool:
        """Whether a registered broker is fenced."""
        broker = self.image.cluster.brokers.get(broker_id)
        return broker is not None and broker.fenced

    def is_broker_shutting_down(self, broker_id: int) -> bool:
        """Whether a registered broker is in controlled shutdown."""
        broker = self.image.cluster.brokers.get(broker_id)
        return broker is not None and broker.in_controlled_shutdown

    def rack_of(self, broker_id: int) -> str | None:
        """The rack of a broker that is registered and not fenced."""
        broker = self._alive(broker_id)
        return None if broker is None else broker.rack

    def contains(self, topic_partition: TopicPartition) -> bool:
        """Whether the partition exists."""
        return self.leader_of(topic_partition) is not None

    def leader_of(self, topic_partition: TopicPartition) -> int | None:
        """The leader of a partition, −1 without a leader; None if the partition does not exist."""
        topic = self.image.topics.get_topic(topic_partition.topic)
        partition = None if topic is None else topic.partitions.get(topic_partition.partition)
        return None if partition is None else partition.leader

    def topic_configs(self, topic: str) -> Mapping[str, str]:
        """The configs that are set for a topic."""
        return self.image.configs.config_map(ConfigResource(TOPIC_RESOURCE, topic))
