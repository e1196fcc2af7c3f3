"""Throttled replication: which replicas may be held back, and whether the rate is used up."""

from __future__ import annotations

from typing import Protocol

from kraftlake.delta import TopicPartition


class ReplicaQuota(Protocol):
    """leader.replication.throttled.rate or follower.replication.throttled.rate and the replicas that they hold for.

    Source: org.apache.kafka.server.quota.ReplicaQuota.
    """

    def is_throttled(self, partition: TopicPartition) -> bool:
        """Whether the replica is among those that may be held back."""

    def is_exceeded(self) -> bool:
        """Whether more was moved than the rate allows."""

    def record(self, size: int) -> None:
        """Bytes of a throttled replica were moved."""


class UnboundedQuota:
    """Nothing is ever held back."""

    def is_throttled(self, partition: TopicPartition) -> bool:  # noqa: ARG002
        """No replica is."""
        return False

    def is_exceeded(self) -> bool:
        """Never."""
        return False

    def record(self, size: int) -> None:
        """Nothing to count."""
