"""A run that updates derived tables: rows of the log in, commits to each table out. Needs no Spark.

Each table continues from its own last offset. A run that reads the log itself and a stream that gets the log's rows
from Spark use the same fold and the same commits.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import attrs

from kraftlake.image.metadata_image import MetadataImage
from kraftlake.metadata_log.delta_table.delta_log import read_table
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.log_facts import LOG_TABLE
from kraftlake.metadata_log.storage.location import Location
from kraftlake.records.rows import LOG_SCHEMA
from kraftlake.replay.reading.open_reader import LakeReader
from kraftlake.runtime.log import get_logger
from kraftlake.runtime.prefetching import prefetch
from kraftlake.tables.catch_up.background import CHUNKS_AHEAD, BackgroundWorker
from kraftlake.tables.catch_up.log_fold import LogFold, TableFeed
from kraftlake.tables.catch_up.snapshot_publisher import SnapshotPublisher
from kraftlake.tables.table_locks import hold_tables
from kraftlake.tables.table_writer import TableWriter, open_rows_of

if TYPE_CHECKING:
    import pyarrow as pa

Progress = Callable[[int, int], None]
"""Called after each publication with the last published offset, and the log's end when the run began."""

_PUBLISH_BYTES = 16 * 1024 * 1024


@attrs.frozen(kw_only=True)
class RunResult:
    """The result of a run.

    `image` is the newest image (the empty image if no table is made of images), `offset` the last offset that the run
    took; the image's own offset is lower only if a metadata transaction is open at the end. `base_offset` is the last
    offset that all tables covered when the run began (-1 for none), `first_offset` the first offset of the log after
    it. `batches` log batches made `deltas` metadata deltas, which made `rows` of each table, by name. `snapshots` are
    the end offsets of the snapshots written. All of these count this run alone. For a history table `rows` counts the
    states that ended, and `open_rows` the states that are open at the end. `unwritable` is the reason if the newest
    image should have a snapshot and can't have one.
    """

    make_image: Callable[[], MetadataImage] = attrs.field(repr=False, eq=False)
    offset: int
    base_offset: int
    first_offset: int
    batches: int
    deltas: int
    rows: dict[str, int]
    open_rows: dict[str, int] = attrs.field(factory=dict)
    snapshots: tuple[int, ...] = ()
    unwritable: str | None = None

    @property
    def image(self) -> MetadataImage:
        """The newest image, built on first use."""
        return self.make_image()

    def to_json(self) -> dict[str, Any]:
        """The JSON form, without the image."""
        return {
            "from": self.base_offset,
            "firstOffset": self.first_offset,
            "offset": self.offset,
            "batches": self.batches,
            "deltas": self.deltas,
            "rows": self.rows,
            "openRows": self.open_rows,
            "snapshots": list(self.snapshots),
        }


@contextmanager
def table_run(
    name: str,
    lake: Location,
    writers: Sequence[TableWriter],
    *,
    snapshot_every_bytes: int | None = None,
    on_progress: Progress | None = None,
) -> Iterator[TableRun]:
    """A run of writers over a lake, which holds the locks of their tables until it ends. Log lines have its `name`.

    With `snapshot_every_bytes` the run also writes snapshots of the lake, one after that many bytes of records.

    Raises LakeError if there is no lake, another run writes one of the tables, or a table is of another log or release;
    OffsetError if the log was trimmed past a table.
    """
    MetadataLog.open(lake)  # raises before anything is created in the lake
    with (
        hold_tables(lake, [writer.description.name for writer in writers]),
        unlocked_run(name, lake, writers, snapshot_every_bytes=snapshot_every_bytes, on_progress=on_progress) as run,
    ):
        yield run


@contextmanager
def unlocked_run(
    name: str,
    lake: Location,
    writers: Sequence[TableWriter],
    *,
    snapshot_every_bytes: int | None = None,
    on_progress: Progress | None = None,
) -> Iterator[TableRun]:
    """The same as `table_run`, for a caller that holds the locks."""
    with BackgroundWorker() as appender, BackgroundWorker(CHUNKS_AHEAD) as background:
        yield TableRun(
            name,
            lake,
            writers,
            appender,
            background,
            snapshot_every_bytes=snapshot_every_bytes,
            on_progress=on_progress,
        )


