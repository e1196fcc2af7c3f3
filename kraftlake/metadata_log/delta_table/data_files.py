"""The Parquet files of a lake's tables: written sorted and small, read back in offset order with files skipped.

Other writers may have compacted a table: files then overlap nowhere but may hold their rows, and their row groups, in
any order. Rows are therefore sorted after they are read.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from itertools import count

import attrs
import pyarrow as pa

from kraftlake.metadata_log.delta_table.actions import AddFile
from kraftlake.metadata_log.storage.location import (
    Location,
    is_refusal,
    leaf_paths,
    open_parquet_file,
    refused_read,
)
from kraftlake.runtime.arrow import pc, pq
from kraftlake.runtime.errors import CorruptDataError
from kraftlake.runtime.value import Value

ROW_GROUP_ROWS = 65_536
"""Small enough to skip within a file and to hold in memory, large enough to compress and to scan."""

_THREADS_FROM_ROWS = 20_000
_GROWING = frozenset({"offset", "timestamp", "batch"})


class DataFileGoneError(Exception):
    """A data file isn't there any more: compacted and vacuumed since the table's state was read."""

    def __init__(self, path: Location) -> None:
        super().__init__(str(path))
        self.path = path

    def as_loss(self) -> CorruptDataError:
        """The error for a file that the table still names."""
        return CorruptDataError(f"{self.path} is missing: the lake lost a data file.")


@attrs.frozen(kw_only=True, eq=False, repr=False)
class OffsetSpan(Value):
    """A file, the offsets that it may hold, both ends included, the first batch of which it may hold a part, its rows.

    -1 (low, first_batch) and None (high, rows) where its add doesn't say.
    """

    file: AddFile
    low: int
    high: int | None
    first_batch: int
    rows: int | None

    def overlaps(self, low: int, high: int) -> bool:
        """Whether a row of the range [low, high] may be in the file."""
        return self.low <= high and (self.high is None or self.high >= low)


def offset_span(file: AddFile) -> OffsetSpan:
    """The offsets of a file by its statistics."""
    statistics = file.statistics
    low = statistics.min_values.get("offset") if statistics else None
    high = statistics.max_values.get("offset") if statistics else None
    batch = statistics.min_values.get("batch") if statistics else None
    return OffsetSpan(
        file=file,
        low=low if isinstance(low, int) else -1,
        high=high if isinstance(high, int) else None,
        first_batch=batch if isinstance(batch, int) else -1,
        rows=statistics.record_count if statistics else None,
    )


def encode_parquet(rows: pa.Table) -> memoryview:
    """A Parquet file of rows: zstd, the type as a dictionary, numbers that only grow as differences, payload plain.

    Differences make an idle log's no-ops, most of what a cluster writes, six times smaller. There are no statistics on
    the payload: they would repeat whole values.
    """
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(
        sink,
        rows.schema,
        compression="zstd",
        use_dictionary=["type"],
        column_encoding={name: "DELTA_BINARY_PACKED" for name in rows.schema.names if name in _GROWING},
        write_statistics=[name for name in rows.schema.names if name != "payload"],
        store_schema=False,
        write_page_checksum=True,
    ) as writer:
        writer.write_table(rows, row_group_size=ROW_GROUP_ROWS)
    return memoryview(sink.getvalue())


def scan(table: Location, spans: Iterable[OffsetSpan], low: int, high: int, schema: pa.Schema) -> Iterator[pa.Table]:
    """The rows with an offset in [low, high], sorted by it, in tables of which each begins after the one before.

    `schema` has the wanted columns, `offset` among them. Memory is bounded by a few row groups unless files
    overlap. Raises DataFileGoneError, RefusedReadError, and CorruptDataError naming the file for a damaged one.
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


@attrs.frozen(kw_only=True, eq=False, repr=False)
class _RowGroup(Value):
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


def open_parquet(path: Location) -> pq.ParquetFile:
    """Open a data file; raises DataFileGoneError, CorruptDataError, RefusedReadError."""
    try:
        return open_parquet_file(path)
    except FileNotFoundError as fault:
        raise DataFileGoneError(path) from fault
    except (pa.ArrowException, OSError) as fault:
        if is_refusal(fault):
            raise refused_read(path, fault) from fault
        raise CorruptDataError(f"{path} is no Parquet file that can be read.") from fault


def open_live(path: Location) -> pq.ParquetFile:
    """As `open_parquet`, of a file that must be there: raises CorruptDataError where it is missing."""
    try:
        return open_parquet(path)
    except DataFileGoneError as gone:
        raise gone.as_loss() from gone


def integer_bounds(parquet: pq.ParquetFile, column: str) -> list[tuple[int, int] | None]:
    """Smallest and largest value of an integer column in each row group, None where the file doesn't say."""
    metadata, names = parquet.metadata, leaf_paths(parquet)
    if column not in names:
        return [None] * metadata.num_row_groups
    position = names.index(column)
    bounds: list[tuple[int, int] | None] = []
    for index in range(metadata.num_row_groups):
        statistics = metadata.row_group(index).column(position).statistics
        known = statistics is not None and statistics.has_min_max
        bounds.append((statistics.min, statistics.max) if known else None)
    return bounds


def read_row_groups(parquet: pq.ParquetFile, path: Location, groups: Sequence[int], schema: pa.Schema) -> pa.Table:
    """Read row groups as `schema`; raises CorruptDataError naming the file when it holds something else.

    Raises RefusedReadError, too.
    """
    try:
        rows = sum(parquet.metadata.row_group(index).num_rows for index in groups)
        table = parquet.read_row_groups(
            list(groups), columns=schema.names, use_threads=rows >= _THREADS_FROM_ROWS
        ).select(schema.names)
        return table if table.schema.equals(schema) else table.cast(schema)
    except (pa.ArrowException, OSError, KeyError, ValueError) as fault:
        if is_refusal(fault):
            raise refused_read(path, fault) from fault
        raise CorruptDataError(f"{path} is damaged, or isn't a data file of this table.") from fault


def read_rows(path: Location, schema: pa.Schema) -> pa.Table:
    """All rows of a data file as `schema`; raises DataFileGoneError, CorruptDataError, RefusedReadError."""
    parquet = open_parquet(path)
    return read_row_groups(parquet, path, range(parquet.metadata.num_row_groups), schema)


def is_ascending(column: pa.ChunkedArray) -> bool:
    """Whether each value is greater than the one before it."""
    if len(column) < 2:
        return True
    return bool(pc.min(pc.subtract(column.slice(1), column.slice(0, len(column) - 1))).as_py() > 0)


def check_contiguous(table: pa.Table, expected: int, path: Location) -> None:
    """Raises CorruptDataError unless the table's offsets are `expected`, `expected` + 1 and so on."""
    offsets = table.column("offset")
    first, last = offsets[0].as_py(), offsets[-1].as_py()
    if first == expected and last - first + 1 == table.num_rows and is_ascending(offsets):
        return
    if first < expected:
        raise CorruptDataError(f"{path} holds offset {first} twice.")
    lacking = expected
    if first == expected:
        steps = pc.subtract(offsets.slice(1), offsets.slice(0, len(offsets) - 1))
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
