"""The snapshots of a lake: one Delta table in which each snapshot is one commit of one file, in record form.

The rows have the columns of the log's table (offset, batch: within the snapshot), preceded by the snapshot's end offset
and epoch. Record count, time and size of a snapshot are txn actions of its commit, which survive checkpoints and
compaction, so that a listing reads no data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import pyarrow as pa

from kraftlake.metadata_log.delta_table.actions import AddFile, transaction
from kraftlake.metadata_log.delta_table.commit import (
    CommitConflictError,
    append_info,
    commit,
    create_table,
    now_ms,
    removed_unless_committed,
)
from kraftlake.metadata_log.delta_table.data_files import (
    integer_bounds,
    is_ascending,
    open_live,
    read_row_groups,
)
from kraftlake.metadata_log.delta_table.schema import holds_columns
from kraftlake.metadata_log.delta_table.table_state import NotADeltaTableError, TableState, read_table
from kraftlake.metadata_log.snapshots.checksums import joined
from kraftlake.metadata_log.snapshots.snapshot_files import STATISTICS_COLUMNS, SnapshotPart, write_part
from kraftlake.metadata_log.snapshots.snapshot_rows import (
    END_OFFSET,
    SNAPSHOT_SCHEMA,
    log_rows,
    payload_checksum,
    snapshot_name,
)
from kraftlake.metadata_log.storage.disk import Disk
from kraftlake.metadata_log.storage.location import Location
from kraftlake.records.batch import RecordBatch
from kraftlake.records.rows import LOG_SCHEMA, from_rows
from kraftlake.runtime.arrow import pc
from kraftlake.runtime.errors import CorruptDataError, ImportConflictError, LakeError
from kraftlake.runtime.value import Value

if TYPE_CHECKING:
    from kraftlake.records.batch_values import BatchValues

_PREFIX = "kraftlake.snapshot."
_RECORDS, _TIMESTAMP, _SIZE = "record_count", "last_contained_log_timestamp", "size_in_bytes"
_CHECKSUM = "crc32c"
_ATTEMPTS = 100


@attrs.frozen(kw_only=True, eq=False, repr=False)
class LakeSnapshot(Value):
    """A complete snapshot in a lake: the state after all offsets below `end_offset`, the last of which has `epoch`.

    `last_contained_log_timestamp` is the append time of the last of them in epoch ms; `size_in_bytes` that of Kafka's
    file, 0 where it never was one; `checksum` the CRC32C of its records' values in order, None for one kept by an
    early release. The attributes are those of a snapshot among Kafka's files.
    """

    name: str
    end_offset: int
    epoch: int
    last_contained_log_timestamp: int
    size_in_bytes: int
    record_count: int
    checksum: int | None = None
    finished: bool = True
    named: bool = True
    _table: SnapshotTable = attrs.field(eq=False, repr=False, alias="table")

    @property
    def bootstrap(self) -> bool:
        """Whether these are the records a cluster began with, which are no base for an image."""
        return self.end_offset == 0

    @property
    def data_files(self) -> tuple[tuple[str, int], ...]:
        """Names and sizes of the files that hold its rows."""
        return self._table.data_files(self.end_offset)

    @property
    def data_paths(self) -> tuple[Location, ...]:
        """Where those files lie."""
        return tuple(self._table.path / name for name, _ in self.data_files)

    def batches(self) -> Iterator[RecordBatch]:
        """All batches, control ones too; raises CorruptDataError when the table lost rows of it."""
        yield from from_rows(self._rows())

    def bulk_batches(self) -> Iterator[BatchValues | RecordBatch]:
        """As `batches`, many at once as BatchValues, for bulk replay."""
        from kraftlake.records.row_values import values_of_rows

        yield from values_of_rows(self._rows())

    def _rows(self) -> pa.Table:
        rows = self._table.rows(self.end_offset)
        if (damage := self._damage_of(rows)) is not None:
            raise CorruptDataError(f"The snapshot {self.name} of {self._table.path} is damaged: {damage}.")
        return rows

    def damage(self) -> str | None:
        """Why this snapshot must not be used: how its rows contradict its commit; None for a sound one.

        Reads the whole snapshot.
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
    """The table `snapshots` of a lake, as it was when it was opened."""

    def __init__(self, state: TableState, disk: Disk) -> None:
        self._state = state
        self._disk = disk

    @classmethod
    def open(cls, path: Location, disk: Disk) -> SnapshotTable | None:
        """Open the table; None where the lake has none yet. Raises LakeError for a table of another schema."""
        try:
            state = read_table(path)
        except NotADeltaTableError:
            return None
        if not holds_columns(state.metadata.schema_string, SNAPSHOT_SCHEMA, str(path)):
            raise LakeError(f"{path} is a Delta table of another schema, not the snapshots of a lake.")
        return cls(state, disk)

    @classmethod
    def open_or_create(cls, path: Location, disk: Disk) -> SnapshotTable:
        """Open the table, made first where the lake has none yet."""
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

    def snapshots(self) -> tuple[LakeSnapshot, ...]:
        """The complete snapshots, by end offset; one that lacks rows is left out with a warning."""
        whole = []
        for snapshot in self._stated():
            if (lacks := self._lacks(snapshot)) is None:
                whole.append(snapshot)
            else:
                self._warn_of(snapshot, lacks)
        return tuple(whole)

    def damaged(self) -> tuple[tuple[str, str], ...]:
        """The names of the snapshots that `snapshots` leaves out, each with the reason."""
        lacking = ((snapshot.name, self._lacks(snapshot)) for snapshot in self._stated())
        return tuple((name, lacks) for name, lacks in lacking if lacks is not None)

    def _lacks(self, snapshot: LakeSnapshot) -> str | None:
        """Why a snapshot is incomplete; None where it is complete."""
        try:
            found = self._count(snapshot.end_offset)
        except CorruptDataError as fault:
            return str(fault).rstrip(".")
        if found != snapshot.record_count:
            return f"it has {snapshot.record_count} records, but {found} are there"
        return None

    def _warn_of(self, snapshot: LakeSnapshot, reason: str) -> None:
        from kraftlake.runtime.log import get_logger

        logger = get_logger(__name__)
        logger.warning("snapshot_skipped", snapshot=snapshot.name, lake=str(self.path.parent), reason=reason)

    def add(
        self, rows: pa.Table, *, end_offset: int, epoch: int, last_contained_log_timestamp: int, size_in_bytes: int
    ) -> bool:
        """Commit a snapshot; False when it is there already.

        Raises ImportConflictError when there is another one with its end offset, LakeError when the disk refuses.
        """
        if not rows.num_rows:
            raise LakeError(f"The snapshot that ends before offset {end_offset} holds no records.")
        rows = log_rows(rows)
        if self._has(end_offset, epoch, lambda snapshot: self.rows(snapshot.end_offset).equals(rows)):
            return False
        part = write_part(self._disk, self.path, rows, end_offset, epoch)
        return self.add_parts(
            [part],
            end_offset=end_offset,
            epoch=epoch,
            last_contained_log_timestamp=last_contained_log_timestamp,
            size_in_bytes=size_in_bytes,
        )

    def add_parts(
        self,
        parts: Sequence[SnapshotPart],
        *,
        end_offset: int,
        epoch: int,
        last_contained_log_timestamp: int,
        size_in_bytes: int = 0,
    ) -> bool:
        """Commit a snapshot whose files `write_part` wrote; False when the table has it already.

        `parts` hold its rows in order, without a gap. Raises as `add` does; the files are deleted then.
        """
        name = snapshot_name(end_offset, epoch)
        checksum = joined((part.checksum, part.payload_bytes) for part in parts)
        record_count = sum(part.record_count for part in parts)
        facts = {
            _RECORDS: record_count,
            _TIMESTAMP: last_contained_log_timestamp,
            _SIZE: size_in_bytes,
            _CHECKSUM: checksum,
        }
        with removed_unless_committed(self._disk, [self.path / part.file.path for part in parts]):
            for _ in range(_ATTEMPTS):
                if self._has(end_offset, epoch, lambda snapshot: _is(snapshot, record_count, checksum)):
                    return False
                now = now_ms()
                actions = [
                    append_info(),
                    *(transaction(f"{_PREFIX}{name}.{fact}", value, now) for fact, value in facts.items()),
                    *(part.file.to_action() for part in parts),
                ]
                try:
                    commit(self._disk, self._state, actions)
                except CommitConflictError:
                    self._state = read_table(self.path)
                else:
                    return True
            raise LakeError(f"{self.path} was written to by others {_ATTEMPTS} times in a row; try again.")

    def rows(self, end_offset: int) -> pa.Table:
        """The rows of one snapshot as LOG_SCHEMA has them, sorted by offset; raises CorruptDataError."""
        tables = [rows for file in self._files_of(end_offset) for rows in self._read(file, end_offset)]
        if not tables:
            return LOG_SCHEMA.empty_table()
        rows = pa.concat_tables(tables)
        return rows if is_ascending(rows.column("offset")) else rows.sort_by("offset")

    def data_files(self, end_offset: int) -> tuple[tuple[str, int], ...]:
        """Names and sizes of the files that may hold rows of a snapshot, sorted."""
        return tuple(sorted((file.path, file.size) for file in self._files_of(end_offset)))

    def _stated(self) -> list[LakeSnapshot]:
        """The snapshots as their commits state them."""
        stated = []
        facts = self._state.transactions
        for app_id, record_count in facts.items():
            if not (app_id.startswith(_PREFIX) and app_id.endswith(f".{_RECORDS}")):
                continue
            name = app_id[len(_PREFIX) : -len(_RECORDS) - 1]
            end_offset, _, epoch = name.removesuffix(".checkpoint").partition("-")
            if not (end_offset.isdecimal() and epoch.isdecimal()):
                continue
            snapshot = LakeSnapshot(
                name=name,
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

    def _has(self, end_offset: int, epoch: int, same: Callable[[LakeSnapshot], bool]) -> bool:
        for snapshot in self._stated():
            if snapshot.end_offset != end_offset:
                continue
            if snapshot.epoch != epoch:
                raise ImportConflictError(
                    f"The lake has a snapshot that ends before offset {end_offset} with epoch {snapshot.epoch}, "
                    f"but this one has epoch {epoch}: it is another cluster's."
                )
            if not same(snapshot):
                raise ImportConflictError(
                    f"The lake has a snapshot {snapshot.name} with other records: this one is another cluster's, "
                    f"or one of them is damaged."
                )
            return True
        return False

    def _files_of(self, end_offset: int) -> list[AddFile]:
        files = []
        for file in self._state.files.values():
            statistics = file.statistics
            low = statistics.min_values.get(END_OFFSET) if statistics else None
            high = statistics.max_values.get(END_OFFSET) if statistics else None
            if (low is None or low <= end_offset) and (high is None or high >= end_offset):
                files.append(file)
        return files

    def _count(self, end_offset: int) -> int:
        """The number of rows of a snapshot, by the statistics of its files and their footers as far as possible."""
        found = 0
        for file in self._files_of(end_offset):
            if (stated := self._stated_rows(file, end_offset)) is not None:
                found += stated
                continue
            parquet = open_live(self.path / file.path)
            bounds = integer_bounds(parquet, END_OFFSET)
            for index, ends in enumerate(bounds):
                if ends == (end_offset, end_offset):
                    found += parquet.metadata.row_group(index).num_rows
                elif ends is None or ends[0] <= end_offset <= ends[1]:
                    schema = pa.schema([SNAPSHOT_SCHEMA.field(END_OFFSET)])
                    column = read_row_groups(parquet, self.path / file.path, [index], schema).column(END_OFFSET)
                    found += column.to_pylist().count(end_offset)  # not by pyarrow.compute: it would import pandas
        return found

    def _stated_rows(self, file: AddFile, end_offset: int) -> int | None:
        """The rows of an intact file on a disk that holds one snapshot alone; None where it must be opened."""
        path, statistics = self.path / file.path, file.statistics
        if statistics is None or not isinstance(path, Path):
            return None
        ends = statistics.min_values.get(END_OFFSET), statistics.max_values.get(END_OFFSET)
        if ends != (end_offset, end_offset) or not path.is_file() or path.stat().st_size != file.size:
            return None
        return statistics.record_count

    def _read(self, file: AddFile, end_offset: int) -> Iterator[pa.Table]:
        path = self.path / file.path
        parquet = open_live(path)
        wanted = pa.schema([SNAPSHOT_SCHEMA.field(END_OFFSET), *LOG_SCHEMA])
        for index, ends in enumerate(integer_bounds(parquet, END_OFFSET)):
            if ends is None or ends[0] <= end_offset <= ends[1]:
                rows = read_row_groups(parquet, path, [index], wanted)
                yield rows.filter(pc.equal(rows.column(END_OFFSET), end_offset)).select(LOG_SCHEMA.names)


def _is(snapshot: LakeSnapshot, record_count: int, checksum: int) -> bool:
    return snapshot.record_count == record_count and snapshot.checksum in (None, checksum)