class TableRun:
    """The tables of one run, the fold that makes their rows, and the log that it reads.

    `begin`, then `catch_up` or `take` and `publish`, then `finish`, then `result`.
    """

    def __init__(
        self,
        name: str,
        lake: Location,
        writers: Sequence[TableWriter],
        appender: BackgroundWorker,
        background: BackgroundWorker,
        *,
        snapshot_every_bytes: int | None,
        on_progress: Progress | None,
    ) -> None:
        self._lake = lake
        self._appender = appender
        self._unpublished_bytes = 0
        self._publication: tuple[int, dict[str, int]] | None = None
        """The offset and the state of the publication that is being written."""
        # Read the log's table before the log's end: a stream then brings what is appended in between.
        self.log_table = read_table(lake / LOG_TABLE)
        self._log = MetadataLog.open(lake)
        self.end_offset = self._log.end_offset
        reader = LakeReader(self._log)
        self._snapshots = None if snapshot_every_bytes is None else SnapshotPublisher(reader, snapshot_every_bytes)
        self._tables = [writer.table(lake) for writer in writers]
        self._feeds = [
            TableFeed(writer, table.last_offset()) for writer, table in zip(writers, self._tables, strict=True)
        ]
        self._fold = LogFold(reader, self._feeds, self._snapshots, background=background, on_rows=self._encode)
        self._on_progress = on_progress
        self._base_offset = -1
        self._published_to = -1
        self._published_at = time.monotonic()
        self.logger = get_logger(__name__).bind(job=name, lake=str(lake))

    @property
    def last_offset(self) -> int:
        """The last offset that was taken, -1 for none."""
        return self._fold.last_offset

    @property
    def next_offset(self) -> int:
        """The first offset of the log that was not taken."""
        return max(self.last_offset + 1, self._log.start_offset)

    def begin(self) -> None:
        """Create missing tables, and load the state at the last offset that all tables cover.

        Raises OffsetError if the log was trimmed past a table, LakeError if a table is of another log.
        """
        self._fold.begin()
        for table in self._tables:
            table.create(self.log_table.metadata.id)
        self._fold.open(self._tables)
        covered = [table.covered for table in self._tables if table.covered is not None]
        self._published_to = self._base_offset = min(covered) if len(covered) == len(self._tables) else -1

    def refresh(self) -> bool:
        """Check for records that were appended to the log; returns whether there are records to read."""
        self._log.refresh()
        self.end_offset = max(self.end_offset, self._log.end_offset)
        return self.end_offset - 1 > self.last_offset

    def catch_up(self, to_offset: int, *, to_the_end: bool = False, stop: threading.Event | None = None) -> None:
        """Read the log up to an offset and commit the rows of the tables; `to_the_end`: nothing is read afterwards.

        Ends early, between two chunks, once `stop` is set.
        """
        if self.last_offset < to_offset:
            # Another handle, since another thread reads the chunks.
            log = MetadataLog.open(self._lake)
            wanted = {name for feed in self._feeds for name in feed.writer.log_columns}
            columns = [name for name in LOG_SCHEMA.names if name in wanted]
            with prefetch(log.batch_rows(self.last_offset + 1, to_offset, columns=columns)) as chunks:
                for rows in chunks:
                    self.take(rows)
                    if stop is not None and stop.is_set():
                        break
        self.publish(to_the_end=to_the_end)

    def take(self, rows: pa.Table) -> None:
        """Add rows of the log, and commit the tables' rows in steps of bounded size."""
        for size in self._fold.take(rows):
            self._unpublished_bytes += size
            if self._unpublished_bytes >= _PUBLISH_BYTES:
                self._begin_publishing(goes_on=True)

    def publish(self, *, to_the_end: bool = False) -> None:
        """Commit the rows of the tables."""
        self._begin_publishing(goes_on=False)
        if to_the_end:
            self._fold.finish()  # makes its snapshot while the appender writes the rows
        self._end_publishing()

    def flush(self) -> None:
        """Commit rows that history tables hold back; for a run that waits for new records."""
        for table in self._tables:
            if table.waits:
                table.finish()

    def finish(self) -> None:
        """Commit all rows, and compact and vacuum the tables: the run ends."""
        for finish in [table.begin_finish() for table in self._tables][::-1]:  # the first table has the most to encode
            finish()
        self._fold.finish()

    def state(self, offset: int) -> dict[str, int]:
        """The number of offsets in the log after an offset now, and the size of the newest image."""
        self._log.refresh()
        topics, partitions = self._fold.topic_counts
        return {"lag": max(self._log.end_offset - 1 - offset, 0), "topics": topics, "partitions": partitions}

    def result(self) -> RunResult:
        """The result of a run that has ended."""
        return RunResult(
            make_image=lambda: self._fold.image,
            offset=self.last_offset,
            base_offset=self._base_offset,
            first_offset=max(self._base_offset + 1, self._log.start_offset),
            batches=self._fold.batches,
            deltas=self._fold.deltas,
            rows={table.name: table.added_rows for table in self._tables},
            open_rows=open_rows_of(feed.writer for feed in self._feeds),
            snapshots=() if self._snapshots is None else tuple(self._snapshots.written),
            unwritable=None if self._snapshots is None else self._snapshots.unwritable,
        )

    def _begin_publishing(self, *, goes_on: bool) -> None:
        """Begin to commit the rows that were made; the fold may continue meanwhile. `goes_on`: more rows follow soon.

        Snapshots are written before the tables' commits: a rerun continues from the tables' offsets, so that it misses
        none.
        """
        self._fold.wait()
        self._end_publishing()
        self._unpublished_bytes = 0
        offset = self.last_offset
        if offset < 0:
            return
        appends: list[Callable[[], None]] = []
        for table, feed in zip(self._tables, self._feeds, strict=True):
            # A table that covers nothing gets the rows of the first snapshot even if no record follows it.
            has_all = table.covered is not None and feed.covers is not None and feed.covers >= offset
            if has_all and not table.waits:
                continue
            appends.append(table.begin_append(feed.writer.drain_later(), offset, goes_on=goes_on))
            feed.covers = offset
        self._publication = offset, self.state(offset)

        def append() -> None:
            for end_append in appends:
                end_append()

        self._appender.start(append)

    def _encode(self) -> None:
        """Begin to encode the rows of large tables, on the writers' thread."""
        for table, feed in zip(self._tables, self._feeds, strict=True):
            if feed.writer.encodes:
                table.encode_ahead(feed.writer.drain_later())

    def _end_publishing(self) -> None:
        self._appender.wait()
        if self._publication is not None:
            publication, self._publication = self._publication, None
            self._report(*publication)

    def _report(self, offset: int, state: dict[str, int]) -> None:
        if offset <= self._published_to:
            return
        now = time.monotonic()
        self.logger.info(
            "published",
            offset=offset,
            records=offset - self._published_to,
            records_per_second=round((offset - self._published_to) / max(now - self._published_at, 1e-9)),
            **state,
        )
        self._published_to, self._published_at = offset, now
        if self._on_progress is not None:
            self._on_progress(offset, self.end_offset)
