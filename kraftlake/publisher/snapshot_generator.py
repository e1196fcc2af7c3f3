"""Generates snapshots by the amount appended, or the time passed, since the last one."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.snapshots.snapshot_policy import SinceSnapshot, SnapshotPolicy
from kraftlake.metadata_log.storage.location import Location
from kraftlake.replay.imports.kept_snapshot import keep_snapshot
from kraftlake.replay.loader.manifest import LoaderManifest, SnapshotManifest
from kraftlake.replay.loader.metadata_publisher import MetadataPublisher
from kraftlake.replay.loader.quorum_state import QuorumState
from kraftlake.runtime.clock import Clock
from kraftlake.runtime.event_queue import EventQueue, FunctionEvent, KafkaEventQueue
from kraftlake.runtime.fault_handler import FaultHandler
from kraftlake.runtime.log import get_logger
from kraftlake.runtime.metrics import MetricName, MetricsRegistry


@attrs.define
class SnapshotEmitterMetrics:
    """The latest snapshot: bytes of its records, and its time in epoch milliseconds (at first, the start time).

    Source: org.apache.kafka.image.publisher.metrics.SnapshotEmitterMetrics.
    """

    latest_generated_time_ms: int
    latest_generated_bytes: int = 0
    generated: int = 0

    def register(self, registry: MetricsRegistry, clock: Clock) -> None:
        """Register the values as gauges."""
        registry.gauge(
            MetricName("kafka.server", "SnapshotEmitter", "LatestSnapshotGeneratedBytes"),
            "The bytes of the newest snapshot made here.",
            lambda: self.latest_generated_bytes,
        )
        registry.gauge(
            MetricName("kafka.server", "SnapshotEmitter", "LatestSnapshotGeneratedAgeMs"),
            "How long ago it was made, ms.",
            lambda: clock.milliseconds() - self.latest_generated_time_ms,
        )


class LakeSnapshotEmitter:
    """Writes snapshots to the lake at `path`. Source: org.apache.kafka.image.publisher.SnapshotEmitter."""

    def __init__(self, path: str | Location, clock: Clock, metrics: SnapshotEmitterMetrics | None = None) -> None:
        self._path = path
        self._clock = clock
        self.metrics = metrics or SnapshotEmitterMetrics(clock.milliseconds())
        self._log = get_logger(__name__)

    def maybe_emit(self, image: MetadataImage, quorum: QuorumState) -> None:
        """Write the image's records in one commit of table `snapshots`.

        Raises UnwritableMetadataError for a state that the metadata.version can't express, LakeError if writing fails.
        """
        name = image.provenance.snapshot_name
        written = keep_snapshot(MetadataLog.open(self._path), image, quorum)
        if written is None:
            self._log.info("snapshot_exists", snapshot=name)
            return
        self.metrics.generated += 1
        self.metrics.latest_generated_time_ms = self._clock.milliseconds()
        self.metrics.latest_generated_bytes = written
        self._log.info("snapshot_written", snapshot=name, bytes=written)


class SnapshotGenerator(MetadataPublisher):
    """Decides by `policy` when a snapshot is due, and has `emit` write it on another thread, one at a time.

    Only images at a batch's end become snapshots; none is published inside a metadata transaction. Loading a snapshot
    resets the counts. A fault of `emit` goes to `fault_handler`, and counting continues. `quorum` returns the
    state of the control records; it is called on the publishing thread.
    Source: org.apache.kafka.image.publisher.SnapshotGenerator.
    """

    name = "SnapshotGenerator"
    """Kafka's name of the publisher."""

    def __init__(
        self,
        emit: Callable[[MetadataImage, QuorumState], object],
        clock: Clock,
        fault_handler: FaultHandler,
        *,
        policy: SnapshotPolicy | None = None,
        quorum: Callable[[], QuorumState] = QuorumState,
        queue: EventQueue | None = None,
    ) -> None:
        self._write = emit
        self._clock = clock
        self._fault_handler = fault_handler
        self._policy = policy or SnapshotPolicy()
        self._quorum = quorum
        self._queue = KafkaEventQueue(clock, "snapshot-generator") if queue is None else queue
        self._since = SinceSnapshot(taken_at_ms=clock.milliseconds())
        self._emitting = False
        self.disabled_reason: str | None = None
        """The reason why no snapshots are made, if they are disabled."""
        self._log = get_logger(__name__)

    def on_metadata_update(self, delta: MetadataDelta, new_image: MetadataImage, manifest: LoaderManifest) -> None:
        """Count the update, and schedule a snapshot if one is due."""
        if isinstance(manifest, SnapshotManifest):
            self._since = SinceSnapshot(taken_at_ms=self._clock.milliseconds())
            return
        self._since = self._since.after(size_in_bytes=manifest.num_bytes, records=manifest.num_records)
        reason = self._since.why_due(self._policy, self._clock.milliseconds())
        if reason is None or self._emitting:
            return
        if self.disabled_reason is not None:
            self._log.error("snapshot_not_made", although=reason, because=self.disabled_reason)
        elif manifest.provenance.batch_aligned:
            self._schedule(new_image, self._quorum(), reason)

    def close(self) -> None:
        """Finish the current snapshot, and start no other one."""
        self.disabled_reason = self.disabled_reason or "it is shutting down"
        self._queue.close()

    def _schedule(self, image: MetadataImage, quorum: QuorumState, reason: str) -> None:
        self._emitting = True
        self._since = SinceSnapshot(taken_at_ms=self._clock.milliseconds())

        def emit() -> None:
            self._log.info("snapshot_begun", snapshot=image.provenance.snapshot_name, because=reason)
            try:
                self._write(image, quorum)
            finally:
                self._emitting = False

        def failed(fault: Exception) -> None:
            self._emitting = False
            self._fault_handler.handle_fault(f"making snapshot {image.provenance.snapshot_name}", fault)

        self._queue.append(FunctionEvent(emit, failed))
