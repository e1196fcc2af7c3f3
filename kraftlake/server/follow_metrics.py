"""The metrics of followed clusters, each with the label `cluster`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from kraftlake.image.cluster_counts import count_cluster
from kraftlake.image.cluster_health import HEALTH_COUNTS
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.runtime.clock import Clock
from kraftlake.runtime.metrics import MetricName, MetricsRegistry, Tags
from kraftlake.server.cluster_status import ClusterStatus, FollowState

Read = Callable[[ClusterStatus], float | None]
"""Reads a value of a cluster; None if unknown, and then omitted."""


def register_metrics(registry: MetricsRegistry, clusters: Sequence[ClusterStatus], clock: Clock) -> None:
    """Register `kraftlake_follow_…` for the status of the following, and the counts under Kafka's names."""
    register_following(registry, clusters, clock)
    register_health(registry, clusters)
    for name in count_cluster(MetadataImage.EMPTY).by_metric():
        registry.gauge(
            MetricName("kafka.controller", "KafkaController", name),
            "As the cluster's controller counts it.",
            _by_cluster(clusters, lambda c, n=name: None if c.counts is None else c.counts.by_metric()[n]),  # type: ignore[misc]
        )


def register_health(registry: MetricsRegistry, clusters: Sequence[ClusterStatus]) -> None:
    """Register `kraftlake_cluster_…`, the counts of what is not as it should be."""
    for name, text in HEALTH_COUNTS.items():
        read = _by_cluster(clusters, lambda c, n=name: _of_health(c, n))  # type: ignore[misc]
        registry.gauge(MetricName("kraftlake", "cluster", name), text, read)


def register_following(registry: MetricsRegistry, clusters: Sequence[ClusterStatus], clock: Clock) -> None:
    """Register `kraftlake_follow_…` for the status of the following."""
    for name, text, read in _of_following(clock):
        registry.gauge(MetricName("kraftlake", "follow", name), text, _by_cluster(clusters, read))
    registry.gauge(
        MetricName("kraftlake", "follow", "state"),
        "1 for the state that the following of the cluster is in.",
        lambda: {(*_tags(c), ("state", str(state))): c.state is state for c in clusters for state in FollowState},
    )


def _of_following(clock: Clock) -> Iterator[tuple[str, str, Read]]:
    def lag_seconds(cluster: ClusterStatus) -> float | None:
        return None if cluster.timestamp < 0 else max(0.0, (clock.milliseconds() - cluster.timestamp) / 1000)

    yield (
        "up",
        "1 while the lake follows its quorum, 0 in every other state.",
        lambda c: c.state is FollowState.FOLLOWING,
    )
    yield "lag_offsets", "Offsets known to be committed that the lake lacks.", lambda c: c.lag
    yield (
        "waiting_offsets",
        "Offsets of the followed directory, committed or not, that the lake lacks.",
        lambda c: c.waiting,
    )
    yield "lag_seconds", "Age of the lake's newest record by the controller's clock, s.", lag_seconds
    yield "last_offset", "The last offset of the lake.", lambda c: c.last_offset
    yield "last_timestamp_seconds", "The time of the lake's newest record, epoch s.", lambda c: _seconds(c.timestamp)
    yield "last_fetch_timestamp_seconds", "When a controller last answered, epoch s.", lambda c: _seconds(c.fetched_ms)
    yield "high_watermark", "The offset below which all is committed, as last seen.", lambda c: _known(c.high_watermark)
    yield "leader_id", "The quorum's leader, -1 for none known.", lambda c: c.leader_id
    yield "leader_epoch", "The epoch of the quorum's leader, -1 for none known.", lambda c: c.leader_epoch
    yield "reconnects", "Connections made to controllers after the first one.", lambda c: c.reconnects
    yield "restarts", "How often an error ended the following, and it began again.", lambda c: c.restarts
    yield "upkeep_faults", "How often a part of the lake's upkeep failed.", lambda c: c.upkeep_faults
    yield (
        "last_upkeep_timestamp_seconds",
        "When the lake last had its upkeep, epoch s.",
        lambda c: _seconds(c.upkeep_ms),
    )
    of_health = "under_min_isr_partitions"
    yield of_health, HEALTH_COUNTS[of_health], lambda c: _of_health(c, of_health)


def _by_cluster(clusters: Sequence[ClusterStatus], read: Read) -> Callable[[], dict[Tags, float]]:
    def values() -> dict[Tags, float]:
        found = ((_tags(cluster), read(cluster)) for cluster in clusters)
        return {tags: value for tags, value in found if value is not None}

    return values


def _of_health(cluster: ClusterStatus, name: str) -> int | None:
    return None if cluster.health is None else getattr(cluster.health, name)


def _tags(cluster: ClusterStatus) -> Tags:
    return (("cluster", cluster.name),)


def _known(value: int) -> int | None:
    return value if value >= 0 else None


def _seconds(milliseconds: int) -> float | None:
    return milliseconds / 1000 if milliseconds >= 0 else None
