"""A table of states with the intervals in which they were valid, kept up to date by one commit for each append.

Rows whose interval has ended never change and are appended. Open rows (`valid_to_offset` is null) are in files of their
own, which a commit replaces as a whole: every version of the table is correct, and no reader has to derive the ends.
With many open rows, a commit waits until enough rows have ended, or the run ends; ended rows are encoded meanwhile, and
held in memory as the files that the commit will write.

Files are in the order in which their rows end, and within a file each table that was added is sorted by where its rows
begin: a query for an offset skips the files that end before it, and the row groups that begin after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, ClassVar, Protocol

import attrs
import pyarrow as pa
import pyarrow.compute as pc

from kraftlake.metadata_log.delta_table.actions import AddFile, transaction
from kraftlake.metadata_log.delta_table.commit import commit_info, now_ms
from kraftlake.metadata_log.delta_table.row_files import EncodedFile, RowFile
from kraftlake.metadata_log.delta_table.table_state import TableState
from kraftlake.metadata_log.storage.location import Location
from kraftlake.tables.encoded_schema import encoded
from kraftlake.tables.history.history_columns import ROW_GROUP_ROWS
from kraftlake.tables.lake_table import LakeTable, TableDescription
from kraftlake.tables.lazy_table import LazyTable
from kraftlake.tables.parquet_stream import ParquetStream

AT_ONCE = 20_000
"""The largest number of open rows with which each append is committed at once."""
_TIMES = 16
"""With more open rows, a commit waits until this multiple of them has ended, or for _APPENDS appends."""
_APPENDS = 16
_FILE_ROWS = 1 << 20
"""The number of rows in a file of ended rows, if enough have ended."""
_MERGED_ROWS = 1 << 17
"""Files of ended rows are merged up to this number of rows, so that a table that grows slowly has few files."""


class OpenRows(Protocol):
    """The source of a history table's open rows."""

    @property
    def open_count(self) -> int:
        """The number of open rows."""

    def open_tables(self) -> Iterator[pa.Table]:
        """All open rows, a bounded number in each table."""


@attrs.frozen(kw_only=True, eq=False)
class _Made:
    """The content of a commit: files that are being encoded, and ended rows in `pending` that are in none of them.

    `open_rows` are the files of the rows that are open at `offset`, None if they equal those of the table.
    """

    offset: int
    overwrites: bool
    pending: Sequence[LazyTable]
    files: Sequence[Future[EncodedFile | None]]
    open_rows: Future[EncodedFile | None] | None


