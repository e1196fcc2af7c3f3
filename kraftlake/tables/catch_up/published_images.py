"""The images of a log whose metadata deltas are published to writers of tables, each as an object."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from kraftlake.delta import MetadataDelta
from kraftlake.image import MetadataImage, MetadataProvenance
from kraftlake.replay.loader.batch_loader import MetadataBatchLoader
from kraftlake.replay.loader.fold import load_snapshot, loader_at
from kraftlake.replay.loader.manifest import LogDeltaManifest
from kraftlake.replay.reading.replay_base import has_beginning, oldest_snapshot
from kraftlake.tables.table_writer import Published

if TYPE_CHECKING:
    from kraftlake.replay.loader.quorum_state import QuorumState
    from kraftlake.replay.reading.open_reader import LakeReader


class PublishedImages:
    """Replays batch by batch; `deltas` is the number of metadata deltas that were published."""

    def __init__(self, reader: LakeReader, receivers: Sequence[Callable[[Published], None]]) -> None:
        """Begin with the empty image; the receivers are called with each change."""
        self._reader = reader
        self._receivers = receivers
        self._loader = MetadataBatchLoader(publish=self._publish)
        self._of_snapshot = False
        self.deltas = 0

    @property
    def provenance(self) -> MetadataProvenance:
        """That of the image."""
        return self.image.provenance

    @property
    def quorum(self) -> QuorumState:
        """The state of the quorum by the control records so far."""
        return self._loader.quorum

    @property
    def image(self) -> MetadataImage:
        """The newest published image."""
        return self._loader.image

    @property
    def topic_counts(self) -> tuple[int, int]:
        """The number of topics, and of partitions."""
        return self.image.topics.topic_count, self.image.topics.partition_count

    def begin(self, covered: int | None) -> None:
        """Load the state at an offset, None for nothing; raises as `LogReplay.open`."""
        if covered is not None:
            self._go_on_behind(covered)
            return
        if not has_beginning(self._reader):
            self._of_snapshot = True
            load_snapshot(self._loader, oldest_snapshot(self._reader))
            self._loader.flush()
            self._of_snapshot = False
            self.deltas = 0

    def take(self, rows: pa.Table) -> None:
        """Take rows of whole batches, and publish their deltas; batches of nothing but no-op records make none."""
        from kraftlake.tables.catch_up.batch_runs import BatchRun, bulk_batches

        for part in bulk_batches(rows, lambda: self._loader.in_transaction):
            if not isinstance(part, BatchRun):
                self._loader.load_batch(part)
                self._loader.flush()
                continue
            for run, noop in part.split(part.noop):
                if noop and run.epoch >= self._loader.provenance.epoch:
                    self._loader.pass_over(run.provenance)
                    continue
                for batch in run.batches():
                    self._loader.load_batch(batch)
                    self._loader.flush()

    def _go_on_behind(self, covered: int) -> None:
        """Go on with the image at an offset, or before the begin of a transaction that is open there.

        That image was published last: the next delta is the same whether or not a run has ended in between.
        """
        self._loader = loader_at(self._reader, covered)
        begins = self._loader.transaction_begin_offset
        if begins is not None:
            self._loader = loader_at(self._reader, begins - 1)
        self._loader.cluster_id = self._reader.cluster_id
        if self._loader.last_offset >= 0:  # before offset 0 the image is MetadataImage.EMPTY, with its provenance
            self._loader.take_image()
        self._loader.publish_to(self._publish)
        if begins is not None:
            for batch in self._reader.batches(begins, covered):
                self._loader.load_batch(batch)

    def _publish(self, delta: MetadataDelta, image: MetadataImage, manifest: LogDeltaManifest) -> None:
        assert image.provenance == manifest.provenance
        self.deltas += 1
        change = Published(delta, image, manifest, self._of_snapshot)
        for receive in self._receivers:
            receive(change)
