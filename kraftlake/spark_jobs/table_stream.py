"""A structured stream over a lake's log that keeps derived tables up to date: what every such job has in common.

The tables themselves know how far they are. A backlog is read from the lake's files, and the stream goes on from there.
What a stream's checkpoint says is used where it fits the tables, and thrown away where it doesn't: then, too, the run
reads what the stream won't bring from the log itself.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kraftlake.metadata_log import MetadataLog
from kraftlake.metadata_log.delta_table.table_state import TableState, read_table
from kraftlake.metadata_log.storage.location import Location, fixed_location
from kraftlake.metadata_log.storage.object_path import ObjectPath
from kraftlake.records.rows import LOG_SCHEMA
from kraftlake.replay.reading.open_reader import LakeReader
from kraftlake.runtime.arguments import instance
from kraftlake.runtime.errors import EnvironmentFaultError, KraftlakeError, LakeError, UsageError
from kraftlake.runtime.log import get_logger
from kraftlake.runtime.prefetching import prefetch
from kraftlake.spark_jobs.run_session import RunSession
from kraftlake.spark_jobs.stream_faults import MovedUnderTheStreamError, worded
from kraftlake.spark_jobs.stream_options import AVAILABLE_NOW, StreamOptions, StreamResult
from kraftlake.spark_jobs.stream_start import StreamStart, choose_start, discard, resumable
from kraftlake.tables.catch_up.background import PIECES_AHEAD, Behind
from kraftlake.tables.catch_up.log_fold import LogFold, TableFeed
from kraftlake.tables.catch_up.row_fold import RowFold
from kraftlake.tables.catch_up.snapshot_publisher import SnapshotPublisher
from kraftlake.tables.table_locks import JOBS_FOLDER, hold_tables
from kraftlake.tables.table_writer import TableWriter, open_rows_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from kraftlake.spark_jobs.replay_listener import ReplayListener
    from kraftlake.tables.lake_table import LakeTable
    from kraftlake.tables.lazy_table import LazyTable

Progress = Callable[[int, int], None]
"""Told after each publication: the last offset that is published, and where the log ended when the job began."""

LOG_TABLE: Final = "log"

BACKLOG_FROM: Final = 10_000
"""From how many missing records on they are read from the lake's files: a stream's start alone takes longer."""
_PUBLISH_BYTES = 16 * 1024 * 1024
_LISTENING_SECONDS = 10.0
_POLL_SECONDS = 0.2
_UMASK = "fs.permissions.umask-mode"
"""Hadoop's: how it masks the modes of what a stream writes to its checkpoint, whatever the process's own umask is."""
_RESTARTS = 5
"""How often in a row, without anything new in the tables, a stream is started again."""


def run_tables(
    job: str,
    lake: str | Location,
    writers: Sequence[TableWriter],
    *,
    options: StreamOptions | None = None,
    snapshot_every_bytes: int | None = None,
    spark: SparkSession | None = None,
    on_progress: Progress | None = None,
    listener: ReplayListener | None = None,
) -> StreamResult:
    """Bring the writers' tables up to the end of the lake's log, each from where it is; they may be apart.

    `job` names the stream and its checkpoint. With `snapshot_every_bytes` images become snapshots of the lake too, one
    after so many bytes of records. `spark` None takes the session that is active, or starts one (`spark_session`) if
    there is something to stream, and stops it at the end. `on_progress` is called after each publication, `listener`
    after each micro-batch of the stream.

    Raises LakeError where there is no lake, another run writes one of the tables, or a table is not of this log or of
    another release; UsageError for options that make no sense; OffsetError where the log was trimmed past a table;
    EnvironmentFaultError when Spark fails; and what the replay of a record raises, with its offset. A lake in an object
    store is read without Spark; only "available-now" is a trigger there.
    """
    options = StreamOptions() if options is None else instance(options, StreamOptions, "StreamOptions")
    options.check()
    lake = fixed_location(lake)
    if isinstance(lake, ObjectPath) and options.trigger != AVAILABLE_NOW:
        raise UsageError(f"{lake} is in an object store, where a job ends with the log: leave the trigger out")
    MetadataLog.open(lake)  # says what is wrong with the lake before anything is made in it
    with ExitStack() as stack:
        stack.enter_context(hold_tables(lake, [writer.description.name for writer in writers]))
        behind, beside = stack.enter_context(Behind()), stack.enter_context(Behind(PIECES_AHEAD))
        session = stack.enter_context(RunSession(spark, f"kraftlake {job}", options.master))
        run = _TableRun(
            job,
            lake,
            writers,
            session=session,
            behind=behind,
            beside=beside,
            snapshot_every_bytes=snapshot_every_bytes,
            on_progress=on_progress,
            listener=listener,
        )
        run.run(options, options.checkpoint or Path(str(lake)) / JOBS_FOLDER / job)
        return run.result()


class _TableRun:
    """One run: the base from the tables themselves, then the stream, both through the same fold."""

    def __init__(
        self,
        job: str,
        lake: Location,
        writers: Sequence[TableWriter],
        *,
        session: RunSession,
        behind: Behind,
        beside: Behind,
        snapshot_every_bytes: int | None,
        on_progress: Progress | None,
        listener: ReplayListener | None,
    ) -> None:
        self._query = f"kraftlake-{job} {lake}"  # a session refuses two streams of one name
        self._listener = listener
        self._lake = lake
        self._session = session
        self._behind = behind
        self._unpublished_bytes = 0
        self._publication: tuple[int, dict[str, int]] | None = None
        """The offset and the state of what is being written."""
        # The table's state first: whatever is appended after it comes through the stream.
        self._log: TableState = read_table(lake / LOG_TABLE)
        self._metadata_log = MetadataLog.open(lake)
        self._end_offset = self._metadata_log.end_offset
        self._snapshots = (
            None if snapshot_every_bytes is None else SnapshotPublisher(self._metadata_log, snapshot_every_bytes)
        )
        self._tables = [writer.table(lake) for writer in writers]
        self._feeds = [
            TableFeed(writer, table.last_offset()) for writer, table in zip(writers, self._tables, strict=True)
        ]
        images = self._snapshots is not None or any(writer.wants_changes or writer.wants_images for writer in writers)
        self._fold = (LogFold if images else RowFold)(
            LakeReader(self._metadata_log), self._feeds, self._snapshots, beside=beside
        )
        self._on_progress = on_progress
        self._rows = dict.fromkeys((table.name for table in self._tables), 0)
        self._micro_batches = 0
        self._base_offset = -1
        self._published_to = -1
        self._published_at = time.monotonic()
        self._fault: BaseException | None = None
        self._reached = threading.Event()
        self._logger = get_logger(__name__).bind(job=job, lake=str(lake))

    def run(self, options: StreamOptions, checkpoint: Path) -> None:
        """Run to the end, starting the stream again where the log's table changed under it."""
        self._fold.begin()
        for table in self._tables:
            table.create(self._log.metadata.id)
        for feed, table in zip(self._feeds, self._tables, strict=True):
            feed.writer.open(LakeReader(self._metadata_log), table)
        covered = [table.covered for table in self._tables if table.covered is not None]
        self._published_to = self._base_offset = min(covered) if len(covered) == len(self._tables) else -1
        restarts = 0
        while True:
            before = self._fold.last_offset
            try:
                self._stream(options, checkpoint)
                break
            except MovedUnderTheStreamError as moved:
                restarts = restarts + 1 if self._fold.last_offset == before else 0
                if restarts > _RESTARTS:
                    raise EnvironmentFaultError(str(moved)) from moved
                self._logger.info("stream_restarted", reason=str(moved), offset=self._fold.last_offset)
                self._log = read_table(self._lake / LOG_TABLE)
                self._metadata_log.refresh()
                self._end_offset = max(self._end_offset, self._metadata_log.end_offset)
        for finish in [table.begin_finish() for table in self._tables][::-1]:  # most is to be done for the first
            finish()
        self._fold.finish()

    def result(self) -> StreamResult:
        """What the run did, when it has ended."""
        return StreamResult(
            image=self._fold.image,
            offset=self._fold.last_offset,
            base_offset=self._base_offset,
            first_offset=max(self._base_offset + 1, self._metadata_log.start_offset),
            batches=self._fold.batches,
            deltas=self._fold.deltas,
            rows=self._rows,
            open_rows=open_rows_of(feed.writer for feed in self._feeds),
            snapshots=() if self._snapshots is None else tuple(self._snapshots.written),
            micro_batches=self._micro_batches,
            unwritable=None if self._snapshots is None else self._snapshots.unwritable,
        )

    def _stream(self, options: StreamOptions, checkpoint: Path) -> None:
        if isinstance(self._lake, ObjectPath):  # Spark has no part in it, and needs no client of the store's
            self._catch_up(self._last_wanted(options), to_the_end=True)
            return
        if self._has_backlog(options):
            discard(checkpoint)  # it would have the stream bring all of that once more
            self._catch_up(self._last_wanted(options), to_the_end=options.trigger == AVAILABLE_NOW)
            if options.until_offset is not None and self._fold.last_offset >= options.until_offset:
                return
        needed = self._fold.last_offset + 1
        start = None
        if not resumable(checkpoint, self._log, end_offset=self._end_offset, needed=needed):
            discard(checkpoint)
            start = choose_start(self._log, end_offset=self._end_offset, needed=needed)
            self._catch_up(start.end_offset - 1)
        if options.trigger == AVAILABLE_NOW and self._fold.last_offset + 1 >= self._end_offset:
            self._publish()
            return
        streams = self._session.get().streams
        if self._listener is not None:
            streams.addListener(self._listener)
        try:
            self._await(self._start(start, options, checkpoint), options.until_offset)
        finally:
            if self._listener is not None:
                self._listener.await_end(_LISTENING_SECONDS)  # Spark tells later, on a thread of its own
                streams.removeListener(self._listener)
        if self._fold.last_offset + 1 < self._end_offset and not self._reached.is_set():
            raise LakeError(
                f"the stream over {self._lake} ended at offset {self._fold.last_offset}, but its log ends before "
                f"{self._end_offset}: delete the stream's checkpoint and run again"
            )

    def _last_wanted(self, options: StreamOptions) -> int:
        last = self._end_offset - 1
        return last if options.until_offset is None else min(last, options.until_offset)

    def _has_backlog(self, options: StreamOptions) -> bool:
        """Whether so much of the log is missing in the tables that it is read from the lake's files."""
        return options.max_files is None and self._end_offset - 1 - self._fold.last_offset >= BACKLOG_FROM

    def _catch_up(self, to_offset: int, *, to_the_end: bool = False) -> None:
        """Reads from the log itself, without Spark; `to_the_end` where nothing is to be read after that."""
        if self._fold.last_offset < to_offset:
            # A handle of its own, for the tables are read on a thread of its own.
            log = MetadataLog.open(self._lake)
            wanted = {name for feed in self._feeds for name in feed.writer.log_columns}
            columns = [name for name in LOG_SCHEMA.names if name in wanted]
            with prefetch(log.batch_rows(self._fold.last_offset + 1, to_offset, columns=columns)) as tables:
                for rows in tables:
                    self._take(rows)
        self._publish(to_the_end=to_the_end)

    def _take(self, rows: pa.Table) -> None:
        """Takes rows in, and publishes what they make in pieces of bounded size."""
        for piece in self._fold.take(rows):
            self._unpublished_bytes += piece
            if self._unpublished_bytes >= _PUBLISH_BYTES:
                self._begin_publishing(goes_on=True)

    def _publish(self, *, to_the_end: bool = False) -> None:
        self._begin_publishing(goes_on=False)
        if to_the_end:
            self._fold.finish()  # makes its snapshot while the rows are written
        self._end_publishing()

    def _begin_publishing(self, *, goes_on: bool) -> None:
        """Begin to write what there is; the fold may go on meanwhile. `goes_on`: `_publish` is called soon.

        Snapshots are written by now: the offsets that the tables note come last, so that a rerun misses none.
        """
        self._fold.wait()
        self._end_publishing()
        self._unpublished_bytes = 0
        offset = self._fold.last_offset
        if offset < 0:
            return
        appends: list[tuple[LakeTable, LazyTable, Callable[[], None]]] = []
        for table, feed in zip(self._tables, self._feeds, strict=True):
            # One that covers nothing gets what it begins with, though nothing may follow the snapshot that has it.
            has_all = table.covered is not None and feed.covers is not None and feed.covers >= offset
            if has_all and not table.waits:
                continue
            rows = feed.writer.drain_later()
            appends.append((table, rows, table.begin_append(rows, offset, goes_on=goes_on)))
            feed.covers = offset
        self._publication = offset, self._state(offset)

        def append() -> None:
            for table, rows, end_append in appends:
                end_append()
                self._rows[table.name] += rows.num_rows

        self._behind.start(append)

    def _end_publishing(self) -> None:
        self._behind.wait()
        if self._publication is not None:
            publication, self._publication = self._publication, None
            self._tell(*publication)

    def _tell(self, offset: int, state: dict[str, int]) -> None:
        if offset <= self._published_to:
            return
        now = time.monotonic()
        self._logger.info(
            "published",
            offset=offset,
            records=offset - self._published_to,
            records_per_second=round((offset - self._published_to) / max(now - self._published_at, 1e-9)),
            **state,
        )
        self._published_to, self._published_at = offset, now
        if self._on_progress is not None:
            self._on_progress(offset, self._end_offset)

    def _state(self, offset: int) -> dict[str, int]:
        """How far the tables are behind the log as it is now, and the size of the image."""
        self._metadata_log.refresh()
        topics = self._fold.image.topics
        return {
            "lag": max(self._metadata_log.end_offset - 1 - offset, 0),
            "topics": topics.topic_count,
            "partitions": topics.partition_count,
        }

    def _note(self, offset: int) -> None:
        if self._listener is not None:
            self._listener.note(self._query, offset, **self._state(offset))

    def _start(self, start: StreamStart | None, options: StreamOptions, checkpoint: Path) -> StreamingQuery:
        settings = self._session.get().conf
        umask = settings.get(_UMASK, None)
        settings.set(_UMASK, "077")  # the stream copies the settings when it starts
        try:
            return self._writer(start, options, checkpoint).start()
        except Exception as fault:
            raise worded(fault) from fault
        finally:
            settings.unset(_UMASK) if umask is None else settings.set(_UMASK, umask)

    def _writer(self, start: StreamStart | None, options: StreamOptions, checkpoint: Path) -> DataStreamWriter:
        reader = self._session.get().readStream.format("delta").option("ignoreDeletes", "true")
        reader = reader.option("maxBytesPerTrigger", options.max_bytes)
        if start is not None:
            # Delta refuses to start behind the newest version: the newest then comes once more, and is dropped.
            reader = reader.option("startingVersion", min(start.version + 1, self._log.version))
        if options.max_files is not None:
            reader = reader.option("maxFilesPerTrigger", options.max_files)
        from kraftlake.spark_jobs.replay_listener import observed

        stream = observed(reader.load(str(self._lake / LOG_TABLE)))
        writer = stream.writeStream.queryName(self._query).option("checkpointLocation", str(checkpoint))
        writer = writer.foreachBatch(lambda frame, _: self._micro_batch(frame, options.until_offset))
        if options.trigger == AVAILABLE_NOW:
            return writer.trigger(availableNow=True)
        return writer.trigger(processingTime=options.trigger)

    def _micro_batch(self, frame: DataFrame, until_offset: int | None) -> None:
        """One micro-batch, on a thread of Spark's; its error is kept, for Spark turns it into text."""
        try:
            self._micro_batches += 1
            # Sorting in Arrow reads the input once; orderBy would read it twice.
            rows = self._fold.new_rows(frame.toArrow())
            if rows.num_rows:
                self._take(rows)
                self._publish()
                self._note(self._fold.last_offset)
            if until_offset is not None and self._fold.last_offset >= until_offset:
                self._reached.set()
        except Exception as fault:
            self._fault = fault
            raise
        except BaseException as fault:  # it would end the thread without a word, and Spark would wait for it forever
            self._fault = fault
            raise RuntimeError(type(fault).__name__) from fault

    def _await(self, query: StreamingQuery, until_offset: int | None) -> None:
        self._fault = None
        told: Exception | None = None
        try:
            while not query.awaitTermination(_POLL_SECONDS):
                if until_offset is not None and self._reached.is_set():
                    break
        except Exception as fault:
            told = fault
        finally:
            if query.isActive:
                query.stop()
        if isinstance(self._fault, KraftlakeError):
            raise self._fault
        if self._fault is not None:
            told = self._fault if isinstance(self._fault, Exception) else told
        if told is not None:
            raise worded(told) from told
