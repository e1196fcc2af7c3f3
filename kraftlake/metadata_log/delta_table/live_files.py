"""The files of a table at a version, kept as columns: a log of 200,000 small files is no 200,000 objects.

The files of a checkpoint are read on first use, not when the table is opened. Statistics on offsets are extracted from
the text of all adds at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs
import pyarrow as pa

from kraftlake.metadata_log.delta_table.actions import AddFile
from kraftlake.metadata_log.delta_table.data_files import OffsetSpan, offset_span
from kraftlake.runtime.arrow import pc

ADD_SCHEMA = pa.schema(
    [
        ("path", pa.string()),
        ("size", pa.int64()),
        ("modificationTime", pa.int64()),
        ("dataChange", pa.bool_()),
        ("stats", pa.string()),
    ]
)
"""The fields of an add that matter here; `path` is decoded."""

FOLD_AT = 4_096
"""Number of newly committed adds that are held as objects before they become columns, where nothing asks for them."""

_BOUNDS = pa.schema([("low", pa.int64()), ("high", pa.int64()), ("first_batch", pa.int64()), ("records", pa.int64())])
_SCHEMA = pa.schema([*ADD_SCHEMA, *_BOUNDS])
_OWN_STATISTICS = (
    r'^\{"numRecords":(?P<records>\d+),"minValues":\{"offset":(?P<low>\d+),[^{}]*"batch":(?P<first_batch>\d+)[^{}]*\},'
    r'"maxValues":\{"offset":(?P<high>\d+),'
)


@attrs.frozen(kw_only=True)
class Extent:
    """The lowest and highest offset and the number of rows of files, by their statistics; -1 as offsets of no file.

    `vague` are the paths of files without complete statistics, which are not counted.
    """

    lowest: int
    highest: int
    records: int
    vague: tuple[str, ...]


class LiveFiles(Mapping[str, AddFile]):
    """The live files of a table by path. `load` gives those of a checkpoint (ADD_SCHEMA) when they are first needed."""

    def __init__(self, load: Callable[[], pa.Table] | None = None) -> None:
        self._load = load
        self._columns: list[pa.Table] = []
        self._newest: dict[str, AddFile] = {}
        self._gone: set[str] = set()

    def copy(self) -> LiveFiles:
        """The same files, to be changed apart from these."""
        copy = LiveFiles()
        copy._columns = [self._table()]
        return copy

    def add(self, file: AddFile) -> None:
        """Take in an add; one of the same path takes the older one's place."""
        if not file.data_change:
            self._gone.add(file.path)
        self._newest.pop(file.path, None)
        self._newest[file.path] = file
        if len(self._newest) >= FOLD_AT:
            self._fold()

    def remove(self, path: str) -> None:
        """Take in a remove."""
        if self._newest.pop(path, None) is None:
            self._gone.add(path)

    def overlapping(self, low: int, high: int) -> list[OffsetSpan]:
        """The files that may hold an offset in [low, high], by their statistics; in no order."""
        table = self._table()
        begins = pc.less_equal(table.column("low"), high)
        ends = pc.fill_null(pc.greater_equal(table.column("high"), low), True)
        return [_span(fields) for fields in table.filter(pc.and_(begins, ends)).to_pylist()]

    def holds_all(self, paths: Sequence[str]) -> bool:
        """Whether all of these are live; looked up at once."""
        wanted = pa.array(paths, pa.string())
        held: int = pc.sum(pc.is_in(self._table().column("path"), value_set=wanted)).as_py() or 0
        return held == len(paths)

    def extent(self) -> Extent:
        """The extent of all files, by their statistics."""
        table = self._table()
        bounds = [table.column(name) for name in ("low", "high", "records")]
        known = pc.and_(pc.greater_equal(bounds[0], 0), pc.and_(*map(pc.is_valid, bounds[1:])))
        vague = table.filter(pc.invert(known)).column("path").to_pylist()
        lows, highs, records = (column.filter(known) for column in bounds)
        if not len(lows):
            return Extent(lowest=-1, highest=-1, records=0, vague=tuple(vague))
        return Extent(
            lowest=pc.min(lows).as_py(),
            highest=pc.max(highs).as_py(),
            records=pc.sum(records).as_py(),
            vague=tuple(vague),
        )

    def highest_offset(self) -> int:
        """The highest offset in the statistics of the files; -1 without any."""
        highest: int | None = pc.max(self._table().column("high")).as_py()
        return -1 if highest is None else highest

    def last_offset_of(self, batch: int) -> int | None:
        """The last offset of the files that may hold a part of `batch`, -1 if there are none, None if unknown."""
        table = self._table()
        ends = table.filter(pc.less_equal(table.column("first_batch"), batch)).column("high")
        last: int | None = pc.max(ends, skip_nulls=False).as_py() if len(ends) else -1
        return last

    def to_table(self) -> pa.Table:
        """All of them as ADD_SCHEMA."""
        return self._table().select(ADD_SCHEMA.names)

    def __getitem__(self, path: str) -> AddFile:
        table = self._table()
        found = table.filter(pc.equal(table.column("path"), path)).to_pylist()
        if not found:
            raise KeyError(path)
        return _file(found[0])

    def __iter__(self) -> Iterator[str]:
        yield from self._table().column("path").to_pylist()

    def values(self) -> list[AddFile]:  # type: ignore[override]
        """Every file as an object."""
        if self._load is None and not self._columns:  # columns of objects would make pyarrow import pandas
            return list(self._newest.values())
        return [_file(fields) for fields in self._table().to_pylist()]

    def __len__(self) -> int:
        rows: int = self._table().num_rows
        return rows

    def _table(self) -> pa.Table:
        """All files with their bounds."""
        if self._load is not None:
            self._columns.insert(0, _with_bounds(self._load()))
            self._load = None
        if self._gone:
            gone = pa.array(self._gone, pa.string())
            self._columns = [
                table.filter(pc.invert(pc.is_in(table.column("path"), value_set=gone))) for table in self._columns
            ]
            self._gone = set()
        self._fold()
        return pa.concat_tables(self._columns or [_SCHEMA.empty_table()])

    def _fold(self) -> None:
        """Turn the files that are held as objects into columns."""
        if self._gone:
            self._table()
        elif self._newest:
            self._columns.append(_with_bounds(_rows(list(self._newest.values()))))
            self._newest = {}
            # each table has twice the rows of the next one: there are few, and each row is copied a few times only
            while len(self._columns) > 1 and self._columns[-2].num_rows < 2 * self._columns[-1].num_rows:
                self._columns[-2:] = [pa.concat_tables(self._columns[-2:]).combine_chunks()]


