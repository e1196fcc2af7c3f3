"""Replays rows of the log once for all tables of a run, and makes the lake's snapshots on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraftlake.image.metadata_image import MetadataImage
from kraftlake.replay.log.delta_chunk import DeltaChunk, LogBegin
from kraftlake.replay.log.log_replay import LogReplay
from kraftlake.replay.reading.replay_base import has_beginning, oldest_snapshot
from kraftlake.runtime.errors import LakeError, OffsetError
from kraftlake.tables.catch_up.background import BackgroundWorker
from kraftlake.tables.catch_up.covered import not_of_log, trimmed_past
from kraftlake.tables.changes_writer import ChangesWriter
from kraftlake.tables.table_writer import TableWriter

if TYPE_CHECKING:
    from kraftlake.replay.reading.open_reader import LakeReader
    from kraftlake.tables.catch_up.snapshot_publisher import SnapshotPublisher
    from kraftlake.tables.lake_table import LakeTable

_PIECE_ROWS = 1 << 16
"""The number of rows in a row group of the log's files: smaller pieces would split row groups."""


class TableFeed:
    """One table of a fold: the writer of its rows, and the last offset that it covers (None: it covers nothing)."""

    def __init__(self, writer: TableWriter, covers: int | None) -> None:
        self.writer = writer
        self.covers = covers

    @property
    def name(self) -> str:
        """The table's name."""
        return self.writer.description.name


class _Replaying:
    """The replay of the log after the offset that some tables cover (None: nothing), and the tables' writers."""

    def __init__(self, covers: int | None, writers: Sequence[ChangesWriter]) -> None:
        self.covers = covers
        self.replay = LogReplay()
        self.begin = LogBegin()
        self._writers = writers

    def take(self, rows: pa.Table) -> list[DeltaChunk]:
        """The deltas that end in those of the rows that the tables lack."""
        lacking = rows_after(rows, self.covers)
        return self.replay.take(lacking) if lacking.num_rows else []

    def pass_on(self, chunks: Sequence[DeltaChunk]) -> None:
        """Pass deltas to the writers, which make rows of them."""
        for chunk in chunks:
            for writer in self._writers:
                writer.take_deltas(chunk)


