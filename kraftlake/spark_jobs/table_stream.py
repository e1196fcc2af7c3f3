"""A structured stream over a lake's log that keeps derived tables up to date: all stream jobs use it.

Spark's stream reports the next offsets, and the maker of the rows (`StreamSteps`) reads the log itself. The tables have
their own last offsets, and a stream starts after the lowest of them, whatever checkpoint the session keeps.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import attrs

from kraftlake.metadata_log.storage.location import Location, fixed_location
from kraftlake.runtime.errors import EnvironmentFaultError, KraftlakeError
from kraftlake.spark_jobs.report import OF_JOBS, Report, ended, started
from kraftlake.spark_jobs.run_session import RunSession
from kraftlake.spark_jobs.source_options import OFFSETS
from kraftlake.spark_jobs.stream_faults import server_gone, worded
from kraftlake.spark_jobs.stream_options import AVAILABLE_NOW, StreamOptions, StreamResult, checked
from kraftlake.spark_jobs.stream_steps import Notes, StreamSteps
from kraftlake.spark_jobs.tasks import called, configured, is_remote, telling_faults
from kraftlake.tables.catch_up.table_run import Progress
from kraftlake.tables.table_writer import TableWriter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery, StreamingQueryManager

    from kraftlake.spark_jobs.replay_listener import ReplayListener

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
    steps.until_offset = options.until_offset
    with RunSession(spark, f"kraftlake {steps.job}", options.master) as session:
        if session.held is not None and is_remote(session.held):
            steps.report = Report()
        else:
            steps.on_progress, on_progress = on_progress, None
        run = _Run(session=session, steps=steps, options=options, on_progress=on_progress, listener=listener)
        return run.to_the_end()


@attrs.define(kw_only=True)
class _Run:
    """A stream, as the process sees it that has started it; it calls `on_progress` for a server's Python."""

    session: RunSession
    steps: StreamSteps
    options: StreamOptions
    on_progress: Progress | None
    listener: ReplayListener | None
    _begin: StreamResult = attrs.field(init=False)
    _told: int = attrs.field(init=False, default=-1)

    @property
    def query(self) -> str:
        """The name of the query; a session refuses two streams of one name."""
        return f"kraftlake-{self.steps.job} {self.steps.lake}"

    def to_the_end(self) -> StreamResult:
        """Run to the end."""
        self._begin, end = called(self.session.held, self.steps.look)
        done, ends, until = self._begin, self.options.trigger == AVAILABLE_NOW, self.options.until_offset
        last = min([offset for offset in (end - 1 if ends else None, until) if offset is not None], default=None)
        if not ends or done.offset < end - 1:
            self.steps.ends_at = last
            done = self._stream(self.session.get())
            if ends and last is not None and done.offset < last:
                raise EnvironmentFaultError(
                    f"Spark ended the stream over {self.steps.lake} at offset {done.offset} of {last}: run again, "
                    "which goes on from there"
                )
        return attrs.evolve(done, open_rows=called(self.session.held, self.steps.open_rows))

    def _stream(self, spark: SparkSession) -> StreamResult:
        """Run the stream to its end; returns the result."""
        with telling_faults(spark), self._heard(spark.streams):
            try:
                self._await(self._start(spark))
                self.steps.end_live()
                self._tell()
                return self._so_far()[0]
            finally:
                self.steps.let_go()
                if self.steps.report is not None:
                    self.steps.report.end(spark)

    @contextmanager
    def _heard(self, streams: StreamingQueryManager) -> Iterator[None]:
        """Have the listener hear of the stream of this context."""
        listener = self.listener
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
        """The result so far, and the notes on the last micro-batches. Raises the error of a server's steps."""
        steps = self.steps
        told = (steps.result, steps.notes) if steps.report is None else steps.report.heard(self.session.get())
        result, notes = told or (None, {})
        return result or self._begin, notes

    def _start(self, spark: SparkSession) -> StreamingQuery:
        """Start the stream with a checkpoint that ends with it: another has the positions of earlier tables."""
        from kraftlake.spark_jobs.registered import kraft_stream
        from kraftlake.spark_jobs.replay_listener import observed

        options: dict[str, Any] = {"columns": OFFSETS, "startingOffset": self._begin.first_offset}
        if self.options.max_records is not None:
            options["maxRecordsPerTrigger"] = self.options.max_records
        now, interval = {"availableNow": True}, {"processingTime": self.options.trigger}
        with configured(spark, OF_JOBS):
            steps = kraft_stream(spark, self.steps.lake, options)
            writer = observed(steps).writeStream.queryName(self.query).foreachBatch(self.steps.take)
            return started(writer.trigger(**(now if self.options.trigger == AVAILABLE_NOW else interval)))

    def _await(self, query: StreamingQuery) -> None:
        from pyspark.errors import PySparkException

        failure: Exception | None = None
        try:
            with ended(query):
                while not query.awaitTermination(_POLL_SECONDS) and not self._has_reached():
                    pass
        except Exception as fault:
            failure = fault
        cause = self.steps.fault
        if isinstance(cause, KraftlakeError) or not isinstance(cause, Exception | None):
            raise cause
        if failure is not None and not server_gone(failure):
            with suppress(PySparkException):
                self._so_far()
        failure = cause or failure
        if failure is not None:
            raise worded(failure) from failure

    def _has_reached(self) -> bool:
        """Whether the tables have the last offset that was asked for."""
        until = self.options.until_offset
        self._tell()
        return until is not None and self._so_far()[0].offset >= until

    def _tell(self) -> None:
        """Call `on_progress` for the server's Python, which can't."""
        if self.on_progress is None:
            return
        result, notes = self._so_far()
        if result.offset > self._told:
            self._told = result.offset
            self.on_progress(result.offset, result.offset + 1 + notes.get(result.offset, {}).get("lag", 0))
