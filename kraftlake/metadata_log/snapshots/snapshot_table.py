"""The snapshots of a lake: one Delta table in which each snapshot is one commit of one file, in record form.

The rows have the columns of the log's table (offset, batch: within the snapshot), preceded by the snapshot's end offset
and epoch. Record count, time and size of a snapshot are txn actions of its commit, which survive checkpoints and
compaction, so that a listing reads no data.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import pyarrow as pa

from kraftlake.metadata_log.delta_table.actions import AddFile, transaction
from kraftlake.metadata_log.delta_table.commit import (
    CommitConflictError,
    append_info,
    commit_beside_writers,
    create_table,
    now_ms,
)
from kraftlake.metadata_log.delta_table.data_files import open_live
from kraftlake.metadata_log.delta_table.delta_log import NotADeltaTableError, read_table
from kraftlake.metadata_log.delta_table.scan import is_ascending
from kraftlake.metadata_log.delta_table.schema import holds_columns
from kraftlake.metadata_log.delta_table.table_state import TableState
from kraftlake.metadata_log.snapshots.snapshot_rows import (
    END_OFFSET,
    SNAPSHOT_SCHEMA,
    STATISTICS_COLUMNS,
    SnapshotFacts,
    SnapshotPart,
    groups_with,
    joined_checksum,
    log_rows,
    payload_checksum,
    rows_in_group,
    write_part,
)
from kraftlake.metadata_log.storage.disk import Disk
from kraftlake.metadata_log.storage.location import Location, size_of
from kraftlake.records.batch import RecordBatch
from kraftlake.records.rows import LOG_SCHEMA, from_rows
from kraftlake.runtime.errors import CorruptDataError, ImportConflictError, LakeError

if TYPE_CHECKING:
    from kraftlake.records.batch_values import BatchValues

_PREFIX = "kraftlake.snapshot."
_RECORDS, _TIMESTAMP, _SIZE = "record_count", "last_contained_log_timestamp", "size_in_bytes"
_CHECKSUM = "crc32c"
DELETED = -1
"""The record count of a deleted snapshot, which earlier releases skip as incomplete."""


@attrs.frozen(kw_only=True, eq=False, repr=False)
class LakeSnapshot(SnapshotFacts):
    """A complete snapshot in a lake, with the attributes of a snapshot among Kafka's files.

    `checksum` is the CRC32C of its records' values in order, None for a snapshot stored by an early release.
    """

    record_count: int
    checksum: int | None = None
    finished: bool = True
    named: bool = True
    _table: SnapshotTable = attrs.field(eq=False, repr=False, alias="table")

    @property
    def bootstrap(self) -> bool:
        """Whether the snapshot has a cluster's first records, which are no base for an image."""
        return self.end_offset == 0

    @property
    def data_files(self) -> tuple[tuple[str, int], ...]:
        """The names and sizes of the files with its rows."""
        return self._table.data_files(self.end_offset)

    @property
    def data_paths(self) -> tuple[Location, ...]:
        """The locations of those files."""
        return tuple(self._table.path / name for name, _ in self.data_files)

    def batches(self) -> Iterator[RecordBatch]:
        """Yield all batches, control batches too; raises CorruptDataError if the table lost rows of the snapshot."""
        yield from from_rows(self._rows())

    def bulk_batches(self) -> Iterator[BatchValues | RecordBatch]:
        """The same as `batches`, in bulk as BatchValues, for bulk replay."""
        from kraftlake.records.row_values import values_of_rows

        yield from values_of_rows(self._rows())

    def _rows(self) -> pa.Table:
        rows = self._table.rows(self.end_offset)
        if (damage := self._damage_of(rows)) is not None:
            raise CorruptDataError(f"The snapshot {self.name} of {self._table.path} is damaged: {damage}.")
        return rows

    def damage(self) -> str | None:
        """The contradiction between this snapshot's rows and its commit, which forbids its use.

        None for a sound snapshot. Reads the whole snapshot.
        """
        try:
            return self._damage_of(self._table.rows(self.end_offset))
        except CorruptDataError as fault:
            return str(fault)

    def _damage_of(self, rows: pa.Table) -> str | None:
        if rows.num_rows != self.record_count:
            return f"it has {self.record_count} records, but {rows.num_rows} are there"
        if self.checksum is not None and (found := payload_checksum(rows)[0]) != self.checksum:
            return f"its records' checksum is {found:08x}, not {self.checksum:08x} as when it was kept"
        return None


