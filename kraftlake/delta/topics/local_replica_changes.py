"""The changes of a metadata delta for one broker."""

from __future__ import annotations

from collections.abc import Mapping, Set
from types import MappingProxyType
from typing import Any, NamedTuple

from kraftlake.image.topics.partition_registration import PartitionRegistration
from kraftlake.records.uuid import Uuid


class TopicPartition(NamedTuple):
    """A partition by name; `str()` gives `foo-3`."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class TopicIdPartition(NamedTuple):
    """A partition by topic id and name; `str()` gives `<topic id>:foo-3`."""

    topic_id: Uuid
    topic_partition: TopicPartition

    def __str__(self) -> str:
        return f"{self.topic_id}:{self.topic_partition}"


class PartitionInfo(NamedTuple):
    """A partition's new state, with the id of its topic."""

    topic_id: Uuid
    partition: PartitionRegistration


_NOTHING: Mapping[Any, Any] = MappingProxyType({})


class LocalReplicaChanges(NamedTuple):
    """The actions of one broker. Source: org.apache.kafka.image.LocalReplicaChanges.

    `deletes`: replicas to remove. `leaders`: partitions that the broker leads and whose partition epoch changed;
    `elected_leaders`: those of them whose leader epoch changed, too. `followers`: the other hosted partitions whose
    partition epoch changed, including leaderless ones. `topic_ids`: the ids of the topics of leaders and followers.
    `directory_ids`: the directories of replicas with a new assignment.
    """

    deletes: Set[TopicPartition] = frozenset()
    elected_leaders: Mapping[TopicPartition, PartitionInfo] = _NOTHING
    leaders: Mapping[TopicPartition, PartitionInfo] = _NOTHING
    followers: Mapping[TopicPartition, PartitionInfo] = _NOTHING
    topic_ids: Mapping[str, Uuid] = _NOTHING
    directory_ids: Mapping[TopicIdPartition, Uuid] = _NOTHING

    def __repr__(self) -> str:
        return (
            f"<LocalReplicaChanges: {len(self.deletes):,} to delete, {len(self.leaders):,} to lead "
            f"({len(self.elected_leaders):,} newly elected), {len(self.followers):,} to follow, "
            f"{len(self.directory_ids):,} with a directory>"
        )

    def is_empty(self) -> bool:
        """Whether the broker has nothing to do."""
        return not (self.deletes or self.leaders or self.followers or self.directory_ids)


def local_changes_to_json(
    changes: LocalReplicaChanges | None, *, broker: int, from_offset: int, to_offset: int
) -> dict[str, Any]:
    """The form of `kraftlake local-changes --json`; `changes` is None if the delta has no topics."""
    shown = LocalReplicaChanges() if changes is None else changes
    return {
        "broker": broker,
        "from": from_offset,
        "to": to_offset,
        "hasTopicsDelta": changes is not None,
        "deletes": sorted(str(topic_partition) for topic_partition in shown.deletes),
        "electedLeaders": _infos_json(shown.elected_leaders),
        "leaders": _infos_json(shown.leaders),
        "followers": _infos_json(shown.followers),
        "topicIds": {name: str(topic_id) for name, topic_id in sorted(shown.topic_ids.items())},
        "directoryIds": dict(sorted((str(key), str(directory)) for key, directory in shown.directory_ids.items())),
    }


def _infos_json(infos: Mapping[TopicPartition, PartitionInfo]) -> dict[str, Any]:
    from kraftlake.image.json_form import partition_json  # most processes write none

    return {
        str(topic_partition): {"topicId": str(info.topic_id), "partition": partition_json(info.partition)}
        for topic_partition, info in sorted(infos.items())
    }
