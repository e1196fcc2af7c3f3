"""The purgatories of a broker."""

from __future__ import annotations

from collections.abc import Iterator

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.replica_manager.requests.purgatory import Purgatory
from kraftlake.runtime.clock import Clock


class DelayedRequests:
    """The `DelayedOperations` of a broker that serves requests: three purgatories with partitions as keys.

    Source: kafka.cluster.DelayedOperations, org.apache.kafka.server.purgatory.
    """

    def __init__(self, clock: Clock) -> None:
        self.produce = Purgatory(clock)
        self.fetch = Purgatory(clock)
        self.delete_records = Purgatory(clock)

    def __iter__(self) -> Iterator[Purgatory]:
        return iter((self.produce, self.fetch, self.delete_records))

    def check_and_complete_all(self, topic_partition: TopicPartition) -> None:
        """Complete the requests that waited for a higher high or low watermark."""
        self.fetch.check_and_complete(topic_partition)
        self.produce.check_and_complete(topic_partition)
        self.delete_records.check_and_complete(topic_partition)

    def complete_when_not_leader(self, topic_partition: TopicPartition) -> None:
        """Complete the requests that wait for a partition that the broker no longer leads."""
        self.produce.check_and_complete(topic_partition)
        self.fetch.check_and_complete(topic_partition)

    def expire(self) -> int:
        """Complete the requests that have timed out; returns their number."""
        return sum(purgatory.expire() for purgatory in self)

    def next_deadline(self) -> int | None:
        """The next time at which `expire` has work, in the clock's nanoseconds; None while no request waits."""
        deadlines = [deadline for purgatory in self if (deadline := purgatory.next_deadline()) is not None]
        return min(deadlines, default=None)
