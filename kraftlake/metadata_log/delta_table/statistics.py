"""The per-file statistics of an add, taken from its rows, in the form in which Delta compares them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import attrs
import pyarrow as pa

from kraftlake.metadata_log.delta_table.actions import AddFile, FileStatistics
from kraftlake.runtime.arrow import pc

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_MS = -62_135_596_800_000
_LAST_MS = 253_402_300_799_999
"""The years 1 to 9999, which have four digits."""


def file_statistics(rows: pa.Table, columns: Sequence[str]) -> FileStatistics:
    """Record count, and for each of `columns` the smallest and largest value and the number of nulls.

    A time beyond the years 1 to 9999 has no ISO form: its column gets no bounds, which means "may hold anything".
    """
    found = ((name, rows.column(name).null_count, _bounds(rows.column(name))) for name in columns)
    return _statistics(rows.num_rows, found)


_HELD_ROWS = 1 << 17


class GrowingStatistics:
    """`file_statistics` of rows that come table by table, of which few are kept in memory."""

    def __init__(self, columns: Sequence[str], *, held_rows: int = _HELD_ROWS) -> None:
        """Up to `held_rows` rows are processed together."""
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


def column_statistics(columns: Mapping[str, Sequence[Any]], names: Sequence[str]) -> FileStatistics:
    """As `file_statistics` of few rows, whose columns are lists; the column `timestamp` is in microseconds."""
    found = []
    for name in names:
        values = [value for value in columns[name] if value is not None]
        bounds = (min(values), max(values)) if values else None
        if bounds and name == "timestamp":
            bounds = _time_bounds(*bounds)
        found.append((name, len(columns[name]) - len(values), bounds))
    return _statistics(len(columns[names[0]]), found)


def _statistics(record_count: int, columns: Iterable[tuple[str, int, tuple[Any, Any] | None]]) -> FileStatistics:
    """The statistics of rows from the name, the number of nulls and the bounds (None for none) of each column."""
    found = [*columns]
    known = {name: bounds for name, _, bounds in found if bounds is not None and bounds[0] is not None}
    return FileStatistics(
        record_count=record_count,
        min_values={name: low for name, (low, _) in known.items()},
        max_values={name: high for name, (_, high) in known.items()},
        null_counts={name: null_count for name, null_count, _ in found},
    )


def _bounds(column: pa.ChunkedArray) -> tuple[Any, Any] | None:
    is_time = pa.types.is_timestamp(column.type)
    ends = pc.min_max(column.cast(pa.int64()) if is_time else column)
    low, high = (end.as_py() for end in ends.values())
    return _time_bounds(low, high) if is_time else (low, high)


def _time_bounds(low_us: int | None, high_us: int | None) -> tuple[str, str] | None:
    """Bounds in whole milliseconds that enclose microseconds: the lower rounded down, the upper up."""
    if low_us is None or high_us is None:
        return None
    low, high = low_us // 1000, -(-high_us // 1000)
    if low < _FIRST_MS or high > _LAST_MS:
        return None
    first = iso_milliseconds(low)
    return first, first if high == low else iso_milliseconds(high)


def iso_milliseconds(epoch_ms: int) -> str:
    """Epoch milliseconds as 2023-11-14T22:13:20.000Z."""
    moment = _EPOCH + timedelta(milliseconds=epoch_ms)
    return f"{moment.replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"


def epoch_milliseconds(text: object) -> int | None:
    """The inverse of `iso_milliseconds`, for the forms of other writers too; None for anything else."""
    if not isinstance(text, str):
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def may_hold_time_before(file: AddFile, time_ms: int) -> bool:
    """Whether a row of the file may have a timestamp at or before `time_ms`, by its statistics."""
    statistics = file.statistics
    if statistics is None:
        return True
    if statistics.null_counts.get("timestamp") == statistics.record_count:
        return False
    low = epoch_milliseconds(statistics.min_values.get("timestamp"))
    return low is None or low <= time_ms
