"""Queries for partitions, mostly of one broker. They scan the image, by columns if it is packed; there is no index."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from kraftlake.image.broker_partitions import hosted_partitions, partitions_with_elr
from kraftlake.image.topics.partition_registration import NO_LEADER, PartitionRegistration
from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.records.uuid import Uuid

Found: TypeAlias = tuple[str, int, PartitionRegistration]
"""A topic's name, a partition id and the partition's state."""


def with_broker_in_isr(topics: TopicsImage, broker: int) -> list[Found]:
    """The partitions with the broker in the ISR, sorted by topic name and partition id like all results below."""
    return _sorted(found for found in hosted_partitions(topics, broker) if broker in found[2].isr)


def with_broker_in_elr(topics: TopicsImage, broker: int) -> list[Found]:
    """The partitions with the broker among the eligible leader replicas; it may no longer be a replica."""
    return _sorted(found for found in partitions_with_elr(topics) if broker in found[2].elr)


def in_directory(topics: TopicsImage, broker: int, directory: Uuid) -> list[Found]:
    """The partitions with a replica of the broker in that directory."""
    return _sorted(found for found in hosted_partitions(topics, broker) if found[2].directory(broker) == directory)


def leads_any(topics: TopicsImage, broker: int) -> bool:
    """Whether the broker leads a partition."""
    return any(found[2].leader == broker for found in hosted_partitions(topics, broker))


def without_leader(topics: TopicsImage) -> list[Found]:
    """The partitions without a leader."""
    return _sorted(found for found in _all(topics) if found[2].leader == NO_LEADER)


def without_preferred_leader(topics: TopicsImage) -> list[Found]:
    """The partitions whose leader is not the first replica, including those without a leader."""
    return _sorted(found for found in _all(topics) if found[2].leader != found[2].replicas[0])


def out_of_sync(topics: TopicsImage) -> list[Found]:
    """The partitions with a replica that is not in sync."""
    return _sorted(found for found in _all(topics) if not set(found[2].isr) >= set(found[2].replicas))


def reassigning(topics: TopicsImage) -> list[Found]:
    """The partitions that are being reassigned."""
    return _sorted(found for found in _all(topics) if found[2].adding_replicas or found[2].removing_replicas)


def _all(topics: TopicsImage) -> Iterator[Found]:
    for name, topic in topics.topics_by_name().items():
        for partition_id, partition in topic.partitions.items():
            yield name, partition_id, partition


def _sorted(found: Iterable[Found]) -> list[Found]:
    return sorted(found, key=lambda one: one[:2])
