"""The metadata log as a Delta table: appended to in whole batches without gaps, read by offset."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from kraftlake.metadata_log.append_protocol import (
    CLUSTER_ID,
    COMMITTED_TO,
    ROLE,
    START_OFFSET,
    LogEnd,
    LogWentOnError,
    append_rows,
    check_claimed,
    outcome,
)
from kraftlake.metadata_log.appending import checked_rows, leader_change
from kraftlake.metadata_log.commit import (
    UnknownOutcomeError,
    now_ms,
)
from kraftlake.metadata_log.data_files import (
    DataFileGoneError,
    OffsetSpan,
    check_contiguous,
    scan,
)
from kraftlake.metadata_log.delta_actions import Commit, transaction
from kraftlake.metadata_log.delta_log import NotADeltaTableError, TableState, read_table
from kraftlake.metadata_log.delta_schema import holds_columns
from kraftlake.metadata_log.disk import Disk, Durability, disk_for
from kraftlake.metadata_log.founding import LOG_TABLE, ROLES, SNAPSHOTS_TABLE, Contents, found_lake
from kraftlake.metadata_log.location import Location, lake_location
from kraftlake.metadata_log.snapshots import LakeSnapshot, SnapshotTable
from kraftlake.metadata_log.statistics import may_hold_time_before
from kraftlake.records.batch import RecordBatch
from kraftlake.records.rows import LOG_SCHEMA, from_rows, to_rows
from kraftlake.runtime.errors import CorruptDataError, LakeError, OffsetError, UsageError

if TYPE_CHECKING:
    from kraftlake.metadata_log.tail import LogTail
    from kraftlake.records.batch_values import BatchValues

_LOOK_AHEAD_ROWS = 4_096
_CLAIM_RETRIES = 100


class MetadataLog:
    """A lake's log as it was at `version` of its table; `refresh` takes in what was committed since.

    Invariants: offsets run from `start_offset` to `end_offset` (exclusive) without a gap; epochs never go down; a
    batch is in one commit or in none. One handle is for one thread; any number of processes may append, and each
    offset is given once.
    """

    def __init__(self, path: Location, state: TableState, disk: Disk) -> None:
        self._path = path
        self._state = state
        self._disk = disk
        self._checked = -1
        self._stale = False

    @classmethod
    def create(
        cls,
        path: str | Location,
        cluster_id: str | None = None,
        role: str = "imported",
        *,
        start_offset: int = 0,
        contents: Contents | None = None,
        disk: Disk | None = None,
        durability: Durability = "fsync",
    ) -> MetadataLog:
        """Make a lake in a folder that is empty or isn't there yet (its parent is): empty, or with all of `contents`.

        `start_offset` above 0 is for a log whose beginning is covered by a snapshot; the caller sees to that. Raises
        LakeError when there is a lake or anything else already, or the folder can't be made; there is no lake then.
        """
        path = lake_location(path)
        disk = disk or disk_for(path, durability)
        state = found_lake(path, disk, role=role, cluster_id=cluster_id, start_offset=start_offset, contents=contents)
        return cls(path, state, disk)

    @classmethod
    def open(cls, path: str | Location, *, disk: Disk | None = None, durability: Durability = "fsync") -> MetadataLog:
        """Open the lake at `path`, a folder or a URI.

        Raises LakeError saying what is there instead, CorruptDataError for a torn one.
        """
        path = lake_location(path)
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
        if not configuration.get(START_OFFSET, "").isdecimal() or configuration.get(ROLE) not in ROLES:
            raise LakeError(f"{path / LOG_TABLE} was not made by kraftlake: its properties lack role or start offset.")
        return cls(path, state, disk or disk_for(path, durability))

    @property
    def path(self) -> Location:
        """The lake's folder, or its place in an object store."""
        return self._path

    @property
    def version(self) -> int:
        """The version of the Delta table `log`; it says nothing about offsets."""
        return self._state.version

    @property
    def start_offset(self) -> int:
        """The first offset that the log holds, or would hold."""
        return int(self._state.metadata.configuration[START_OFFSET])

    @property
    def end_offset(self) -> int:
        """The offset after the last one."""
        return LogEnd.of(self._state).end_offset

    @property
    def epoch(self) -> int:
        """The epoch of the last batch; -1 in an empty log."""
        return LogEnd.of(self._state).epoch

    @property
    def cluster_id(self) -> str | None:
        """The cluster whose log this is, None where that is unknown."""
        return self._state.metadata.configuration.get(CLUSTER_ID)

    @property
    def role(self) -> str:
        """Who appends: "imported" (imports of a cluster's log) or "controlled" (a controller of ours)."""
        return self._state.metadata.configuration[ROLE]

    @property
    def committed_to(self) -> int:
        """Offsets below this one are known to have been committed by the quorum, or controller, that wrote them."""
        if self.role == "controlled":
            return self.end_offset
        return max(self._state.transactions.get(COMMITTED_TO, 0), self.start_offset)

    def refresh(self) -> int:
        """Take in what was committed since; returns the number of new versions. Opens files by name, lists nothing."""
        before = self._state.version
        try:
            self._state.advance()
        except LakeError:
            self._state = read_table(self._path / LOG_TABLE)
        self._stale = False
        return self._state.version - before

    def append(
        self,
        rows: pa.Table | Iterable[RecordBatch],
        committed_to: int | None = None,
        *,
        epoch: int | None = None,
        expected_end_offset: int | None = None,
    ) -> None:
        """Append whole batches as one Parquet file in one commit: all of them or none, durable when this returns.

        They begin at `end_offset`. A controlled lake's writer states its `epoch`, as `claim` gave it, and where it
        expects the log to end (where the batches begin, unless it says otherwise). In an imported one `committed_to`
        is kept where it is above what the log has, at most `end_offset` after this append; with no rows it is all that
        is committed, and nothing is when it says nothing new.

        Raises FencedEpochError when a later epoch was claimed, now and at every later try; EndOffsetError when the log
        of this epoch ends elsewhere; ImportConflictError naming the offset of a gap, an overlap or an epoch that goes
        down; LakeError for batches that aren't whole, when somebody else appended meanwhile, or when the disk refuses.
        Nothing is in the log then. UnknownOutcomeError (a LakeError) when nobody can say, see `outcome`.
        """
        if self._stale:
            self.refresh()
        self._check_role("imported" if epoch is None else "controlled")
        table = rows if isinstance(rows, pa.Table) else to_rows(rows)
        if epoch is not None:
            if expected_end_offset is None:
                expected_end_offset = table.column("offset")[0].as_py() if table.num_rows else self.end_offset
            self._check_claimed(epoch, expected_end_offset)
        self._state.check_writable()
        table = checked_rows(table, self.end_offset, self.epoch, claimed_epoch=epoch)
        end_offset = self.end_offset + table.num_rows
        committed_to = self.committed_to if committed_to is None else min(committed_to, end_offset)
        actions: list[dict[str, Any]] = []
        if committed_to > self.committed_to:
            actions.append(transaction(COMMITTED_TO, committed_to, now_ms()))
        if not table.num_rows and not actions:
            return
        self._commit_rows(table, actions, epoch)
        assert self.end_offset == end_offset

    def claim(self, node_id: int, *, timestamp: int | None = None) -> int:
        """Become the log's writer: commit the LeaderChange batch of the next epoch, and return that epoch.

        Every append of an epoch before it is refused from now on. Of several who claim at the same time each gets an
        epoch of its own; the last one can append. `timestamp` (epoch ms) is the batch's, by default now.

        Raises LakeError for an imported lake or when the disk refuses, UnknownOutcomeError when nobody can say (claim
        again then: an epoch that nobody writes with does no harm).
        """
        self._check_role("controlled")
        for _ in range(_CLAIM_RETRIES):
            self.refresh()
            self._state.check_writable()
            epoch = max(self.epoch, 0) + 1
            batch = leader_change(node_id, self.end_offset, epoch, now_ms() if timestamp is None else timestamp)
            try:
                self._commit_rows(to_rows([batch]), [], None)
            except LogWentOnError:
                continue
            return epoch
        raise LakeError(f"{self._path} was written to by others {_CLAIM_RETRIES} times in a row; try again.")

    def outcome(self, fault: UnknownOutcomeError) -> bool | None:
        """Whether the commit of an append that ended in `fault` is in the log.

        None while nothing has been committed in its place: in an object store it may still land there. Raises
        LakeError when that can't be read, or was cleaned up meanwhile.
        """
        return outcome(self._state.path, fault)

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

    def tail(self, from_offset: int | None = None, *, timeout: float | None = None, poll: float = 0.001) -> LogTail:
        """The whole batches from the one that holds `from_offset` on, then each new one when it is committed.

        None starts at the end. Looks for the next version each `poll` seconds; ends when nothing came for `timeout`
        seconds (None: never; 0: at the end of what is there), or by `close`. It has a handle of its own, for one
        thread. Raises OffsetError, naming the first available offset, where the log was trimmed past it; a
        compaction, a clean-up and a vacuum don't show.
        """
        from kraftlake.metadata_log.tail import LogTail

        return LogTail(MetadataLog.open(self._path), from_offset, timeout=timeout, poll=poll)

    def tail_async(
        self, from_offset: int | None = None, *, timeout: float | None = None, poll: float = 0.001
    ) -> AsyncIterator[RecordBatch]:
        """As `tail`, for an event loop; `aclose()` or leaving the loop ends it."""
        from kraftlake.metadata_log.tail import tail_async

        return tail_async(MetadataLog.open(self._path), from_offset, timeout=timeout, poll=poll)

    def take_in(self, commit: Commit) -> None:
        """Take in the next version, which somebody read already."""
        self._state.apply(commit)

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

    def _check_role(self, role: str) -> None:
        if self.role == role:
            return
        if role == "controlled":
            raise LakeError(
                f"{self._path} is an imported lake, which only imports append to: one record of another writer would "
                f"spoil every later import. `kraftlake fork` makes a controlled copy."
            )
        raise LakeError(f"{self._path} is a controlled lake: an append states the epoch that its writer claimed.")

    def _check_claimed(self, epoch: int, expected_end_offset: int) -> None:
        """Check against the newest state if this one doesn't agree: another handle may have claimed, or appended."""
        if (self.epoch, self.end_offset) != (epoch, expected_end_offset):
            self.refresh()
        check_claimed(self._path, LogEnd.of(self._state), epoch, expected_end_offset)

    def _commit_rows(self, rows: pa.Table, actions: list[dict[str, Any]], epoch: int | None) -> None:
        """Commit rows that continue the log, and other actions; `epoch` is that of a claimed append."""
        end_offset = self.end_offset
        self._stale = True
        try:
            self._state = append_rows(self._disk, self._state, rows, actions)
        except LogWentOnError:
            self.refresh()
            if epoch is not None:
                check_claimed(self._path, LogEnd.of(self._state), epoch, end_offset)
            raise
        self._stale = False

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
        """Sorted tables that hold each offset of [low, high] once; goes on at a newer version when files vanish."""
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
                    raise CorruptDataError(f"{gone.path} is missing: the lake lost a data file.") from gone
                if expected < self.start_offset:
                    raise OffsetError(
                        f"Offset {expected} was trimmed from {self._path} while it was read: the first available "
                        f"offset is {self.start_offset} now."
                    ) from gone
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
        last = self._state.files.last_offset_of(batch)
        return self.end_offset - 1 if last is None else max(last, high)


def _schema_of(names: Sequence[str]) -> pa.Schema:
    return pa.schema([LOG_SCHEMA.field(name) for name in names])
