"""The metrics of a controller's process, under Kafka's names."""

from __future__ import annotations

from kraftlake.publisher.controller_metrics import ControllerMetadataMetrics
from kraftlake.publisher.health_counter import HealthCounter
from kraftlake.publisher.snapshot_generator import LakeSnapshotEmitter
from kraftlake.replay.loader.metadata_loader import MetadataLoader
from kraftlake.replay.loader.metadata_publisher import MetadataPublisher
from kraftlake.runtime.clock import Clock
from kraftlake.runtime.metrics import MetricsRegistry
from kraftlake.server.controller.controller_node import ControllerNode


def register_controller(
    registry: MetricsRegistry, node: ControllerNode, loader: MetadataLoader, emitter: LakeSnapshotEmitter, clock: Clock
) -> tuple[MetadataPublisher, ...]:
    """Register the metrics of a controller, its loader and its snapshots; returns the publishers that count."""
    session_ms = node.controller.config.broker_session_timeout_ms
    node.controller.metrics.register(registry, clock, session_timeout_ms=session_ms)
    loader.metrics.register(registry, clock)
    emitter.metrics.register(registry, clock)
    counts, health = ControllerMetadataMetrics(), HealthCounter()
    counts.register(registry)
    health.register(registry)
    return counts, health
