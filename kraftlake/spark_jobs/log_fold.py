"""The state of a replay job: rows of the log in, images and local changes out, each offset once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kraftlake.delta import MetadataDelta
from kraftlake.image import MetadataImage
from kraftlake.records.batch import RecordBatch
from kraftlake.records.rows import LOG_SCHEMA, from_rows
from kraftlake.replay.base import choose_base, usable_snapshots
from kraftlake.replay.batch_loader import MetadataBatchLoader
from kraftlake.replay.fold import load_snapshot
from kraftlake.replay.log_reader import LogReader, SnapshotReader
from kraftlake.replay.manifest import LogDeltaManifest
from kraftlake.runtime.errors import LakeError, OffsetError
from kraftlake.spark_jobs.local_changes import SCHEMA, local_change_rows
from kraftlake.spark_jobs.snapshot_publisher import SnapshotPublisher


class LogFold:
    """Folds the log of a lake batch by batch: one metadata delta for each log batch, one for a metadata transaction.

    What comes out depends on the order of the offsets alone: rows may come in any order within one call of
    `take_rows`, offsets at or below `last_offset` are dropped, and a gap is an error.
    """

    def __init__(self, reader: LogReader, snapshots: SnapshotPublisher) -> None:
        self._reader = reader
        self._snapshots = snapshots
        self._publishing = False
        self._rows: list[dict[str, Any]] = []
        self.loader = MetadataBatchLoader(publish=self._publish)
        self.batches = 0
        self.deltas = 0

    @property
    def image(self) -> MetadataImage:
        """The newest published image; a metadata transaction that is open at `last_offset` is not in it."""
        return self.loader.image

    @property
    def last_offset(self) -> int:
        """The last offset that was taken in, -1 for none."""
        return self.loader.last_offset

    def begin(self, published_to: int | None) -> None:
        """Become the state at `published_to`, the last offset that the targets hold; None: they hold nothing.

        With nothing published the state is the empty image, or, where the log starts above 0, the oldest snapshot that
        covers its start, whose load is then published as the first delta. Raises OffsetError where the log has no
        image there.
        """
        if published_to is None:
            self._publishing = True
            if self._reader.start_offset > 0:
                self._load(self._oldest_snapshot())
        elif published_to >= 0:
            self._check_in_log(published_to)
            base = choose_base(self._reader, published_to)
            if base is not None:
                self._load(base)
            for batch in self._log_batches(self.last_offset + 1, published_to):
                self._take(batch)
            if self.last_offset != published_to:
                raise OffsetError(
                    f"the targets of {self._reader.name} hold offsets up to {published_to}, which is inside of a batch"
                )
        self._publishing = True
        self.batches = 0
        self.deltas = 0

    def take_log(self, to_offset: int) -> Iterable[int]:
        """Take in the log's own batches after `last_offset` up to `to_offset`; yields the size of each."""
        for batch in self._log_batches(self.last_offset + 1, to_offset):
            yield self._take(batch)

    def take_rows(self, rows: pa.Table) -> int:
        """Take in rows of the log's table, of whole batches and in any order; returns how many were new.

        Raises LakeError naming the offset where one is missing or a batch is cut.
        """
        rows = rows.select(LOG_SCHEMA.names).cast(LOG_SCHEMA)
        new = rows.filter(pc.greater(rows.column("offset"), self.last_offset)).sort_by("offset")
        if not new.num_rows:
            return 0
        first, last = new.column("offset")[0].as_py(), new.column("offset")[-1].as_py()
        if first != self.last_offset + 1 or last - first + 1 != new.num_rows:
            raise LakeError(
                f"the stream of {self._reader.name} brought {new.num_rows} offsets from {first} to {last} where "
                f"{self.last_offset + 1} was due: delete the stream's checkpoint and run again"
            )
        if new.column("batch")[0].as_py() != first:
            raise LakeError(f"the batch that holds offset {first} of {self._reader.name} is split over two commits")
        for batch in from_rows(new):
            self._take(batch)
        return int(new.num_rows)

    def drain(self) -> pa.Table:
        """The rows of local changes since the last call."""
        rows, self._rows = self._rows, []
        return pa.Table.from_pylist(rows, schema=SCHEMA)

    def finish(self) -> None:
        """A run has ended with nothing left to read: a snapshot is due."""
        if not self.loader.in_transaction and self.image.provenance.offset == self.last_offset:
            self._snapshots.publish(self.image, self.loader.quorum)

    def _take(self, batch: RecordBatch) -> int:
        size = sum(map(len, batch.values))
        self.loader.load_batch(batch)
        self.loader.flush()
        self.batches += 1
        if self.image.provenance.offset != self.last_offset:
            self._snapshots.pass_over(size)
        else:
            self._snapshots.batch_done(self.image, self.loader.quorum, size, publishing=self._publishing)
        return size

    def _publish(self, delta: MetadataDelta, image: MetadataImage, manifest: LogDeltaManifest) -> None:
        assert image.provenance == manifest.provenance
        if not self._publishing:
            return
        self.deltas += 1
        if delta.topics_delta is not None:
            self._rows.extend(local_change_rows(delta.topics_delta, manifest.provenance))

    def _load(self, snapshot: SnapshotReader) -> None:
        load_snapshot(self.loader, snapshot)
        self.loader.flush()
        self._snapshots.start_at(self.image)

    def _oldest_snapshot(self) -> SnapshotReader:
        start = self._reader.start_offset
        for snapshot in usable_snapshots(self._reader):
            if start <= snapshot.end_offset <= self._reader.end_offset:
                return snapshot
        raise OffsetError(
            f"{self._reader.name} starts at offset {start} and has no snapshot that covers that start, so there is no "
            "image to start from: import a source that has one"
        )

    def _check_in_log(self, offset: int) -> None:
        if offset >= self._reader.end_offset:
            raise LakeError(
                f"the tables derived from {self._reader.name} hold offsets up to {offset}, but its log ends before "
                f"{self._reader.end_offset}: they are of another log, delete local_changes/ and run again"
            )

    def _log_batches(self, first: int, last: int) -> Iterable[RecordBatch]:
        return self._reader.batches(first, last) if first <= last else ()
