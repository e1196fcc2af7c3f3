"""Folds rows of the log into images, and passes each metadata delta to the tables' writers once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraftlake import kernels
from kraftlake.delta import MetadataDelta
from kraftlake.image import MetadataImage
from kraftlake.records.batch import RecordBatch
from kraftlake.records.metadata_records import NoOpRecord
from kraftlake.records.rows import LOG_SCHEMA
from kraftlake.replay.loader.batch_loader import MetadataBatchLoader
from kraftlake.replay.loader.fold import load_snapshot, loader_at
from kraftlake.replay.loader.manifest import LogDeltaManifest
from kraftlake.replay.reading.log_reader import LogReader, SnapshotReader
from kraftlake.replay.reading.replay_base import choose_base, usable_snapshots
from kraftlake.runtime.errors import LakeError, OffsetError
from kraftlake.tables.catch_up.background import BackgroundWorker
from kraftlake.tables.table_writer import Published, TableWriter

if TYPE_CHECKING:
    from kraftlake.replay.loader.quorum_state import QuorumState
    from kraftlake.replay.reading.open_reader import LakeReader
    from kraftlake.tables.catch_up.batch_runs import BatchRun
    from kraftlake.tables.catch_up.snapshot_publisher import SnapshotPublisher

AT_ONCE_FROM: Final = 1000
"""The number of rows from which on batches are replayed in bulk."""
_PIECE_ROWS = 50_000


class TableFeed:
    """One table of a fold: the writer of its rows, and the last offset that it covers (None: it covers nothing).

    The writer gets only what is after `covers`, wherever the fold itself began: tables at different offsets each go on
    from their own.
    """

    def __init__(self, writer: TableWriter, covers: int | None) -> None:
        self.writer = writer
        self.covers = covers
        self._begun = False

    @property
    def name(self) -> str:
        """The table's name."""
        return self.writer.description.name

    def publish(self, change: Published) -> None:
        """Pass a published change to the writer if the table lacks it."""
        if self._lacks(change.offset):
            if not self._begun:
                self._begun = True
                self.writer.begin(change.before)
            self.writer.publish(change)

    def take_rows(self, rows: pa.Table) -> None:
        """Pass the rows that the table lacks, of sorted rows of the log, to the writer."""
        if not self.writer.wants_rows or not self._lacks(rows.column("offset")[-1].as_py()):
            return
        if not self._lacks(rows.column("offset")[0].as_py()):
            rows = rows.filter(pc.greater(rows.column("offset"), self.covers))
        self.writer.take_rows(rows)

    def _lacks(self, offset: int) -> bool:
        return self.covers is None or offset > self.covers


