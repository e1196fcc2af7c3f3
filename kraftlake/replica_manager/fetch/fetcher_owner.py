"""The replica manager, as its fetchers see it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from kraftlake.delta import TopicPartition
from kraftlake.replica_manager.partition.partition import Partition


class FetcherOwner(Protocol):
    """What a fetcher needs: partitions to append to, and somebody to tell."""

    def partition_or_raise(self, topic_partition: TopicPartition) -> Partition:
        """An online partition, else a ReplicationError."""

    def add_failed_partition(self, topic_partition: TopicPartition) -> None:
        """The partition can't be fetched until metadata changes it."""

    def complete_delayed_fetches(self, partitions: Iterable[TopicPartition]) -> None:
        """The high watermarks of these have moved: consumers of this follower may have waited for that."""

    def mark_future_for_truncation(self, topic_partition: TopicPartition, offset: int) -> None:
        """The replica was truncated: a copy of it on its way to another directory is to be, too."""
