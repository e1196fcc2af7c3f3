"""The Parquet files of tables derived from a log: many columns of any type, read by column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.parquet as pq

from kraftlake.metadata_log.delta_table.actions import AddFile, FileStatistics
from kraftlake.metadata_log.delta_table.commit import STATISTICS_COLUMNS, ZSTD_SUFFIX
from kraftlake.metadata_log.delta_table.data_files import file_statistics, write_data_file
from kraftlake.metadata_log.delta_table.table_state import TableState
from kraftlake.metadata_log.storage.disk import Disk
from kraftlake.metadata_log.storage.location import Location
from kraftlake.runtime.arrow import pc
from kraftlake.runtime.errors import CorruptDataError

_ROW_GROUP_ROWS = 131_072
_VALIDITY = ("valid_from_offset", "valid_to_offset", "valid_from", "valid_to")
_SORTED = ("offset", *_VALIDITY)
"""Columns of encoded rows whose neighbouring values differ by little."""
_MOSTLY_EMPTY = ("elr", "last_known_elr", "adding_replicas", "removing_replicas")
"""Lists that are empty in most row groups, which their elements' bounds show."""
_BOUNDED = ("epoch", "timestamp", "leader", *_SORTED)
"""Columns by which readers can skip rows: those along which rows are ordered in files, and leaders, as -1 is rare.

Each row group holds nearly all values of any other column: its bounds skip nothing, and take a quarter of the encoding.
"""
_FEW_TOPICS = 1 << 10
"""The most topics of a file's first rows with which the names in a row group have bounds, too.

Names come and go; but between the bounds of thousands of names lie nearly all.
"""


_HELD_ROWS = 1 << 17


class GrowingStatistics:
    """The statistics of `file_statistics` over successive tables of rows, of which few are kept in memory."""

    def __init__(self, columns: Sequence[str], *, held_rows: int = _HELD_ROWS) -> None:
        """Process up to `held_rows` rows together."""
        self._columns = columns
        self._holds = held_rows
        self._record_count = 0
        self._nulls = dict.fromkeys(columns, 0)
        self._held: list[pa.Table] = []
        self._held_rows = 0
        self._ends: list[pa.Table] = []

    def add(self, rows: pa.Table) -> None:
        """Add rows."""
        self._record_count += rows.num_rows
        self._held.append(rows.select(self._columns))
        self._held_rows += rows.num_rows
        if self._held_rows >= self._holds:
            self._fold()

    def of_all(self) -> FileStatistics:
        """The statistics of all rows, at least one table."""
        self._fold()
        statistics = file_statistics(pa.concat_tables(self._ends), self._columns)
        return attrs.evolve(statistics, record_count=self._record_count, null_counts=self._nulls)

    def _fold(self) -> None:
        """Reduce the held rows to their smallest and largest values."""
        if not self._held:
            return
        rows = pa.concat_tables(self._held)
        self._held, self._held_rows = [], 0
        columns = {name: rows.column(name) for name in self._columns}
        for name, column in columns.items():
            self._nulls[name] += column.null_count
        ends = {name: [*pc.min_max(column).values()] for name, column in columns.items()}
        self._ends.append(pa.table({name: pa.array(ends[name], column.type) for name, column in columns.items()}))


@attrs.frozen(eq=False)
class EncodedFile:
    """An encoded file in memory: on the disk, a vacuum deletes files that wait too long for their commit."""

    data: memoryview = attrs.field(repr=False)
    stats: str
    rows: int

    def write(self, disk: Disk, table: Location, last_offset: int, *, modification_time: int | None = None) -> AddFile:
        """Write the file durably; it is no part of the table before a commit adds it.

        The file's name begins with `last_offset`. Raises LakeError if the disk refuses.
        """
        prefix = f"{last_offset:020d}"
        return write_data_file(
            disk, table, prefix, self.data, self.stats, suffix=ZSTD_SUFFIX, modification_time=modification_time
        )


