"""The rows of one file of a history table that were valid at an offset, read with as little work as possible.

Strings stay dictionary indices until the wanted rows are known. A column is not read if a row group's statistics
determine its content: only empty lists, or only nulls. This module makes no Arrow array of Python objects: pyarrow
would import pandas for it, which takes longer than reading a large state.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kraftlake.metadata_log.delta_table.data_files import open_parquet_file
from kraftlake.metadata_log.storage.location import Location
from kraftlake.runtime.errors import CorruptDataError
from kraftlake.tables.cluster_id import CLUSTER_ID_FIELD
from kraftlake.tables.history.history_columns import TIMESTAMP

FROM: Final = "valid_from_offset"
TO: Final = "valid_to_offset"
_FAULTS: Final = (pa.ArrowException, OSError, KeyError, ValueError)


class RowGroup(NamedTuple):
    """A row group of a file: its number, its number of rows, and whether all of them were valid."""

    number: int
    rows: int
    all_valid: bool


def rows_at(path: Location, *, offset: int, schema: pa.Schema) -> Iterator[pa.Table]:
    """The rows of a file that were valid at an offset, in the columns of `schema`, strings as such or as dictionaries.

    Raises CorruptDataError for a file that is missing or can't be read.
    """
    try:
        yield from _FileAt(path, offset, schema).tables()
    except _FAULTS as fault:
        raise _damaged(path) from fault


def last_change(path: Location, time: datetime) -> int:
    """The last offset at which a row of a file began or ended, by a time; -1 where none did. Raises as `rows_at`."""
    try:
        rows = open_parquet_file(path).read(columns=[FROM, TO, "valid_from", "valid_to"])
    except _FAULTS as fault:
        raise _damaged(path) from fault
    changes = [-1]
    for offsets, times in ((FROM, "valid_from"), (TO, "valid_to")):
        until_then = rows.filter(pc.less_equal(rows.column(times), pa.scalar(time, TIMESTAMP)))
        changes.append(pc.max(until_then.column(offsets)).as_py())
    return max(offset for offset in changes if offset is not None)


def _damaged(path: Location) -> CorruptDataError:
    return CorruptDataError(f"{path} is missing or damaged: delete {path.parent}, its job makes it anew.")


def groups_at(metadata: pq.FileMetaData, offset: int) -> list[RowGroup]:
    """The row groups that may have rows that were valid at the offset."""
    places = _places(metadata)
    found: list[RowGroup] = []
    for number in range(metadata.num_row_groups):
        columns = metadata.row_group(number)
        begins, ends = (columns.column(places[name]).statistics for name in (FROM, TO))
        nulls = ends.null_count if ends is not None and ends.has_null_count else None
        first_end, last_end = (ends.min, ends.max) if ends is not None and ends.has_min_max else (None, None)
        if begins is None or not begins.has_min_max:
            found.append(RowGroup(number, columns.num_rows, all_valid=False))
        elif begins.min <= offset and (nulls != 0 or last_end is None or last_end > offset):
            none_ended = nulls == columns.num_rows or (first_end is not None and first_end > offset)
            found.append(RowGroup(number, columns.num_rows, all_valid=begins.max <= offset and none_ended))
    return found


class _FileAt:
    """Reads the rows of a file that were valid at an offset."""

    def __init__(self, path: Location, offset: int, schema: pa.Schema) -> None:
        self._offset = offset
        self._schema = schema
        self._parquet = open_parquet_file(path, dictionaries=[field.name for field in schema if _has_texts(field.type)])
        self._places = _places(self._parquet.metadata)

    def tables(self) -> Iterator[pa.Table]:
        """The rows, in tables of row groups that are read in the same way."""
        alike: dict[tuple[bool, tuple[str, ...]], list[RowGroup]] = {}
        for group in groups_at(self._parquet.metadata, self._offset):
            known = tuple(field.name for field in self._schema if self._is_known(group, field))
            alike.setdefault((group.all_valid, known), []).append(group)
        for (all_valid, known), groups in sorted(alike.items()):
            names = [name for name in self._schema.names if name not in known]
            for rows in (self._read(groups, names or [FROM]),) if all_valid else self._chosen(groups, names):
                yield self._in_schema(rows, known)

    def _in_schema(self, rows: pa.Table, known: Sequence[str]) -> pa.Table:
        """Rows in the columns of the schema; columns in `known` are made, not read."""
        zeros = pa.py_buffer(bytes(4 * (rows.num_rows + 1)))
        bounds = pa.Array.from_buffers(pa.int32(), rows.num_rows + 1, [None, zeros])
        columns = [
            _nothing(field.type, bounds) if field.name in known else rows.column(field.name).cast(field.type)
            for field in self._schema
        ]
        return pa.table(columns, schema=self._schema)

    def _is_known(self, group: RowGroup, field: pa.Field) -> bool:
        """Whether the statistics show that a column has only nulls, or only empty lists if its lists are never null."""
        if field.name not in self._places:
            return bool(field.name == CLUSTER_ID_FIELD.name)  # the file is of a release before the column
        if pa.types.is_list(field.type) == field.nullable:
            return False
        column = self._parquet.metadata.row_group(group.number).column(self._places[field.name])
        found = column.statistics
        return found is not None and found.has_null_count and found.null_count == column.num_values == group.rows

    def _chosen(self, groups: Sequence[RowGroup], names: Sequence[str]) -> Iterator[pa.Table]:
        """The rows of some row groups that were valid, with the named columns and perhaps others.

        The intervals are read first, and then the other columns up to the last valid row: in a sorted row group the
        later rows begin later, and many row groups have no valid row.
        """
        of_groups = self._parquet.read_row_groups([group.number for group in groups], columns=[FROM, TO])
        others = [name for name in names if name not in (FROM, TO)]
        start = 0
        for group in groups:
            intervals = of_groups.slice(start, group.rows)
            start += group.rows
            valid = _were_valid(intervals, self._offset)
            wanted = pc.indices_nonzero(valid)
            if not len(wanted):
                continue
            count = wanted[-1].as_py() + 1
            rows = intervals.slice(0, count)
            if others:
                first = self._first(group, count, others)
                rows = pa.table([*first.columns, *rows.columns], names=[*others, *rows.column_names])
            yield rows if len(wanted) == count else rows.filter(valid.slice(0, count))

    def _first(self, group: RowGroup, count: int, names: Sequence[str]) -> pa.Table:
        """The first `count` rows of a row group, strings as dictionaries."""
        batches, rows = [], 0
        for batch in self._parquet.iter_batches(count, row_groups=[group.number], columns=names):
            batches.append(batch)
            rows += batch.num_rows
            if rows >= count:
                break
        return pa.Table.from_batches(batches).select(names)

    def _read(self, groups: Sequence[RowGroup], names: Sequence[str]) -> pa.Table:
        """All rows of some row groups, strings as dictionaries."""
        numbers = [group.number for group in groups]
        lists = [name for name in names if pa.types.is_list(self._type(name)) and _has_texts(self._type(name))]
        others = [name for name in names if name not in lists]
        columns = {name: self._lists_of_texts(name, numbers) for name in lists}
        if others:
            columns |= dict(
                zip(others, self._parquet.read_row_groups(numbers, columns=others).select(others), strict=True)
            )
        return pa.table(columns)

    def _type(self, name: str) -> pa.DataType:
        return self._schema.field(name).type if name in self._schema.names else pa.int64()

    def _lists_of_texts(self, name: str, numbers: Sequence[int]) -> pa.ChunkedArray:
        """A column of lists of strings; with dictionaries Arrow can read only one row group at a time."""
        columns = [self._parquet.read_row_group(number, columns=[name]).column(0) for number in numbers]
        return pa.chunked_array([chunk for column in columns for chunk in column.chunks], columns[0].type)


def _places(metadata: pq.FileMetaData) -> dict[str, int]:
    """The index of each column among the file's leaf columns, the first index if it has several."""
    places: dict[str, int] = {}
    for index in range(metadata.num_columns):
        places.setdefault(metadata.schema.column(index).path.partition(".")[0], index)
    return places


def _has_texts(kind: pa.DataType) -> bool:
    values = kind.value_type if pa.types.is_list(kind) else kind
    return bool(pa.types.is_string(values) or pa.types.is_dictionary(values))


def _nothing(kind: pa.DataType, bounds: pa.Array) -> pa.Array:
    """Empty lists between the bounds, which are all zero; for another type, nulls in that number."""
    if not pa.types.is_list(kind):
        return pa.nulls(len(bounds) - 1, kind)
    return pa.ListArray.from_arrays(bounds, pa.nulls(0, kind.value_type))


def _were_valid(intervals: pa.Table, offset: int) -> pa.ChunkedArray:
    """A mask of the rows that were valid at the offset: bool by row."""
    at = pa.Array.from_buffers(pa.int64(), 1, [None, pa.py_buffer(offset.to_bytes(8, sys.byteorder))])[0]
    ends = intervals.column(TO)
    not_ended = pc.or_kleene(pc.greater(ends, at), pc.is_null(ends))
    return pc.and_(pc.less_equal(intervals.column(FROM), at), not_ended)
