"""The metrics of replication, by Kafka's names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kraftlake.replica_manager.fetch.fetcher import FetcherFigures
from kraftlake.replica_manager.fetch.fetcher_manager import FetcherManager
from kraftlake.replica_manager.replica_manager import ReplicaManager
from kraftlake.runtime.metrics import MetricName, MetricsRegistry, Tags

_GROUP: Final = "kafka.server"


GAUGES: Final = (
    "PartitionCount",
    "LeaderCount",
    "OfflineReplicaCount",
    "UnderReplicatedPartitions",
    "UnderMinIsrPartitionCount",
    "AtMinIsrPartitionCount",
    "ReassigningPartitions",
    "IsrExpandsPerSecCount",
    "IsrShrinksPerSecCount",
    "FailedIsrUpdatesPerSecCount",
)
"""The names of the metrics of kafka.server.ReplicaManager, as `gauges` has them."""
FETCHER_GAUGES: Final = ("MaxLag", "FailedPartitionsCount")
"""The names of the metrics of kafka.server.AbstractFetcherManager, as `fetcher_gauges` has them."""


def gauges(manager: ReplicaManager) -> dict[str, int]:
    """The current values of kafka.server.ReplicaManager's metrics by name.

    Names that end in PerSecCount count since the start; the others count the currently hosted partitions.
    """
    online = list(manager.online_partitions())
    leading = [(one.in_sync, log) for one in online if (log := one.leader_log) is not None]
    return {
        "PartitionCount": len(manager.hosted_partitions()),
        "LeaderCount": len(leading),
        "OfflineReplicaCount": len(manager.hosted_partitions()) - len(online),
        "UnderReplicatedPartitions": sum(one.assignment.replication_factor > len(one.state.isr) for one, _ in leading),
        "UnderMinIsrPartitionCount": sum(one.is_under_min_isr(log) for one, log in leading),
        "AtMinIsrPartitionCount": sum(len(one.state.isr) == one.effective_min_isr(log) for one, log in leading),
        "ReassigningPartitions": sum(one.assignment.is_reassigning for one, _ in leading),
        "IsrExpandsPerSecCount": manager.context.metrics.isr_expands,
        "IsrShrinksPerSecCount": manager.context.metrics.isr_shrinks,
        "FailedIsrUpdatesPerSecCount": manager.context.metrics.failed_isr_updates,
    }


def fetcher_gauges(fetchers: FetcherManager) -> dict[str, int]:
    """The current values of the metrics of kafka.server.AbstractFetcherManager by name."""
    lags = [lag for fetcher in fetchers.fetchers().values() for lag in fetcher.figures().lags.values()]
    return {"MaxLag": max(lags, default=0), "FailedPartitionsCount": len(fetchers.failed_partitions)}


def register_metrics(manager: ReplicaManager, registry: MetricsRegistry) -> None:
    """Register all metrics of a replica manager, under the names of Kafka's JMX metrics."""
    for name in GAUGES:
        registry.gauge(
            MetricName(_GROUP, "ReplicaManager", name),
            "As the broker counts its replicas now, or has since the start.",
            lambda n=name: gauges(manager)[n],  # type: ignore[misc]
        )
    for kind, client, fetchers in (
        ("ReplicaFetcherManager", "Replica", lambda: manager.replica_fetchers),
        ("ReplicaAlterLogDirsManager", "ReplicaAlterLogDirs", lambda: manager.log_dir_fetchers),
    ):
        for name in FETCHER_GAUGES:
            registry.gauge(
                MetricName(_GROUP, kind, name, (("clientId", client),)),
                "The most records that a replica lacks, or how many replicas can't be fetched.",
                lambda n=name, f=fetchers: fetcher_gauges(f())[n],  # type: ignore[misc]
            )
    for name, figure in (("RequestsPerSecCount", "requests"), ("BytesPerSecCount", "bytes")):
        registry.gauge(
            MetricName(_GROUP, "FetcherStats", name),
            "Of each fetcher, since it began.",
            lambda f=figure: {tags: getattr(figures, f) for tags, figures in _figures(manager)},  # type: ignore[misc]
        )
    registry.gauge(
        MetricName(_GROUP, "FetcherLagMetrics", "ConsumerLag"),
        "How far the leader's high watermark is ahead of each replica that is fetched.",
        lambda: _lags(manager),
    )


def _figures(manager: ReplicaManager) -> Iterator[tuple[Tags, FetcherFigures]]:
    for fetchers in (manager.replica_fetchers, manager.log_dir_fetchers):
        for fetcher in fetchers.fetchers().values():
            figures, leader = fetcher.figures(), fetcher.leader
            yield (("clientId", figures.name), ("brokerHost", leader.host), ("brokerPort", str(leader.port))), figures


def _lags(manager: ReplicaManager) -> dict[Tags, int]:
    return {
        (("clientId", figures.name), ("topic", name.topic), ("partition", str(name.partition))): lag
        for _, figures in _figures(manager)
        for name, lag in figures.lags.items()
    }
