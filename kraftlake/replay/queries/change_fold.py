"""A log replayed batch by batch: the change of the image that each batch, or metadata transaction, makes."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from kraftlake.delta import MetadataDelta
from kraftlake.image import MetadataImage, MetadataProvenance
from kraftlake.records.batch import RecordBatch
from kraftlake.records.no_ops import NO_OP_VALUE
from kraftlake.replay.loader.batch_loader import MetadataBatchLoader
from kraftlake.replay.loader.fold import load_snapshot, loader_at
from kraftlake.replay.loader.manifest import LogDeltaManifest
from kraftlake.replay.reading.log_reader import LogReader, SnapshotReader


@attrs.frozen
class Published:
    """A change of the image that was published: of a log batch, or of a whole metadata transaction at its end.

    `delta` has led from `before` to `image`. Batches of nothing but no-op records are not published: `before` is the
    image after those.
    `of_snapshot`: it is the load of the snapshot that covers the start of a log which starts above 0.
    """

    delta: MetadataDelta
    image: MetadataImage
    manifest: LogDeltaManifest
    of_snapshot: bool = False

    @property
    def before(self) -> MetadataImage:
        """The image before the change."""
        return self.delta.image

    @property
    def offset(self) -> int:
        """The last offset of the change: of a log batch, or of the EndTransactionRecord of a transaction."""
        return self.manifest.provenance.offset

    @property
    def epoch(self) -> int:
        """The epoch of that offset's batch."""
        return self.manifest.provenance.epoch

    @property
    def timestamp(self) -> int | None:
        """The time of that offset's batch in epoch microseconds, None where it has none."""
        timestamp = self.manifest.provenance.timestamp
        return None if timestamp < 0 else timestamp * 1000

    @property
    def elected(self) -> int | None:
        """The controller that leads the quorum since this change; None where it did not change or is unknown."""
        is_new = not self.of_snapshot and self.epoch != self.before.provenance.epoch
        return self.manifest.leader_id if is_new else None


class ChangeFold:
    """Replays the batches of a log one by one, and gives what each changes; keeps nothing but the newest image.

    Its changes are those of `LogChanges`, for batches that come from anywhere. Does no I/O.
    """

    def __init__(self, loader: MetadataBatchLoader) -> None:
        """`loader` has the image that the first batch follows, and nothing gathered."""
        self.loader = loader
        """The loader behind the changes."""
        self._published: list[Published] = []
        self._of_snapshot = False
        loader.publish_to(self._publish)

    @classmethod
    def after(
        cls, reader: LogReader, offset: int, *, lenient: bool = False, cluster_id: str | None = None
    ) -> ChangeFold:
        """Begin with the image at an offset; -1 is the empty one. Raises as `loader_at` does."""
        loader = loader_at(reader, offset, lenient=lenient)
        loader.cluster_id = cluster_id
        if offset >= 0:
            loader.take_image()
        return cls(loader)

    def load(self, snapshot: SnapshotReader) -> Sequence[Published]:
        """Load a snapshot, which is one change."""
        self._of_snapshot = True
        load_snapshot(self.loader, snapshot)
        self.loader.flush()
        self._of_snapshot = False
        return self._taken()

    def take(self, batch: RecordBatch, *, to_offset: int | None = None) -> Sequence[Published]:
        """The changes of the next batch, or of its records up to and including `to_offset`; none of a quiet one.

        A batch in mid-transaction has none, one with transaction marks may have two. Raises what
        `MetadataBatchLoader.load_batch` raises.
        """
        loader = self.loader
        if self._is_quiet(batch) and (to_offset is None or batch.last_offset <= to_offset):
            loader.pass_over(_end_of(batch))
            return ()
        loader.load_batch(batch, to_offset=to_offset)
        loader.flush()
        return self._taken()

    def _publish(self, delta: MetadataDelta, image: MetadataImage, manifest: LogDeltaManifest) -> None:
        self._published.append(Published(delta, image, manifest, self._of_snapshot))

    def _taken(self) -> Sequence[Published]:
        published, self._published = self._published, []
        return published

    def _is_quiet(self, batch: RecordBatch) -> bool:
        """Whether the next batch has no-op records only."""
        loader = self.loader
        return (
            not batch.control
            and not loader.in_transaction
            and batch.base_offset <= loader.last_offset + 1
            and batch.epoch >= loader.epoch
            and all(value == NO_OP_VALUE for value in batch.values)
        )


def _end_of(batch: RecordBatch) -> MetadataProvenance:
    return MetadataProvenance(
        offset=batch.last_offset, epoch=batch.epoch, timestamp=batch.timestamp, batch_aligned=True
    )
