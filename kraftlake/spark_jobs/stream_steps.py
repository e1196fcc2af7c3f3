"""The micro-batches of a stream that keeps derived tables up to date, made where the lake is seen.

Spark calls them in the driver's process. On Connect they are sent to the server's Python before they have begun, and
there hold the tables until that process ends with the stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Final, TypeAlias

import attrs

from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.storage.location import Location
from kraftlake.replay.reading.open_reader import LakeReader
from kraftlake.runtime.errors import KraftlakeError
from kraftlake.spark_jobs.report import Report
from kraftlake.spark_jobs.stream_faults import as_exception
from kraftlake.spark_jobs.stream_options import StreamResult
from kraftlake.spark_jobs.tasks import is_remote
from kraftlake.tables.catch_up.covered import covered_by
from kraftlake.tables.catch_up.table_run import Progress, TableRun, unlocked_run
from kraftlake.tables.history.history_table import HistoryTable
from kraftlake.tables.table_locks import hold_tables
from kraftlake.tables.table_writer import TableWriter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LIVE_RECORDS: Final = 20_000
"""The most records in a micro-batch whose rows are made without executors."""
_NOTES: Final = 100

Notes: TypeAlias = dict[int, dict[str, int]]
"""The `lag`, `topics` and `partitions` at the ends of micro-batches."""


@attrs.frozen(kw_only=True)
class ExecutorStep:
    """A step that executors have made: the tables cover `offset` now, and will cover the last one before `end`.

    `rows` are the numbers of rows that were added to each table, by name, and `executors` had the tasks; `topics` and
    `partitions` are the numbers of them after it, None where they are not known. `snapshots` are the end offsets of the
    snapshots written; `unwritable` is the reason if the newest image should have one and can't.
    """

    offset: int
    end: int
    rows: Mapping[str, int]
    executors: frozenset[str]
    topics: int | None = None
    partitions: int | None = None
    snapshots: tuple[int, ...] = ()
    unwritable: str | None = None


ExecutorSteps: TypeAlias = Callable[["SparkSession", int], Iterator[ExecutorStep]]
"""Updates the tables of a lake to an offset of the log, the end of a batch, step by step; the caller holds their locks.

