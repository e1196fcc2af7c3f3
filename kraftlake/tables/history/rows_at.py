"""The rows of one file of a history table that were so at an offset, with no more work for them than they need.

Strings stay numbers of their dictionaries until it is known which rows are wanted. Columns of which a row group's
statistics tell all, since its lists are all empty or its values all null, are made and not read. Nothing here makes an
Arrow array of what is Python's: pyarrow would import pandas for that, which takes longer than to read a large state.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kraftlake.metadata_log.storage.location import Location, open_parquet_file
from kraftlake.runtime.errors import CorruptDataError
from kraftlake.tables.cluster_id import CLUSTER_ID_FIELD

FROM: Final = "valid_from_offset"
TO: Final = "valid_to_offset"


class Group(NamedTuple):
    """A row group of a file: its number, its rows, and whether all of them were so."""

    number: int
    rows: int
    all_so: bool


def rows_at(path: Location, *, offset: int, schema: pa.Schema) -> Iterator[pa.Table]:
    """The rows of a file that were so at an offset, in the columns of `schema`, strings as such or as dictionaries.

    Raises CorruptDataError for a file that is missing or can't be read.
    """
    try:
        yield from _FileAt(path, offset, schema).tables()
    except (pa.ArrowException, OSError, KeyError, ValueError) as fault:
        raise CorruptDataError(f"{path} is missing or damaged: delete {path.parent}, its job makes it anew.") from fault


def groups_at(metadata: pq.FileMetaData, offset: int) -> list[Group]:
    """The row groups of which some rows may have been so at the offset, or all were: others are passed over."""
    places = _places(metadata)
    found: list[Group] = []
    for number in range(metadata.num_row_groups):
        columns = metadata.row_group(number)
        begins, ends = (columns.column(places[name]).statistics for name in (FROM, TO))
        nulls = ends.null_count if ends is not None and ends.has_null_count else None
        first_end, last_end = (ends.min, ends.max) if ends is not None and ends.has_min_max else (None, None)
        if begins is None or not begins.has_min_max:
            found.append(Group(number, columns.num_rows, all_so=False))
        elif begins.min <= offset and (nulls != 0 or last_end is None or last_end > offset):
            go_on = nulls == columns.num_rows or (first_end is not None and first_end > offset)
            found.append(Group(number, columns.num_rows, all_so=begins.max <= offset and go_on))
    return found


class _FileAt:
    """A file that is asked for what was so at an offset."""

    def __init__(self, path: Location, offset: int, schema: pa.Schema) -> None:
        self._offset = offset
        self._schema = schema
        self._parquet = open_parquet_file(path, dictionaries=[field.name for field in schema if _has_texts(field.type)])
        self._places = _places(self._parquet.metadata)

    def tables(self) -> Iterator[pa.Table]:
        """The rows, in tables of row groups of one sort: those that need the same to be read."""
        sorts: dict[tuple[bool, tuple[str, ...]], list[Group]] = {}
        for group in groups_at(self._parquet.metadata, self._offset):
            told = tuple(field.name for field in self._schema if self._tells(group, field))
            sorts.setdefault((group.all_so, told), []).append(group)
        for (all_so, told), groups in sorted(sorts.items()):
            names = [name for name in self._schema.names if name not in told]
            for rows in (self._read(groups, names or [FROM]),) if all_so else self._chosen(groups, names):
                yield self._in_schema(rows, told)

    def _in_schema(self, rows: pa.Table, told: Sequence[str]) -> pa.Table:
        """Rows in the columns of the schema, those included that the statistics tell."""
        zeros = pa.py_buffer(bytes(4 * (rows.num_rows + 1)))
        bounds = pa.Array.from_buffers(pa.int32(), rows.num_rows + 1, [None, zeros])
        columns = [
            _nothing(field.type, bounds) if field.name in told else rows.column(field.name).cast(field.type)
            for field in self._schema
        ]
        return pa.table(columns, schema=self._schema)

    def _tells(self, group: Group, field: pa.Field) -> bool:
        """Whether the statistics say that a column's values are all null, or its lists, which are never null, empty."""
        if field.name not in self._places:
            return bool(field.name == CLUSTER_ID_FIELD.name)  # the file is of a release before the column
        if pa.types.is_list(field.type) == field.nullable:
            return False
        column = self._parquet.metadata.row_group(group.number).column(self._places[field.name])
        known = column.statistics
        return known is not None and known.has_null_count and known.null_count == column.num_values == group.rows

    def _chosen(self, groups: Sequence[Group], names: Sequence[str]) -> Iterator[pa.Table]:
        """Those of the rows of some row groups that were so, in the columns that are named or more.

        Their intervals are read first. Rows behind the last one that was so are not decoded: in files in order those
        that begin later come last, and many a row group has none that was so.
        """
        known = self._parquet.read_row_groups([group.number for group in groups], columns=[FROM, TO])
        others = [name for name in names if name not in (FROM, TO)]
        start = 0
        for group in groups:
            intervals = known.slice(start, group.rows)
            start += group.rows
            so = _were_so(intervals, self._offset)
            wanted = pc.indices_nonzero(so)
            if not len(wanted):
                continue
            count = wanted[-1].as_py() + 1
            rows = intervals.slice(0, count)
            if others:
                first = self._first(group, count, others)
                rows = pa.table([*first.columns, *rows.columns], names=[*others, *rows.column_names])
            yield rows if len(wanted) == count else rows.filter(so.slice(0, count))

    def _first(self, group: Group, count: int, names: Sequence[str]) -> pa.Table:
        """So many of the first rows of a row group, strings as dictionaries."""
        batches, rows = [], 0
        for batch in self._parquet.iter_batches(count, row_groups=[group.number], columns=names):
            batches.append(batch)
            rows += batch.num_rows
            if rows >= count:
                break
        return pa.Table.from_batches(batches).select(names)

    def _read(self, groups: Sequence[Group], names: Sequence[str]) -> pa.Table:
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
        """A column of lists of strings; with dictionaries Arrow reads these a row group at a time, one of each."""
        parts = [self._parquet.read_row_group(number, columns=[name]).column(0) for number in numbers]
        return pa.chunked_array([chunk for part in parts for chunk in part.chunks], parts[0].type)


def _places(metadata: pq.FileMetaData) -> dict[str, int]:
    """The place of each column, the first where it has many, among those of the file."""
    places: dict[str, int] = {}
    for index in range(metadata.num_columns):
        places.setdefault(metadata.schema.column(index).path.partition(".")[0], index)
    return places


def _has_texts(kind: pa.DataType) -> bool:
    values = kind.value_type if pa.types.is_list(kind) else kind
    return bool(pa.types.is_string(values) or pa.types.is_dictionary(values))


def _nothing(kind: pa.DataType, bounds: pa.Array) -> pa.Array:
    """Empty lists between some bounds, which are all zero, or as many nulls of another type."""
    if not pa.types.is_list(kind):
        return pa.nulls(len(bounds) - 1, kind)
    return pa.ListArray.from_arrays(bounds, pa.nulls(0, kind.value_type))


def _were_so(intervals: pa.Table, offset: int) -> pa.ChunkedArray:
    """Which rows were so: bool by row."""
    at = pa.Array.from_buffers(pa.int64(), 1, [None, pa.py_buffer(offset.to_bytes(8, sys.byteorder))])[0]
    ends = intervals.column(TO)
    goes_on = pc.or_kleene(pc.greater(ends, at), pc.is_null(ends))
    return pc.and_(pc.less_equal(intervals.column(FROM), at), goes_on)
