"""A table of states with the intervals in which they were so: appends that end intervals in the same commit.

Rows whose interval has ended never change and are appended. Those that are still so (`valid_to_offset` is null) lie in
files of their own, which a commit replaces as a whole: the table is always right, and no reader has to derive the ends.
Where there are many of them a commit waits until enough has ended to be worth it, or the run ends; what has ended is
encoded meanwhile, and waits in memory as the files that the commit writes.

Files follow one another by where their rows end, and have them sorted by where they begin, piece by piece: who asks for
what was so at an offset passes over the files that end before it, and in others over the row groups that begin behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, ClassVar, Protocol

import attrs
import pyarrow as pa
import pyarrow.compute as pc

from kraftlake.metadata_log.delta_table.actions import AddFile, transaction
from kraftlake.metadata_log.delta_table.commit import commit_beside_writers, commit_info, now_ms
from kraftlake.metadata_log.delta_table.table_state import TableState
from kraftlake.metadata_log.storage.location import Location
from kraftlake.tables.encoded_schema import encoded
from kraftlake.tables.history.parquet_stream import EncodedFile, ParquetStream
from kraftlake.tables.lake_table import LakeTable, TableDescription
from kraftlake.tables.lazy_table import LazyTable

AT_ONCE = 20_000
"""Up to so many rows that are still so each append is committed at once."""
_TIMES = 16
"""More of them are written again when so many times as many have ended, or after so many appends."""
_APPENDS = 16
_FILE_ROWS = 1 << 20
"""Where much has ended, files have so many rows."""
_MERGED_ROWS = 1 << 17
"""Files of ended rows are merged up to this size, so that a table that grows by little stays few files."""


class OpenRows(Protocol):
    """What knows the rows that are still so."""

    @property
    def open_count(self) -> int:
        """How many there are."""

    def open_tables(self) -> Iterator[pa.Table]:
        """All of them, a bounded number in each table."""


@attrs.frozen(kw_only=True, eq=False)
class _Made:
    """What a commit is made of: files that are being encoded, and ended rows that are not yet.

    `open_rows` are those of the rows that are still so at `offset`, None where they are what the table has.
    """

    offset: int
    overwrites: bool
    pending: Sequence[LazyTable]
    files: Sequence[Future[EncodedFile]]
    open_rows: Sequence[Future[EncodedFile]] | None


class HistoryTable(LakeTable):
    """A history table in a lake; `states` has the rows that are still so at the offset of the last append."""

    properties: ClassVar[Mapping[str, str]] = {"delta.appendOnly": "false"}

    def __init__(self, description: TableDescription, lake: Location, states: OpenRows) -> None:
        super().__init__(description, lake)
        self._states = states
        self._encoded = encoded(description.table_schema)
        self._pending: list[LazyTable] = []
        self._pending_rows = 0
        self._file: ParquetStream | None = None
        self._encoded_files: list[Future[EncodedFile]] = []
        self._ended = 0
        self._appends = 0
        self._offset: int | None = None

    def append(self, rows: pa.Table | LazyTable, last_offset: int, *, goes_on: bool = False) -> None:
        """Append rows that ended at or before `last_offset`; the states are those after it by now.

        They are in the table when this returns, or later: with `goes_on` most of them are, and all at the latest when
        the run ends (`finish`).
        """
        self.begin_append(rows, last_offset, goes_on=goes_on)()

    def begin_append(
        self, rows: pa.Table | LazyTable, last_offset: int, *, goes_on: bool = False
    ) -> Callable[[], None]:
        """As that of a `LakeTable`: the states may go on when this returns, but no other append may begin."""
        rows = rows if isinstance(rows, LazyTable) else LazyTable.of(rows)
        self._pending.append(self._stored(rows))
        self._pending_rows += rows.num_rows
        self._ended += rows.num_rows
        self._appends += 1
        self._offset = last_offset
        if self._pending_rows >= _MERGED_ROWS:
            self._encode_ended()
        open_count = self._states.open_count
        least = max(open_count, AT_ONCE) if goes_on else open_count
        at_once = open_count <= AT_ONCE and not goes_on
        if at_once or self._ended >= least * _TIMES or self._appends >= _APPENDS:
            return self._begin_commit(last_offset)
        return _do_nothing

    @property
    def waits(self) -> bool:
        """Whether rows that were appended are not in the table yet."""
        return self._offset is not None

    def finish(self) -> None:
        """Commit what waits, and put the files in order."""
        self.begin_finish()()

    def begin_finish(self) -> Callable[[], None]:
        """As that of a `LakeTable`: what is to be committed is encoded meanwhile."""
        commit = _do_nothing if self._offset is None else self._begin_commit(self._offset)
        put_in_order = super().finish

        def finish() -> None:
            commit()
            put_in_order()

        return finish

    def _compact(self) -> None:
        """Nothing: each commit merges small files (`_replaced`)."""

    def open_rows(self, columns: Sequence[str]) -> pa.Table:
        """The rows that are still so, some columns of them, as the table has them on the disk."""
        assert self._held is not None, "the table was created"
        wanted = [*columns, "valid_to_offset"]
        parts = [self._read(file, wanted) for file in self._held.files.values() if _open_rows_of(file) != 0]
        empty = pa.schema([self.description.schema.field(name) for name in wanted]).empty_table()
        rows = pa.concat_tables([empty, *parts])
        return rows.filter(pc.is_null(rows.column("valid_to_offset"))).select([*columns])

    def _stored(self, rows: LazyTable) -> LazyTable:
        """Rows as the table's files have them."""

        def stored() -> Iterator[pa.Table]:
            return (self.with_cluster_id(part).cast(self._encoded) for part in rows.tables())

        return LazyTable.in_parts(stored, self._encoded, rows.num_rows)

    def _encode_ended(self) -> None:
        """Put what waits into the file that is being made."""
        self._file = self._file or ParquetStream(self._encoded, self.description.statistics_columns)
        for rows in self._pending:
            self._file.add(rows)
        self._pending, self._pending_rows = [], 0
        if self._file.rows >= _FILE_ROWS:
            self._encoded_files.append(self._file.done())
            self._file = None

    def _begin_commit(self, last_offset: int) -> Callable[[], None]:
        """Have what waits encoded, and the rows that are still so; what this gives commits them."""
        assert self._held is not None, "the table was created"
        if self._file is not None:
            self._encode_ended()
        if self._file is not None:
            self._encoded_files.append(self._file.done())
            self._file = None
        open_count, open_rows = self._states.open_count, None
        if self._ended > 0 or _open_rows_in(self._held) != open_count:
            tables = self._states.open_tables()  # as they are now, though they are made later
            open_rows = self._encode(self._stored(LazyTable.in_parts(lambda: tables, self._encoded, open_count)))
        made = _Made(
            offset=last_offset,
            overwrites=self._ended > 0 or self._covered is None,
            pending=self._pending,
            files=self._encoded_files,
            open_rows=open_rows,
        )
        self._pending, self._pending_rows, self._encoded_files = [], 0, []
        self._ended = self._appends = 0
        self._offset = None
        return lambda: self._commit_made(made)

    def _commit_made(self, made: _Made) -> None:
        assert self._held is not None, "the table was created"
        closed = pa.concat_tables([self._encoded.empty_table(), *(rows.table() for rows in made.pending)])
        state = commit_beside_writers(self._disk, self._held, self._actions(made, closed))
        if state is not None:
            self._held, self._covered = state, made.offset
            self._keep_up(state)

    def _actions(self, made: _Made, closed: pa.Table) -> Callable[[TableState], Sequence[dict[str, Any]] | None]:
        def make(now: TableState) -> Sequence[dict[str, Any]] | None:
            if not self._lacks(now, made.offset):
                return None
            time = now_ms()
            mode = "Overwrite" if made.overwrites else "Append"
            actions = [
                commit_info("WRITE", {"mode": mode, "partitionBy": "[]"}),
                transaction(self.description.app_id, made.offset, time),
            ]
            if made.open_rows is None:
                return actions
            replaced, ended = self._replaced(now, closed, self._covered)
            files = [*made.files, *self._encode(LazyTable.of(ended)), *made.open_rows]
            adds = [file.result().write(self._disk, self.path, made.offset) for file in files]
            removes = [file.to_remove(time, data_change=True) for file in replaced]
            return [*actions, *removes, *(add.to_action() for add in adds)]

        return make

    def _encode(self, rows: LazyTable) -> list[Future[EncodedFile]]:
        """The file of some rows, on a thread of its own; none where there are none."""
        file = ParquetStream(self._encoded, self.description.statistics_columns)
        file.add(rows)
        return [file.done()] if file.rows else []

    def _replaced(self, now: TableState, closed: pa.Table, covered: int | None) -> tuple[list[AddFile], pa.Table]:
        """The files that the commit takes the place of, and the ended rows that it writes."""
        replaced: list[AddFile] = []
        ended = [closed]
        small: list[tuple[int, AddFile]] = []
        for file in now.files.values():
            rows = file.statistics.record_count if file.statistics is not None else 0
            if _open_rows_of(file) == 0:
                small.append((rows, file))
                continue
            replaced.append(file)
            if _open_rows_of(file) != rows:  # somebody has compacted the table
                table = self._read(file, self._encoded.names)
                ended.append(table.filter(pc.is_valid(table.column("valid_to_offset"))).cast(self._encoded))
        size = sum(part.num_rows for part in ended)
        for rows, file in sorted(small, key=lambda pair: pair[0]):
            if not size or rows > size or rows + size > _MERGED_ROWS:
                break
            replaced.append(file)
            ended.append(self._read(file, self._encoded.names).cast(self._encoded))
            size += rows
        assert covered is not None or not replaced, "a table that covers nothing has no rows"
        return replaced, pa.concat_tables(ended)

    def _read(self, file: AddFile, columns: Sequence[str]) -> pa.Table:
        schema = pa.schema([self.description.table_schema.field(name) for name in columns])
        with self._reading(file) as parquet:
            return parquet.read(columns=[*columns]).select([*columns]).cast(schema)

    def _with_column(self, file: AddFile) -> AddFile:
        stream = ParquetStream(self._encoded, self.description.statistics_columns)
        plain = self.description.schema
        texts = [field.name for field in plain if self._encoded.field(field.name).type != field.type]
        with self._reading(file, dictionaries=texts) as parquet:
            for group in range(parquet.metadata.num_row_groups):
                stream.add(self._stored(LazyTable.of(parquet.read_row_group(group).select(plain.names))))
        return stream.done().result().write(self._disk, self.path, self._covered or 0)


def _do_nothing() -> None:
    """The other step where the first was all."""


def _open_rows_in(state: TableState) -> int:
    """How many rows of a table are still so, as far as its files tell."""
    return sum(_open_rows_of(file) or 0 for file in state.files.values())


def _open_rows_of(file: AddFile) -> int | None:
    """How many rows of a file are still so, None where nothing tells."""
    statistics = file.statistics
    return None if statistics is None else statistics.null_counts.get("valid_to_offset")
