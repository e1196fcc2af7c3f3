"""The rows of `local_changes/` by objects: those of `TopicsDelta.local_changes`, one delta and broker at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kraftlake.delta.topics.local_replica_changes import LocalReplicaChanges
from kraftlake.delta.topics.topics_delta import TopicsDelta
from kraftlake.image.provenance import MetadataProvenance
from kraftlake.image.topics.partition_registration import PartitionRegistration
from kraftlake.records.uuid import Uuid

Row = tuple[Any, ...]


def local_change_rows(topics: TopicsDelta, head: Row) -> Iterator[Row]:
    """The rows of one metadata delta; `head` is its offset, epoch and time (epoch microseconds or None)."""
    for broker in _brokers_of(topics):
        changes = topics.local_changes(broker)
        for topic, partition, change, topic_id, state in sorted(_rows_of(topics, changes), key=lambda row: row[:3]):
            yield (*head, broker, change, topic, str(topic_id), partition, *state)


def row_head(at: MetadataProvenance) -> Row:
    """The offset, epoch and time of the rows of a metadata delta that has led to an image."""
    return at.offset, at.epoch, None if at.timestamp < 0 else at.timestamp * 1000


def _brokers_of(topics: TopicsDelta) -> list[int]:
    """The brokers that host a changed partition, or hosted it before the delta."""
    states: list[PartitionRegistration | None] = []
    for delta in topics.changed_topics.values():
        states += [*delta.partition_changes.values(), *map(delta.image.partitions.get, delta.partition_changes)]
    by_id = topics.image.topics_by_id()
    for topic_id in topics.deleted_topic_ids:
        states += by_id[topic_id].partitions.values()
    return sorted({broker for state in states if state is not None for broker in state.replicas})


_NO_STATE: Row = (None,) * 6
"""What a delete has in the columns from `leader` on."""


def _rows_of(topics: TopicsDelta, changes: LocalReplicaChanges) -> Iterator[tuple[str, int, str, Uuid, Row]]:
    directories = {key.topic_partition: (key.topic_id, str(value)) for key, value in changes.directory_ids.items()}
    for deleted in changes.deletes:
        before = topics.image.get_topic(deleted.topic)
        assert before is not None, "a delete is of a replica that the image before the delta had"
        yield deleted.topic, deleted.partition, "delete", before.id, _NO_STATE
    for kind, infos in (("leader", changes.leaders), ("follower", changes.followers)):
        for key, info in infos.items():
            change = "leader_elected" if key in changes.elected_leaders else kind
            _, directory = directories.pop(key, (None, None))
            yield key.topic, key.partition, change, info.topic_id, _state(info.partition, directory)
    for key, (topic_id, directory) in directories.items():
        topic = topics.changed_topic(topic_id)
        partition = None if topic is None else topic.partition(key.partition)
        assert partition is not None, "a directory is assigned to a partition that the delta holds"
        yield key.topic, key.partition, "directory", topic_id, _state(partition, directory)


def _state(partition: PartitionRegistration, directory: str | None) -> Row:
    return (
        partition.leader, partition.leader_epoch, partition.partition_epoch,
        list(partition.replicas), list(partition.isr), directory,
    )  # fmt: skip
