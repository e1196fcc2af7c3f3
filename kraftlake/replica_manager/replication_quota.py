"""Throttled replication: which replicas may be held back, and whether the rate is used up."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from threading import Lock
from typing import Final, Protocol

from kraftlake.delta import TopicPartition
from kraftlake.runtime.clock import Clock
from kraftlake.runtime.errors import UsageError

_ALL: Final = "*"


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


class ReplicationQuota:
    """A `ReplicaQuota` of bytes a second, over the last `windows` windows of `window_ms` (replication.quota.window.*).

    Without a rate nothing is ever exceeded. Safe from several threads. Source:
    org.apache.kafka.server.quota.ReplicationQuotaManager, org.apache.kafka.common.metrics.stats.SimpleRate.
    """

    def __init__(self, clock: Clock, *, windows: int = 11, window_ms: int = 1_000) -> None:
        self._clock = clock
        self._windows = windows
        self._window_ns = window_ms * 1_000_000
        self._lock = Lock()
        self._samples: deque[list[int]] = deque()  # [start in ns, bytes], the oldest first
        self._throttled: dict[str, frozenset[int] | None] = {}
        self.bytes_per_second: float | None = None
        """The rate that may not be exceeded; may be set at any time."""

    def throttle(self, topic: str, partitions: Collection[int] | None) -> None:
        """Hold back these partitions of a topic from now on, None for all, in place of those before."""
        self._throttled[topic] = None if partitions is None else frozenset(partitions)

    def release(self, topic: str) -> None:
        """Hold back nothing of a topic any more."""
        self._throttled.pop(topic, None)

    def is_throttled(self, partition: TopicPartition) -> bool:
        """Whether the replica was named by `throttle`."""
        partitions = self._throttled.get(partition.topic, frozenset())
        return partitions is None or partition.partition in partitions

    def is_exceeded(self) -> bool:
        """Whether the rate measured now is above the one allowed."""
        allowed = self.bytes_per_second
        return allowed is not None and self.rate() > allowed

    def record(self, size: int) -> None:
        """Count bytes into the window of now."""
        now = self._clock.nanoseconds()
        with self._lock:
            if not self._samples or now - self._samples[-1][0] >= self._window_ns:
                self._samples.append([now, 0])
            self._samples[-1][1] += size
            self._forget_old(now)

    def rate(self) -> float:
        """Bytes a second since the oldest window that counts, as of now (the metric byte-rate)."""
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
    """The partitions that `leader.replication.throttled.replicas`, or the followers' one, names for a broker.

    `value` is `partition:broker,…`, or `*` for all, which gives None. UsageError for anything else. Source:
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