class RowFile:
    """A data file that grows by tables of rows, which have one schema.

    Dictionary-encoded strings are written with their dictionaries, numbers along which rows are ordered as differences,
    and others plainly: this takes a fraction of the time of a lookup of each value, and zstd makes them as small.
    """

    def __init__(
        self, statistics_columns: Sequence[str], *, group_rows: int | None = None, joins_tables: bool = True
    ) -> None:
        """`joins_tables`: few rows of several tables share a row group, with one dictionary for each column."""
        self._sink = pa.BufferOutputStream()
        self._statistics = GrowingStatistics(statistics_columns)
        self._group_rows = group_rows or _ROW_GROUP_ROWS
        self._joins_tables = joins_tables
        self._writer: pq.ParquetWriter | None = None
        self._held: list[pa.Table] = []
        self._held_rows = 0
        self.rows = 0

    def add(self, rows: pa.Table) -> None:
        """Add rows."""
        self._statistics.add(rows)
        self.rows += rows.num_rows
        for part in [pa.Table.from_batches([batch]) for batch in rows.to_batches()] if self._joins_tables else [rows]:
            self._held.append(part)
            self._held_rows += part.num_rows
            if self._held_rows >= self._group_rows // 2 or not self._joins_tables:
                self._write()

    def encoded(self) -> EncodedFile:
        """The file of all rows, at least one."""
        self._write()
        assert self._writer is not None, "a file has rows"
        self._writer.close()
        return EncodedFile(memoryview(self._sink.getvalue()), self._statistics.of_all().to_json(), self.rows)

    def _write(self) -> None:
        """Write the held rows as row groups of their own."""
        if not self._held_rows:
            return
        rows = pa.concat_tables(self._held).unify_dictionaries()
        self._held, self._held_rows = [], 0
        self._writer = self._writer or pq.ParquetWriter(
            self._sink,
            rows.schema,
            compression="zstd",
            store_schema=False,
            write_page_checksum=True,
            # Each batch (1024 rows by default) computes the bounds of its whole dictionary: large batches save time.
            write_batch_size=self._group_rows,
            **_encodings(rows),
        )
        self._writer.write_table(rows, row_group_size=self._group_rows)


def write_row_file(
    disk: Disk, table: Location, rows: pa.Table, *, last_offset: int, statistics_columns: Sequence[str]
) -> AddFile:
    """Write rows, at least one, as a data file: see `RowFile` and `EncodedFile.write`."""
    return _file_of(rows, statistics_columns).write(disk, table, last_offset)


def rewrite_row_file(
    disk: Disk, state: TableState, rows: pa.Table, *, last_offset: int, modification_time: int
) -> AddFile:
    """The same as `write_row_file` for rows that other files of the table hold: the add declares no change of data.

    `modification_time` (epoch ms) is that of their youngest file. Raises CorruptDataError where the new file, read
    again, doesn't hold the rows.
    """
    wanted = state.metadata.configuration.get(STATISTICS_COLUMNS, "offset").split(",")
    file = _file_of(rows, [name for name in wanted if name in rows.schema.names])
    if not pq.read_table(pa.BufferReader(file.data)).equals(rows):
        raise CorruptDataError(f"A new file of {state.path} doesn't hold the rows that it was made of; it isn't used.")
    add = file.write(disk, state.path, last_offset, modification_time=modification_time)
    return attrs.evolve(add, data_change=False)


def _file_of(rows: pa.Table, statistics_columns: Sequence[str]) -> EncodedFile:
    file = RowFile(statistics_columns)
    file.add(rows)
    return file.encoded()


def _encodings(rows: pa.Table) -> dict[str, Any]:
    """The options of a file of rows like these; pyarrow's own where no strings are dictionaries."""
    texts = dictionary_paths(rows.schema)
    if not texts:
        return {}
    return {
        "use_dictionary": texts,
        "column_encoding": {name: "DELTA_BINARY_PACKED" for name in _SORTED if name in rows.schema.names},
        "write_statistics": bounded_columns(rows),
    }


def dictionary_paths(schema: pa.Schema) -> list[str]:
    """The Parquet paths of the columns, or lists, of dictionary-encoded strings in a schema."""
    paths = []
    for field in schema:
        listed = pa.types.is_list(field.type)
        if pa.types.is_dictionary(field.type.value_type if listed else field.type):
            paths.append(f"{field.name}.list.element" if listed else field.name)
    return paths


def bounded_columns(rows: pa.Table) -> list[str]:
    """The Parquet paths of the columns of encoded rows whose bounds in a row group are useful."""
    paths = []
    for name in rows.schema.names:
        if name in _MOSTLY_EMPTY:
            paths.append(f"{name}.list.element")
        elif name in _BOUNDED or (name == "topic" and _has_few_words(rows.column(name))):
            paths.append(name)
    return paths


def _has_few_words(column: pa.ChunkedArray) -> bool:
    """Whether strings are dictionaries of at most _FEW_TOPICS."""
    return pa.types.is_dictionary(column.type) and len(column.chunk(0).dictionary) <= _FEW_TOPICS