class HistoryTable(LakeTable):
    """A history table in a lake; `states` has the rows that are open at the offset of the last append."""

    properties: ClassVar[Mapping[str, str]] = {"delta.appendOnly": "false"}

    def __init__(self, description: TableDescription, lake: Location, states: OpenRows) -> None:
        super().__init__(description, lake)
        self._states = states
        self._encoded = encoded(description.table_schema)
        self._pending: list[LazyTable] = []
        self._pending_rows = 0
        self._stream_rows = 0
        self._encoded_files: list[Future[EncodedFile | None]] = []
        self._ended = 0
        self._appends = 0
        self._offset: int | None = None

    def begin_append(
        self, rows: pa.Table | LazyTable, last_offset: int, *, goes_on: bool = False
    ) -> Callable[[], None]:
        """Append rows that ended at or before `last_offset`; `states` has the open rows after it.

        `states` may change when this returns, but no other append may begin before the returned step is done. With
        `goes_on` the rows may be committed later, at the latest by `finish`.
        """
        rows = self._stored(rows)
        self._pending.append(rows)
        self._pending_rows += rows.num_rows
        self._ended += rows.num_rows
        self.added_rows += rows.num_rows
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
        """Whether appended rows are waiting for their commit."""
        return self._offset is not None

    def begin_finish(self) -> Callable[[], None]:
        """Begin to encode the rows that are not committed yet; the returned step commits them."""
        commit = _do_nothing if self._offset is None else self._begin_commit(self._offset)

        def finish() -> None:
            commit()
            self._compact_and_vacuum()

        return finish

    def _compact(self) -> None:
        """A no-op: each commit merges small files (`_replaced`)."""

    @property
    def open_count(self) -> int:
        """The number of open rows that the table on the disk has."""
        return 0 if self._held is None else _open_rows_in(self._held)

    def open_rows(self, columns: Sequence[str]) -> pa.Table:
        """Some columns of the open rows that the table on the disk has."""
        assert self._held is not None, "the table was created"
        wanted = [*columns, "valid_to_offset"]
        tables = [self._read(file, wanted) for file in self._held.files.values() if _open_rows_of(file) != 0]
        empty = pa.schema([self.description.schema.field(name) for name in wanted]).empty_table()
        rows = pa.concat_tables([empty, *tables])
        return rows.filter(pc.is_null(rows.column("valid_to_offset"))).select([*columns])

    def _form(self, rows: pa.Table) -> pa.Table:
        return self.with_cluster_id(rows).cast(self._encoded)

    def _new_file(self) -> ParquetStream:
        """A file of rows, each table of which has row groups of its own: readers skip those that begin too late."""
        columns = self.description.statistics_columns
        return ParquetStream(RowFile(columns, group_rows=ROW_GROUP_ROWS, joins_tables=False))

    def _encode_ended(self) -> None:
        """Add the pending rows to the file that is being encoded."""
        self._stream = self._stream or self._new_file()
        for rows in self._pending:
            self._stream.add(rows)
        self._stream_rows += self._pending_rows
        self._pending, self._pending_rows = [], 0
        if self._stream_rows >= _FILE_ROWS:
            self._end_file()

    def _end_file(self) -> None:
        if self._stream is not None:
            self._encoded_files.append(self._stream.done())
        self._stream, self._stream_rows = None, 0

    def _begin_commit(self, last_offset: int) -> Callable[[], None]:
        """Begin to encode the pending and the open rows; the returned step commits them."""
        assert self._held is not None, "the table was created"
        if self._stream is not None:
            self._encode_ended()
        self._end_file()
        open_count, open_rows = self._states.open_count, None
        if self._ended > 0 or _open_rows_in(self._held) != open_count:
            tables = self._states.open_tables()  # of the states of now, but made later
            open_rows = self._encode(self._stored(LazyTable.in_chunks(lambda: tables, self._encoded, open_count)))
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

    def write_file(self, rows: pa.Table | LazyTable, last_offset: int) -> AddFile:
        """Write rows as `LakeTable.write_file` does; at least one, and all of them ended, or all of them open."""
        (file,) = self._written([self._encode(self._stored(rows))], last_offset)
        return file

    def append_files(self, files: Sequence[AddFile], last_offset: int) -> None:
        """Append files that `ParquetStream` has written, in this process or others, in one commit.

        They hold the rows that ended at or before `last_offset`, and in files of their own all rows that are open after
        it; without files, the open rows stay as they are. Otherwise as `append`.
        """
        count = sum(map(_ended_rows_of, files))

        def written(now: TableState) -> tuple[list[AddFile], list[AddFile]]:
            if not files:
                return [], []
            replaced, ended = self._replaced(now, self._encoded.empty_table(), count)
            return replaced, [*files, *self._written([self._encode(LazyTable.of(ended))], last_offset)]

        self._commit_rows(last_offset, written, overwrites=bool(files) or self._covered is None)
        self.added_rows += count

    def _commit_made(self, made: _Made) -> None:
        closed = pa.concat_tables([self._encoded.empty_table(), *(rows.table() for rows in made.pending)])

        def written(now: TableState) -> tuple[list[AddFile], list[AddFile]]:
            if made.open_rows is None:
                return [], []
            replaced, ended = self._replaced(now, closed)
            return replaced, self._written(
                [*made.files, self._encode(LazyTable.of(ended)), made.open_rows], made.offset
            )

        self._commit_rows(made.offset, written, overwrites=made.overwrites)

    def _commit_rows(
        self,
        last_offset: int,
        written: Callable[[TableState], tuple[list[AddFile], list[AddFile]]],
        *,
        overwrites: bool,
    ) -> None:
        """Commit the files that `written` replaces and adds."""

        def actions(now: TableState) -> Sequence[dict[str, Any]] | None:
            if not self._lacks(now, last_offset):
                return None
            time, (replaced, added) = now_ms(), written(now)
            return [
                commit_info("WRITE", {"mode": "Overwrite" if overwrites else "Append", "partitionBy": "[]"}),
                transaction(self.description.app_id, last_offset, time),
                *(file.to_remove(time, data_change=True) for file in replaced),
                *(add.to_action() for add in added),
            ]

        self._commit(actions, last_offset)

    def _encode(self, rows: LazyTable) -> Future[EncodedFile | None]:
        """The file of the rows, which a thread encodes."""
        file = self._new_file()
        file.add(rows)
        return file.done()

    def _written(self, files: Sequence[Future[EncodedFile | None]], last_offset: int) -> list[AddFile]:
        """Write the encoded files that have rows."""
        encoded = [file.result() for file in files]
        return [file.write(self._disk, self.path, last_offset) for file in encoded if file is not None]

    def _replaced(self, now: TableState, closed: pa.Table, others: int = 0) -> tuple[list[AddFile], pa.Table]:
        """The files that the commit replaces, and the ended rows that it writes: `closed`, and those of small files.

        `others` is the number of ended rows in files that it adds.
        """
        replaced: list[AddFile] = []
        ended = [closed]
        small: list[tuple[int, AddFile]] = []
        for file in now.files.values():
            rows = file.statistics.record_count if file.statistics is not None else 0
            if _open_rows_of(file) == 0:
                small.append((rows, file))
                continue
            replaced.append(file)
            if _open_rows_of(file) != rows:  # another process has compacted the table
                table = self._read(file, self._encoded.names)
                ended.append(table.filter(pc.is_valid(table.column("valid_to_offset"))).cast(self._encoded))
        size = others + sum(table.num_rows for table in ended)
        for rows, file in sorted(small, key=lambda pair: pair[0]):
            if not size or rows > size or rows + size > _MERGED_ROWS:
                break
            replaced.append(file)
            ended.append(self._read(file, self._encoded.names).cast(self._encoded))
            size += rows
        assert self._covered is not None or not replaced, "a table that covers nothing has no rows"
        return replaced, pa.concat_tables(ended)

    def _read(self, file: AddFile, columns: Sequence[str]) -> pa.Table:
        schema = pa.schema([self.description.table_schema.field(name) for name in columns])
        with self._reading(file) as parquet:
            return parquet.read(columns=[*columns]).select([*columns]).cast(schema)

    def _with_column(self, file: AddFile) -> AddFile:
        stream = self._new_file()
        plain = self.description.schema
        texts = [field.name for field in plain if self._encoded.field(field.name).type != field.type]
        with self._reading(file, dictionaries=texts) as parquet:
            for group in range(parquet.metadata.num_row_groups):
                stream.add(self._stored(LazyTable.of(parquet.read_row_group(group).select(plain.names))))
        (written,) = self._written([stream.done()], self._covered or 0)
        return written


def _do_nothing() -> None:
    """The second step of an append that needs none."""


def _open_rows_in(state: TableState) -> int:
    """The number of open rows of a table, by the statistics of its files."""
    return sum(_open_rows_of(file) or 0 for file in state.files.values())


def _ended_rows_of(file: AddFile) -> int:
    """The number of rows of a file if all of them have ended, else 0."""
    return file.statistics.record_count if file.statistics is not None and _open_rows_of(file) == 0 else 0


def _open_rows_of(file: AddFile) -> int | None:
    """The number of open rows of a file, None if it has no statistics."""
    statistics = file.statistics
    return None if statistics is None else statistics.null_counts.get("valid_to_offset")
