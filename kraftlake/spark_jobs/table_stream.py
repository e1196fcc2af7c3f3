"""A structured stream over a lake's log that keeps derived tables up to date: all stream jobs use it.

Spark's stream reports the next offsets, and the maker of the rows (`StreamSteps`) reads the log itself. The tables have
their own last offsets, and a stream starts after the lowest of them, whatever checkpoint the session keeps.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import attrs

from kraftlake.metadata_log.storage.location import Location, fixed_location
from kraftlake.runtime.errors import EnvironmentFaultError
from kraftlake.spark_jobs.run_session import RunSession
from kraftlake.spark_jobs.source_options import OFFSETS
from kraftlake.spark_jobs.spark_versions import checkpoint_settings
from kraftlake.spark_jobs.stream_faults import server_gone, worded
from kraftlake.spark_jobs.stream_options import AVAILABLE_NOW, StreamOptions, StreamResult, checked
from kraftlake.spark_jobs.stream_steps import ExecutorSteps, Notes, StreamSteps
from kraftlake.spark_jobs.tasks import called, configured, is_remote, worded_faults
from kraftlake.tables.catch_up.snapshot_publisher import DEFAULT_SNAPSHOT_BYTES
from kraftlake.tables.catch_up.table_run import Progress
from kraftlake.tables.jobs import RECORDS, job_named
from kraftlake.tables.table_writer import TableWriter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

    from kraftlake.spark_jobs.replay_listener import ReplayListener

_LISTENING_SECONDS = 10.0
_POLL_SECONDS = 0.5
_TRIES: Final = 4
_SETTINGS: Final[dict[str, str | None]] = {
    "spark.sql.streaming.checkpointLocation": None,
    "spark.sql.streaming.forceDeleteTempCheckpointLocation": "true",
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.orderIndependentChecksum.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""The settings of a session for a stream.

Its checkpoint ends with it, whatever checkpoints the session keeps: another has the positions of earlier tables. Its
rows are few and large: Spark compiles no code for it, which would take half a second of the first job, plans each query
once, and leaves out the checksums of a checkpoint that nobody reads and of rows that no task makes in another order.
"""


def run_job(
    name: str,
    lake: str | Location,
    *,
    options: StreamOptions | None = None,
    snapshot_every_bytes: int | None = None,
    spark: SparkSession | None = None,
    on_progress: Progress | None = None,
    listener: ReplayListener | None = None,
) -> StreamResult:
    """Update the tables of one of JOBS to the end of the lake's log, each from its own last offset.

    `snapshot_every_bytes` is for jobs that write snapshots, Kafka's default unless it is given: a snapshot is written
    after a step with which that many bytes of records have been added. `spark` None takes the active session, or starts
    one (`spark_session`) if there is something to do, and stops it at the end. `on_progress` is called after each step
    of the executors and each publication of the driver, `listener` after each micro-batch of the stream.

    Raises UsageError for another name and for invalid options; LakeError where there is no lake, another run writes one
    of the tables, or a table is not of this log or of another release; OffsetError where the log was trimmed past a
    table; EnvironmentFaultError when Spark fails; and the errors of replaying a record, with its offset.
    """
    job = job_named(name)
    snapshots = (snapshot_every_bytes or DEFAULT_SNAPSHOT_BYTES) if job.snapshots else None
    place = fixed_location(lake)
    by_executors: ExecutorSteps
    if job is RECORDS:
        from kraftlake.spark_jobs.records import record_steps

        by_executors = partial(record_steps, place)
    else:
        from kraftlake.spark_jobs.shard_run import TableSteps

        most = checked(options).max_records
        by_executors = TableSteps(lake=place, names=job.tables, snapshot_every_bytes=snapshots, step_records=most)
    steps = StreamSteps(
        job=job.name,
        lake=place,
        new_writers=job.new_writers,
        by_executors=by_executors,
        snapshot_every_bytes=snapshots,
    )
    return run_stream(steps, options=options, spark=spark, on_progress=on_progress, listener=listener)


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

    `job` names the stream; otherwise as `run_job`. On Connect the writers are sent to the server, and are pickled.
    """
    steps = StreamSteps(job=job, lake=fixed_location(lake), new_writers=lambda: writers)
    return run_stream(steps, options=options, spark=spark, on_progress=on_progress, listener=listener)


def run_stream(
    steps: StreamSteps,
    *,
    options: StreamOptions | None,
    spark: SparkSession | None,
    on_progress: Progress | None,
    listener: ReplayListener | None,
) -> StreamResult:
    """Update the tables of the steps to the end of the lake's log, each from its own last offset, as `run_job`."""
    options = checked(options)
    steps.until_offset = until = options.until_offset
    with RunSession(spark, f"kraftlake {steps.job}", options.master) as session:
        begin, end = called(session.held, steps.look)
        done, ends = begin, options.trigger == AVAILABLE_NOW
        last = min([offset for offset in (end - 1 if ends else None, until) if offset is not None], default=None)
        if not ends or done.offset < end - 1:
            steps.ends_at = last
            made = session.get()
            run = _Run(spark=made, steps=steps, begin=begin, listener=listener)
            if is_remote(made):
                run.on_progress = on_progress
            else:
                steps.on_progress = on_progress
            done = run.to_the_end(options)
            if ends and last is not None and done.offset < last:
                raise EnvironmentFaultError(
                    f"Spark ended the stream over {steps.lake} at offset {done.offset} of {last}: run again, "
                    "which goes on from there"
                )
        return attrs.evolve(done, open_rows=called(session.held, steps.open_rows))


