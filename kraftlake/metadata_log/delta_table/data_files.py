"""The Parquet files of a lake's tables: encoding, statistics, names with a seal, and reading.

A name ends with the CRC32C of the file's last 64 KiB: its footer, and all of a small file. Therefore a flipped bit or
another file's content is detected. The rest of a large file is protected by the checksums of its pages. Files of other
writers have other names, and are not verified.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeGuard

import attrs
import pyarrow as pa

from kraftlake.metadata_log.delta_table.actions import AddFile, FileStatistics
from kraftlake.metadata_log.storage.disk import Disk, disk_fault
from kraftlake.metadata_log.storage.location import Location, refused_read
from kraftlake.metadata_log.storage.object_path import ObjectPath
from kraftlake.records.crc32c import crc32c
from kraftlake.runtime.arrow import pc, pq
from kraftlake.runtime.errors import CorruptDataError

ROW_GROUP_ROWS = 65_536
"""The rows of a row group: few enough to skip and to hold in memory, enough to compress and to scan."""

_THREADS_FROM_ROWS = 20_000
_GROWING = frozenset({"offset", "timestamp", "batch"})
_TAIL = 64 * 1024
_SEALED = re.compile(r"\.c([0-9a-f]{8})(?:\.zstd)?\.parquet")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_MS = -62_135_596_800_000
_LAST_MS = 253_402_300_799_999
"""The last millisecond of the years 1 to 9999, which have four digits."""


class DamagedFileError(OSError):
    """Reports a file whose content does not match the seal in its name."""


class DataFileGoneError(Exception):
    """Reports a data file that no longer exists: compacted and vacuumed since the table's state was read."""

    def __init__(self, path: Location) -> None:
        super().__init__(str(path))
        self.path = path

    def as_loss(self) -> CorruptDataError:
        """Return the error for a missing file that the table still names."""
        return CorruptDataError(f"{self.path} is missing: the lake lost a data file.")


def write_data_file(
    disk: Disk,
    table: Location,
    prefix: str,
    data: bytes | memoryview,
    stats: str,
    *,
    suffix: str = ".parquet",
    modification_time: int | None = None,
    data_change: bool = True,
    sync: bool = True,
) -> AddFile:
    """Write a data file, durably with `sync`; returns the action that adds it.

    Its name consists of `prefix`, a unique part, its seal and `suffix`. The file is not part of the table until a
    commit adds it. `modification_time` (epoch ms) is now by default. Raises LakeError if the disk refuses, and then
    leaves no file.
    """
    name = f"{prefix}-{uuid.uuid4()}.c{crc32c(memoryview(data)[-_TAIL:]):08x}{suffix}"
    began = disk.clock.milliseconds()
    path = table / name
    try:
        disk.write(path, data)
        if sync:
            disk.fsync_all([path, table])
    except OSError as fault:
        with contextlib.suppress(OSError):
            disk.unlink(path)
        raise disk_fault(path, fault) from fault
    return AddFile(
        path=name,
        size=len(data),
        modification_time=began if modification_time is None else modification_time,
        data_change=data_change,
        stats=stats,
    )


