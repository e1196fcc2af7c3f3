"""The Parquet files of tables derived from a log: many columns of any type, read by column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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
_SORTED = ("offset",)
"""Columns of encoded rows whose neighbouring values differ by little."""
_BOUNDED = (
    *("offset", "epoch", "timestamp", "valid_from_offset", "valid_to_offset", "valid_from", "valid_to"),
    *("topic", "leader"),
)
"""Columns by which readers can skip rows: those along which rows are ordered in files; topics, which come and go;
leaders, as -1 is rare. In each row group, any other column has nearly all of its values: its bounds skip nothing, and
take a quarter of the encoding.

Each row group holds nearly all values of any other column: its bounds skip nothing, and take a quarter of the encoding.
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


def write_row_file(
    disk: Disk, table: Location, rows: pa.Table, *, last_offset: int, statistics_columns: Sequence[str]
) -> AddFile:
    """Write rows as a data file, durably; the file is no part of the table before a commit adds it.

    Dictionary-encoded strings are written with their dictionaries, and numbers plainly: this takes a fraction of the
    time of a lookup of each value, and zstd makes them as small. The file's name begins with `last_offset`. Raises
    LakeError if the disk refuses.
    """
    stats = file_statistics(rows, statistics_columns).to_json()
    return write_encoded(disk, table, _encoded(rows), stats, last_offset=last_offset)


def rewrite_row_file(
    disk: Disk, state: TableState, rows: pa.Table, *, last_offset: int, modification_time: int
) -> AddFile:
    """The same as `write_row_file` for rows that other files of the table hold: the add declares no change of data.

    `modification_time` (epoch ms) is that of their youngest file. Raises CorruptDataError where the new file, read
    again, doesn't hold the rows.
    """
    data = _encoded(rows)
    if not pq.read_table(pa.BufferReader(data)).equals(rows):
        raise CorruptDataError(f"A new file of {state.path} doesn't hold the rows that it was made of; it isn't used.")
    wanted = state.metadata.configuration.get(STATISTICS_COLUMNS, "offset").split(",")
    stats = file_statistics(rows, [name for name in wanted if name in rows.schema.names]).to_json()
    add = write_encoded(disk, state.path, data, stats, last_offset=last_offset, modification_time=modification_time)
    return attrs.evolve(add, data_change=False)


def _encoded(rows: pa.Table) -> memoryview:
    """Encode rows as a Parquet file."""
    sink = pa.BufferOutputStream()
    texts = dictionary_paths(rows.schema)
    if texts:
        _write_encoded_rows(rows, sink, texts)
    else:
        pq.write_table(
            rows, sink, compression="zstd", row_group_size=_ROW_GROUP_ROWS, store_schema=False, write_page_checksum=True
        )
    return memoryview(sink.getvalue())


def dictionary_paths(schema: pa.Schema) -> list[str]:
    """The Parquet paths of the columns, or lists, of dictionary-encoded strings in a schema."""
    paths = []
    for field in schema:
        listed = pa.types.is_list(field.type)
        if pa.types.is_dictionary(field.type.value_type if listed else field.type):
            paths.append(f"{field.name}.list.element" if listed else field.name)
    return paths


def bounded_columns(schema: pa.Schema) -> list[str]:
    """The columns of encoded rows whose bounds in a row group are useful."""
    return [name for name in schema.names if name in _BOUNDED]


def _write_encoded_rows(rows: pa.Table, sink: pa.BufferOutputStream, texts: list[str]) -> None:
    with pq.ParquetWriter(
        sink,
        rows.schema,
        compression="zstd",
        use_dictionary=texts,
        column_encoding={name: "DELTA_BINARY_PACKED" for name in _SORTED if name in rows.schema.names},
        write_statistics=bounded_columns(rows.schema),
        # Each batch (1024 rows by default) computes the bounds of its whole dictionary: large batches save time.
        write_batch_size=_ROW_GROUP_ROWS,
        store_schema=False,
        write_page_checksum=True,
    ) as writer:
        for part in _with_one_dictionary(rows):
            writer.write_table(part, row_group_size=_ROW_GROUP_ROWS)


def _with_one_dictionary(rows: pa.Table) -> Iterator[pa.Table]:
    """Return the rows in tables with one dictionary per column, each for its own row groups.

    Small tables are merged.
    """
    held: list[pa.Table] = []
    size = 0
    for batch in rows.to_batches():
        held.append(pa.Table.from_batches([batch]))
        size += batch.num_rows
        if size >= _ROW_GROUP_ROWS // 2:
            yield pa.concat_tables(held).unify_dictionaries()
            held, size = [], 0
    if held:
        yield pa.concat_tables(held).unify_dictionaries()


def write_encoded(
    disk: Disk, table: Location, data: memoryview, stats: str, *, last_offset: int, modification_time: int | None = None
) -> AddFile:
    """The same as `write_row_file` for a file's encoded bytes, compressed with zstd, and its statistics."""
    prefix = f"{last_offset:020d}"
    return write_data_file(disk, table, prefix, data, stats, suffix=ZSTD_SUFFIX, modification_time=modification_time)
