"""The purgatories of a broker, and who is woken by what happens to a partition."""

from __future__ import annotations

from collections.abc import Iterator

from kraftlake.delta import TopicPartition
from kraftlake.replica_manager.config import ReplicaManagerConfig
from kraftlake.replica_manager.requests.purgatory import Purgatory
from kraftlake.runtime.clock import Clock


class DelayedRequests:
    """Four purgatories whose keys are partitions: the `DelayedOperations` of a broker that serves requests.

    Source: kafka.cluster.DelayedOperations, org.apache.kafka.server.purgatory.
    """

    def __init__(self, config: ReplicaManagerConfig, clock: Clock) -> None:
        self.produce = Purgatory(clock, config.producer_purgatory_purge_interval_requests)
        self.fetch = Purgatory(clock, config.fetch_purgatory_purge_interval_requests)
        self.delete_records = Purgatory(clock, config.delete_records_purgatory_purge_interval_requests)
        self.elect_leader = Purgatory(clock)

    def __iter__(self) -> Iterator[Purgatory]:
        return iter((self.produce, self.fetch, self.delete_records, self.elect_leader))

    def check_and_complete_all(self, topic_partition: TopicPartition) -> None:
        """High or low watermark have moved."""
        self.fetch.check_and_complete(topic_partition)
        self.produce.check_and_complete(topic_partition)
        self.delete_records.check_and_complete(topic_partition)

    def complete_when_not_leader(self, topic_partition: TopicPartition) -> None:
        """The broker leads the partition no longer."""
        self.produce.check_and_complete(topic_partition)
        self.fetch.check_and_complete(topic_partition)

    def complete_new_data(self, topic_partition: TopicPartition) -> None:
        """Something was appended, and the high watermark has not moved by it: followers may fetch it."""
        self.fetch.check_and_complete(topic_partition)

    def has_delayed_deletes(self) -> bool:
        """Whether a DeleteRecords request waits."""
        return self.delete_records.delayed > 0

    def expire(self) -> int:
        """Answer those whose time is over; how many they were."""
        return sum(purgatory.expire() for purgatory in self)

    def next_deadline(self) -> int | None:
        """When `expire` has something to do next, on the clock's nanoseconds."""
        deadlines = [deadline for purgatory in self if (deadline := purgatory.next_deadline()) is not None]
        return min(deadlines, default=None)
