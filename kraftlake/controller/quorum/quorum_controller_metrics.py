"""The metrics of a controller process, under Kafka's names."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping

import attrs

from kraftlake.runtime.clock import Clock
from kraftlake.runtime.metrics import Gauge, MetricName, MetricsRegistry, Tags
from kraftlake.runtime.time_ratio import TimeRatio

KEPT = 1028
QUANTILES = (0.5, 0.95, 0.99, 0.999)


class RecentValues:
    """The last 1028 values, as in Kafka's histograms; one thread adds values, any thread may read.

    Source: com.yammer.metrics.core.Histogram.
    """

    def __init__(self) -> None:
        self._values: deque[float] = deque(maxlen=KEPT)
        self.count = 0

    def add(self, value: float) -> None:
        """Add a value, in place of the oldest one if there are 1028."""
        self._values.append(value)
        self.count += 1

    def quantiles(self) -> Mapping[Tags, float]:
        """The quantiles 0.5, 0.95, 0.99 and 0.999 of the kept values, tagged as in Prometheus; 0 without values."""
        values = sorted(self._values.copy())
        last = len(values) - 1
        return {(("quantile", str(part)),): values[round(part * last)] if values else 0.0 for part in QUANTILES}


@attrs.define(kw_only=True, eq=False)
class QuorumControllerMetrics:
    """Plain values set by the controller's thread and readable by any thread.

    Applied records are in the pending image: an active controller has appended them, a standby has replayed them. Queue
    and processing times are in ms. On an active controller `last_contacts` returns the time of each broker's last
    heartbeat by broker id, in ns of the controller's clock.
    Source: org.apache.kafka.controller.metrics.QuorumControllerMetrics.
    """

    active: bool = False
    last_applied_offset: int = -1
    last_applied_timestamp: int = -1
    last_committed_offset: int = -1
    timed_out_heartbeats: int = 0
    operations_started: int = 0
    operations_timed_out: int = 0
    new_active_controllers: int = 0
    last_contacts: Callable[[], Mapping[int, int]] = dict
    queue_time_ms: RecentValues = attrs.field(factory=RecentValues)
    processing_time_ms: RecentValues = attrs.field(factory=RecentValues)
    idle: TimeRatio = attrs.field(factory=lambda: TimeRatio(1.0))

    def applied(self, offset: int, timestamp: int) -> None:
        """Note that records up to `offset` are in the pending image; `timestamp` is in epoch ms."""
        self.last_applied_offset, self.last_applied_timestamp = offset, timestamp

    def register(self, registry: MetricsRegistry, clock: Clock, *, session_timeout_ms: int) -> None:
        """Register the gauges; ages are measured by `clock`, and heartbeat ages are at most the session timeout."""

        def since_contact() -> dict[Tags, float]:
            now_ns = clock.nanoseconds()
            return {
                (("broker", str(broker)),): min((now_ns - contact_ns) // 1_000_000, session_timeout_ms)
                for broker, contact_ns in self.last_contacts().items()
            }

        def lag_ms() -> float:
            return max(0, clock.milliseconds() - self.last_applied_timestamp) if self.last_applied_timestamp >= 0 else 0

        process: list[tuple[str, str, Gauge]] = [
            ("ActiveControllerCount", "1 where this is the active controller.", lambda: int(self.active)),
            ("LastAppliedRecordOffset", "The last offset in the pending image.", lambda: self.last_applied_offset),
            ("LastAppliedRecordTimestamp", "When it was appended, epoch ms.", lambda: self.last_applied_timestamp),
            ("LastAppliedRecordLagMs", "How long ago that was, ms.", lag_ms),
            ("LastCommittedRecordOffset", "The last offset that is durable.", lambda: self.last_committed_offset),
            ("TimedOutBrokerHeartbeatCount", "Heartbeats that waited too long.", lambda: self.timed_out_heartbeats),
            ("EventQueueOperationsStartedCount", "Commands that were begun.", lambda: self.operations_started),
            ("EventQueueOperationsTimedOutCount", "Commands that waited too long.", lambda: self.operations_timed_out),
            ("NewActiveControllersCount", "Controllers that became active.", lambda: self.new_active_controllers),
            ("TimeSinceLastHeartbeatReceivedMs", "Per broker, the session timeout at most.", since_contact),
        ]
        for name, text, read in process:
            registry.gauge(MetricName("kafka.controller", "KafkaController", name), text, read)
        queue: list[tuple[str, str, Gauge]] = [
            ("EventQueueTimeMs", "How long commands waited, ms.", self.queue_time_ms.quantiles),
            ("EventQueueTimeMsCount", "How many waited.", lambda: self.queue_time_ms.count),
            ("EventQueueProcessingTimeMs", "How long commands took, ms.", self.processing_time_ms.quantiles),
            ("EventQueueProcessingTimeMsCount", "How many were run.", lambda: self.processing_time_ms.count),
            ("AvgIdleRatio", "Its thread's idle time, as a share since it was last asked.", self.idle.measure),
        ]
        for name, text, read in queue:
            registry.gauge(MetricName("kafka.controller", "ControllerEventManager", name), text, read)