@attrs.define(kw_only=True)
class _Run:
    """A stream, as the process sees it that has started it; it calls `on_progress` for a server's Python."""

    spark: SparkSession
    steps: StreamSteps
    begin: StreamResult
    listener: ReplayListener | None
    on_progress: Progress | None = None
    _reported: int = attrs.field(init=False, default=-1)

    @property
    def query(self) -> str:
        """The name of the query; a session refuses two streams of one name."""
        return f"kraftlake-{self.steps.job} {self.steps.lake}"

    def to_the_end(self, options: StreamOptions) -> StreamResult:
        """Run the stream to its end; returns the result."""
        with worded_faults(self.spark), self._listened():
            try:
                query = self._start(options)
                try:
                    with _ended(query):
                        while not query.awaitTermination(_POLL_SECONDS) and not self._has_reached():
                            pass
                except Exception as failure:
                    if not server_gone(failure):
                        self._so_far()  # raises the error of the steps
                    raise worded(failure) from failure
                self.steps.end(self.spark)
                return self._report_progress()
            finally:
                self.steps.let_go()
                self.steps.report.end(self.spark)

    @contextmanager
    def _listened(self) -> Iterator[None]:
        """Have the listener hear of the stream of this context."""
        listener, streams = self.listener, self.spark.streams
        if listener is None:
            yield
            return
        listener.follow(self.query, lambda: self._so_far()[1])
        streams.addListener(listener)
        try:
            yield
        finally:
            if not server_gone(sys.exception()):
                listener.await_end(_LISTENING_SECONDS)  # Spark reports on a thread of its own, later
                streams.removeListener(listener)

    def _so_far(self) -> tuple[StreamResult, Notes]:
        """The result so far, and the notes on the last micro-batches. Raises the error of the steps."""
        newest: tuple[StreamResult, Notes] | None = self.steps.report.newest(self.spark)
        return newest or (self.begin, {})

    def _start(self, options: StreamOptions) -> StreamingQuery:
        from kraftlake.spark_jobs.data_source import kraft_stream
        from kraftlake.spark_jobs.replay_listener import observed

        given: dict[str, Any] = {"columns": OFFSETS, "startingOffset": self.begin.first_offset}
        if options.max_records is not None:
            given["maxRecordsPerTrigger"] = options.max_records
        ends = options.trigger == AVAILABLE_NOW
        with configured(self.spark, _SETTINGS | checkpoint_settings(self.spark.version)):
            steps = observed(kraft_stream(self.spark, self.steps.lake, given))
            writer = steps.writeStream.queryName(self.query).foreachBatch(self.steps.take)
            return _started(writer.trigger(**({"availableNow": True} if ends else {"processingTime": options.trigger})))

    def _has_reached(self) -> bool:
        """Whether the tables have the last offset that was asked for."""
        until, result = self.steps.until_offset, self._report_progress()
        return until is not None and result.offset >= until

    def _report_progress(self) -> StreamResult:
        """The result so far; calls `on_progress` for the server's Python, which can't."""
        result, notes = self._so_far()
        if self.on_progress is not None and result.offset > self._reported:
            self._reported = result.offset
            self.on_progress(result.offset, result.offset + 1 + notes.get(result.offset, {}).get("lag", 0))
        return result


def _started(writer: DataStreamWriter) -> StreamingQuery:
    """Start a stream. Spark gives the server's Python ten seconds to start, and a busy machine needs several tries."""
    from pyspark.errors import PySparkException

    for _ in range(_TRIES - 1):
        try:
            return writer.start()
        except PySparkException as fault:
            if "failed to connect back" not in str(fault):
                raise
    return writer.start()


@contextmanager
def _ended(query: StreamingQuery) -> Iterator[None]:
    """End a query with the context, unless its server is gone."""
    try:
        yield
    except BaseException as fault:
        if not server_gone(fault):
            with suppress(Exception):
                query.stop()
        raise
    query.stop()
