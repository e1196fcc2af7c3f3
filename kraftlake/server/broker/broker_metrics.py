"""The metrics of a broker's process, under Kafka's names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftlake.replica_manager.logs.cleaning.cleaner_metrics import register_cleaner
from kraftlake.replica_manager.replication_metrics import register_metrics
from kraftlake.runtime.clock import Clock
from kraftlake.runtime.metrics import MetricName, MetricsRegistry

if TYPE_CHECKING:
    from kraftlake.server.broker.broker import Broker


def register_broker(registry: MetricsRegistry, broker: Broker, clock: Clock) -> None:
    """Register the metrics of a broker's metadata, replicas, cleaner and log directories."""
    broker.loader.metrics.register(registry, clock)
    register_metrics(broker.manager, registry)
    register_cleaner(registry, broker.cleaner)
    registry.gauge(
        MetricName("kafka.server", "KafkaServer", "BrokerState"),
        "1 starting, 2 recovery, 3 running, 6 controlled shutdown, 7 shutting down.",
        lambda: int(broker.lifecycle.state),
    )
    registry.gauge(
        MetricName("kafka.log", "LogManager", "OfflineLogDirectoryCount"),
        "Log directories that have failed.",
        lambda: len(broker.logs.offline),
    )
