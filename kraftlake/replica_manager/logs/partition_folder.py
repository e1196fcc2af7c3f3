"""Names of the partition folders in a log directory.

Source: org.apache.kafka.storage.internals.log.LocalLog (logDeleteDirName, logFutureDirName, logStrayDirName).
"""

from __future__ import annotations

import re
from typing import Final

import attrs

from kraftlake.delta.topics.local_replica_changes import TopicPartition

DELETE: Final = "delete"
FUTURE: Final = "future"
STRAY: Final = "stray"
LONGEST_NAME: Final = 255
_METADATA_TOPIC: Final = "__cluster_metadata"
_PARTITION: Final = re.compile(r"(?P<topic>[A-Za-z0-9._-]{1,249})-(?P<partition>\d{1,10})")
_MARKED: Final = re.compile(r"(?P<name>.+)\.(?P<id>[0-9a-f]{32})-(?P<mark>delete|future|stray)")


@attrs.frozen(kw_only=True)
class PartitionFolder:
    """A folder of a partition; `mark` is one of DELETE, FUTURE and STRAY, empty for a replica's log."""

    name: str
    topic_partition: TopicPartition
    mark: str = ""

    @classmethod
    def parse(cls, name: str) -> PartitionFolder | None:
        """Parse a folder's name; None for any other folder, and for the metadata log's."""
        marked = _MARKED.fullmatch(name)
        found = _PARTITION.fullmatch(marked["name"] if marked else name)
        if found is None or found["topic"] == _METADATA_TOPIC:
            return None
        partition = TopicPartition(found["topic"], int(found["partition"]))
        return cls(name=name, topic_partition=partition, mark=marked["mark"] if marked else "")


def folder_name(topic_partition: TopicPartition) -> str:
    """The name of the folder of a replica's log."""
    return f"{topic_partition.topic}-{topic_partition.partition}"


def marked_name(topic_partition: TopicPartition, unique: str, mark: str) -> str:
    """The name of a marked folder; `unique` are 32 hexadecimal digits.

    A topic name too long for the file system is truncated, except for a future log, which is refused.
    """
    tail = f"-{topic_partition.partition}.{unique}-{mark}"
    topic = topic_partition.topic if mark == FUTURE else topic_partition.topic[: LONGEST_NAME - len(tail)]
    return topic + tail
