"""A structured stream over a lake's log that keeps derived tables up to date: all stream jobs use it.

Spark's stream reports the next offsets, and the maker of the rows reads the log itself: executors a backlog, of any
size, and the driver the few records that are appended while the stream runs. The tables have their own last offsets,
and a stream starts after the lowest of them: Spark's own checkpoint is not used, and is deleted with the stream.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from kraftlake.image.metadata_image import MetadataImage
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.storage.location import Location, fixed_location
from kraftlake.replay.loader.fold import image_at
from kraftlake.replay.reading.open_reader import LakeReader
from kraftlake.runtime.errors import EnvironmentFaultError, KraftlakeError
from kraftlake.spark_jobs.backlog import ExecutorTables
from kraftlake.spark_jobs.executor_environment import lend_store_access
from kraftlake.spark_jobs.run_session import RunSession
from kraftlake.spark_jobs.source_options import OFFSETS
from kraftlake.spark_jobs.stream_faults import worded
from kraftlake.spark_jobs.stream_options import AVAILABLE_NOW, StreamOptions, StreamResult, checked
from kraftlake.tables.catch_up.covered import covered_by
from kraftlake.tables.catch_up.table_run import Progress, TableRun, unlocked_run
from kraftlake.tables.history.history_table import HistoryTable
from kraftlake.tables.table_locks import hold_tables
from kraftlake.tables.table_writer import TableWriter

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

    from kraftlake.spark_jobs.replay_listener import ReplayListener

LIVE_RECORDS: Final = 20_000
"""The most records in a micro-batch from which the driver makes rows."""
_LISTENING_SECONDS = 10.0
_POLL_SECONDS = 0.2


def run_tables(
    job: str,
    lake: str | Location,
    writers: Sequence[TableWriter],
    *,
    options: StreamOptions | None = None,
    spark: SparkSession | None = None,
    on_progress: Progress | None = None,
    listener: ReplayListener | None = None,
) -> StreamResult:
    """Update custom tables to the end of the lake's log, each from its own last offset: the driver makes their rows.

    `job` names the stream; otherwise as `run_job`.
    """
    return run_stream(
        job, lake, lambda: writers, None, options=options, spark=spark, on_progress=on_progress, listener=listener
    )


def run_stream(
    job: str,
    lake: str | Location,
    new_writers: Callable[[], Sequence[TableWriter]],
    backlog: ExecutorTables | None,
    *,
    options: StreamOptions | None = None,
    snapshot_every_bytes: int | None = None,
    spark: SparkSession | None = None,
    on_progress: Progress | None = None,
    listener: ReplayListener | None = None,
) -> StreamResult:
    """Update the writers' tables to the end of the lake's log, each from its own last offset.

    `backlog` makes the rows on executors; without it the driver makes all rows. With `snapshot_every_bytes` images
    become snapshots of the lake too. Otherwise as `run_job`.
    """
    options = checked(options)
    lake = fixed_location(lake)
    log = MetadataLog.open(lake)  # raises before anything is created in the lake
    writers = new_writers()
    with (
        hold_tables(lake, [writer.description.name for writer in writers]),
        RunSession(spark, f"kraftlake {job}", options.master) as session,
    ):
        open_run = partial(unlocked_run, job, lake, snapshot_every_bytes=snapshot_every_bytes, on_progress=on_progress)
        stream = _TableStream(
            job,
            log,
            session,
            backlog=backlog,
            writers=writers,
            open_run=lambda: open_run(new_writers()),
            on_progress=on_progress,
            listener=listener,
        )
        return stream.run(options)


class _TableStream:
    """The stream of one run.

    Records that were in the log at the stream's start, or pile up while it runs, are a backlog; the rows of other
    records are made by the TableRun of `open_run`, which is closed before executors continue.
    """

    def __init__(
        self,
        job: str,
        log: MetadataLog,
        session: RunSession,
        *,
        backlog: ExecutorTables | None,
        writers: Sequence[TableWriter],
        open_run: Callable[[], AbstractContextManager[TableRun]],
        on_progress: Progress | None,
        listener: ReplayListener | None,
    ) -> None:
        self._query = f"kraftlake-{job} {log.path}"  # a session refuses two streams of one name
        self._log = log
        self._session = session
        self._backlog = backlog
        self._open_run = open_run
        self._writers = writers
        self._tables = [writer.table(log.path) for writer in writers]
        self._on_progress = on_progress
        self._listener = listener
        self._begun_end = log.end_offset
        self._live = ExitStack()
        self._run: TableRun | None = None
        self._rows = Counter(dict.fromkeys((table.name for table in self._tables), 0))
        self._snapshots: list[int] = []
        self._unwritable: str | None = None
        self._micro_batches = self._driver_batches = self._steps = self._executors = 0
        self._fault: BaseException | None = None
        self._reached = threading.Event()

    def run(self, options: StreamOptions) -> StreamResult:
        """Run to the end."""
        covers = covered_by(LakeReader(self._log), self._writers)
        for table in self._tables:
            table.create(self._log.table_id)
        self._base = self._offset = min(-1 if offset is None else offset for offset in covers.values())
        if options.trigger != AVAILABLE_NOW or self._offset < self._begun_end - 1:
            self._stream(options)
            self._check_end(options)
        for table in self._tables:
            table.last_offset()
        return StreamResult(
            make_image=partial(_image_of, self._log, self._offset),
            offset=self._offset,
            base_offset=self._base,
            first_offset=max(self._base + 1, self._log.start_offset),
            rows=dict(self._rows),
            open_rows={table.name: table.open_count for table in self._tables if isinstance(table, HistoryTable)},
            snapshots=tuple(self._snapshots),
            unwritable=self._unwritable,
            micro_batches=self._micro_batches,
            driver_batches=self._driver_batches,
            steps=self._steps,
            executors=self._executors,
        )

    def _stream(self, options: StreamOptions) -> None:
        streams = self._session.get().streams
        if self._listener is not None:
            streams.addListener(self._listener)
        try:
            with TemporaryDirectory(prefix="kraftlake-stream-", ignore_cleanup_errors=True) as checkpoint, self._live:
                self._await(self._start(options, Path(checkpoint)), options.until_offset)
                self._end_live()
        finally:
            if self._listener is not None:
                self._listener.await_end(_LISTENING_SECONDS)  # Spark reports on a thread of its own, later
                streams.removeListener(self._listener)

    def _check_end(self, options: StreamOptions) -> None:
        """Raises EnvironmentFaultError if the stream was to take all records present, and has not."""
        last = self._begun_end - 1 if options.until_offset is None else min(self._begun_end - 1, options.until_offset)
        if options.trigger == AVAILABLE_NOW and self._offset < last:
            raise EnvironmentFaultError(
                f"Spark ended the stream over {self._log.path} at offset {self._offset} of {last}: run again, which "
                "goes on from there"
            )

    def _start(self, options: StreamOptions, checkpoint: Path) -> StreamingQuery:
        """Start the stream with a new `checkpoint`: one that the session keeps has the positions of earlier tables.

        The checkpoint is a folder of this machine, which also runs the driver's JVM: no executor reads it.
        """
        from kraftlake.spark_jobs.data_source import KraftDataSource
        from kraftlake.spark_jobs.replay_listener import observed
        from kraftlake.spark_jobs.spark_versions import register

        spark = self._session.get()
        lend_store_access(spark.sparkContext)  # also to the process beside the driver that plans the stream
        register(spark, KraftDataSource)
        first = max(self._offset + 1, self._log.start_offset)
        reader = spark.readStream.format("kraft").options(columns=OFFSETS, startingOffset=first)
        if options.max_records is not None:
            reader = reader.option("maxRecordsPerTrigger", options.max_records)
        now = options.trigger == AVAILABLE_NOW
        try:
            writer = observed(reader.load(str(self._log.path))).writeStream.queryName(self._query)
            writer = writer.option("checkpointLocation", checkpoint.as_uri())
            writer = writer.foreachBatch(lambda frame, _: self._micro_batch(frame, options.until_offset))
            return writer.trigger(**({"availableNow": True} if now else {"processingTime": options.trigger})).start()
        except Exception as fault:
            raise worded(fault) from fault

    def _micro_batch(self, frame: DataFrame, until_offset: int | None) -> None:
        """Take one micro-batch, on a thread of Spark's. An exception is kept: Spark turns it into text."""
        if self._reached.is_set():  # the stream is about to be stopped, which interrupts what this would do
            return
        try:
            for last in frame.toArrow()["last"].to_pylist():
                self._advance(last)
            if until_offset is not None and self._offset >= until_offset:
                self._reached.set()
        except Exception as fault:
            self._fault = fault
            raise
        except BaseException as fault:  # Spark would wait forever for a thread that ends with it
            self._fault = fault
            raise RuntimeError(type(fault).__name__) from fault

    def _advance(self, last: int) -> None:
        """Update the tables to an offset."""
        self._micro_batches += 1
        self._log.refresh()
        waiting = self._log.end_offset - 1 - self._offset
        if self._backlog is not None and (last < self._begun_end or waiting > LIVE_RECORDS):
            self._end_live()
            topics, partitions = self._by_executors(self._backlog, last)
        else:
            topics, partitions = self._by_driver(last)
        self._offset = max(last, self._offset)
        if self._listener is not None and topics is not None and partitions is not None:
            lag = self._log.end_offset - 1 - last
            self._listener.note(self._query, last, lag=lag, topics=topics, partitions=partitions)

    def _by_executors(self, backlog: ExecutorTables, last: int) -> tuple[int | None, int | None]:
        """Make the rows on the executors; returns the numbers of topics and partitions after that."""
        spark = self._session.get()

        def on_step(offset: int, end: int) -> None:
            self._offset = max(offset, self._offset)
            if self._on_progress is not None:
                self._on_progress(offset, end)

        made = backlog.advance(spark, last, on_step)
        self._rows.update(made.rows)
        self._steps += made.steps
        self._snapshots += made.snapshots
        self._unwritable = made.unwritable
        self._executors = executor_count(spark)
        return made.topics, made.partitions

    def _by_driver(self, last: int) -> tuple[int | None, int | None]:
        """Make the rows in this process; returns the numbers of topics and partitions after that."""
        if self._run is None:
            self._run = self._live.enter_context(self._open_run())
            self._run.begin()
        self._driver_batches += 1
        self._run.refresh()
        self._run.catch_up(last)
        self._offset = max(self._run.last_offset, self._offset)
        state = self._run.state(last)
        return state["topics"], state["partitions"]

    def _end_live(self) -> None:
        """Commit all rows that the driver has made, and leave the tables to the executors, or to other runs."""
        run, self._run = self._run, None
        if run is None:
            return
        run.finish()
        result = run.result()
        self._rows.update(result.rows)
        self._snapshots += result.snapshots
        self._unwritable = result.unwritable
        self._live.close()

    def _await(self, query: StreamingQuery, until_offset: int | None) -> None:
        self._fault = None
        failure: Exception | None = None
        try:
            while not query.awaitTermination(_POLL_SECONDS):
                if until_offset is not None and self._reached.is_set():
                    break
        except Exception as fault:
            failure = fault
        finally:
            if query.isActive:
                query.stop()
        if isinstance(self._fault, KraftlakeError) or not isinstance(self._fault, Exception | None):
            raise self._fault
        failure = self._fault or failure
        if failure is not None:
            raise worded(failure) from failure


def _image_of(log: MetadataLog, offset: int) -> MetadataImage:
    """The image at an offset of the log, the empty one at -1."""
    return MetadataImage.EMPTY if offset < 0 else image_at(LakeReader(log), offset).image


def executor_count(spark: SparkSession) -> int:
    """The number of a session's executors; a local master is one."""
    context = spark.sparkContext
    infos = len(context._jsc.sc().statusTracker().getExecutorInfos())  # the driver is one of them
    return infos if infos == 1 else infos - 1
