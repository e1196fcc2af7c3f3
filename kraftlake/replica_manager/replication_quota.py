"""Throttled replication: the replicas that may be delayed, and the measured and allowed rates."""

from __future__ import annotations

from collections.abc import Collection
from threading import Lock
from typing import Final

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.runtime.clock import Clock
from kraftlake.runtime.errors import UsageError
from kraftlake.runtime.rates import SimpleRate, Windows

_ALL: Final = "*"


class ReplicationQuota:
    """A throttled rate of replication, and the replicas that it applies to.

    The rate in bytes per second is measured over the last windows. Without `bytes_per_second` it is never exceeded.
    Thread-safe. Source: org.apache.kafka.server.quota.ReplicationQuotaManager.
    """

    def __init__(self, clock: Clock, windows: Windows | None = None) -> None:
        self._clock = clock
        self._lock = Lock()
        self._rate = SimpleRate(windows or Windows())
        self._throttled: dict[str, frozenset[int] | None] = {}
        self.bytes_per_second: float | None = None
        """The allowed rate; may be set at any time."""

    def throttle(self, topic: str, partitions: Collection[int] | None) -> None:
        """Throttle these partitions of a topic in place of the previous ones; None means all of them."""
        self._throttled[topic] = None if partitions is None else frozenset(partitions)

    def release(self, topic: str) -> None:
        """Throttle no partition of a topic."""
        self._throttled.pop(topic, None)

    def is_throttled(self, partition: TopicPartition) -> bool:
        """Whether the quota applies to a replica."""
        partitions = self._throttled.get(partition.topic, frozenset())
        return partitions is None or partition.partition in partitions

    def is_exceeded(self) -> bool:
        """Whether the current rate is above the allowed rate."""
        allowed = self.bytes_per_second
        return allowed is not None and self.rate() > allowed

    def record(self, size: int) -> None:
        """Add bytes to the current window."""
        with self._lock:
            self._rate.record(size, self._now_ms())

    def rate(self) -> float:
        """The bytes per second since the start of the oldest window (the metric byte-rate)."""
        with self._lock:
            return self._rate.per_second(self._now_ms())

    def _now_ms(self) -> int:
        return self._clock.nanoseconds() // 1_000_000


def throttled_partitions(value: str, broker_id: int) -> frozenset[int] | None:
    """Return the partitions that `(leader|follower).replication.throttled.replicas` names for a broker; None means all.

    `value` is `partition:broker,…`, or `*` for all partitions. Raises UsageError for any other value. Source:
    kafka.server.TopicConfigHandler.
    """
    text = value.strip()
    if text == _ALL:
        return None
    pairs = [pair.strip().split(":") for pair in text.split(",")] if text else []
    try:
        named = [(int(partition), int(broker)) for partition, broker in pairs]
    except ValueError:
        raise UsageError(f"{value!r} names no throttled replicas: write partition:broker,… or *.") from None
    return frozenset(partition for partition, broker in named if broker == broker_id)
