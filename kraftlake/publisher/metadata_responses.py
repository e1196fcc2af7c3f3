"""The answers of the metadata cache: values of Kafka's Metadata and DescribeTopicPartitions responses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import attrs

from kraftlake.image.topics.topic_names import INTERNAL_TOPICS
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.records.uuid import Uuid


@attrs.frozen(kw_only=True)
class Node:
    """The address of a broker's listener for clients. Source: org.apache.kafka.common.Node."""

    NO_NODE: ClassVar[Node]

    id: int
    host: str
    port: int
    rack: str | None = None
    is_fenced: bool = False


Node.NO_NODE = Node(id=-1, host="", port=-1)


@attrs.frozen(kw_only=True)
class PartitionMetadata:
    """A partition from a client's view; `leader_id` is -1 if the leader can't be reached.

    The last two fields are set for DescribeTopicPartitions only.
    """

    error: ErrorCode = ErrorCode.NONE
    partition_index: int
    leader_id: int
    leader_epoch: int
    replica_nodes: tuple[int, ...]
    isr_nodes: tuple[int, ...]
    offline_replicas: tuple[int, ...]
    eligible_leader_replicas: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()


@attrs.frozen(kw_only=True)
class TopicMetadata:
    """A topic from a client's view; `topic_id` is all zeros for a topic that does not exist."""

    error: ErrorCode = ErrorCode.NONE
    name: str
    topic_id: Uuid
    partitions: tuple[PartitionMetadata, ...] = ()

    @property
    def is_internal(self) -> bool:
        """Whether the topic is a state topic of Kafka itself."""
        return self.name in INTERNAL_TOPICS


@attrs.frozen
class Cursor:
    """The position at which the next DescribeTopicPartitions request continues."""

    topic_name: str
    partition_index: int


@attrs.frozen
class DescribedTopics:
    """The answer to a DescribeTopicPartitions request; complete if `next_cursor` is None."""

    topics: tuple[TopicMetadata, ...]
    next_cursor: Cursor | None = None


@attrs.frozen(kw_only=True)
class FinalizedFeatures:
    """The finalized levels at an offset, including metadata.version.

    Source: org.apache.kafka.server.common.FinalizedFeatures.
    """

    levels: Mapping[str, int]
    epoch: int
    """The offset of the image, which clients compare."""
