"""Throttled replication: the replicas that may be delayed, and the measured and allowed rates."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from threading import Lock
from typing import Final

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.runtime.clock import Clock
from kraftlake.runtime.errors import UsageError

_ALL: Final = "*"


class ReplicationQuota:
    """leader.replication.throttled.rate or follower.replication.throttled.rate, and the replicas that it applies to.

    The rate in bytes per second is measured over the last `windows` windows of `window_ms`
    (replication.quota.window.num, replication.quota.window.size.seconds). Without `bytes_per_second` the rate is never
    exceeded. Thread-safe. Source: org.apache.kafka.server.quota.ReplicationQuotaManager,
    org.apache.kafka.common.metrics.stats.SimpleRate.
    """

    def __init__(self, clock: Clock, *, windows: int = 11, window_ms: int = 1_000) -> None:
        self._clock = clock
        self._windows = windows
        self._window_ns = window_ms * 1_000_000
        self._lock = Lock()
        self._samples: deque[list[int]] = deque()  # [start in ns, bytes], the oldest first
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
        now = self._clock.nanoseconds()
        with self._lock:
            if not self._samples or now - self._samples[-1][0] >= self._window_ns:
                self._samples.append([now, 0])
            self._samples[-1][1] += size
            self._forget_old(now)

    def rate(self) -> float:
        """The bytes per second since the start of the oldest window (the metric byte-rate)."""
        now = self._clock.nanoseconds()
        with self._lock:
            self._forget_old(now)
            if not self._samples:
                return 0.0
            elapsed = max(now - self._samples[0][0], self._window_ns)
            return sum(size for _, size in self._samples) * 1e9 / elapsed

    def _forget_old(self, now_ns: int) -> None:
        while self._samples and now_ns - self._samples[0][0] >= self._windows * self._window_ns:
            self._samples.popleft()


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
