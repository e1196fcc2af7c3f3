"""Reading a log by offset: whole batches or rows, in order, concurrent with appends, compaction and clean-up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from kraftlake.metadata_log.append.log_file import LogEnd, end_offset_of
from kraftlake.metadata_log.chain import Chain, chain_base
from kraftlake.metadata_log.delta_table.actions import Commit
from kraftlake.metadata_log.delta_table.data_files import (
    DataFileGoneError,
    OffsetSpan,
    integer_bounds,
    may_hold_time_before,
    open_live,
)
from kraftlake.metadata_log.delta_table.delta_log import ReplacedTableError, follow, is_there
from kraftlake.metadata_log.delta_table.scan import check_contiguous, scan
from kraftlake.metadata_log.delta_table.table_state import Extent, TableState, Tombstones, commit_path
from kraftlake.metadata_log.log_facts import CLUSTER_ID, COMMITTED_TO, LOG_TABLE, ROLE, START_OFFSET
from kraftlake.metadata_log.storage.location import Location
from kraftlake.records.batch import RecordBatch
from kraftlake.records.rows import LOG_SCHEMA, from_rows
from kraftlake.runtime.arguments import whole, whole_or_none
from kraftlake.runtime.arrow import pc
from kraftlake.runtime.errors import CorruptDataError, OffsetError, UsageError

if TYPE_CHECKING:
    from kraftlake.records.batch_values import BatchValues

_LOOK_AHEAD_ROWS = 4_096


class ReadableLog:
    """A lake's log at one `version` of its table; `refresh` applies the versions committed since.

    Invariants: offsets run from `start_offset` to `end_offset` (exclusive) without a gap; epochs never decrease; each
    batch is completely in one commit. One handle is for one thread.
    """

    def __init__(self, path: Location, state: TableState) -> None:
        self._path = path
        self._checked = -1
        self._hold(state)

    @property
    def path(self) -> Location:
        """The lake's folder, or its location in an object store."""
        return self._path

    @property
    def version(self) -> int:
        """The version of the Delta table `log`, which is independent of offsets."""
        return self._state.version

    @property
    def table(self) -> TableState:
        """The state of the Delta table `log` at this version, to be read only."""
        return self._state

    @property
    def table_id(self) -> str:
        """The id of the Delta table `log`, constant for the lake's life, and unique to the lake."""
        return self._state.metadata.id

    @property
    def start_offset(self) -> int:
        """The first offset of the log, or the first one to be appended to an empty log."""
        return int(self._state.metadata.configuration[START_OFFSET])

    @property
    def end_offset(self) -> int:
        """The offset after the last one."""
        return end_offset_of(self._state)

    @property
    def epoch(self) -> int:
        """The epoch of the last batch; -1 in an empty log."""
        return LogEnd.of(self._state).epoch

    @property
    def cluster_id(self) -> str | None:
        """The id of the log's cluster, None if unknown."""
        return self._state.metadata.configuration.get(CLUSTER_ID)

    @property
    def role(self) -> str:
        """The kind of writer: "imported" (imports of a cluster's log) or "controlled" (a kraftlake controller)."""
        return self._state.metadata.configuration[ROLE]

    @property
    def committed_to(self) -> int:
        """The offset below which all records are known to have been committed by their quorum or controller."""
        if self.role == "controlled":
            return self.end_offset
        return max(self._state.transactions.get(COMMITTED_TO, 0), self.start_offset)

    @property
    def chain(self) -> Chain | None:
        """The chain of hashes over the log's rows: see `kraftlake.metadata_log.chain`."""
        return Chain.of(self._state)

    @property
    def chain_base(self) -> int | None:
        """The hash before the first row of the chain in the log; None if a trim did not keep it."""
        return chain_base(self._state)

    def has_version(self, version: int) -> bool:
        """Whether a version of the table exists by its name; a commit that was cleaned up does not. Thread-safe.

        Raises RefusedReadError.
        """
        return is_there(commit_path(self._path / LOG_TABLE, version))

    def refresh(self) -> int:
        """Apply the versions committed since; returns their number. Opens files by name, without a listing.

        Raises ReplacedTableError, a LakeError, if the lake was deleted, or replaced by another one or by an earlier
        state of itself.
        """
        before = self._state.version
        state = follow(self._state)
        if state is not self._state:
            if end_offset_of(state) < self.end_offset:
                raise ReplacedTableError(state.path, before)
            self._hold(state)
        return self._state.version - before

    def rows(
        self, from_offset: int | None = None, to_offset: int | None = None, columns: Sequence[str] | None = None
    ) -> pa.Table:
        """Return the rows of offsets `from_offset` to `to_offset`, both included, sorted by offset; all by default.

        The range is clipped to the log. Files whose statistics exclude the range aren't opened. Raises CorruptDataError
        with the offset or file if the table contradicts itself, UsageError for an unknown column.
        """
        names = LOG_SCHEMA.names if columns is None else list(columns)
        if unknown := set(names) - set(LOG_SCHEMA.names):
            raise UsageError(f"The log has no column {', '.join(sorted(unknown))}.")
        wanted = _schema_of(names)
        low, high = self._clip(from_offset, to_offset)
        tables = list(self._scan(low, high, _schema_of([*names, *({"offset"} - set(names))])))
        if not tables:
            return wanted.empty_table()
        return pa.concat_tables(tables).select(names)

    def batches(self, from_offset: int | None = None, to_offset: int | None = None) -> Iterator[RecordBatch]:
        """Yield the whole batches that hold any offset from `from_offset` to `to_offset`, both included.

        All by default. Batches are read on demand, in bounded memory. Raises CorruptDataError as `rows` does.
        """
        for table in self.batch_rows(whole_or_none(from_offset), whole_or_none(to_offset)):
            yield from from_rows(table)

    def batch_rows(
        self,
        from_offset: int | None = None,
        to_offset: int | None = None,
        *,
        columns: Sequence[str] = tuple(LOG_SCHEMA.names),
    ) -> Iterator[pa.Table]:
        """Yield the batches as tables of rows, sorted by offset; each table holds whole batches.

        `columns` selects columns of the log; `offset` and `batch` are among them.
        """
        low, high = self._clip(from_offset, to_offset)
        yield from self._whole_batches(low, high, _schema_of(columns))

    def bulk_batches(self, from_offset: int, to_offset: int) -> Iterator[BatchValues | RecordBatch]:
        """The same as `batches`, in bulk as BatchValues, for bulk replay."""
        from kraftlake.records.row_values import values_of_rows

        for table in self.batch_rows(from_offset, to_offset):
            yield from values_of_rows(table)

    def tables(self, from_offset: int, to_offset: int, columns: Sequence[str]) -> Iterator[pa.Table]:
        """The same as `rows`, in consecutive tables that are read on demand; `offset` is one of the columns."""
        low, high = self._clip(from_offset, to_offset)
        yield from self._scan(low, high, _schema_of(columns))

    def files_between(self, from_offset: int, to_offset: int) -> list[OffsetSpan]:
        """The files that may hold an offset of [from_offset, to_offset], in no order."""
        return self._spans(*self._clip(from_offset, to_offset))

    def batches_end(self, first: int, count: int) -> int:
        """The end of the whole batches that begin with offset `first` and have up to `count` records.

        `first` may be in the middle of a batch. The first batch is taken whatever its size.
        """
        if first + count >= self.end_offset:
            return self.end_offset
        base: int = self.rows(first + count, first + count, ["batch"]).column("batch")[0].as_py()
        if base > first:
            return base
        *_, last = self.batch_rows(first, first, columns=["offset", "batch"])
        end: int = last.column("offset")[-1].as_py() + 1
        return end

    def offset_at_time(self, time_ms: int) -> int:
        """The last offset whose batch's time (its largest timestamp, epoch ms) is at or before `time_ms`.

        Batches without a time are skipped. Raises OffsetError without such a batch.
        """
        time_ms = whole(time_ms, "a time in milliseconds since 1970")
        wanted = _schema_of(["offset", "batch", "timestamp"])
        held = self._spans(self.start_offset, self.end_offset - 1)
        spans = [(self.end_offset - 1 if span.high is None else span.high, span) for span in held]
        for high, span in sorted(spans, key=lambda pair: pair[0], reverse=True):
            if not may_hold_time_before(span.file, time_ms):
                continue
            tables = list(self._whole_batches(max(span.low, self.start_offset), high, wanted))
            times = pa.concat_tables(tables).group_by("batch").aggregate([("timestamp", "max"), ("offset", "max")])
            early = times.filter(pc.less_equal(times.column("timestamp_max").cast(pa.int64()), time_ms * 1000))
            if early.num_rows:
                last: int = pc.max(early.column("offset_max")).as_py()
                return last
        raise OffsetError(f"The log of {self._path} holds no batch of the time {time_ms} (epoch ms) or before it.")

    def misplaced_rows(self) -> str | None:
        """The error, as a sentence, if the files don't hold exactly the log's offsets because of another writer's rows.

        None if the files are correct. Reads the statistics of the files' adds, and the footers of files without them.
        Raises CorruptDataError where neither has statistics.
        """
        state, start, end = self._state, self.start_offset, self.end_offset
        extent = _whole_extent(state)
        if extent.records and extent.lowest < start:
            offset, but = extent.lowest, f"its log starts at {start}"
        elif extent.highest >= end:
            offset, but = extent.highest, f"its log ends before {end}"
        elif extent.records != end - start:
            return (
                f"{state.path} holds {extent.records} rows in place of the {end - start} from offset {start} to "
                f"{end - 1}: something else than kraftlake wrote to it."
            )
        else:
            return None
        spans = state.files.overlapping(offset, offset)
        named = f" (in {spans[0].file.path})" if len(spans) == 1 else ""
        return f"{state.path} holds offset {offset}{named}, but {but}: something else than kraftlake wrote to it."

    def apply(self, commit: Commit) -> None:
        """Apply the next version, which the caller has read."""
        self._state.apply(commit)

    def _hold(self, state: TableState) -> None:
        """Continue from a state. Removed files are not kept: only upkeep needs them, and their number grows."""
        self._state = state
        state.tombstones = Tombstones(kept=False)

    def _clip(self, from_offset: int | None, to_offset: int | None) -> tuple[int, int]:
        low = self.start_offset if from_offset is None else max(from_offset, self.start_offset)
        high = self.end_offset - 1 if to_offset is None else min(to_offset, self.end_offset - 1)
        return low, high

    def _spans(self, low: int, high: int) -> list[OffsetSpan]:
        """The files that may hold an offset of [low, high]."""
        if self._checked != self._state.version:
            highest = self._state.files.highest_offset()
            if highest >= self.end_offset:
                raise CorruptDataError(
                    f"{self._state.path} holds offset {highest}, but its log ends before {self.end_offset}: "
                    f"something else than kraftlake wrote to it."
                )
            self._checked = self._state.version
        return self._state.files.overlapping(low, high)

    def _scan(self, low: int, high: int, schema: pa.Schema) -> Iterator[pa.Table]:
        """Yield sorted tables that hold each offset of [low, high] once.

        Continues at a newer version if files vanish.
        """
        expected = low
        while expected <= high:
            try:
                for table in scan(self._state.path, self._spans(expected, high), expected, high, schema):
                    check_contiguous(table, expected, self._state.path)
                    expected += table.num_rows
                    yield table
                break
            except DataFileGoneError as gone:
                if not self.refresh():
                    raise gone.as_loss() from gone
                if expected < self.start_offset:
                    raise OffsetError(
                        f"Offset {expected} was trimmed from {self._path} while it was read: the first available "
                        f"offset is {self.start_offset} now."
                    ) from gone
        if expected <= high:
            raise CorruptDataError(f"{self._state.path} lacks offset {expected}, although its log goes to {high}.")

    def _whole_batches(self, low: int, high: int, schema: pa.Schema) -> Iterator[pa.Table]:
        """The same as `_scan`, from the base of the batch that holds `low` to the end of the one that holds `high`."""
        if low > high:
            return
        base = low
        if low > self.start_offset and not any(span.low == span.first_batch == low for span in self._spans(low, low)):
            base = self.rows(low, low, ["batch"]).column("batch")[0].as_py()
        held: pa.Table | None = None
        for table in self._scan(base, high, schema):
            held = table if held is None else pa.concat_tables([held, table])
            column = held.column("batch")
            last_begins: int = pc.index(column, column[-1]).as_py()
            if last_begins:
                yield held.slice(0, last_begins)
                held = held.slice(last_begins)
        assert held is not None
        last = held.column("batch")[0].as_py()
        while high < self.end_offset - 1 and (limit := self._may_go_on_to(last, high)) > high:
            upto = min(high + _LOOK_AHEAD_ROWS, limit)
            more = self.rows(high + 1, upto, schema.names)
            same = more.filter(pc.equal(more.column("batch"), last))
            held = pa.concat_tables([held, same])
            high = upto
            if same.num_rows < more.num_rows:
                break
        yield held

    def _may_go_on_to(self, batch: int, high: int) -> int:
        """The last offset above `high` that may belong to `batch`, by the files' statistics; `high` without one.

        Files of kraftlake hold whole batches; another writer's compaction may have split one.
        """
        last = self._state.files.last_offset_of(batch)
        return self.end_offset - 1 if last is None else max(last, high)


def _schema_of(names: Sequence[str]) -> pa.Schema:
    return pa.schema([LOG_SCHEMA.field(name) for name in names])


def _whole_extent(state: TableState) -> Extent:
    """The extent of all files; files without statistics count by their footers."""
    extent = state.files.extent()
    ends, records = [], extent.records
    for path in extent.vague:
        parquet = open_live(state.path / path)
        records += parquet.metadata.num_rows
        for bounds in integer_bounds(parquet, "offset"):
            if bounds is None:
                raise CorruptDataError(f"{state.path / path} doesn't say which offsets it holds, nor does its commit.")
            ends.append(bounds)
    if extent.highest >= 0:
        ends.append((extent.lowest, extent.highest))
    lowest, highest = min((low for low, _ in ends), default=-1), max((high for _, high in ends), default=-1)
    return Extent(lowest=lowest, highest=highest, records=records, vague=())