class SnapshotTable:
    """The table `snapshots` of a lake, as of its opening."""

    def __init__(self, state: TableState, disk: Disk) -> None:
        self._state = state
        self._disk = disk
        self._known_files: tuple[int, list[_SnapshotFile]] = (-1, [])

    @classmethod
    def open(cls, path: Location, disk: Disk) -> SnapshotTable | None:
        """Open the table; None if the lake has none yet. Raises LakeError for a table of another schema."""
        try:
            state = read_table(path)
        except NotADeltaTableError:
            return None
        if not holds_columns(state.metadata.schema_string, SNAPSHOT_SCHEMA, str(path)):
            raise LakeError(f"{path} is a Delta table of another schema, not the snapshots of a lake.")
        return cls(state, disk)

    @classmethod
    def open_or_create(cls, path: Location, disk: Disk) -> SnapshotTable:
        """Open the table, which is created if missing."""
        table = cls.open(path, disk)
        if table is None:
            try:
                state = create_table(
                    disk,
                    path,
                    name="snapshots",
                    schema=SNAPSHOT_SCHEMA,
                    statistics_columns=STATISTICS_COLUMNS,
                    configuration={},
                )
            except CommitConflictError:
                state = read_table(path)
            table = cls(state, disk)
        return table

    @property
    def path(self) -> Location:
        """The table's folder."""
        return self._state.path

    @property
    def state(self) -> TableState:
        """The table at its opening, or after the last commit."""
        return self._state

    def with_own_files(self, end_offsets: Collection[int]) -> list[LakeSnapshot]:
        """The snapshots with these end offsets whose rows share no file with those of another one."""
        shared = [file for file in self._files() if not file.is_of_one]
        return [
            one
            for one in self._stated(self._state)
            if one.end_offset in end_offsets and not any(file.may_hold(one.end_offset) for file in shared)
        ]

    def snapshots(self) -> tuple[LakeSnapshot, ...]:
        """The complete snapshots, by end offset; one with missing rows is skipped with a warning."""
        complete = []
        for snapshot, lacks in self._counted():
            if lacks is None:
                complete.append(snapshot)
                continue
            from kraftlake.runtime.log import get_logger

            get_logger(__name__).warning(
                "snapshot_skipped", snapshot=snapshot.name, lake=str(self.path.parent), reason=lacks
            )
        return tuple(complete)

    def damaged(self) -> tuple[tuple[str, str], ...]:
        """The names of the snapshots that `snapshots` skips, each with the reason."""
        return tuple((snapshot.name, lacks) for snapshot, lacks in self._counted() if lacks is not None)

    def add(self, rows: pa.Table, facts: SnapshotFacts) -> bool:
        """Commit a snapshot; returns False if the table already has it.

        Raises ImportConflictError for another snapshot with its end offset, LakeError if the disk refuses.
        """
        if not rows.num_rows:
            raise LakeError(f"The snapshot that ends before offset {facts.end_offset} holds no records.")
        rows = log_rows(rows)
        if self._has(self._state, facts, lambda snapshot: self.rows(snapshot.end_offset).equals(rows)):
            return False
        return self.add_parts([write_part(self._disk, self.path, rows, facts.end_offset, facts.epoch)], facts)

    def add_parts(self, parts: Sequence[SnapshotPart], facts: SnapshotFacts) -> bool:
        """Commit a snapshot whose files `write_part` wrote; returns False if the table already has it.

        `parts` hold its rows in order, without a gap. Raises as `add` does. The files are deleted if they are not
        committed.
        """
        checksum = joined_checksum((part.checksum, part.payload_bytes) for part in parts)
        record_count = sum(part.record_count for part in parts)
        stated = {
            _RECORDS: record_count,
            _TIMESTAMP: facts.last_contained_log_timestamp,
            _SIZE: facts.size_in_bytes,
            _CHECKSUM: checksum,
        }

        def is_same(snapshot: LakeSnapshot) -> bool:
            return snapshot.record_count == record_count and snapshot.checksum in (None, checksum)

        def actions(now: TableState) -> list[dict[str, Any]] | None:
            if self._has(now, facts, is_same):
                return None
            time = now_ms()
            return [
                append_info(),
                *(transaction(f"{_PREFIX}{facts.name}.{fact}", value, time) for fact, value in stated.items()),
                *(part.file.to_action() for part in parts),
            ]

        committed = commit_beside_writers(self._disk, self._state, actions, new_files=[part.file for part in parts])
        if committed is not None:
            self._state = committed
        return committed is not None

    def rows(self, end_offset: int) -> pa.Table:
        """Return the rows of one snapshot in LOG_SCHEMA, sorted by offset; raises CorruptDataError."""
        tables = []
        for file in self._files_of(end_offset):
            path = self.path / file.path
            parquet = open_live(path)
            tables += [rows_in_group(parquet, path, group, end_offset) for group, _ in groups_with(parquet, end_offset)]
        rows = pa.concat_tables(tables or [LOG_SCHEMA.empty_table()])
        return rows if is_ascending(rows.column("offset")) else rows.sort_by("offset")

    def data_files(self, end_offset: int) -> tuple[tuple[str, int], ...]:
        """The names and sizes of the files that may hold rows of a snapshot, sorted."""
        return tuple(sorted((file.path, file.size) for file in self._files_of(end_offset)))

    def _stated(self, state: TableState) -> list[LakeSnapshot]:
        """The snapshots as their commits state them."""
        stated = []
        facts = state.transactions
        for app_id, record_count in facts.items():
            if not (app_id.startswith(_PREFIX) and app_id.endswith(f".{_RECORDS}")):
                continue
            name = app_id[len(_PREFIX) : -len(_RECORDS) - 1]
            end_offset, _, epoch = name.removesuffix(".checkpoint").partition("-")
            if record_count == DELETED or not (end_offset.isdecimal() and epoch.isdecimal()):
                continue
            snapshot = LakeSnapshot(
                end_offset=int(end_offset),
                epoch=int(epoch),
                last_contained_log_timestamp=facts.get(f"{_PREFIX}{name}.{_TIMESTAMP}", -1),
                size_in_bytes=facts.get(f"{_PREFIX}{name}.{_SIZE}", 0),
                record_count=record_count,
                checksum=facts.get(f"{_PREFIX}{name}.{_CHECKSUM}"),
                table=self,
            )
            stated.append(snapshot)
        return sorted(stated, key=lambda snapshot: snapshot.end_offset)

    def _has(self, state: TableState, facts: SnapshotFacts, is_same: Callable[[LakeSnapshot], bool]) -> bool:
        for snapshot in self._stated(state):
            if snapshot.end_offset != facts.end_offset:
                continue
            if snapshot.epoch != facts.epoch:
                raise ImportConflictError(
                    f"The lake has a snapshot that ends before offset {facts.end_offset} with epoch {snapshot.epoch}, "
                    f"but this one has epoch {facts.epoch}: it is another cluster's."
                )
            if not is_same(snapshot):
                raise ImportConflictError(
                    f"The lake has a snapshot {snapshot.name} with other records: this one is another cluster's, "
                    f"or one of them is damaged."
                )
            return True
        return False

    def _counted(self) -> Iterator[tuple[LakeSnapshot, str | None]]:
        """Yield the snapshots as their commits state them, each with the reason if it is incomplete, else None."""
        own: dict[int | None, list[_SnapshotFile]] = defaultdict(list)
        shared: list[_SnapshotFile] = []
        for file in self._files():
            (own[file.low] if file.is_of_one else shared).append(file)
        for snapshot in self._stated(self._state):
            try:
                found = self._count([*own[snapshot.end_offset], *shared], snapshot.end_offset)
            except CorruptDataError as fault:
                yield snapshot, str(fault).rstrip(".")
                continue
            lacks = f"it has {snapshot.record_count} records, but {found} are there"
            yield snapshot, lacks if found != snapshot.record_count else None

    def _files(self) -> list[_SnapshotFile]:
        """The files with their statistics, which are parsed once for each version of the table."""
        version, files = self._known_files
        if version != self._state.version:
            files = [_SnapshotFile.of(file) for file in self._state.files.values()]
            self._known_files = self._state.version, files
        return files

    def _files_of(self, end_offset: int) -> list[AddFile]:
        return [file.add for file in self._files() if file.may_hold(end_offset)]

    def _count(self, files: Iterable[_SnapshotFile], end_offset: int) -> int:
        """Return the number of rows of a snapshot, by statistics of its files, else their footers, else their rows."""
        found = 0
        for file in files:
            path = self.path / file.add.path
            if not file.may_hold(end_offset):
                continue
            if file.is_of_one and file.rows is not None and _has_size(path, file.add.size):
                found += file.rows
                continue
            parquet = open_live(path)
            for group, alone in groups_with(parquet, end_offset):
                if alone:
                    found += parquet.metadata.row_group(group).num_rows
                else:
                    offsets = pa.schema([LOG_SCHEMA.field("offset")])
                    found += rows_in_group(parquet, path, group, end_offset, offsets).num_rows
        return found


