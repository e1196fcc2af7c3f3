"""Small files of the log made into large ones, in offset order, while a writer appends.

The rows stay what and where they are by offset; the commit says that no data changed, so no reader or stream sees it.
A file is written again only together with as many rows again that came after it, so that each row is rewritten a
logarithmic number of times however long the log gets.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import attrs
import pyarrow as pa
import pyarrow.parquet as pq

from kraftlake.metadata_log.append.log_file import STATISTICS_COLUMNS
from kraftlake.metadata_log.delta_table.actions import AddFile, RemoveFile
from kraftlake.metadata_log.delta_table.commit import now_ms, removed_unless_committed, write_data_file
from kraftlake.metadata_log.delta_table.data_files import (
    DataFileGoneError,
    OffsetSpan,
    check_contiguous,
    encode_parquet,
    scan,
)
from kraftlake.metadata_log.delta_table.maintenance_commit import commit_beside_writers, upkeep_info
from kraftlake.metadata_log.delta_table.statistics import file_statistics
from kraftlake.metadata_log.delta_table.table_state import TableState, read_table
from kraftlake.metadata_log.maintenance.policy import UpkeepPolicy
from kraftlake.metadata_log.storage.disk import Disk
from kraftlake.metadata_log.storage.location import Location
from kraftlake.metadata_log.storage.sealed_files import sealed_name
from kraftlake.records.rows import LOG_SCHEMA
from kraftlake.runtime.errors import CorruptDataError


@attrs.frozen(kw_only=True)
class Compaction:
    """What a compaction did: `files` became `made`, holding `rows` rows."""

    files: int = 0
    made: int = 0
    rows: int = 0


Rows: TypeAlias = Callable[[OffsetSpan], int]


def _offsets(span: OffsetSpan) -> int:
    """How many offsets a file spans: so many rows has one of the log."""
    assert span.high is not None
    return span.high - span.low + 1


def compact(table: Location, disk: Disk, policy: UpkeepPolicy) -> Compaction:
    """Compact what the policy calls small in the table of a log, a group of files a commit.

    Raises CorruptDataError where the table contradicts itself, LakeError when the disk refuses. A crash leaves an
    orphan file at most.
    """
    done = Compaction()
    state = read_table(table)
    state.check_writable()
    for group in groups_to_compact(state.files.overlapping(0, 2**63 - 1), policy):
        rows = _compact_group(disk, state, group)
        if rows is None:
            break  # somebody else compacts or trims too; the next upkeep sees what is left
        done = Compaction(files=done.files + len(group), made=done.made + 1, rows=done.rows + rows)
        state = read_table(table)
    return done


def groups_to_compact(
    spans: Sequence[OffsetSpan], policy: UpkeepPolicy, *, rows: Rows = _offsets, dense: bool = True
) -> Iterator[list[OffsetSpan]]:
    """The files to make one of each: neighbours by offset, none of them large, enough of them to be worth it.

    `rows` counts a file's rows. Where files are `dense` they hold every offset, and neighbours leave none out.
    """
    for run in _runs(spans, policy, rows, dense):
        left = sum(map(rows, run))
        begin = 0
        # An old file joins when what came after it holds as many rows as it does, not before.
        while begin < len(run) and rows(run[begin]) > left - rows(run[begin]):
            left -= rows(run[begin])
            begin += 1
        if len(run) - begin >= policy.compact_from:
            yield from _cut(run[begin:], policy, rows)


def _runs(spans: Sequence[OffsetSpan], policy: UpkeepPolicy, rows: Rows, dense: bool) -> Iterator[list[OffsetSpan]]:
    run: list[OffsetSpan] = []
    for span in sorted(spans, key=lambda span: span.low):
        small = (
            span.high is not None
            and span.low >= 0
            and span.file.size < policy.small_bytes // 2
            and rows(span) < policy.small_rows // 2
        )
        last = run[-1].high if run else None
        follows = last is not None and (span.low == last + 1 if dense else span.low > last)
        if run and not (small and follows):
            yield run
            run = []
        if small:
            run.append(span)
    if run:
        yield run


def _cut(run: Sequence[OffsetSpan], policy: UpkeepPolicy, rows: Rows) -> Iterator[list[OffsetSpan]]:
    """A run in groups of bounded size; one file alone is no group."""
    group: list[OffsetSpan] = []
    size = count = 0
    for span in run:
        if group and (size + span.file.size > policy.small_bytes or count + rows(span) > policy.small_rows):
            if len(group) > 1:
                yield group
            group, size, count = [], 0, 0
        group.append(span)
        size += span.file.size
        count += rows(span)
    if len(group) > 1:
        yield group


def _compact_group(disk: Disk, state: TableState, group: Sequence[OffsetSpan]) -> int | None:
    """One file of a group; the number of its rows, None when the files aren't all there any more."""
    high = group[-1].high
    assert high is not None
    try:
        tables = list(scan(state.path, group, group[0].low, high, LOG_SCHEMA))
    except DataFileGoneError:
        return None
    rows = pa.concat_tables(tables).combine_chunks()
    check_contiguous(rows, group[0].low, state.path)
    if rows.num_rows != high - group[0].low + 1:
        raise CorruptDataError(f"{state.path} lacks offset {group[0].low + rows.num_rows}, although its files have it.")
    add = _write(disk, state.path, rows, modification_time=max(span.file.modification_time for span in group))
    return rows.num_rows if replace_files(disk, state, [span.file for span in group], add) else None


def replace_files(disk: Disk, state: TableState, files: Sequence[AddFile], add: AddFile) -> bool:
    """Commit that one file, which was written, takes the place of some that hold the same rows.

    False where they aren't all live any more. Raises LakeError when the disk refuses. The new one is deleted then.
    """
    paths = [file.path for file in files]
    removed_at = now_ms()
    removes = [
        RemoveFile(path=file.path, deletion_timestamp=removed_at, size=file.size).to_action(data_change=False)
        for file in files
    ]
    info = upkeep_info("OPTIMIZE", {"predicate": "[]"})
    with removed_unless_committed(disk, [state.path / add.path]):
        committed = commit_beside_writers(
            disk, state, lambda now: [info, *removes, add.to_action()] if now.files.holds_all(paths) else None
        )
    if committed is None:
        with contextlib.suppress(OSError):
            disk.unlink(state.path / add.path)
    return committed is not None


def _write(disk: Disk, table: Location, rows: pa.Table, *, modification_time: int) -> AddFile:
    """Write the new file, read back before anything relies on it.

    It takes over the time at which its youngest rows were appended: a stream that begins with the whole table reads
    files by that time, and a trim compares it with the streams' lag.
    """
    data = encode_parquet(rows)
    if not pq.read_table(pa.BufferReader(data)).cast(LOG_SCHEMA).equals(rows):
        raise CorruptDataError(f"A compacted file of {table} doesn't hold the rows that it was made of; it isn't used.")
    name = sealed_name(f"{rows.column('offset')[0].as_py():020d}", data)
    write_data_file(disk, table, name, data)
    return AddFile(
        path=name,
        size=data.nbytes,
        modification_time=modification_time,
        data_change=False,
        stats=file_statistics(rows, STATISTICS_COLUMNS).to_json(),
    )