class LogFold:
    """Folds the log of a lake: one metadata delta for each log batch, or for each metadata transaction.

    Batches of nothing but no-op records make no delta: only the image's provenance changes. If no table wants the
    deltas, many batches are replayed at once, and an image is made on request only.

    The result depends on the order of the offsets alone: `new_rows` takes rows in any order, leaves out offsets at or
    below `last_offset`, and raises LakeError for a gap.
    """

    def __init__(
        self,
        reader: LakeReader,
        feeds: Sequence[TableFeed],
        snapshots: SnapshotPublisher | None = None,
        *,
        at_once_from: int = AT_ONCE_FROM,
        background: BackgroundWorker | None = None,
    ) -> None:
        """`at_once_from` is the number of rows from which on batches are replayed at once.

        With `background`, writers that want only rows work on that thread while this thread makes the images.
        """
        self._at_once_from = at_once_from
        self._background = background
        self._reader = reader
        self._feeds = tuple(feeds)
        self._snapshots = snapshots
        self._publishing = False
        self._of_snapshot = False
        self._wants_changes = any(feed.writer.wants_changes for feed in self._feeds)
        self._gathers = False
        """Whether the loader holds batches that were replayed at once and are in no image yet."""
        self.loader = MetadataBatchLoader()
        self.batches = 0
        self.deltas = 0

    @property
    def image(self) -> MetadataImage:
        """The newest published image, without a metadata transaction that is open at `last_offset`."""
        self._apply_gathered()
        return self.loader.image

    @property
    def last_offset(self) -> int:
        """The last offset that was taken, -1 for none."""
        return self.loader.last_offset

    def begin(self) -> None:
        """Load the state at the last offset that all tables cover.

        If a table covers nothing, the state is the empty image, or, if the log starts above 0, the oldest snapshot that
        covers its start; loading it is then published as the first delta. Raises OffsetError if the log has no image at
        the end of a table, LakeError if a table is of another log.
        """
        for feed in self._feeds:
            self._check_in_log(feed)
        covered = [feed.covers for feed in self._feeds if feed.covers is not None]
        if len(covered) < len(self._feeds):
            self._begin_anew()
        else:
            self._go_on_from(min(covered))
        self._publishing = True
        self.batches = 0
        self.deltas = 0

    def new_rows(self, rows: pa.Table) -> pa.Table:
        """The rows that were not taken yet, sorted by offset, of whole batches of the log's table in any order.

        Raises LakeError, with the offset, if rows are missing or a batch is cut.
        """
        rows = rows.select(LOG_SCHEMA.names).cast(LOG_SCHEMA)
        new = rows.filter(pc.greater(rows.column("offset"), self.last_offset)).sort_by("offset")
        if not new.num_rows:
            return new
        first, last = new.column("offset")[0].as_py(), new.column("offset")[-1].as_py()
        if first != self.last_offset + 1 or last - first + 1 != new.num_rows:
            raise LakeError(
                f"the stream of {self._reader.name} brought {new.num_rows} offsets from {first} to {last} where "
                f"{self.last_offset + 1} was due: delete the stream's checkpoint and run again"
            )
        if new.column("batch")[0].as_py() != first:
            raise LakeError(f"the batch that holds offset {first} of {self._reader.name} is split over two commits")
        return new

    def take(self, rows: pa.Table) -> Iterator[int]:
        """Take whole batches, sorted by offset, that follow `last_offset`; yields the bytes of each piece of them.

        Writers may still be working on them: see `wait`.
        """
        for piece in pieces(rows):
            if self._background is None or self._wants_changes or piece.num_rows < self._at_once_from:
                self.wait()
                size = self._take_piece(piece)
                self._pass_on(piece, self._feeds)
            else:
                pass_on, take = partial(self._pass_on, piece, self._feeds), partial(self._take_piece, piece)
                size = self._background.run_alongside(pass_on, take)
            yield size

    def wait(self) -> None:
        """Wait until the writers have taken all rows. Raises what a writer raised."""
        if self._background is not None:
            self._background.wait()

    def _pass_on(self, rows: pa.Table, feeds: Iterable[TableFeed]) -> None:
        for feed in feeds:
            feed.take_rows(rows)

    def finish(self) -> None:
        """Publish a snapshot: a run has ended with nothing left to read."""
        ended = not self.loader.in_transaction and self.image.provenance.offset == self.last_offset
        if self._snapshots is not None and ended:
            self._snapshots.publish(self.image, self.loader.quorum)

    def _take_piece(self, piece: pa.Table) -> int:
        from kraftlake.tables.catch_up.batch_runs import BatchRun, bulk_batches  # most runs of `RowFold` need none

        bulk = kernels.pays(piece.num_rows, self._at_once_from) and not (self._publishing and self._wants_changes)
        if bulk and pc.all(pc.equal(piece.column("api_key"), NoOpRecord.API_KEY)).as_py():
            bulk = False
        size = 0
        for part in bulk_batches(piece, lambda: self.loader.in_transaction):
            if not isinstance(part, BatchRun):
                size += self._take(part)
            elif bulk:
                size += self._take_run(part)
            else:
                for run, noop in part.split(part.noop):
                    size += self._take_noops(run) if noop else sum(map(self._take, run.batches()))
        return size

    def _take_run(self, run: BatchRun) -> int:
        """Replay many batches at once, and stop where a snapshot is due."""
        topics = self.loader.delta.topics_delta
        if topics is not None and not topics.takes_bulk:
            self._apply_gathered()  # a delta on the next image takes bulk replays again
        loader, self._gathers = self.loader, True
        loader.publish = None

        def image_at(offset: int) -> tuple[MetadataImage, QuorumState]:
            loader.load_values(run.values, to_offset=offset)
            return loader.take_image(), loader.quorum

        if self._snapshots is not None:
            self._snapshots.pass_run(run, image_at, publishing=self._publishing)
        loader.load_values(run.values, to_offset=run.last_offset)
        self.batches += len(run.ends)
        self.deltas += int(np.count_nonzero(~run.noop)) if self._publishing else 0
        return int(run.sizes.sum())

    def _apply_gathered(self) -> None:
        """Make an image of the gathered batches, on which the next delta is based."""
        if self._gathers:
            self._gathers = False
            self.loader.take_image()
            self.loader.publish_to(self._publish)

    def _take_noops(self, run: BatchRun) -> int:
        """Move over batches of nothing but no-op records: the image stays as it is."""
        if run.epoch < self.loader.provenance.epoch:
            return sum(map(self._take, run.batches()))  # raises the error of a batch
        self._apply_gathered()
        self.loader.pass_over(run.provenance)
        self.batches += len(run.ends)
        if self._snapshots is not None:
            image, quorum = self.image, self.loader.quorum
            self._snapshots.pass_run(run, lambda _: (image, quorum), publishing=self._publishing)
        return int(run.sizes.sum())

    def _take(self, batch: RecordBatch) -> int:
        self._apply_gathered()
        size = sum(map(len, batch.values))
        self.loader.load_batch(batch)
        self.loader.flush()
        self.batches += 1
        if self._snapshots is None:
            return size
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
        change = Published(delta, image, manifest, self._of_snapshot)
        for feed in self._feeds:
            feed.publish(change)

    def _begin_anew(self) -> None:
        self.loader.publish_to(self._publish)
        if self._reader.start_offset == 0:
            return
        snapshot = oldest_snapshot(self._reader)
        for feed in self._feeds:
            if feed.covers is not None and feed.covers < snapshot.end_offset - 1:
                raise OffsetError(self._trimmed_past(feed.covers))
        self._publishing = self._of_snapshot = True
        load_snapshot(self.loader, snapshot)
        self.loader.flush()
        self._of_snapshot = False
        if self._snapshots is not None:
            self._snapshots.start_at(self.image)

    def _go_on_from(self, covered: int) -> None:
        try:
            if self._snapshots is None:
                self.loader = self._loader_at(covered)
            elif covered >= 0 and (base := choose_base(self._reader, covered)) is not None:
                load_snapshot(self.loader, base)
                self._snapshots.start_at(self.loader.take_image())
        except OffsetError as fault:
            raise OffsetError(self._trimmed_past(covered)) from fault
        self.loader.publish_to(self._publish)
        if self.last_offset < covered:  # where later snapshots are due depends on the sizes of all batches in between
            for rows in self._reader.log.batch_rows(self.last_offset + 1, covered):
                for piece in pieces(rows):
                    self._take_piece(piece)
            self._apply_gathered()
        if self.last_offset != covered or not self.loader.provenance.batch_aligned:
            raise OffsetError(
                f"the tables of {self._reader.name} cover offsets up to {covered}, which is inside of a batch"
            )

    def _loader_at(self, covered: int) -> MetadataBatchLoader:
        """A loader with the image at `covered`, or before the begin of a transaction that is open there.

        That image was published last: the next delta is the same whether or not a run has ended in between.
        """
        loader = loader_at(self._reader, covered)
        if (begins := loader.transaction_begin_offset) is not None:
            loader = loader_at(self._reader, begins - 1)
        loader.take_image()
        return loader

    def _check_in_log(self, feed: TableFeed) -> None:
        if feed.covers is not None and feed.covers >= self._reader.end_offset:
            raise LakeError(
                f"{feed.name}/ of {self._reader.name} holds offsets up to {feed.covers}, but the log ends before "
                f"{self._reader.end_offset}: the table is of another log, delete {feed.name}/ and run again"
            )

    def _trimmed_past(self, covered: int) -> str:
        ended = [feed.name for feed in self._feeds if feed.covers is not None and feed.covers == covered]
        return (
            f"{ended[0]}/ of {self._reader.name} ends at offset {covered}, and the log that followed was trimmed: "
            f"delete the folder {ended[0]}/ and run again, it then begins with the oldest snapshot"
        )


def oldest_snapshot(reader: LogReader) -> SnapshotReader:
    """The oldest snapshot that covers the start of a log which starts above 0; OffsetError if there is none."""
    start = reader.start_offset
    for snapshot in usable_snapshots(reader):
        if start <= snapshot.end_offset <= reader.end_offset:
            return snapshot
    raise OffsetError(
        f"{reader.name} starts at offset {start} and has no snapshot that covers that start, so there is no image to "
        "start from: import a source that has one"
    )


def pieces(rows: pa.Table) -> Iterator[pa.Table]:
    """The rows in tables of whole batches, of at most _PIECE_ROWS rows unless one batch has more."""
    bases = rows.column("batch").to_numpy()
    start = 0
    while start < len(bases):
        stop = min(start + _PIECE_ROWS, len(bases))
        if stop < len(bases):
            cut = int(np.searchsorted(bases, bases[stop]))  # the begin of the batch that `stop` would split
            stop = cut if cut > start else int(np.searchsorted(bases, bases[stop], side="right"))
        yield rows.slice(start, stop - start)
        start = stop
