"""The micro-batches of a stream that keeps derived tables up to date, made where the lake is seen.

Spark calls them in the driver's process. On Connect they are sent to the server's Python before they have begun, and
there hold the tables until that process ends with the stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

import attrs

from kraftlake.image.metadata_image import MetadataImage
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.storage.location import Location
from kraftlake.replay.loader.fold import image_at
from kraftlake.replay.reading.open_reader import LakeReader
from kraftlake.runtime.errors import KraftlakeError
from kraftlake.spark_jobs.backlog import ExecutorTables
from kraftlake.spark_jobs.report import Report
from kraftlake.spark_jobs.stream_options import StreamResult
from kraftlake.tables.catch_up.covered import covered_by
from kraftlake.tables.catch_up.table_run import Progress, TableRun, unlocked_run
from kraftlake.tables.history.history_table import HistoryTable
from kraftlake.tables.shards.faults import fault_to_json
from kraftlake.tables.table_locks import hold_tables
from kraftlake.tables.table_writer import TableWriter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LIVE_RECORDS: Final = 20_000
"""The most records in a micro-batch whose rows are made without executors."""
_NOTES: Final = 1_000

Notes = dict[int, dict[str, int]]
"""The `lag`, `topics` and `partitions` at the ends of micro-batches."""


@attrs.define(kw_only=True)
class StreamSteps:
    """Makes the rows of the micro-batches of a stream of steps.

    Records that were in the log at the begin, or pile up while the stream runs, are a `backlog` for executors; the rows
    of other records are made by a TableRun here, which is closed before executors continue. It is closed as well at
    `ends_at`, the last offset of a stream that nobody can tell that it has ended. `report` gets what a client of
    Connect needs to know.
    """

    job: str
    lake: Location
    new_writers: Callable[[], Sequence[TableWriter]]
    backlog: ExecutorTables | None
    snapshot_every_bytes: int | None
    until_offset: int | None
    ends_at: int | None = None
    on_progress: Progress | None = None
    report: Report | None = None
    fault: BaseException | None = None
    notes: Notes = attrs.field(factory=dict)
    _log: MetadataLog | None = attrs.field(init=False, default=None)
    _result: StreamResult | None = attrs.field(init=False, default=None)
    _begun_end: int = attrs.field(init=False, default=0)
    _held: ExitStack | None = attrs.field(init=False, default=None)
    _live: ExitStack | None = attrs.field(init=False, default=None)
    _run: TableRun | None = attrs.field(init=False, default=None)

    @contextmanager
    def begun(self) -> Iterator[tuple[StreamResult, int]]:
        """Hold the tables, and create those that are missing: the result before the stream, and the end of the log.

        Raises LakeError, OffsetError.
        """
        self._log = log = MetadataLog.open(self.lake)  # raises before anything is created in the lake
        self._begun_end = log.end_offset
        writers = self.new_writers()
        names = [writer.description.name for writer in writers]
        with hold_tables(self.lake, names), ExitStack() as self._live:
            tables = [writer.table(self.lake) for writer in writers]
            covers = covered_by(LakeReader(log), writers)
            for table in tables:
                table.create(log.table_id)
            base = min(-1 if offset is None else offset for offset in covers.values())
            self._result = self._result or StreamResult(
                make_image=partial(_image_of, self.lake, base),
                offset=base,
                base_offset=base,
                first_offset=max(base + 1, log.start_offset),
                rows=dict.fromkeys(names, 0),
            )
            yield self._result, log.end_offset

    def look(self) -> tuple[StreamResult, int]:
        """Begin, and let go of the tables."""
        with self.begun() as found:
            return found

    def open_rows(self) -> dict[str, int]:
        """The number of open rows of each history table. Raises LakeError for a table that can't be read."""
        tables = [writer.table(self.lake) for writer in self.new_writers()]
        for table in tables:
            table.last_offset()
        return {table.name: table.open_count for table in tables if isinstance(table, HistoryTable)}

    @property
    def result(self) -> StreamResult:
        """The result so far."""
        assert self._result is not None, "it has begun"
        return self._result

    def take(self, frame: DataFrame, step: int) -> None:  # noqa: ARG002 - Spark's
        """Take one micro-batch, on a thread of Spark's. An exception is kept: Spark turns it into text."""
        spark = frame.sparkSession
        try:
            if self._is_done:  # the stream is about to be stopped, which interrupts what this would do
                return
            if self.report is not None and self._held is None:
                self._held = ExitStack()
                self._held.enter_context(self.begun())
            for last in frame.toArrow()["last"].to_pylist():
                self._advance(spark, last)
            if self.ends_at is not None and self.result.offset >= self.ends_at:
                self.end_live()
                self._let_go()
        except Exception as fault:
            self.fault = fault
            raise
        except BaseException as fault:  # Spark would wait forever for a thread that ends with it
            self.fault = fault
            raise RuntimeError(type(fault).__name__) from fault
        finally:
            if self.fault is not None:
                self._let_go()
            self._say(spark)

    def _let_go(self) -> None:
        """Leave the tables to other runs, where the stream can't say when it ends."""
        held, self._held = self._held, None
        if held is not None:
            held.close()

    def end_live(self) -> None:
        """Commit all rows that were made here, and leave the tables to the executors, or to other runs."""
        run, self._run = self._run, None
        if run is None:
            return
        assert self._live is not None, "the run is in it"
        run.finish()
        made = run.result()
        self._live.close()
        self._add(rows=made.rows, snapshots=made.snapshots, unwritable=made.unwritable)

    @property
    def _is_done(self) -> bool:
        until, so_far = self.until_offset, self._result
        return until is not None and so_far is not None and so_far.offset >= until

    def _advance(self, spark: SparkSession, last: int) -> None:
        """Update the tables to an offset."""
        assert self._log is not None, "it has begun"
        self._log.refresh()
        waiting = self._log.end_offset - 1 - self.result.offset
        if self.backlog is not None and (last < self._begun_end or waiting > LIVE_RECORDS):
            self.end_live()
            topics, partitions = self._by_executors(spark, self.backlog, last)
        else:
            topics, partitions = self._here(last)
        self._add(offset=last, micro_batches=1)
        if topics is not None and partitions is not None:
            lag = self._log.end_offset - 1 - last
            self.notes[last] = {"lag": lag, "topics": topics, "partitions": partitions}
            self.notes = dict([*self.notes.items()][-_NOTES:])

    def _by_executors(self, spark: SparkSession, backlog: ExecutorTables, last: int) -> tuple[int | None, int | None]:
        """Make the rows on the executors; returns the numbers of topics and partitions after that."""

        def on_step(offset: int, end: int) -> None:
            self._add(offset=offset)
            self._say(spark)
            if self.on_progress is not None:
                self.on_progress(offset, end)

        made = backlog.advance(spark, last, on_step)
        self._add(rows=made.rows, steps=made.steps, snapshots=made.snapshots, unwritable=made.unwritable)
        self._result = attrs.evolve(self.result, executors=max(self.result.executors, made.executors))
        return made.topics, made.partitions

    def _here(self, last: int) -> tuple[int | None, int | None]:
        """Make the rows in this process; returns the numbers of topics and partitions after that."""
        if self._run is None:
            assert self._live is not None, "it has begun"
            every_bytes = self.snapshot_every_bytes
            opened = unlocked_run(
                self.job, self.lake, self.new_writers(), snapshot_every_bytes=every_bytes, on_progress=self.on_progress
            )
            self._run = self._live.enter_context(opened)
            self._run.begin()
        run = self._run
        run.refresh()
        run.catch_up(last)
        self._add(offset=run.last_offset, driver_batches=1)
        state = run.state(last)
        if self.report is not None:
            run.flush()
        return state["topics"], state["partitions"]

    def _add(
        self,
        *,
        offset: int = -1,
        rows: dict[str, int] | None = None,
        snapshots: Sequence[int] = (),
        unwritable: str | None = "",
        **counts: int,
    ) -> None:
        """Add to the result."""
        so_far = self.result
        offset = max(so_far.offset, offset)
        self._result = attrs.evolve(
            so_far,
            make_image=partial(_image_of, self.lake, offset),
            offset=offset,
            rows={name: count + (rows or {}).get(name, 0) for name, count in so_far.rows.items()},
            snapshots=(*so_far.snapshots, *snapshots),
            unwritable=so_far.unwritable if unwritable == "" else unwritable,
            **{name: getattr(so_far, name) + count for name, count in counts.items()},
        )

    def _say(self, spark: SparkSession) -> None:
        if self.report is None or (self._result is None and self.fault is None):
            return
        fault = fault_to_json(self.fault) if isinstance(self.fault, KraftlakeError) else None
        self.report.say(spark, (self._result, self.notes, fault))


def _image_of(lake: Location, offset: int) -> MetadataImage:
    """The image at an offset of the log, the empty one at -1."""
    return MetadataImage.EMPTY if offset < 0 else image_at(LakeReader(MetadataLog.open(lake)), offset).image
