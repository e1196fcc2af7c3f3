"""A structured stream over a lake's log that keeps derived tables up to date: all stream jobs use it.

The tables have their own last offsets, and a stream starts after the lowest of them: Spark's own checkpoint is of no
use, and is deleted with the stream. A backlog is read from the lake's files first.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import attrs

from kraftlake.metadata_log.storage.location import Location, fixed_location
from kraftlake.runtime.arguments import instance
from kraftlake.runtime.errors import KraftlakeError
from kraftlake.spark_jobs.record_scan import RECORDS_A_PART
from kraftlake.spark_jobs.run_session import RunSession
from kraftlake.spark_jobs.stream_faults import worded
from kraftlake.spark_jobs.stream_options import AVAILABLE_NOW, StreamOptions, StreamResult
from kraftlake.tables.catch_up.table_run import Progress, TableRun, table_run
from kraftlake.tables.table_writer import TableWriter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

    from kraftlake.spark_jobs.replay_listener import ReplayListener

BACKLOG_FROM: Final = 10_000
"""The number of missing records from which on they are read from the lake's files: starting a stream takes longer."""
_LISTENING_SECONDS = 10.0
_POLL_SECONDS = 0.2


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
    """Bring the writers' tables up to the end of the lake's log, each from its own last offset.

    `job` names the stream. With `snapshot_every_bytes` images become snapshots of the lake too, one
    after that many bytes of records. `spark` None takes the active session, or starts one (`spark_session`) if
    there is something to stream, and stops it at the end. `on_progress` is called after each publication, `listener`
    after each micro-batch of the stream.

    Raises LakeError where there is no lake, another run writes one of the tables, or a table is not of this log or of
    another release; UsageError for options that make no sense; OffsetError where the log was trimmed past a table;
    EnvironmentFaultError when Spark fails; and what the replay of a record raises, with its offset.
    """
    options = StreamOptions() if options is None else instance(options, StreamOptions, "StreamOptions")
    options.check()
    lake = fixed_location(lake)
    with (  # the run first: a bad lake is reported before a session is asked for
        table_run(job, lake, writers, snapshot_every_bytes=snapshot_every_bytes, on_progress=on_progress) as run,
        RunSession(spark, f"kraftlake {job}", options.master) as session,
    ):
        stream = _TableStream(job, lake, run, session, listener)
        stream.run(options)
        done = attrs.asdict(run.result(), recurse=False)
        return StreamResult(**done, micro_batches=stream.micro_batches)


class _TableStream:
    """The stream of one run: the tables' missing rows come from the lake's files first, then from Spark."""

    def __init__(
        self, job: str, lake: Location, run: TableRun, session: RunSession, listener: ReplayListener | None
    ) -> None:
        self._query = f"kraftlake-{job} {lake}"  # a session refuses two streams of one name
        self._lake = lake
        self._run = run
        self._session = session
        self._listener = listener
        self.micro_batches = 0
        self._fault: BaseException | None = None
        self._reached = threading.Event()

    def run(self, options: StreamOptions) -> None:
        """Run to the end."""
        run = self._run
        run.begin()
        last = run.end_offset - 1
        last = last if options.until_offset is None else min(last, options.until_offset)
        if options.max_records is None and run.end_offset - 1 - run.last_offset >= BACKLOG_FROM:
            run.catch_up(last, to_the_end=options.trigger == AVAILABLE_NOW)
        if options.trigger == AVAILABLE_NOW and run.last_offset + 1 >= run.end_offset:
            run.publish()
        elif options.until_offset is None or run.last_offset < options.until_offset:
            self._stream(options)
        run.finish()

    def _stream(self, options: StreamOptions) -> None:
        streams = self._session.get().streams
        if self._listener is not None:
            streams.addListener(self._listener)
        try:
            self._await(self._start(options), options.until_offset)
        finally:
            if self._listener is not None:
                self._listener.await_end(_LISTENING_SECONDS)  # Spark reports on a thread of its own, later
                streams.removeListener(self._listener)

    def _start(self, options: StreamOptions) -> StreamingQuery:
        from kraftlake.spark_jobs.data_source import KraftDataSource
        from kraftlake.spark_jobs.replay_listener import observed

        spark = self._session.get()
        spark.dataSource.register(KraftDataSource)
        reader = spark.readStream.format("kraft").options(columns="log", showSecrets=True)
        reader = reader.option("startingOffset", self._run.next_offset)
        reader = reader.option("maxRecordsPerTrigger", options.max_records or RECORDS_A_PART)
        writer = observed(reader.load(str(self._lake))).writeStream.queryName(self._query)
        writer = writer.foreachBatch(lambda frame, _: self._micro_batch(frame, options.until_offset))
        now = options.trigger == AVAILABLE_NOW
        try:
            return writer.trigger(**({"availableNow": True} if now else {"processingTime": options.trigger})).start()
        except Exception as fault:
            raise worded(fault) from fault

    def _micro_batch(self, frame: DataFrame, until_offset: int | None) -> None:
        """Take one micro-batch, on a thread of Spark's. An exception is kept: Spark turns it into text."""
        try:
            self.micro_batches += 1
            # Sorting in Arrow reads the input once; orderBy would read it twice.
            rows = self._run.new_rows(frame.toArrow())
            if rows.num_rows:
                self._run.take(rows)
                self._run.publish()
                if self._listener is not None:
                    offset = self._run.last_offset
                    self._listener.note(self._query, offset, **self._run.state(offset))
            if until_offset is not None and self._run.last_offset >= until_offset:
                self._reached.set()
        except Exception as fault:
            self._fault = fault
            raise
        except BaseException as fault:  # Spark would wait forever for a thread that ends with it
            self._fault = fault
            raise RuntimeError(type(fault).__name__) from fault

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
        if isinstance(self._fault, KraftlakeError):
            raise self._fault
        if self._fault is not None:
            failure = self._fault if isinstance(self._fault, Exception) else failure
        if failure is not None:
            raise worded(failure) from failure
