"""Writes images into the lake's `snapshots/` as the log grows, so that a later replay has less to read."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import attrs
import numpy as np

from kraftlake.image import MetadataImage
from kraftlake.metadata_log import MetadataLog
from kraftlake.replay.imports.kept_snapshot import keep_snapshot
from kraftlake.replay.loader.quorum_state import QuorumState
from kraftlake.runtime.errors import UnwritableMetadataError

if TYPE_CHECKING:
    from kraftlake.tables.catch_up.batch_runs import BatchRun

DEFAULT_SNAPSHOT_BYTES = 20 * 1024 * 1024
"""Kafka's default of metadata.log.max.record.bytes.between.snapshots."""


class SnapshotPublisher:
    """Writes a snapshot whenever the records since the last one reach `every_bytes`, and one when a run ends.

    The offsets of the snapshots depend on the log and on the snapshots that the lake has, not on micro-batches. A
    snapshot is taken at the end of a log batch outside of metadata transactions, and only of an image that differs from
    that of the last snapshot. A snapshot that the lake has, perhaps by an import, is never written again.

    An image without a metadata.version, or with one below 3.3-IV3, has no snapshot: `unwritable` then has the reason.
    """

    def __init__(self, log: MetadataLog, every_bytes: int = DEFAULT_SNAPSHOT_BYTES) -> None:
        self._log = log
        self._every_bytes = every_bytes
        self._ends = {snapshot.end_offset for snapshot in log.snapshots()}
        self._last = MetadataImage.EMPTY
        self._bytes = 0
        self.written: list[int] = []
        self.unwritable: str | None = None

    def start_at(self, image: MetadataImage) -> None:
        """Count bytes from `image` on, which is that of a snapshot of the lake, or empty."""
        self._last = image
        self._bytes = 0

    def batch_done(self, image: MetadataImage, quorum: QuorumState, size: int, *, publishing: bool) -> None:
        """Count a batch with records of `size` bytes; `image` is that at its end. Write a snapshot if one is due.

        Without `publishing` only count: an earlier run has written the snapshots that were due.
        """
        self.pass_over(size)
        if image.provenance.offset + 1 in self._ends:
            self.start_at(image)
        elif self._bytes >= self._every_bytes:
            self._bytes = 0
            if publishing:
                self.publish(image, quorum)

    def pass_over(self, size: int) -> None:
        """Count a batch with records of `size` bytes that ends within a metadata transaction, where no image is."""
        self._bytes += size

    def pass_run(
        self, run: BatchRun, image_at: Callable[[int], tuple[MetadataImage, QuorumState]], *, publishing: bool
    ) -> None:
        """As `batch_done` for many batches, also of no-op records; `image_at` makes the image at a batch's last offset.

        `image_at` is called in the order of the offsets, and only where a snapshot is due or the lake has one.
        """
        totals, changing = np.cumsum(run.sizes), np.flatnonzero(~run.noop)
        known = self._known_within(run)
        at = 0
        while at < len(totals):
            before = self._bytes - (int(totals[at - 1]) if at else 0)
            due = max(np.searchsorted(totals[changing], self._every_bytes - before), np.searchsorted(changing, at))
            batch = int(changing[due]) if due < len(changing) else len(totals)
            ending = next((place for place in known if place >= at), len(totals))
            if min(batch, ending) == len(totals):
                self._bytes = before + int(totals[-1])
                return
            image, quorum = image_at(int(run.ends[min(batch, ending)]) - 1)
            if ending <= batch:
                self.start_at(image)
                self._bytes = known[ending]
            else:
                self._bytes = 0
                if publishing:
                    self.publish(image, quorum)
            at = min(batch, ending) + 1

    def _known_within(self, run: BatchRun) -> dict[int, int]:
        """The batches in which a snapshot of the lake ends, in order, with the bytes of their records after it.

        A snapshot that ends within a batch counts only if the batch holds nothing but no-op records.
        """
        found = {}
        for end in sorted(end for end in self._ends if run.begin < end <= run.last_offset + 1):
            batch = int(np.searchsorted(run.ends, end))
            if run.ends[batch] == end:
                found[batch] = 0
            elif run.noop[batch]:
                found[batch] = run.size_from(end)
        return found

    def publish(self, image: MetadataImage, quorum: QuorumState) -> None:
        """Write a snapshot of `image` unless the last snapshot has the same content."""
        end_offset = image.provenance.offset + 1
        if end_offset in self._ends or not image.provenance.batch_aligned or _same_content(image, self._last):
            return
        try:
            keep_snapshot(self._log, image, quorum)
        except UnwritableMetadataError as fault:
            self.unwritable = str(fault)
            return
        self._ends.add(end_offset)
        self.written.append(end_offset)
        self.unwritable = None
        self.start_at(image)


def _same_content(one: MetadataImage, other: MetadataImage) -> bool:
    """Whether two images differ in their provenance only; unchanged parts are the same objects."""
    return attrs.evolve(one, provenance=other.provenance) == other
