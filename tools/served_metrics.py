"""The names of all metrics that daemons serve, gathered from the functions that register them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import attrs

from kraftlake.controller.quorum.quorum_controller_metrics import QuorumControllerMetrics
from kraftlake.publisher.controller_metrics import ControllerMetadataMetrics
from kraftlake.publisher.health_counter import HealthCounter
from kraftlake.publisher.snapshot_generator import SnapshotEmitterMetrics
from kraftlake.replay.loader.loader_metrics import MetadataLoaderMetrics
from kraftlake.runtime.clock import SystemClock
from kraftlake.runtime.metrics import Gauge, MetricName, MetricsRegistry
from kraftlake.server.broker.broker_metrics import register_broker
from kraftlake.server.cluster_up.cluster_metrics import ClusterMetrics
from kraftlake.server.follow_doctor import register_doctor
from kraftlake.server.follow_metrics import register_metrics
from kraftlake.server.lake_meters import LakeMeters
from kraftlake.server.node_config import NodeSettings
from kraftlake.server.observed_lake import TableUpdates, register_updates
from kraftlake.server.quotas.quota_managers import QuotaManagers
from kraftlake.server.quotas.quota_metrics import register_broker_quotas, register_controller_quotas
from kraftlake.server.requests.authentication_counts import register_authentications
from kraftlake.spark_jobs.replay_listener import StreamMetrics


class _Names(MetricsRegistry):
    """Keeps the name and the help of each gauge."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, str]] = []

    def gauge(self, name: MetricName, description: str, read: Gauge) -> None:  # noqa: ARG002
        """Keep the name."""
        self.found.append((name.prometheus_name, description))


@attrs.frozen(kw_only=True)
class MetricsFamily:
    """Metrics that some daemons serve together."""

    title: str
    served_by: str
    register: Callable[[MetricsRegistry], object]


def _register_controller(registry: MetricsRegistry) -> None:
    clock = SystemClock()
    QuorumControllerMetrics().register(registry, clock, session_timeout_ms=0)
    ControllerMetadataMetrics().register(registry)
    HealthCounter().register(registry)
    SnapshotEmitterMetrics(0).register(registry, clock)
    MetadataLoaderMetrics().register(registry, clock)
    register_controller_quotas(registry, _quotas())


def _register_broker(registry: MetricsRegistry) -> None:
    broker = attrs.make_class("Broker", ["loader", "manager", "cleaner"])(
        attrs.make_class("Loader", ["metrics"])(MetadataLoaderMetrics()), None, None
    )
    register_broker(registry, cast("Any", broker), SystemClock())
    register_broker_quotas(registry, _quotas())


def _quotas() -> QuotaManagers:
    return QuotaManagers(NodeSettings().value, SystemClock())


def _register_cluster(registry: MetricsRegistry) -> None:
    made = ClusterMetrics()
    made.registry = registry
    made.register()


FAMILIES = (
    MetricsFamily(
        title="Followed clusters",
        served_by="`kraftlake follow`; of these `kraftlake import --follow` serves `kraftlake_follow_…`",
        register=lambda registry: register_metrics(registry, (), SystemClock()),
    ),
    MetricsFamily(
        title="Lakes",
        served_by="`kraftlake follow`, `import --follow`, `tables --follow`, `controller` and `cluster up`",
        register=LakeMeters({}, SystemClock()).register,
    ),
    MetricsFamily(
        title="Findings and notices",
        served_by="`kraftlake follow`",
        register=lambda registry: register_doctor(registry, (), ()),
    ),
    MetricsFamily(
        title="Derived tables",
        served_by="`kraftlake tables --follow`",
        register=lambda r: register_updates(r, TableUpdates()),
    ),
    MetricsFamily(title="Streams of Spark", served_by="`kraftlake spark JOB --metrics`", register=StreamMetrics),
    MetricsFamily(
        title="Logins at listeners",
        served_by="`kraftlake broker` and `controller`, by listener",
        register=lambda registry: register_authentications(registry, dict),
    ),
    MetricsFamily(title="Controllers", served_by="`kraftlake controller`", register=_register_controller),
    MetricsFamily(title="Brokers", served_by="`kraftlake broker`", register=_register_broker),
    MetricsFamily(title="Clusters of processes", served_by="`kraftlake cluster up`", register=_register_cluster),
)


def names_of(family: MetricsFamily) -> list[tuple[str, str]]:
    """The names of a family's metrics in Prometheus' form, with their help."""
    names = _Names()
    family.register(names)
    return names.found
