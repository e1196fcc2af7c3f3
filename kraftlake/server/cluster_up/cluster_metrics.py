"""The metrics and the health of a cluster of processes, by its last state."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import partial

from kraftlake.image.cluster_counts import count_cluster
from kraftlake.image.cluster_health import HEALTH_COUNTS
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.runtime.clock import SystemClock
from kraftlake.runtime.health import Health
from kraftlake.runtime.metrics import MetricName, MetricsRegistry, Tags
from kraftlake.runtime.metrics_address import MetricsAddress
from kraftlake.server.cluster_up.cluster_state import ClusterState, NodeState
from kraftlake.server.lake_meters import LakeMeters

_IN_ORDER = (NodeState.ACTIVE, NodeState.STANDBY, NodeState.UP)


class ClusterMetrics:
    """Keeps the newest state of a cluster, for the threads that serve it; `state` is None before the first."""

    def __init__(self) -> None:
        self.registry = MetricsRegistry()
        self.state: ClusterState | None = None

    def register(self) -> None:
        """Register `kraftlake_node_state`, the counts of the log under Kafka's names, and `kraftlake_cluster_…`."""
        self.registry.gauge(
            MetricName("kraftlake", "node", "state"), "1 for the state that the node is in.", self._states
        )
        for name in count_cluster(MetadataImage.EMPTY).by_metric():
            self.registry.gauge(
                MetricName("kafka.controller", "KafkaController", name),
                "As the cluster's controller counts it.",
                partial(self._count, name),
            )

        for name, text in HEALTH_COUNTS.items():
            self.registry.gauge(MetricName("kraftlake", "cluster", name), text, partial(self._health, name))

    def _health(self, name: str) -> dict[Tags, float]:
        return {} if self.state is None else {(): getattr(self.state.log.health, name)}

    def _count(self, name: str) -> dict[Tags, float]:
        return {} if self.state is None else {(): self.state.log.counts.by_metric()[name]}

    def _states(self) -> dict[Tags, float]:
        nodes = () if self.state is None else self.state.nodes
        return {
            (("node", str(node.id)), ("kind", node.kind.value), ("state", state.value)): node.state is state
            for node in nodes
            for state in NodeState
        }

    def unready(self) -> str | None:
        """Why the cluster is not up: one line, None while it is."""
        if self.state is None:
            return "its nodes are starting"
        others = [node for node in self.state.nodes if node.state not in _IN_ORDER]
        if others:
            return ", ".join(f"{node.name} is {node.state.value}" for node in others)
        return None if self.state.is_up else "no controller leads the log"


@contextmanager
def _served(metrics: ClusterMetrics, lake: str, address: MetricsAddress) -> Iterator[str | None]:
    from kraftlake.runtime.metrics_server import served  # imports prometheus_client

    metrics.register()
    lakes = LakeMeters({lake: lake}, SystemClock())
    lakes.register(metrics.registry)
    with ExitStack() as stack:
        url = stack.enter_context(served(metrics.registry, address, Health(unready=metrics.unready)))
        stack.callback(lakes.run_alongside())
        yield url


def serve_cluster(
    metrics: ClusterMetrics, lake: str, address: MetricsAddress | None
) -> AbstractContextManager[str | None]:
    """Serve the metrics of a cluster and its lake within a context; nothing without an address."""
    return nullcontext() if address is None else _served(metrics, lake, address)
