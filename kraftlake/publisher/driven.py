"""What a broker's publisher drives: the parts of a broker, as far as metadata moves them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

from kraftlake.delta import MetadataDelta, TopicPartition, TopicsDelta
from kraftlake.image import MetadataImage, TopicsImage
from kraftlake.records.uuid import Uuid

StrayCheck = Callable[[Uuid | None, int], bool]
"""Whether a log of that topic id (None: it has none) and partition is a stray: metadata does not place it here."""


class LogManager(Protocol):
    """The replicas on disk. Source: org.apache.kafka.storage.internals.log.LogManager."""

    def startup(self, topics: Collection[str], is_stray: StrayCheck) -> None:
        """Recover the logs of `topics` and set apart the strays, so that nothing of them is served."""
        ...

    def recover_abandoned_future_logs(self, broker_id: int, topics: TopicsImage) -> None:
        """Promote future replicas that lie where the controller has assigned them by now."""
        ...


class ReplicaManager(Protocol):
    """Who leads and follows partitions here. Source: kafka.server.ReplicaManager."""

    def startup(self) -> None:
        """Begin the periodic tasks: ISR expiration, high watermarks' log directory failures."""
        ...

    def apply_delta(self, topics_delta: TopicsDelta, new_image: MetadataImage) -> None:
        """Do what a change of the topics means to this broker."""
        ...

    def start_high_watermark_check_point_thread(self) -> None:
        """Begin to write high watermarks down: last of all, when every partition has its own."""
        ...


class Coordinator(Protocol):
    """Who leads partitions of a state topic: groups, transactions or share groups.

    Source: org.apache.kafka.coordinator.group.GroupCoordinator, kafka.coordinator.transaction.TransactionCoordinator,
    org.apache.kafka.coordinator.share.ShareCoordinator.
    """

    def startup(self, partition_count: Callable[[], int]) -> None:
        """Begin; `partition_count` tells how many partitions the state topic has, or will get."""
        ...

    def on_election(self, partition: int, leader_epoch: int) -> None:
        """This broker leads the partition of the state topic from now on: load it."""
        ...

    def on_resignation(self, partition: int, leader_epoch: int | None) -> None:
        """This broker leads it no longer; without an epoch its replica is gone from here."""
        ...


class ShareCoordinator(Coordinator, Protocol):
    """The coordinator of share groups."""

    def on_metadata_update(self, delta: MetadataDelta, new_image: MetadataImage) -> None:
        """Take a new image: topics that share groups read may be gone."""
        ...


class GroupCoordinator(Coordinator, Protocol):
    """The coordinator of groups, which holds offsets of every topic."""

    def on_partitions_deleted(self, partitions: Sequence[TopicPartition]) -> None:
        """Forget the offsets of partitions that are gone (Kafka 4.4 takes them out of the delta itself)."""
        ...

    def on_metadata_update(self, delta: MetadataDelta, new_image: MetadataImage) -> None:
        """Take a new image: subscriptions by pattern may match other topics now."""
        ...


class DynamicConfigHandler(Protocol):
    """Who acts on a resource's dynamic configs. Source: kafka.server.ConfigHandler."""

    def process_config_changes(self, name: str, configs: Mapping[str, str]) -> None:
        """Take all configs that are set for resource `name` now, "" for the default of the type."""
        ...
