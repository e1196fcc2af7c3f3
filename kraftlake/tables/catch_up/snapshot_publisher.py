"""Writes images into the lake's `snapshots/` as the log grows, so that a later replay has less to read."""

from __future__ import annotations

from typing import Any, Final

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraftlake.image.metadata_image import MetadataImage
from kraftlake.records.metadata_records import BeginTransactionRecord
from kraftlake.records.no_ops import NO_OP_VALUE
from kraftlake.replay.imports.kept_snapshot import keep_snapshot
from kraftlake.replay.loader.fold import image_at
from kraftlake.replay.loader.quorum_state import QuorumState
from kraftlake.replay.log.effective_records import marks_among
from kraftlake.replay.reading.open_reader import LakeReader
from kraftlake.replay.reading.replay_base import choose_base
from kraftlake.runtime.errors import UnwritableMetadataError

DEFAULT_SNAPSHOT_BYTES = 20 * 1024 * 1024
"""Kafka's default of metadata.log.max.record.bytes.between.snapshots."""
_COLUMNS: Final = ("offset", "batch", "api_key", "control", "payload")


class SnapshotPublisher:
    """Writes a snapshot whenever the records since the last one reach `every_bytes`, and one when a run ends.

    The offsets of the snapshots depend on the log and on the snapshots that the lake has, not on micro-batches. A
    snapshot is taken at the end of a log batch outside of metadata transactions, and only of an image that differs from
    that of the last snapshot. A snapshot that the lake has, perhaps by an import, is never written again.

    An image without a metadata.version, or with one below 3.3-IV3, has no snapshot: `unwritable` then has the reason.
    """

    def __init__(self, reader: LakeReader, every_bytes: int = DEFAULT_SNAPSHOT_BYTES) -> None:
        self._reader = reader
        self._every_bytes = every_bytes
        self._ends = {snapshot.end_offset for snapshot in reader.log.snapshots()}
        self._last = MetadataImage.EMPTY
        self._bytes = 0
        self._in_transaction = False
        self.written: list[int] = []
        self.unwritable: str | None = None

    def start_at(self, image: MetadataImage) -> None:
        """Set `image` as that of the last snapshot: the lake has it, or it is empty."""
        self._last = image

    def go_on_behind(self, covered: int) -> None:
        """Count the records up to an offset, for which an earlier run has written the snapshots that were due.

        Raises OffsetError if the log that led there was trimmed.
        """
        base = choose_base(self._reader, covered)
        last = first = 0 if base is None else base.end_offset
        for rows in self._reader.log.batch_rows(first, covered, columns=_COLUMNS):
            for place, is_there in self.stops(rows):
                last = rows.column("offset")[place - 1].as_py() + 1 if is_there else last
        if last:
            self.start_at(image_at(self._reader, last - 1).image)

    def stops(self, rows: pa.Table) -> list[tuple[int, bool]]:
        """Count rows of the log, whole batches that follow the earlier ones; returns where a snapshot is due.

        An element is the number of rows after which a snapshot is due, and true if the lake has it: the bytes then
        count from there on.
        """
        keys = rows.column("api_key").to_numpy().copy()
        keys[rows.column("control").to_numpy(zero_copy_only=False)] = -1
        batches, offset = rows.column("batch").to_numpy(), rows.column("offset")[0].as_py()
        begins = np.flatnonzero(np.diff(batches, prepend=-1))
        ends = np.append(begins[1:], len(batches))
        sizes = pc.binary_length(rows.column("payload")).to_numpy().astype(np.int64)
        totals = np.cumsum(np.add.reduceat(sizes, begins))
        no_ops = pc.and_not(pc.equal(rows.column("payload"), NO_OP_VALUE), rows.column("control"))
        noop = np.logical_and.reduceat(no_ops.to_numpy(), begins)
        marks = marks_among(keys)
        opened = np.append(self._in_transaction, keys[marks] == BeginTransactionRecord.API_KEY)
        self._in_transaction = bool(opened[-1])
        closed = ~opened[np.searchsorted(marks, ends)]
        there = self._bytes_behind_ends(ends, noop & closed, closed, sizes, offset)
        changing = np.flatnonzero(closed & ~noop)
        found, before, at = list[tuple[int, bool]](), self._bytes, 0
        while True:
            due = max(np.searchsorted(before + totals[changing], self._every_bytes), np.searchsorted(changing, at))
            batch = int(changing[due]) if due < len(changing) else len(ends)
            ending = next((place for place in there if place >= at), len(ends))
            at = min(batch, ending)
            if at == len(ends):
                self._bytes = before + int(totals[-1])
                return found
            found.append((int(ends[at]), ending <= batch))
            before = there.get(at, 0) - int(totals[at])
            at += 1

    def _bytes_behind_ends(self, ends: Any, quiet: Any, closed: Any, sizes: Any, offset: int) -> dict[int, int]:
        """The batches in which a snapshot of the lake ends, in order, with the bytes of their records after it.

        A snapshot that ends within a batch counts only if the batch holds no-op records only.
        """
        found = {}
        for end in sorted(end - offset for end in self._ends if offset < end <= offset + len(sizes)):
            batch = int(np.searchsorted(ends, end))
            if quiet[batch] or (closed[batch] and ends[batch] == end):
                found[batch] = int(sizes[end : ends[batch]].sum())
        return found

    def pass_stop(self, image: MetadataImage, quorum: QuorumState, *, is_there: bool) -> None:
        """Process the image at one of `stops`: write its snapshot, unless the lake has it."""
        if is_there:
            self.start_at(image)
        else:
            self.publish(image, quorum)

    def publish(self, image: MetadataImage, quorum: QuorumState) -> None:
        """Write a snapshot of `image` unless the last snapshot has the same content."""
        end_offset = image.provenance.offset + 1
        if end_offset in self._ends or not image.provenance.batch_aligned or _same_content(image, self._last):
            return
        self._ends |= {snapshot.end_offset for snapshot in self._reader.log.snapshots()}  # an import adds its own
        if end_offset in self._ends:
            self.start_at(image)
            return
        try:
            keep_snapshot(self._reader.log, image, quorum)
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