def _rows(files: Sequence[AddFile]) -> pa.Table:
    return pa.table(
        {
            "path": [file.path for file in files],
            "size": [file.size for file in files],
            "modificationTime": [file.modification_time for file in files],
            "dataChange": [file.data_change for file in files],
            "stats": [file.stats for file in files],
        },
        schema=ADD_SCHEMA,
    )


def _with_bounds(table: pa.Table) -> pa.Table:
    """The table with the bounds of each file: our own statistics by a pattern, any other writer's one by one."""
    stats = table.column("stats").combine_chunks()
    found = pc.extract_regex(stats, _OWN_STATISTICS)
    if found.null_count:
        spans = [offset_span(_file(fields)) for fields in table.to_pylist()]
        bounds = {
            "low": [span.low for span in spans],
            "high": [span.high for span in spans],
            "first_batch": [span.first_batch for span in spans],
            "records": [span.rows for span in spans],
        }
        columns = pa.table(bounds, schema=_BOUNDS).columns
    else:
        columns = [pc.struct_field(found, [name]).cast(pa.int64()) for name in _BOUNDS.names]
    for field, column in zip(_BOUNDS, columns, strict=True):
        table = table.append_column(field, column)
    return table


def _span(fields: Mapping[str, Any]) -> OffsetSpan:
    return OffsetSpan(
        file=_file(fields),
        low=fields["low"],
        high=fields["high"],
        first_batch=fields["first_batch"],
        rows=fields["records"],
    )


def _file(fields: Mapping[str, Any]) -> AddFile:
    return AddFile.at(fields["path"], fields)