Tables that begin with a snapshot whose end is later are then at its end. Raises the errors of a replay, with the
offset, LakeError if the lake can't be read or written, EnvironmentFaultError if Spark fails.
"""


@attrs.define(kw_only=True)
class StreamSteps:
    """Makes the rows of the micro-batches of a stream of steps.

    Records that were in the log at the begin, or pile up while the stream runs, are for executors (`by_executors`); the
    rows of other records are made by a TableRun here, which is closed before executors continue. With
    `snapshot_every_bytes` images become snapshots of the lake too. The first micro-batch takes the tables, and the last
    one, which brings them to `ends_at`, lets go of them. The result so far and the notes go to `report`.
    """

    job: str
    lake: Location
    new_writers: Callable[[], Sequence[TableWriter]]
    by_executors: ExecutorSteps | None = None
    snapshot_every_bytes: int | None = None
    until_offset: int | None = None
    ends_at: int | None = None
    on_progress: Progress | None = None
    report: Report = attrs.field(init=False, factory=Report)
    _result: StreamResult | None = attrs.field(init=False, default=None)
    _notes: Notes = attrs.field(init=False, factory=dict)
    _log: MetadataLog | None = attrs.field(init=False, default=None)
    _begun_end: int = attrs.field(init=False, default=0)
    _executors: set[str] = attrs.field(init=False, factory=set)
    _held: ExitStack | None = attrs.field(init=False, default=None)
    _live: ExitStack = attrs.field(init=False, factory=ExitStack)
    _run: TableRun | None = attrs.field(init=False, default=None)

    def look(self) -> tuple[StreamResult, int]:
        """Create the tables that are missing: the result before the stream, and the end of the log.

        Raises LakeError, OffsetError.
        """
        log = self._take_tables()
        self.let_go()
        return self._made, log.end_offset

    def open_rows(self) -> dict[str, int]:
        """The number of open rows of each history table. Raises LakeError for a table that can't be read."""
        tables = [writer.table(self.lake) for writer in self.new_writers()]
        for table in tables:
            table.last_offset()
        return {table.name: table.open_count for table in tables if isinstance(table, HistoryTable)}

    def take(self, frame: DataFrame, step: int) -> None:  # noqa: ARG002 - Spark's
        """Take one micro-batch, on a thread of Spark's. An error is reported as well: Spark turns it into text."""
        spark = frame.sparkSession
        with as_exception("the job"):
            try:
                self._take(spark, frame)
                self.report.put(spark, self._so_far)
            except BaseException as fault:
                self.let_go()
                if isinstance(fault, KraftlakeError) or not isinstance(fault, Exception):
                    self.report.put(spark, fault)
                raise

    def _take(self, spark: SparkSession, frame: DataFrame) -> None:
        if self._result is not None and self.until_offset is not None and self._result.offset >= self.until_offset:
            return  # the stream is about to be stopped, which interrupts what this would do
        log = self._log if self._held is not None and self._log is not None else self._take_tables()
        for last in frame.toArrow()["last"].to_pylist():
            self._advance(spark, log, last)
        if self.ends_at is not None and self._made.offset >= self.ends_at:
            self._end_live()
            self.let_go()

    def end(self, spark: SparkSession) -> None:
        """Commit all rows that were made in this process, after the last micro-batch, and leave the tables."""
        self._end_live()
        self.let_go()
        if self._log is not None and not is_remote(spark):
            self.report.put(spark, self._so_far)

    def _end_live(self) -> None:
        """Commit all rows that were made here, and leave the tables to the executors."""
        run, self._run = self._run, None
        if run is not None:
            run.finish()
            made = run.result()
            self._live.close()
            self._result = self._made.with_made(made.rows, made.snapshots, made.unwritable)

    def let_go(self) -> None:
        """Leave the tables to other runs; what was not committed is lost."""
        held, self._held, self._run = self._held, None, None
        with suppress(Exception):  # of a run that has failed
            self._live.close()
        if held is not None:
            held.close()

    def _take_tables(self) -> MetadataLog:
        """Hold the tables, and create those that are missing. Raises LakeError, OffsetError."""
        self._log = log = MetadataLog.open(self.lake)  # raises before anything is created in the lake
        self._begun_end = log.end_offset
        writers = self.new_writers()
        names = [writer.description.name for writer in writers]
        with ExitStack() as held:
            held.enter_context(hold_tables(self.lake, names))
            covers = covered_by(LakeReader(log), writers)
            with ThreadPoolExecutor(len(writers) or 1) as pool:  # each waits for the disk, for most of its time
                list(pool.map(lambda writer: writer.table(self.lake).create(log.table_id), writers))
            self._held = held.pop_all()
        base = min(-1 if offset is None else offset for offset in covers.values())
        self._result = self._result or StreamResult(
            lake=self.lake,
            offset=base,
            base_offset=base,
            first_offset=max(base + 1, log.start_offset),
            rows=dict.fromkeys(names, 0),
        )
        return log

    @property
    def _made(self) -> StreamResult:
        assert self._result is not None, "it has begun"
        return self._result

    @property
    def _so_far(self) -> tuple[StreamResult, Notes]:
        return self._made, self._notes

    def _advance(self, spark: SparkSession, log: MetadataLog, last: int) -> None:
        """Update the tables to an offset."""
        log.refresh()
        waiting = log.end_offset - 1 - self._made.offset
        if self.by_executors is not None and (last < self._begun_end or waiting > LIVE_RECORDS):
            self._end_live()
            topics, partitions = self._executed(spark, self.by_executors, last)
        else:
            topics, partitions = self._here(spark, last)
        self._result = self._made.up_to(last, micro_batches=1)
        if topics is not None and partitions is not None:
            lag = log.end_offset - 1 - last
            self._notes[last] = {"lag": lag, "topics": topics, "partitions": partitions}
            self._notes = dict([*self._notes.items()][-_NOTES:])

    def _executed(self, spark: SparkSession, steps: ExecutorSteps, last: int) -> tuple[int | None, int | None]:
        """Make the rows on the executors; returns the numbers of topics and partitions after that."""
        topics = partitions = None
        for step in steps(spark, last):
            topics, partitions = step.topics, step.partitions
            more = len(step.executors - self._executors)
            self._executors |= step.executors
            so_far = self._made.up_to(step.offset, steps=1, executors=more)
            self._result = so_far.with_made(step.rows, step.snapshots, step.unwritable)
            self.report.put(spark, self._so_far)
            if self.on_progress is not None:
                self.on_progress(step.offset, step.end)
        return topics, partitions

    def _here(self, spark: SparkSession, last: int) -> tuple[int, int]:
        """Make the rows in this process; returns the numbers of topics and partitions after that."""
        if self._run is None:
            every_bytes = self.snapshot_every_bytes
            opened = unlocked_run(
                self.job, self.lake, self.new_writers(), snapshot_every_bytes=every_bytes, on_progress=self.on_progress
            )
            self._run = self._live.enter_context(opened)
            self._run.begin()
        run = self._run
        run.refresh()
        run.catch_up(last)
        self._result = self._made.up_to(run.last_offset, driver_batches=1)
        state = run.state(last)
        if is_remote(spark):  # the process ends with the stream, and does not know when
            run.flush()
        return state["topics"], state["partitions"]
