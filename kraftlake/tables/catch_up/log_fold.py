"""Folds rows of the log into images, and passes each metadata delta to the tables' writers once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraftlake.image import MetadataImage
from kraftlake.replay.reading.replay_base import has_beginning, oldest_snapshot
from kraftlake.runtime.errors import LakeError, OffsetError
from kraftlake.tables.catch_up.background import BackgroundWorker
from kraftlake.tables.catch_up.covered import not_of_log, trimmed_past
from kraftlake.tables.catch_up.delta_images import DeltaImages
from kraftlake.tables.catch_up.published_images import PublishedImages
from kraftlake.tables.shared_deltas import RunDeltas
from kraftlake.tables.table_writer import Published, TableWriter

if TYPE_CHECKING:
    from kraftlake.replay.reading.open_reader import LakeReader
    from kraftlake.tables.catch_up.snapshot_publisher import SnapshotPublisher

_PIECE_ROWS = 1 << 16
"""As in a row group of the log's files: smaller pieces would make two of each."""


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
    deltas as objects, the fold shares those of the tables, and an image is made on request only.

    `last_offset` is the last offset that was taken, -1 for none; `batches` counts those that were taken.
    """

    def __init__(
        self,
        reader: LakeReader,
        feeds: Sequence[TableFeed],
        snapshots: SnapshotPublisher | None = None,
        *,
        run: RunDeltas | None = None,
        background: BackgroundWorker | None = None,
    ) -> None:
        """`run` has the deltas that the feeds' writers share, None if they share none.

        With `background`, writers that want only rows work on that thread while this thread makes the deltas.
        """
        self._reader = reader
        self._feeds = tuple(feeds)
        self._snapshots = snapshots
        wants_changes = any(feed.writer.wants_changes for feed in self._feeds)
        self._background = None if wants_changes else background
        self._images: DeltaImages | PublishedImages
        if wants_changes:
            self._images = PublishedImages(reader, [feed.publish for feed in self._feeds])
        else:
            self._images = DeltaImages(reader, run or RunDeltas())
        self.last_offset = -1
        self.batches = 0

    @property
    def image(self) -> MetadataImage:
        """The newest image, without a metadata transaction that is open at `last_offset`."""
        return self._images.image

    @property
    def topic_counts(self) -> tuple[int, int]:
        """The number of topics, and of partitions, in the newest image."""
        return self._images.topic_counts

    @property
    def deltas(self) -> int:
        """The number of metadata deltas that were taken."""
        return self._images.deltas

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
            self._begin_anew(covered)
        else:
            self._go_on_from(min(covered))

    def take(self, rows: pa.Table) -> Iterator[int]:
        """Take whole batches, sorted by offset, that follow `last_offset`; yields the bytes of each piece of them.

        Writers may still be working on them: see `wait`.
        """
        for piece in pieces(rows):
            first = 0
            if self._snapshots is not None:
                for place, is_there in self._snapshots.stops(piece):
                    self._take_part(piece.slice(first, place - first))
                    self._snapshots.pass_stop(self.image, self._images.quorum, is_there=is_there)
                    first = place
            if first < piece.num_rows:
                self._take_part(piece.slice(first))
            self.batches += pc.count_distinct(piece.column("batch")).as_py()
            yield pc.sum(pc.binary_length(piece.column("payload"))).as_py()

    def wait(self) -> None:
        """Wait until the writers have taken all rows. Raises what a writer raised."""
        if self._background is not None:
            self._background.wait()

    def finish(self) -> None:
        """Publish a snapshot: a run has ended with nothing left to read."""
        if self._snapshots is not None and self._images.provenance.offset == self.last_offset:
            self._snapshots.publish(self.image, self._images.quorum)

    def _take_part(self, rows: pa.Table) -> None:
        try:
            self._images.take(rows)
        except Exception:
            self.wait()  # what a writer raised is of an earlier offset
            raise
        if self._background is None:
            self._pass_on(rows, self._feeds)
        else:
            self._background.start(partial(self._pass_on, rows, self._feeds))
        self.last_offset = rows.column("offset")[-1].as_py()

    def _pass_on(self, rows: pa.Table, feeds: Iterable[TableFeed]) -> None:
        for feed in feeds:
            feed.take_rows(rows)

    def _begin_anew(self, covered: Sequence[int]) -> None:
        if not has_beginning(self._reader):
            end_offset = oldest_snapshot(self._reader).end_offset
            for offset in sorted(covered):
                if offset < end_offset - 1:
                    raise OffsetError(self._trimmed_past(offset))
        self._images.begin(None)
        self.last_offset = self._images.provenance.offset
        if self._snapshots is not None:
            self._snapshots.start_at(self.image)

    def _go_on_from(self, covered: int) -> None:
        if self._ends_inside_of_batch(covered):
            raise OffsetError(
                f"the tables of {self._reader.name} cover offsets up to {covered}, which is inside of a batch"
            )
        try:
            self._images.begin(covered)
            if self._snapshots is not None:
                self._snapshots.go_on_behind(covered)
        except OffsetError as fault:
            raise OffsetError(self._trimmed_past(covered)) from fault
        self.last_offset = covered

    def _ends_inside_of_batch(self, covered: int) -> bool:
        log, following = self._reader.log, covered + 1
        if not log.start_offset <= following < log.end_offset:
            return False
        batch: int = log.rows(following, following, ["batch"]).column("batch")[0].as_py()
        return batch < following

    def _check_in_log(self, feed: TableFeed) -> None:
        if feed.covers is not None and feed.covers >= self._reader.end_offset:
            raise LakeError(not_of_log(feed.name, self._reader, feed.covers))

    def _trimmed_past(self, covered: int) -> str:
        ended = [feed.name for feed in self._feeds if feed.covers is not None and feed.covers == covered]
        return trimmed_past(ended[0], self._reader, covered)


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
