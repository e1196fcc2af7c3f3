"""Scan of the rows of many data files in offset order, which skips files and row groups.

Other writers may have compacted a table: files then overlap nowhere but may hold their rows, and their row groups, in
any order. Therefore rows are sorted after the read.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from itertools import count

import attrs
import pyarrow as pa

from kraftlake.metadata_log.delta_table.data_files import (
    ROW_GROUP_ROWS,
    OffsetSpan,
    integer_bounds,
    open_parquet,
    read_row_groups,
)
from kraftlake.metadata_log.storage.location import Location
from kraftlake.runtime.arrow import pc, pq
from kraftlake.runtime.errors import CorruptDataError


def scan(table: Location, spans: Iterable[OffsetSpan], low: int, high: int, schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield the rows with an offset in [low, high], sorted by offset, in consecutive tables.

    `schema` has the wanted columns, including `offset`. Memory is bounded by a few row groups unless files overlap.
    Raises DataFileGoneError, RefusedReadError, and CorruptDataError naming a damaged file.
    """
    # A heap of what may hold the lowest unread offset: first whole files, by their statistics, then, once a file's
    # footer was read, its row groups.
    order = count()
    heap: list[tuple[int, int, OffsetSpan | _RowGroup]] = [
        (span.low, next(order), span) for span in spans if span.overlaps(low, high)
    ]
    heapq.heapify(heap)
    held: list[pa.Table] = []
    held_rows = 0
    while heap:
        lowest, _, unit = heapq.heappop(heap)
        if isinstance(unit, OffsetSpan):
            for group in _row_groups(table / unit.file.path):
                if group.low <= high and (group.high is None or group.high >= low):
                    heapq.heappush(heap, (group.low, next(order), group))
            continue
        if held_rows >= ROW_GROUP_ROWS:
            done, rest = _split(_sorted(held), lowest)
            if done.num_rows:
                yield done
            held, held_rows = [rest], rest.num_rows
        held.append(unit.read(schema, low, high))
        held_rows += held[-1].num_rows
    if held_rows:
        yield _sorted(held)


@attrs.frozen(kw_only=True)
class _RowGroup:
    path: Location
    parquet: pq.ParquetFile
    index: int
    low: int
    high: int | None

    def read(self, schema: pa.Schema, low: int, high: int) -> pa.Table:
        table = read_row_groups(self.parquet, self.path, [self.index], schema)
        if self.low >= low and self.high is not None and self.high <= high:
            return table
        offset = table.column("offset")
        return table.filter(pc.and_(pc.greater_equal(offset, low), pc.less_equal(offset, high)))


def _row_groups(path: Location) -> list[_RowGroup]:
    parquet = open_parquet(path)
    return [
        _RowGroup(
            path=path,
            parquet=parquet,
            index=index,
            low=-1 if ends is None else ends[0],
            high=None if ends is None else ends[1],
        )
        for index, ends in enumerate(integer_bounds(parquet, "offset"))
    ]


def is_ascending(column: pa.ChunkedArray) -> bool:
    """Whether each value is greater than the previous one."""
    if len(column) < 2:
        return True
    return bool(pc.min(steps_of(column)).as_py() > 0)


def steps_of(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The difference of each value but the first from the previous one."""
    return pc.subtract(column.slice(1), column.slice(0, len(column) - 1))


def first_false(column: pa.ChunkedArray) -> int | None:
    """The index of the first false value."""
    at: int = pc.index(column, pa.scalar(False)).as_py()
    return at if at >= 0 else None


def check_contiguous(table: pa.Table, expected: int, path: Location) -> None:
    """Raise CorruptDataError unless the table's offsets are `expected`, `expected` + 1 and so on."""
    offsets = table.column("offset")
    first, last = offsets[0].as_py(), offsets[-1].as_py()
    if first == expected and last - first + 1 == table.num_rows and is_ascending(offsets):
        return
    if first < expected:
        raise CorruptDataError(f"{path} holds offset {first} twice.")
    lacking = expected
    if first == expected:
        steps = steps_of(offsets)
        at = pc.index(pc.equal(steps, 1), pa.scalar(False)).as_py()
        lacking = offsets[at].as_py() + 1
        if steps[at].as_py() == 0:
            raise CorruptDataError(f"{path} holds offset {lacking - 1} twice.")
    raise CorruptDataError(f"{path} lacks offset {lacking}.")


def _sorted(tables: Sequence[pa.Table]) -> pa.Table:
    table = tables[0] if len(tables) == 1 else pa.concat_tables(tables)
    return table if is_ascending(table.column("offset")) else table.sort_by("offset")


def _split(table: pa.Table, offset: int) -> tuple[pa.Table, pa.Table]:
    below = pc.sum(pc.less(table.column("offset"), offset)).as_py() or 0
    return table.slice(0, below), table.slice(below)
