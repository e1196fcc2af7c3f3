"""A read of typed records: its options, the ranges of offsets for tasks, the reading of a range. Needs no Spark."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import attrs
import pyarrow as pa

from kraftlake.kafka_files.directory import MetadataDirectory
from kraftlake.kafka_files.sniffing.source_kind import SourceKind
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.records.batch import gathered
from kraftlake.records.rows import to_rows
from kraftlake.records.typed_rows import needed_columns, typed_rows
from kraftlake.replay.queries.record_types import checked_types
from kraftlake.replay.queries.source import LogSource
from kraftlake.replay.reading.open_reader import LakeReader
from kraftlake.replay.reading.replay_base import check_unbroken
from kraftlake.runtime.arguments import text, whole_or_none
from kraftlake.runtime.errors import LakeError, OffsetError, UsageError
from kraftlake.runtime.lazy_module import LazyModule

if TYPE_CHECKING:
    import pyarrow.compute as pc
else:
    pc = LazyModule("pyarrow.compute")

RECORDS_A_PART = 262_144
"""The number of offsets that are read at once, and the least for a task: four row groups of a lake's files."""

_TASKS = 4
_PARTS_A_TASK = 4
"""The most parts for a task: a task costs a tenth of a CPU second, as much as a hundred thousand records."""

_ROWS_AT_ONCE = 16_384


@attrs.frozen(kw_only=True)
class RecordScan:
    """The records of a source that are read, and their columns.

    Offsets `first` to `last` are included. `wanted` is a part of `typed_schema(only)`, or with `own_columns` some of
    the log's own; with `only`, records of other types are left out. `log_id` is that of a lake's log, so that no other
    log that lies there meanwhile is read.
    """

    source: str
    wanted: pa.Schema
    only: str | None = None
    first: int
    last: int
    own_columns: bool = False
    show_secrets: bool = False
    log_id: str | None = None


def type_of(given: str | None) -> str | None:
    """A record type's name in the log; `PartitionRecord` means PARTITION_RECORD. UsageError for an unknown type."""
    if given is None:
        return None
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", text(given, "the name of a record type")).upper()
    checked_types([name])
    return name


def open_scanned(path: str, first: int | None, last: int | None) -> tuple[LogSource, int, int]:
    """The source at `path`, and the first and last offset that are read; None means the source's own.

    Raises the errors of opening, OffsetError for an offset that the source does not hold, BrokenFileError if offsets
    between these are missing, UsageError if `first` is after `last`.
    """
    first, last = whole_or_none(first), whole_or_none(last)
    if first is not None and last is not None and first > last:
        raise UsageError(f"startOffset {first} is behind endOffset {last}")
    source = LogSource.open(path)
    start, end = source.start_offset, source.end_offset
    if source.kind is SourceKind.SNAPSHOT:
        start, end = 0, sum(batch.record_count for batch in source.batches())
    for name, offset in (("startOffset", first), ("endOffset", last)):
        if offset is not None and not start <= offset < end:
            held = f"offsets {start} to {end - 1}" if end > start else "no offsets"
            raise OffsetError(f"{name} {offset} is not in {source.name}, which holds {held}")
    first, last = start if first is None else first, end - 1 if last is None else last
    check_unbroken(source.reader, first, last)
    return source, first, last


def parts_of(source: LogSource, first: int, last: int) -> list[tuple[int, int]]:
    """Ranges of the offsets [first, last] that tasks can read in parallel: rows of a lake, segments of a log.

    A source in one file that is read from its start, such as an archive, is one range.
    """
    if first > last:
        return []
    cuts: Sequence[int] = ()
    if source.kind is SourceKind.LAKE:
        parts = -(-(last - first + 1) // RECORDS_A_PART)
        step = RECORDS_A_PART * min(max(parts // _TASKS, 1), _PARTS_A_TASK)
        cuts = range(first + step, last + 1, step)
    elif source.kind is SourceKind.DIRECTORY and isinstance(source.reader, MetadataDirectory):
        starts = sorted(segment.base_offset for segment in source.reader.segments)
        cuts = [start for start in starts if first < start <= last]
    return list(zip([first, *cuts], [*(cut - 1 for cut in cuts), last], strict=True))


def read_part(scan: RecordScan) -> Iterator[pa.Table]:
    """The wanted columns of a scan's records, in offset order, in tables of bounded size.

    Raises OffsetError where a lake's log was trimmed meanwhile, LakeError where another log has taken its place.
    """
    source = LogSource.open(scan.source)
    if isinstance(source.reader, LakeReader):
        _check_held(source.reader.log, scan)
    columns = scan.wanted.names if scan.own_columns else needed_columns(scan.wanted)
    for rows in _log_rows(source, scan.first, scan.last, sorted({"offset", "type", *columns})):
        found = rows if scan.only is None else rows.filter(pc.equal(rows.column("type"), scan.only))
        for start in range(0, found.num_rows, _ROWS_AT_ONCE):
            piece = found.slice(start, _ROWS_AT_ONCE)
            if scan.own_columns:
                yield piece.select(scan.wanted.names).cast(scan.wanted)
            else:
                yield typed_rows(piece, scan.wanted, scan.only, show_secrets=scan.show_secrets)


def _check_held(log: MetadataLog, scan: RecordScan) -> None:
    if scan.log_id not in (None, log.table_id):
        raise LakeError(f"{log.path} was replaced by another log while it was read")
    if scan.last >= log.end_offset:
        raise LakeError(
            f"{log.path} ends before offset {log.end_offset}, but {scan.last} was there when the read began: all "
            "executors have to see the same lake"
        )
    if scan.first < log.start_offset:
        raise OffsetError(
            f"offset {scan.first} was trimmed from {log.path} while it was read: the first one there is now is "
            f"{log.start_offset}"
        )


def _log_rows(source: LogSource, first: int, last: int, columns: Sequence[str]) -> Iterator[pa.Table]:
    """Rows of the offsets [first, last], in order, in tables of bounded size."""
    if isinstance(source.reader, LakeReader):
        for start in range(first, last + 1, RECORDS_A_PART):
            yield source.reader.log.rows(start, min(start + RECORDS_A_PART - 1, last), columns)
        return
    expected = first
    bulk_batches = getattr(source.reader, "bulk_batches", None)
    is_log = source.kind is not SourceKind.SNAPSHOT
    if bulk_batches is not None and is_log:
        for part in bulk_batches(first, last):
            expected = part.last_offset + 1
            yield _between(to_rows([part]), first, last).select(columns)
    if expected <= last:  # sources without bulk batches, and errors
        for batches in gathered(source.batches(expected, last), _ROWS_AT_ONCE):
            yield _between(to_rows(batches), expected, last).select(columns)


def _between(rows: pa.Table, first: int, last: int) -> pa.Table:
    offsets = rows.column("offset")
    if not rows.num_rows or (offsets[0].as_py() >= first and offsets[-1].as_py() <= last):
        return rows
    return rows.filter(pc.and_(pc.greater_equal(offsets, first), pc.less_equal(offsets, last)))