def records_fact(snapshot: SnapshotFacts) -> str:
    """The name under which the table states the number of a snapshot's records."""
    return f"{_PREFIX}{snapshot.name}.{_RECORDS}"


def without_deleted(facts: Mapping[str, int]) -> dict[str, int]:
    """The facts that a table states, without those of deleted snapshots."""
    suffix = f".{_RECORDS}"
    gone = {
        name.removesuffix(suffix)
        for name, count in facts.items()
        if count == DELETED and name.startswith(_PREFIX) and name.endswith(suffix)
    }
    return {name: value for name, value in facts.items() if not gone or name.rpartition(".")[0] not in gone}


@attrs.frozen
class _SnapshotFile:
    """A data file, its number of rows, and the lowest and highest end offset of its snapshots; None if not stated."""

    add: AddFile
    low: int | None
    high: int | None
    rows: int | None

    @classmethod
    def of(cls, add: AddFile) -> _SnapshotFile:
        statistics = add.statistics
        if statistics is None:
            return cls(add, None, None, None)
        low, high = statistics.min_values.get(END_OFFSET), statistics.max_values.get(END_OFFSET)
        return cls(add, low, high, statistics.record_count)

    @property
    def is_of_one(self) -> bool:
        """Whether the file surely holds rows of only one snapshot."""
        return self.low is not None and self.low == self.high

    def may_hold(self, end_offset: int) -> bool:
        return (self.low is None or self.low <= end_offset) and (self.high is None or self.high >= end_offset)


def _has_size(path: Location, size: int) -> bool:
    """Whether a file with this size exists. Raises RefusedReadError.

    An object is assumed to exist: objects number in the thousands, each check would take a request, and reading finds
    missing ones.
    """
    return not isinstance(path, Path) or size_of(path) == size
