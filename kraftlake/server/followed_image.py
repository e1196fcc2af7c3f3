"""The image of a followed cluster's lake, updated by each append, and its counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.image.cluster_health import ClusterHealth
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.publisher.controller_metrics import ControllerMetadataMetrics
from kraftlake.publisher.health_counter import HealthCounter
from kraftlake.records.batch import RecordBatch
from kraftlake.replay.loader.fold import loader_at
from kraftlake.replay.loader.manifest import LoaderManifest, LogDeltaManifest, SnapshotManifest
from kraftlake.replay.loader.quorum_state import QuorumState
from kraftlake.replay.reading.open_reader import LakeReader


class FollowedImage:
    """Replays a lake once, then each append; for one thread.

    `on_change` is called after each update that changed more than the image's provenance. Raises the errors of a
    record's replay, and LakeError; afterwards a new instance is needed.
    """

    def __init__(self, lake: str, on_change: Callable[[FollowedImage], object]) -> None:
        log = MetadataLog.open(lake)
        self._metrics, self._health = ControllerMetadataMetrics(), HealthCounter()
        self._on_change = on_change
        reader = LakeReader(log)
        ends = [snapshot.end_offset for snapshot in reader.snapshots if snapshot.end_offset <= log.end_offset]
        self.base_end = max(ends, default=log.start_offset)
        """The end of the lake's newest snapshot at the time of the replay."""
        self._loader = loader_at(reader, log.end_offset - 1)
        self.whole_image: MetadataImage | None = None
        """The image if it may become a snapshot: at the end of a batch, and outside metadata transactions."""
        self.image = MetadataImage.EMPTY
        image = self._loader.take_image()
        self._update(MetadataDelta(image), image, SnapshotManifest(provenance=image.provenance))
        self._loader.publish_to(self._update)

    @property
    def quorum(self) -> QuorumState:
        """The state of the quorum in the control records so far."""
        return self._loader.quorum

    @property
    def metrics(self) -> ControllerMetadataMetrics:
        """The controller metrics."""
        return self._metrics

    @property
    def health(self) -> ClusterHealth:
        """The counts of partitions and directories that are not as they should be."""
        return self._health.health

    @property
    def timestamp(self) -> int:
        """The time of the newest record, in epoch milliseconds."""
        return self._loader.last.timestamp

    def take(self, batches: Sequence[RecordBatch]) -> None:
        """Replay appended batches."""
        for batch in batches:
            self._loader.load_batch(batch)
        self._loader.flush()

    def _update(self, delta: MetadataDelta, image: MetadataImage, manifest: LoaderManifest) -> None:
        before, self.image = self.image, image
        is_whole = image.provenance.batch_aligned and not self._loader.in_transaction
        self.whole_image = image if is_whole else None
        if isinstance(manifest, LogDeltaManifest) and attrs.evolve(before, provenance=image.provenance) == image:
            return
        for publisher in (self._metrics, self._health):
            publisher.on_metadata_update(delta, image, manifest)
        self._on_change(self)
