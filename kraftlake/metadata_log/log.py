"""The metadata log as a Delta table: appended to in whole batches without gaps, read by offset."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from kraftlake.metadata_log.appending import checked_rows
from kraftlake.metadata_log.commit import (
    CommitConflictError,
    append_info,
    commit,
    create_table,
    now_ms,
    write_data_file,
)
from kraftlake.metadata_log.data_files import (
    DataFileGoneError,
    OffsetSpan,
    check_contiguous,
    encode_parquet,
    offset_span,
    scan,
)
from kraftlake.metadata_log.delta_actions import AddFile, transaction
from kraftlake.metadata_log.delta_log import NotADeltaTableError, TableState, read_commit, read_table
from kraftlake.metadata_log.delta_schema import holds_columns
from kraftlake.metadata_log.disk import Disk
from kraftlake.metadata_log.lake_folder import make_lake_folder
from kraftlake.metadata_log.snapshots import LakeSnapshot, SnapshotTable
from kraftlake.metadata_log.statistics import file_statistics, may_hold_time_before
from kraftlake.records.batch import RecordBatch
from kraftlake.records.rows import LOG_SCHEMA, from_rows, to_rows
from kraftlake.runtime.errors import CorruptDataError, LakeError, OffsetError, UsageError

if TYPE_CHECKING:
    from kraftlake.records.batch_values import BatchValues

LOG_TABLE = "log"
SNAPSHOTS_TABLE = "snapshots"
STATISTICS_COLUMNS = ("offset", "epoch", "timestamp", "batch", "type")
ROLES = ("imported", "controlled")
NO_EPOCH = -1
"""The epoch of a log without a record."""

_CLUSTER_ID = "kraftlake.cluster_id"
_ROLE = "kraftlake.role"
_START_OFFSET = "kraftlake.log_start_offset"
_END_OFFSET = "kraftlake.end_offset"
_EPOCH = "kraftlake.epoch"
_COMMITTED_TO = "kraftlake.committed_to"

_LOOK_AHEAD_ROWS = 4_096
_MAINTENANCE_RETRIES = 100


class MetadataLog:
    """A lake's log as it was at `version` of its table; `refresh` takes in what was committed since.

    Invariants: offsets run from `start_offset` to `end_offset` (exclusive) without a gap; epochs never go down; a
    batch is in one commit or in none. One handle is for one thread; any number of processes may append, and each
    offset is given once.
    """

    def __init__(self, path: Path, state: TableState, disk: Disk) -> None:
        self._path = path
        self._state = state
        self._disk = disk
        self._planned: tuple[int, list[OffsetSpan]] = (-1, [])
        self._stale = False

    @classmethod
    def create(
        cls,
        path: str | Path,
        cluster_id: str | None = None,
        role: str = "imported",
        *,
        start_offset: int = 0,
        disk: Disk | None = None,
    ) -> MetadataLog:
        """Make an empty lake in a folder that is empty or isn't there yet (its parent is).

        `start_offset` above 0 is for a log whose beginning is covered by a snapshot; the caller sees to that. Raises
        LakeError when there is a lake or anything else already, or the folder can't be made.
        """
        if role not in ROLES or start_offset < 0:
            raise UsageError(f"A lake's role is one of {', '.join(ROLES)} and its start offset at least 0.")
        path, disk = Path(path), disk or Disk()
        # Version 0 alone doesn't tell: an old lake's may have been cleaned up behind a checkpoint.
        with contextlib.suppress(NotADeltaTableError):
            read_table(path / LOG_TABLE)
            raise LakeError(f"There is a lake at {path} already.")
        make_lake_folder(path, disk, LOG_TABLE)
        configuration = {_ROLE: role, _START_OFFSET: str(start_offset)}
        if cluster_id is not None:
            configuration[_CLUSTER_ID] = cluster_id
        try:
            state = create_table(
                disk,
                path / LOG_TABLE,
                name="metadata_log",
                schema=LOG_SCHEMA,
                statistics_columns=STATISTICS_COLUMNS,
                configuration=configuration,
            )
        except CommitConflictError as fault:
            raise LakeError(f"There is a lake at {path} already.") from fault
        return cls(path, state, disk)

    @classmethod
    def open(cls, path: str | Path, *, disk: Disk | None = None) -> MetadataLog:
        """Open the lake at `path`; raises LakeError saying what is there instead, CorruptDataError for a torn one."""
        path = Path(path)
        try:
            state = read_table(path / LOG_TABLE)
        except NotADeltaTableError as fault:
            what = "There is no lake at" if not path.exists() else "There is something else than a lake at"
            raise LakeError(f"{what} {path}; `kraftlake import SOURCE LAKE` makes one.") from fault
        configuration = state.metadata.configuration
        if state.metadata.partition_columns or not holds_columns(
            state.metadata.schema_string, LOG_SCHEMA, str(path / LOG_TABLE)
        ):
            raise LakeError(f"{path / LOG_TABLE} is a Delta table of another schema, not a metadata log.")
        if not configuration.get(_START_OFFSET, "").isdecimal() or configuration.get(_ROLE) not in ROLES:
            raise LakeError(f"{path / LOG_TABLE} was not made by kraftlake: its properties lack role or start offset.")
        return cls(path, state, disk or Disk())

    @property
    def path(self) -> Path:
        """The lake's folder."""
        return self._path

    @property
    def version(self) -> int:
        """The version of the Delta table `log`; it says nothing about offsets."""
        return self._state.version

    @property
    def start_offset(self) -> int:
        """The first offset that the log holds, or would hold."""
        return int(self._state.metadata.configuration[_START_OFFSET])

    @property
    def end_offset(self) -> int:
        """The offset after the last one."""
        return self._state.transactions.get(_END_OFFSET, self.start_offset)

    @property
    def epoch(self) -> int:
        """The epoch of the last batch; -1 in an empty log."""
        return self._state.transactions.get(_EPOCH, NO_EPOCH)

    @property
    def cluster_id(self) -> str | None:
        """The cluster whose log this is, None where that is unknown."""
        return self._state.metadata.configuration.get(_CLUSTER_ID)

    @property
    def role(self) -> str:
        """Who appends: "imported" (imports of a cluster's log) or "controlled" (a controller of ours)."""
        return self._state.metadata.configuration[_ROLE]

    @property
    def committed_to(self) -> int:
        """Offsets below this one are known to have been committed by the quorum that wrote them."""
        return max(self._state.transactions.get(_COMMITTED_TO, 0), self.start_offset)

    def refresh(self) -> int:
        """Take in what was committed since; returns the number of new versions. Opens files by name, lists nothing."""
        before = self._state.version
        try:
            self._state.advance()
        except LakeError:
            self._state = read_table(self._path / LOG_TABLE)
        self._stale = False
        return self._state.version - before

    def append(self, rows: pa.Table | Iterable[RecordBatch], committed_to: int | None = None) -> None:
        """Append whole batches as one Parquet file in one commit: all of them or none, durable when this returns.

        They begin at `end_offset`. `committed_to` is kept where it is above what the log has, at most `end_offset`
        after this append; with no rows it is all that is committed, and nothing is when it says nothing new.

        Raises ImportConflictError naming the offset of a gap, an overlap or an epoch that goes down; LakeError for
        batches that aren't whole, when somebody else appended meanwhile, or when the disk refuses. Nothing is in the
        log then, unless the message says that the disk did not confirm the commit.
        """
        if self._stale:
            self.refresh()
        self._state.check_writable()
        rows = checked_rows(rows if isinstance(rows, pa.Table) else to_rows(rows), self.end_offset, self.epoch)
        end_offset = self.end_offset + rows.num_rows
        committed_to = self.committed_to if committed_to is None else min(committed_to, end_offset)
        now = now_ms()
        actions: list[dict[str, Any]] = []
        if committed_to > self.committed_to:
            actions.append(transaction(_COMMITTED_TO, committed_to, now))
        if rows.num_rows:
            add = self._write_rows(rows)
            actions.append(transaction(_END_OFFSET, end_offset, now))
            actions.append(transaction(_EPOCH, rows.column("epoch")[-1].as_py(), now))
            actions.append(add.to_action())
        if not actions:
            return
        actions.insert(0, append_info(now))
        self._commit(actions)
        assert self.end_offset == end_offset

    def rows(
        self, from_offset: int | None = None, to_offset: int | None = None, columns: Sequence[str] | None = None
    ) -> pa.Table:
        """The rows of offsets `from_offset` to `to_offset`, both included, sorted by offset; all by default.

        What lies outside of the log is left out. Files whose statistics exclude the range aren't opened. Raises
        CorruptDataError naming the offset or file where the table contradicts itself, UsageError for a column that
        the log doesn't have.
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
        """The whole batches that hold any offset from `from_offset` to `to_offset`, both included; all by default.

        Read as they are asked for, in bounded memory. Raises CorruptDataError as `rows` does.
        """
        low, high = self._clip(from_offset, to_offset)
        for table in self._whole_batches(low, high, LOG_SCHEMA):
            yield from from_rows(table)

    def stretches(self, from_offset: int, to_offset: int) -> Iterator[BatchValues | RecordBatch]:
        """As `batches`, many at once: see `kraftlake.records.batch_values`."""
        from kraftlake.records.row_values import values_of_rows

        low, high = self._clip(from_offset, to_offset)
        for table in self._whole_batches(low, high, LOG_SCHEMA):
            yield from values_of_rows(table)

    def offset_at_time(self, time_ms: int) -> int:
        """The last offset whose batch's time (its largest timestamp, epoch ms) is at or before `time_ms`.

        Batches without a time are passed over. Raises OffsetError when there is no such batch.
        """
        wanted = _schema_of(["offset", "batch", "timestamp"])
        spans = [(self.end_offset - 1 if span.high is None else span.high, span) for span in self._spans()]
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

    def snapshots(self) -> tuple[LakeSnapshot, ...]:
        """The snapshots that the lake holds, by end offset; one that isn't whole is left out with a warning."""
        table = SnapshotTable.open(self._path / SNAPSHOTS_TABLE, self._disk)
        return () if table is None else table.snapshots()

    def add_snapshot(
        self,
        *,
        end_offset: int,
        epoch: int,
        last_contained_log_timestamp: int,
        batches: Iterable[RecordBatch],
        size_in_bytes: int = 0,
    ) -> bool:
        """Keep a snapshot, with all of its batches, control ones too, in one commit of table `snapshots`.

        Returns False when the lake has the same one already. Raises ImportConflictError when it has another one with
        this end offset, LakeError when the disk refuses.
        """
        table = SnapshotTable.open_or_create(self._path / SNAPSHOTS_TABLE, self._disk)
        return table.add(
            to_rows(batches),
            end_offset=end_offset,
            epoch=epoch,
            last_contained_log_timestamp=last_contained_log_timestamp,
            size_in_bytes=size_in_bytes,
        )

    def _write_rows(self, rows: pa.Table) -> AddFile:
        data = encode_parquet(rows)
        name = f"{rows.column('offset')[0].as_py():020d}-{uuid.uuid4()}.zstd.parquet"
        write_data_file(self._disk, self._state.path, name, data)
        return AddFile(
            path=name,
            size=data.nbytes,
            modification_time=now_ms(),
            stats=file_statistics(rows, STATISTICS_COLUMNS).to_json(),
        )

    def _commit(self, actions: Sequence[dict[str, Any]]) -> None:
        """Commit at the next version; a compaction that took it leaves the log's end as it was, so the next is tried.

        Any other commit in between means that another writer appended: its rows must be seen before ours can follow.
        """
        for _ in range(_MAINTENANCE_RETRIES):
            self._stale = True
            try:
                commit(self._disk, self._state, actions)
            except CommitConflictError as conflict:
                self._pass_maintenance(conflict.version)
            else:
                self._stale = False
                return
        raise LakeError(f"{self._path} was compacted {_MAINTENANCE_RETRIES} times in a row; try again.")

    def _pass_maintenance(self, version: int) -> None:
        between = read_commit(self._state.path, version)
        if between is None or not between.is_maintenance:
            raise LakeError(
                f"Another writer appended to {self._path} at the same time, after offset {self.end_offset - 1}; "
                f"nothing of this append is in the lake: try again."
            )
        self._state.apply(between)

    def _clip(self, from_offset: int | None, to_offset: int | None) -> tuple[int, int]:
        low = self.start_offset if from_offset is None else max(from_offset, self.start_offset)
        high = self.end_offset - 1 if to_offset is None else min(to_offset, self.end_offset - 1)
        return low, high

    def _spans(self) -> list[OffsetSpan]:
        version, spans = self._planned
        if version != self._state.version:
            spans = [offset_span(file) for file in self._state.files.values()]
            for span in spans:
                if span.high is not None and span.high >= self.end_offset:
                    raise CorruptDataError(
                        f"{self._state.path} holds offset {span.high}, but its log ends before {self.end_offset}: "
                        f"something else than kraftlake wrote to it."
                    )
            self._planned = (self._state.version, spans)
        return spans

    def _scan(self, low: int, high: int, schema: pa.Schema) -> Iterator[pa.Table]:
        """Sorted tables that hold each offset of [low, high] once; goes on at a newer version when files vanish."""
        expected = low
        while expected <= high:
            try:
                for table in scan(self._state.path, self._spans(), expected, high, schema):
                    check_contiguous(table, expected, self._state.path)
                    expected += table.num_rows
                    yield table
                break
            except DataFileGoneError as gone:
                if not self.refresh():
                    raise CorruptDataError(f"{gone.path} is missing: the lake lost a data file.") from gone
        if expected <= high:
            raise CorruptDataError(f"{self._state.path} lacks offset {expected}, although its log goes to {high}.")

    def _whole_batches(self, low: int, high: int, schema: pa.Schema) -> Iterator[pa.Table]:
        """As `_scan`, from the base of the batch that holds `low` to the end of the one that holds `high`."""
        if low > high:
            return
        base = low
        if low > self.start_offset:
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
        while (limit := self._may_go_on_to(last, high)) > high:
            upto = min(high + _LOOK_AHEAD_ROWS, limit)
            more = self.rows(high + 1, upto, schema.names)
            same = more.filter(pc.equal(more.column("batch"), last))
            held = pa.concat_tables([held, same])
            high = upto
            if same.num_rows < more.num_rows:
                break
        yield held

    def _may_go_on_to(self, batch: int, high: int) -> int:
        """The last offset above `high` that may belong to `batch`, by the files' statistics; `high` if there is none.

        Files of ours hold whole batches; a compaction may have cut one in two.
        """
        ends = (span.high for span in self._spans() if span.first_batch <= batch)
        return max((self.end_offset - 1 if end is None else end for end in ends), default=high)


def _schema_of(names: Sequence[str]) -> pa.Schema:
    return pa.schema([LOG_SCHEMA.field(name) for name in names])
