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
    """One snapshot each time that the records since the last one reach `every_bytes`, and one when a run ends.

    Which offsets get one depends on the log and on the snapshots that are there, not on how it was cut into
    micro-batches. A snapshot is taken at the end of a log batch outside of metadata transactions, and only of an image
    that differs from the last one's; one that the lake has already (an imported one too) is never written again.

    An image that has no metadata.version, or one below 3.3-IV3, has no snapshot: `unwritable` then says why.
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
        """Count from `image` on, which a snapshot of the lake holds (or which is empty)."""
        self._last = image
        self._bytes = 0

    def batch_done(self, image: MetadataImage, quorum: QuorumState, size: int, *, publishing: bool) -> None:
        """A batch with records of `size` bytes has led to `image`, which stands at its end.

        Without `publishing` only the counting is done: what was due there was published by an earlier run.
        """
        self.pass_over(size)
        if image.provenance.offset + 1 in self._ends:
            self.start_at(image)
        elif self._bytes >= self._every_bytes:
            self._bytes = 0
            if publishing:
                self.publish(image, quorum)

    def pass_over(self, size: int) -> None:
        """A batch with records of `size` bytes has led to no image: it is inside of a metadata transaction."""
        self._bytes += size

    def pass_run(
        self, run: BatchRun, image_at: Callable[[int], tuple[MetadataImage, QuorumState]], *, publishing: bool
    ) -> None:
        """As `batch_done` for many batches, quiet ones too: `image_at` makes the image behind one of their ends.

        It is asked in the order of the offsets, and where a snapshot is due or known alone.
        """
        totals, loud = np.cumsum(run.sizes), np.flatnonzero(~run.noop)
        known = self._known_within(run)
        at = 0
        while at < len(totals):
            before = self._bytes - (int(totals[at - 1]) if at else 0)
            due = max(np.searchsorted(totals[loud], self._every_bytes - before), np.searchsorted(loud, at))
            batch = int(loud[due]) if due < len(loud) else len(totals)
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
        """The batches in which a snapshot ends that is there, in order, with the bytes of their records behind it.

        Of those with records that change something the ones at whose own end it does.
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
        """Write a snapshot of `image` unless the last one holds the same."""
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
    """Whether two images differ in their provenance only; parts that were never touched are the same objects."""
    return attrs.evolve(one, provenance=other.provenance) == other
