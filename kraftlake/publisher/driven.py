"""Interfaces of the parts of a broker that its publisher updates."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.delta.topics.topics_delta import TopicsDelta
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.records.uuid import Uuid

StrayCheck = Callable[[Uuid | None, int], bool]
"""Returns whether the log of a topic id (None if it has none) and partition is stray: not assigned to this broker."""


class LogManager(Protocol):
    """The replicas on disk. Source: org.apache.kafka.storage.internals.log.LogManager."""

    def startup(self, topics: Collection[str], is_stray: StrayCheck) -> None:
        """Recover the logs of `topics` and separate strays, which are not served."""
        ...

    def recover_abandoned_future_logs(self, broker_id: int, topics: TopicsImage) -> None:
        """Promote future replicas in the directory that the controller has assigned."""
        ...


class ReplicaManager(Protocol):
    """The leaders and followers on this broker. Source: kafka.server.ReplicaManager."""

    def startup(self) -> None:
        """Start the periodic tasks: ISR expiration, log directory failures."""
        ...

    def stop_reassigned(self, new_image: MetadataImage) -> None:
        """Stop the replicas that an image from a snapshot does not place on this broker."""
        ...

    def apply_delta(self, topics_delta: TopicsDelta, new_image: MetadataImage) -> None:
        """Apply the changes that concern this broker."""
        ...

    def start_high_watermark_check_point_thread(self) -> None:
        """Start to checkpoint high watermarks: the last step, when every partition has one."""
        ...


class Coordinator(Protocol):
    """A coordinator that leads partitions of a state topic: of groups, transactions or share groups.

    Source: org.apache.kafka.coordinator.group.GroupCoordinator, kafka.coordinator.transaction.TransactionCoordinator,
    org.apache.kafka.coordinator.share.ShareCoordinator.
    """

    def startup(self, partition_count: Callable[[], int]) -> None:
        """Start; `partition_count` returns the number of partitions that the state topic has or will get."""
        ...

    def on_election(self, partition: int, leader_epoch: int) -> None:
        """Load a partition of the state topic: this broker becomes its leader."""
        ...

    def on_resignation(self, partition: int, leader_epoch: int | None) -> None:
        """Unload a partition: this broker is no longer its leader; without an epoch, its replica was removed."""
        ...


class ShareCoordinator(Coordinator, Protocol):
    """The coordinator of share groups."""

    def on_metadata_update(self, delta: MetadataDelta, new_image: MetadataImage) -> None:
        """Handle a new image: topics that share groups read may be deleted."""
        ...


class GroupCoordinator(Coordinator, Protocol):
    """The coordinator of groups, which stores offsets of all topics."""

    def on_partitions_deleted(self, partitions: Sequence[TopicPartition]) -> None:
        """Remove the offsets of deleted partitions (Kafka 4.4 finds them in the delta itself)."""
        ...

    def on_metadata_update(self, delta: MetadataDelta, new_image: MetadataImage) -> None:
        """Handle a new image: subscriptions by pattern may match other topics."""
        ...


class DynamicConfigHandler(Protocol):
    """Handles changes of a resource's dynamic configs. Source: kafka.server.ConfigHandler."""

    def process_config_changes(self, name: str, configs: Mapping[str, str]) -> None:
        """Apply all configs now set for resource `name`; "" is the default of the type."""
        ...
