"""The metadata loader's metrics, under Kafka's names."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.provenance import MetadataProvenance
from kraftlake.runtime.clock import Clock
from kraftlake.runtime.metrics import Gauge, MetricName, MetricsRegistry, Tags
from kraftlake.runtime.time_ratio import TimeRatio


@attrs.define
class MetadataLoaderMetrics:
    """Plain values that the loader sets and any thread may read.

    `batch_processing_time_ns` and `batch_size` (records) are those of the last commit that was handled; `load_errors`
    counts what could not be replayed, `apply_errors` what publishers failed at, `skipped_records` what a lenient
    loader left out; `idle` is how long the loader's thread waits for something to do.
    Source: org.apache.kafka.image.loader.metrics.MetadataLoaderMetrics, kafka.server.metrics.BrokerServerMetrics.
    """

    last_applied: MetadataProvenance = MetadataProvenance.EMPTY
    high_watermark: int | None = None
    current_controller_id: int = -1
    handle_load_snapshot_count: int = 0
    batch_processing_time_ns: int = 0
    batch_size: int = 0
    load_errors: int = 0
    apply_errors: int = 0
    skipped_records: int = 0
    current_metadata_version: int = 0
    finalized_levels: dict[str, int] = attrs.field(factory=dict)
    idle: TimeRatio = attrs.field(factory=lambda: TimeRatio(1.0), repr=False, eq=False)

    def applied(self, image: MetadataImage) -> None:
        """An image was given to the publishers."""
        self.last_applied = image.provenance
        levels = dict(image.features.finalized_versions.items())
        if image.features.metadata_version is not None:
            self.current_metadata_version = levels["metadata.version"] = image.features.metadata_version.level
        self.finalized_levels = levels

    @property
    def lag(self) -> int:
        """The number of committed offsets that have not been applied yet."""
        end = self.last_applied.offset + 1
        return 0 if self.high_watermark is None else max(0, self.high_watermark - end)

    def register(self, registry: MetricsRegistry, clock: Clock) -> None:
        """Show the values in `registry`; ages are counted from `clock`."""

        def levels() -> dict[Tags, float]:
            return {(("featureName", _camel_case(name)),): level for name, level in self.finalized_levels.items()}

        def lag_ms() -> float:
            applied = self.last_applied.timestamp
            return max(0, clock.milliseconds() - applied) if applied >= 0 else 0

        loader: list[tuple[str, str, Gauge]] = [
            ("CurrentMetadataVersion", "The level of metadata.version.", lambda: self.current_metadata_version),
            ("CurrentControllerId", "The active controller, -1 for none.", lambda: self.current_controller_id),
            ("HandleLoadSnapshotCount", "Snapshots loaded since the start.", lambda: self.handle_load_snapshot_count),
            ("FinalizedLevel", "The finalized level of a feature.", levels),
            ("AvgIdleRatio", "Its thread's idle time, as a share since it was last asked.", self.idle.measure),
        ]
        for name, text, read in loader:
            registry.gauge(MetricName("kafka.server", "MetadataLoader", name), text, read)
        broker: list[tuple[str, str, Callable[[], float]]] = [
            ("last-applied-record-offset", "The last offset that was applied.", lambda: self.last_applied.offset),
            ("last-applied-record-timestamp", "Its batch's time, epoch ms.", lambda: self.last_applied.timestamp),
            ("last-applied-record-lag-ms", "How long ago that was, ms.", lag_ms),
            ("last-applied-record-lag", "Committed offsets that are not applied yet.", lambda: self.lag),
            ("metadata-load-error-count", "What could not be replayed.", lambda: self.load_errors),
            ("metadata-apply-error-count", "What publishers failed at.", lambda: self.apply_errors),
            ("metadata-skipped-record-count", "Records that a lenient loader left out.", lambda: self.skipped_records),
            (
                "batch-processing-time-us",
                "The last commit's handling, µs.",
                lambda: self.batch_processing_time_ns / 1e3,
            ),
            ("batch-size", "Records of the last commit that was handled.", lambda: self.batch_size),
        ]
        for name, text, read in broker:
            registry.gauge(MetricName("kafka.server", "broker-metadata-metrics", name), text, read)


def _camel_case(feature: str) -> str:
    """`metadata.version` → `metadataVersion`, as Kafka tags features."""
    first, *rest = feature.split(".")
    return first + "".join(word[:1].upper() + word[1:].lower() for word in rest)
