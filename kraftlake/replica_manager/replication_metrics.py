"""What replication counts, by the names of Kafka's metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from kraftlake.replica_manager.replica_manager import ReplicaManager


@attrs.define(kw_only=True)
class ReplicationMetrics:
    """What has happened since the start; whoever shows rates takes differences.

    Source: the metrics IsrExpandsPerSec, IsrShrinksPerSec and FailedIsrUpdatesPerSec of kafka.server.ReplicaManager.
    """

    isr_expands: int = 0
    isr_shrinks: int = 0
    failed_isr_updates: int = 0


def gauges(manager: ReplicaManager) -> dict[str, int]:
    """How the broker's replicas stand now, by metric name; partitions that are gone or change their role count no more.

    Sources: kafka.server.ReplicaManager and kafka.server.AbstractFetcherManager (MaxLag, FailedPartitionsCount).
    """
    online = list(manager.online_partitions())
    leading = [partition.in_sync for partition in online if partition.leader_log is not None]
    lags = [
        lag
        for fetcher in manager.replica_fetchers.fetchers().values()
        for lag in getattr(fetcher, "lags", dict)().values()
    ]
    return {
        "PartitionCount": len(manager.hosted_partitions()),
        "LeaderCount": len(leading),
        "OfflineReplicaCount": len(manager.hosted_partitions()) - len(online),
        "UnderReplicatedPartitions": sum(one.is_under_replicated for one in leading),
        "UnderMinIsrPartitionCount": sum(one.is_under_min_isr for one in leading),
        "AtMinIsrPartitionCount": sum(one.is_at_min_isr for one in leading),
        "ReassigningPartitions": sum(one.assignment.is_reassigning for one in leading),
        "IsrExpands": manager.metrics.isr_expands,
        "IsrShrinks": manager.metrics.isr_shrinks,
        "FailedIsrUpdates": manager.metrics.failed_isr_updates,
        "MaxLag": max(lags, default=0),
        "FailedPartitionsCount": len(manager.replica_fetchers.failed_partitions),
    }
