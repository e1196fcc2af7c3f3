"""A structured stream over a lake's log that keeps derived tables up to date: all stream jobs use it.

The tables have their own last offsets. A backlog is read from the lake's files, and the stream goes on after it. The
stream's checkpoint is used if it agrees with the tables, else discarded; the run then reads the records that the stream
will not bring from the log itself.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import attrs

from kraftlake.metadata_log.delta_table.table_state import read_table
from kraftlake.metadata_log.log_facts import LOG_TABLE
from kraftlake.metadata_log.storage.location import Location, fixed_location
from kraftlake.metadata_log.storage.object_path import ObjectPath
from kraftlake.runtime.arguments import instance
from kraftlake.runtime.errors import EnvironmentFaultError, KraftlakeError, LakeError, UsageError
from kraftlake.spark_jobs.run_session import RunSession
from kraftlake.spark_jobs.stream_faults import MovedUnderTheStreamError, worded
from kraftlake.spark_jobs.stream_options import AVAILABLE_NOW, StreamOptions, StreamResult
from kraftlake.spark_jobs.stream_start import StreamStart, choose_start, discard, resumable
from kraftlake.tables.catch_up.table_run import Progress, TableRun, table_run
from kraftlake.tables.table_locks import JOBS_FOLDER
from kraftlake.tables.table_writer import TableWriter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from kraftlake.spark_jobs.replay_listener import ReplayListener

BACKLOG_FROM: Final = 10_000
"""The number of missing records from which on they are read from the lake's files: starting a stream takes longer."""
_LISTENING_SECONDS = 10.0
_POLL_SECONDS = 0.2
_UMASK = "fs.permissions.umask-mode"
"""Hadoop's setting for the modes of the files in a stream's checkpoint; it overrides the process's own umask."""
_RESTARTS = 5
"""The number of restarts of a stream in a row without new rows for the tables."""


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

    `job` names the stream and its checkpoint. With `snapshot_every_bytes` images become snapshots of the lake too, one
    after that many bytes of records. `spark` None takes the active session, or starts one (`spark_session`) if
    there is something to stream, and stops it at the end. `on_progress` is called after each publication, `listener`
    after each micro-batch of the stream.

    Raises LakeError where there is no lake, another run writes one of the tables, or a table is not of this log or of
    another release; UsageError for options that make no sense; OffsetError where the log was trimmed past a table;
    EnvironmentFaultError when Spark fails; and what the replay of a record raises, with its offset. A lake in an object
    store is read without Spark; its only trigger is "available-now".
    """
    options = StreamOptions() if options is None else instance(options, StreamOptions, "StreamOptions")
    options.check()
    lake = fixed_location(lake)
    if isinstance(lake, ObjectPath) and options.trigger != AVAILABLE_NOW:
        raise UsageError(f"{lake} is in an object store, where a job ends with the log: leave the trigger out")
    with (  # the run first: a bad lake is reported before a session is asked for
        table_run(job, lake, writers, snapshot_every_bytes=snapshot_every_bytes, on_progress=on_progress) as run,
        RunSession(spark, f"kraftlake {job}", options.master) as session,
    ):
        stream = _TableStream(job, lake, run, session, listener)
        stream.run(options, options.checkpoint or Path(str(lake)) / JOBS_FOLDER / job)
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

    def run(self, options: StreamOptions, checkpoint: Path) -> None:
        """Run to the end, restarting the stream if the log's table changed during it."""
        run = self._run
        run.begin()
        restarts = 0
        while True:
            before = run.last_offset
            try:
                self._stream(options, checkpoint)
                break
            except MovedUnderTheStreamError as moved:
                restarts = restarts + 1 if run.last_offset == before else 0
                if restarts > _RESTARTS:
                    raise EnvironmentFaultError(str(moved)) from moved
                run.logger.info("stream_restarted", reason=str(moved), offset=run.last_offset)
                run.log_table = read_table(self._lake / LOG_TABLE)
                run.refresh()
        run.finish()

    def _stream(self, options: StreamOptions, checkpoint: Path) -> None:
        run = self._run
        last = run.end_offset - 1
        last = last if options.until_offset is None else min(last, options.until_offset)
        if isinstance(self._lake, ObjectPath):  # Spark would need a client of the store
            run.catch_up(last, to_the_end=True)
            return
        if options.max_files is None and run.end_offset - 1 - run.last_offset >= BACKLOG_FROM:
            discard(checkpoint)  # the stream would bring the backlog again
            run.catch_up(last, to_the_end=options.trigger == AVAILABLE_NOW)
            if options.until_offset is not None and run.last_offset >= options.until_offset:
                return
        needed = run.last_offset + 1
        start = None
        if not resumable(checkpoint, run.log_table, end_offset=run.end_offset, needed=needed):
            discard(checkpoint)
            start = choose_start(run.log_table, end_offset=run.end_offset, needed=needed)
            run.catch_up(start.end_offset - 1)
        if options.trigger == AVAILABLE_NOW and run.last_offset + 1 >= run.end_offset:
            run.publish()
            return
        streams = self._session.get().streams
        if self._listener is not None:
            streams.addListener(self._listener)
        try:
            self._await(self._start(start, options, checkpoint), options.until_offset)
        finally:
            if self._listener is not None:
                self._listener.await_end(_LISTENING_SECONDS)  # Spark reports on a thread of its own, later
                streams.removeListener(self._listener)
        if run.last_offset + 1 < run.end_offset and not self._reached.is_set():
            raise LakeError(
                f"the stream over {self._lake} ended at offset {run.last_offset}, but its log ends before "
                f"{run.end_offset}: delete the stream's checkpoint and run again"
            )

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
            # Delta refuses to start after the newest version: the newest then comes again, and is dropped.
            reader = reader.option("startingVersion", min(start.version + 1, self._run.log_table.version))
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