def encode_parquet(rows: pa.Table) -> memoryview:
    """Encode rows as a Parquet file: zstd, the type as a dictionary, increasing numbers as differences, payload plain.

    Differences make an idle log's no-ops, most of what a cluster writes, six times smaller. The payload has no
    statistics: they would repeat whole values.
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


def file_statistics(rows: pa.Table, columns: Sequence[str]) -> FileStatistics:
    """Compute the record count, and for each of `columns` the smallest and largest value and the number of nulls.

    A time outside the years 1 to 9999 has no ISO form: its column gets no bounds, so any value is possible.
    """
    found = ((name, rows.column(name).null_count, _bounds(rows.column(name))) for name in columns)
    return _statistics(rows.num_rows, found)


def column_statistics(columns: Mapping[str, Sequence[Any]], names: Sequence[str]) -> FileStatistics:
    """The same as `file_statistics` for a few rows whose columns are lists.

    The column `timestamp` is in microseconds.
    """
    found = []
    for name in names:
        values = [value for value in columns[name] if value is not None]
        bounds = (min(values), max(values)) if values else None
        if bounds and name == "timestamp":
            bounds = _time_bounds(*bounds)
        found.append((name, len(columns[name]) - len(values), bounds))
    return _statistics(len(columns[names[0]]), found)


def _statistics(record_count: int, columns: Iterable[tuple[str, int, tuple[Any, Any] | None]]) -> FileStatistics:
    """Return the statistics of rows from name, number of nulls and bounds (None for none) of each column."""
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
    """Return bounds in whole milliseconds that enclose microseconds: the lower rounded down, the upper up."""
    if low_us is None or high_us is None:
        return None
    low, high = low_us // 1000, -(-high_us // 1000)
    if low < _FIRST_MS or high > _LAST_MS:
        return None
    first = iso_milliseconds(low)
    return first, first if high == low else iso_milliseconds(high)


def iso_milliseconds(epoch_ms: int) -> str:
    """Format epoch milliseconds as 2023-11-14T22:13:20.000Z."""
    moment = _EPOCH + timedelta(milliseconds=epoch_ms)
    return f"{moment.replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"


def epoch_milliseconds(text: object) -> int | None:
    """Parse the format of `iso_milliseconds`, and those of other writers; None for any other text."""
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


@attrs.frozen(kw_only=True)
class OffsetSpan:
    """A file, the range of its offsets, the first batch of which it may hold a part, and its number of rows.

    Both ends of the range are included. If the add has no statistics, low and first_batch are -1, high and rows are
    None.
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


def open_parquet_file(place: Location, *, dictionaries: Collection[str] = ()) -> pq.ParquetFile:
    """Open a Parquet file; raises FileNotFoundError, OSError (also for changed content), pyarrow's errors.

    `dictionaries` names columns of strings, or of lists of them, that are to be read as dictionaries.
    """
    source = checked_source(place)
    parquet = pq.ParquetFile(source, page_checksum_verification=True)
    if not dictionaries:
        return parquet
    chosen = [path for path in leaf_paths(parquet) if path.partition(".")[0] in dictionaries]
    return pq.ParquetFile(source, metadata=parquet.metadata, read_dictionary=chosen, page_checksum_verification=True)


def checked_source(place: Location) -> Any:
    """Return the source from which pyarrow reads the file at `place`.

    Raises FileNotFoundError, and OSError for changed content.
    """
    found = _SEALED.search(place.name)
    if found is not None:
        tail, size = _tail_of(place)
        if crc32c(tail) != int(found[1], 16):
            raise DamagedFileError(errno.EIO, "its content is not what was written", str(place))
        if len(tail) == size:
            return pa.BufferReader(tail)
    return place.open() if isinstance(place, ObjectPath) else str(place)


def _tail_of(place: Location) -> tuple[bytes, int]:
    """Return the last bytes of a file, and its size."""
    with place.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _TAIL))
        return file.read(_TAIL) or b"", size


def leaf_paths(parquet: pq.ParquetFile) -> list[str]:
    """The dotted paths of a file's columns, in order."""
    schema = parquet.metadata.schema
    return [schema.column(index).path for index in range(len(schema))]


def is_refusal(fault: Exception) -> TypeGuard[OSError]:
    """Whether a read was refused; false for a missing or damaged file, since pyarrow's own errors have no errno."""
    gone_or_damaged = isinstance(fault, (FileNotFoundError, DamagedFileError))
    return isinstance(fault, OSError) and bool(fault.errno) and not gone_or_damaged


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
    """The same as `open_parquet` for a file that must exist: raises CorruptDataError if it is missing."""
    try:
        return open_parquet(path)
    except DataFileGoneError as gone:
        raise gone.as_loss() from gone


def integer_bounds(parquet: pq.ParquetFile, column: str) -> list[tuple[int, int] | None]:
    """Return the smallest and largest value of an integer column in each row group, None without statistics."""
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
    """Read row groups as `schema`; raises CorruptDataError naming a file with other content.

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
    """Read all rows of a data file as `schema`; raises DataFileGoneError, CorruptDataError, RefusedReadError."""
    parquet = open_parquet(path)
    return read_row_groups(parquet, path, range(parquet.metadata.num_row_groups), schema)
