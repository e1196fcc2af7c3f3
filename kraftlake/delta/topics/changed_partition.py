"""A changed partition, and its local changes for one broker."""

from __future__ import annotations

from typing import NamedTuple

from kraftlake.delta.topics.local_replica_changes import (
    GatheredChanges,
    PartitionInfo,
    TopicIdPartition,
    TopicPartition,
)
from kraftlake.image.topics.partition_registration import PartitionRegistration
from kraftlake.records.uuid import Uuid


class ChangedPartition(NamedTuple):
    """The state of a partition in the base image (None if it is new), and its current state.

    `rewritten`: a record has written its directories since the base image, even if with the same ids.
    """

    topic: str
    topic_id: Uuid
    partition_id: int
    previous: PartitionRegistration | None
    partition: PartitionRegistration
    rewritten: bool

    def add_local_changes(self, broker: int, changes: GatheredChanges) -> None:
        """Add the local changes of a broker to `changes`; see `TopicsDelta.local_changes`."""
        previous, partition = self.previous, self.partition
        if broker not in partition.replicas:
            if previous is not None and broker in previous.replicas:
                changes.deletes.add(TopicPartition(self.topic, self.partition_id))
            return
        key = TopicPartition(self.topic, self.partition_id)
        if previous is None or previous.partition_epoch != partition.partition_epoch:
            info = PartitionInfo(self.topic_id, partition)
            if partition.leader != broker:
                changes.followers[key] = info
            else:
                changes.leaders[key] = info
                if previous is None or previous.leader_epoch != partition.leader_epoch:
                    changes.elected_leaders[key] = info
            changes.topic_ids[self.topic] = self.topic_id
        if previous is None or self._directory_changed(previous, broker):
            directory = partition.directory(broker)
            assert directory is not None, "the broker is one of the replicas"
            changes.directory_ids[TopicIdPartition(self.topic_id, key)] = directory

    def _directory_changed(self, previous: PartitionRegistration, broker: int) -> bool:
        """Whether Kafka sees a different directory object for the broker than in the base image.

        Kafka compares references, not ids. Every record brings new objects; only "all replicas are migrating" is one
        shared constant. Without a record that writes directories, a replica has another object only if its index in the
        list changed. A broker that is new among the replicas of an existing partition is ignored.
        """
        partition = self.partition
        if not self.rewritten and previous.replicas is partition.replicas:
            return False
        if broker not in previous.replicas or (previous.all_migrating and partition.all_migrating):
            return False
        return self.rewritten or previous.replicas.index(broker) != partition.replicas.index(broker)