class LogFold:
    """Replays the log of a lake: one metadata delta for each log batch, or for each metadata transaction.

    Tables at different offsets each continue from their own; tables at the same offset share a LogReplay. A fold of
    tables that are made of rows alone, without snapshots, replays nothing: its image stays empty.

    `last_offset` is the last offset that was taken, -1 for none; `batches` counts those that were taken, `deltas` their
    metadata deltas, without batches of nothing but no-op records.
    """

    def __init__(
        self,
        reader: LakeReader,
        feeds: Sequence[TableFeed],
        snapshots: SnapshotPublisher | None = None,
        *,
        background: BackgroundWorker | None = None,
        on_rows: Callable[[], None] = lambda: None,
    ) -> None:
        """With `background`, writers work on that thread while this thread replays.

        `on_rows` is called there whenever the writers have taken rows.
        """
        self._reader = reader
        self._feeds = tuple(feeds)
        self._snapshots = snapshots
        self._background = background
        self._on_rows = on_rows
        self._replays: dict[int | None, _Replaying] = {}
        self._first: LogReplay | None = None
        """The replay that begins first, whose image is the newest one."""
        self.last_offset = -1
        self.batches = 0
        self.deltas = 0

    @property
    def image(self) -> MetadataImage:
        """The newest image, without a metadata transaction that is open at `last_offset`."""
        return MetadataImage.EMPTY if self._first is None else self._first.image

    @property
    def topic_counts(self) -> tuple[int, int]:
        """The number of topics, and of partitions, in the newest image."""
        return (0, 0) if self._first is None else (self._first.store.topic_count, self._first.store.count)

    def begin(self) -> None:
        """Load the state at each offset that tables cover; `open` lets the writers begin there.

        If a table covers nothing, the state is the empty image, or, if the log starts above 0, the oldest snapshot that
        covers its start; loading it is then the first delta. Raises OffsetError if the log has no image at the end of a
        table, LakeError if a table is of another log.
        """
        for feed in self._feeds:
            self._check_in_log(feed)
        writers: dict[int | None, list[ChangesWriter]] = {}
        for feed in self._feeds:
            if isinstance(feed.writer, ChangesWriter):
                writers.setdefault(feed.covers, []).append(feed.writer)
        covered = sorted(feed.covers for feed in self._feeds if feed.covers is not None)
        lowest = None if len(covered) < len(self._feeds) else covered[0]
        if not writers and self._snapshots is None:
            self.last_offset = self._reader.start_offset - 1 if lowest is None else lowest
            return
        writers.setdefault(lowest, [])
        if lowest is None and not has_beginning(self._reader):
            end_offset = oldest_snapshot(self._reader).end_offset
            for offset in covered:
                if offset < end_offset - 1:
                    raise OffsetError(self._trimmed_past(offset))
        self._replays = {covers: self._opened(covers, of) for covers, of in writers.items()}
        self._first = self._replays[lowest].replay
        self.last_offset = self._first.provenance.offset if lowest is None else lowest
        if self._snapshots is not None and lowest is None:
            self._snapshots.start_at(self.image)
        elif self._snapshots is not None and lowest is not None:
            with self._not_trimmed_past(lowest):
                self._snapshots.go_on_behind(lowest)

    def open(self, tables: Sequence[LakeTable]) -> None:
        """Open the writers at the ends of their tables, given in the order of the feeds."""
        for feed, table in zip(self._feeds, tables, strict=True):
            if isinstance(feed.writer, ChangesWriter):
                of = self._replays[feed.covers]
                feed.writer.open(of.replay, of.begin, table)
        for of in self._replays.values():
            of.begin = LogBegin()  # its image is not kept alive

    def take(self, rows: pa.Table) -> Iterator[int]:
        """Take whole batches, sorted by offset, that follow `last_offset`; yields the bytes of each piece of them.

        Writers may still be working on them: see `wait`.
        """
        for piece in pieces(rows):
            first = 0
            if self._snapshots is not None and self._first is not None:
                for place, is_there in self._snapshots.stops(piece):
                    self._take_part(piece.slice(first, place - first))
                    self._snapshots.pass_stop(self.image, self._first.quorum, is_there=is_there)
                    first = place
            if first < piece.num_rows:
                self._take_part(piece.slice(first))
            self.batches += pc.count_distinct(piece.column("batch")).as_py()
            yield pc.sum(pc.binary_length(piece.column("payload"))).as_py()

    def wait(self) -> None:
        """Wait until the writers have taken all rows. Raises the error of a writer."""
        if self._background is not None:
            self._background.wait()

    def finish(self) -> None:
        """Publish a snapshot: a run has ended with nothing left to read."""
        first = self._first
        if self._snapshots is not None and first is not None and first.provenance.offset == self.last_offset:
            self._snapshots.publish(self.image, first.quorum)

    def _take_part(self, rows: pa.Table) -> None:
        try:
            made = [(of, of.take(rows)) for of in self._replays.values()]
        except Exception:
            self.wait()  # what a writer raised is of an earlier offset
            raise
        for of, chunks in made:
            if of.replay is self._first:
                self.deltas += sum(int(np.count_nonzero(~chunk.boundaries.noop)) for chunk in chunks)
        if self._background is None:
            self._pass_on(rows, made)
        else:
            self._background.start(partial(self._pass_on, rows, made))
        self.last_offset = rows.column("offset")[-1].as_py()

    def _pass_on(self, rows: pa.Table, made: Sequence[tuple[_Replaying, Sequence[DeltaChunk]]]) -> None:
        for of, chunks in made:
            of.pass_on(chunks)
        for feed in self._feeds:
            if not isinstance(feed.writer, ChangesWriter):
                lacking = rows_after(rows, feed.covers)
                if lacking.num_rows:
                    feed.writer.take_rows(lacking)
        self._on_rows()

    def _opened(self, covers: int | None, writers: Sequence[ChangesWriter]) -> _Replaying:
        opened = _Replaying(covers, writers)
        if covers is not None and self._ends_inside_of_batch(covers):
            raise OffsetError(
                f"the tables of {self._reader.name} cover offsets up to {covers}, which is inside of a batch"
            )
        with self._not_trimmed_past(covers):
            opened.begin = opened.replay.open(self._reader, covers)
        return opened

    @contextmanager
    def _not_trimmed_past(self, covers: int | None) -> Iterator[None]:
        """Add the table at fault to the error where the log has nothing at the offset that the table covers."""
        try:
            yield
        except OffsetError as fault:
            if covers is None:
                raise
            raise OffsetError(self._trimmed_past(covers)) from fault

    def _ends_inside_of_batch(self, covered: int) -> bool:
        log, following = self._reader.log, covered + 1
        if not log.start_offset <= following < log.end_offset:
            return False
        batch: int = log.rows(following, following, ["batch"]).column("batch")[0].as_py()
        return batch < following

    def _check_in_log(self, feed: TableFeed) -> None:
        if feed.covers is not None and feed.covers >= self._reader.end_offset:
            raise LakeError(not_of_log(feed.name, self._reader, feed.covers))
        if feed.covers is not None and feed.covers + 1 < self._reader.start_offset:
            raise OffsetError(trimmed_past(feed.writer, self._reader, feed.covers))

    def _trimmed_past(self, covered: int) -> str:
        ended = next(feed.writer for feed in self._feeds if feed.covers == covered)
        return trimmed_past(ended, self._reader, covered)


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


def rows_after(rows: pa.Table, covers: int | None) -> pa.Table:
    """The rows, sorted by offset, after an offset; all of them for None."""
    offsets = rows.column("offset")
    if covers is None or offsets[0].as_py() > covers:
        return rows
    return rows.filter(pc.greater(offsets, covers))
