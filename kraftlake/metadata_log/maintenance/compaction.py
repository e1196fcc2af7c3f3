"""Compaction: merges small files of the log, or of a derived table, into large ones, concurrently with a writer.

The rows stay the same; the commit declares no change of data, so that readers and streams skip it. A file is rewritten
only together with at least as many newer rows, so that each row is rewritten a logarithmic number of times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import attrs
import pyarrow as pa
import pyarrow.parquet as pq

from kraftlake.metadata_log.append.log_commit import bounded_groups
from kraftlake.metadata_log.append.log_file import STATISTICS_COLUMNS
from kraftlake.metadata_log.delta_table.actions import AddFile
from kraftlake.metadata_log.delta_table.commit import commit_beside_writers, commit_info, now_ms
from kraftlake.metadata_log.delta_table.data_files import (
    DataFileGoneError,
    OffsetSpan,
    encode_parquet,
    file_statistics,
    open_parquet_file,
    write_data_file,
)
from kraftlake.metadata_log.delta_table.delta_log import read_table
from kraftlake.metadata_log.delta_table.row_files import rewrite_row_file
from kraftlake.metadata_log.delta_table.scan import check_contiguous, scan
from kraftlake.metadata_log.delta_table.table_state import TableState
from kraftlake.metadata_log.maintenance.upkeep_policy import UpkeepPolicy
from kraftlake.metadata_log.storage.disk import Disk
from kraftlake.metadata_log.storage.location import Location
from kraftlake.records.rows import LOG_SCHEMA
from kraftlake.runtime.errors import CorruptDataError


@attrs.frozen(kw_only=True)
class Compaction:
    """The result of a compaction: `files` files became `made` files."""

    files: int = 0
    made: int = 0


def compact(table: Location, disk: Disk, policy: UpkeepPolicy) -> Compaction:
    """Compact the small files of a log's table, as defined by the policy, one group of files per commit.

    Raises CorruptDataError if the table contradicts itself, LakeError if the disk refuses. A crash leaves at most one
    orphan file.
    """
    return _compact(table, disk, policy, _compacted, dense=True)


def compact_rows(table: Location, disk: Disk, policy: UpkeepPolicy) -> Compaction:
    """Compact the small files of a derived table that grows by offset, as defined by the policy, one group per commit.

    The same as `compact` for the log, whose files hold every offset once: here one offset may have many rows, or none.
    Raises CorruptDataError for a file that contradicts the table, LakeError if the disk refuses. A crash leaves at most
    one orphan file.
    """
    return _compact(table, disk, policy, _compacted_rows, dense=False)


def _compact(
    table: Location,
    disk: Disk,
    policy: UpkeepPolicy,
    compacted: Callable[[Disk, TableState, list[OffsetSpan]], AddFile | None],
    *,
    dense: bool,
) -> Compaction:
    """Replace each group of files by the file that `compacted` writes, in a separate commit.

    `compacted` returns the new file, None if some of the files are gone: another compaction or a trim removed them, and
    the next upkeep handles the rest. Raises LakeError.
    """
    state, done = read_table(table), Compaction()
    for group in groups_to_compact(state.files.overlapping(0, 2**63 - 1), policy, dense=dense):
        add = compacted(disk, state, group)
        if add is None or not _replace_files(disk, state, [span.file for span in group], add):
            break
        done = Compaction(files=done.files + len(group), made=done.made + 1)
        state = read_table(state.path)
    return done


def groups_to_compact(
    spans: Sequence[OffsetSpan], policy: UpkeepPolicy, *, dense: bool = True
) -> Iterator[list[OffsetSpan]]:
    """The groups of files to merge: small neighbours by offset, `compact_from` of them or more.

    `dense` files hold every offset, and neighbouring files have no gap.
    """
    for run in _runs(spans, policy, dense):
        left = sum(map(_rows_of, run))
        begin = 0
        # An old file joins once the files after it hold as many rows as it does.
        while begin < len(run) and _rows_of(run[begin]) > left - _rows_of(run[begin]):
            left -= _rows_of(run[begin])
            begin += 1
        if len(run) - begin >= policy.compact_from:
            sizes = ((span, _rows_of(span), span.file.size) for span in run[begin:])
            for group in bounded_groups(sizes, policy.small_rows, policy.small_bytes):
                if len(group) > 1:
                    yield group


def _rows_of(span: OffsetSpan) -> int:
    """The number of rows of a file in a group."""
    assert span.rows is not None, "its add says so"
    return span.rows


def _runs(spans: Sequence[OffsetSpan], policy: UpkeepPolicy, dense: bool) -> Iterator[list[OffsetSpan]]:
    run: list[OffsetSpan] = []
    for span in sorted(spans, key=lambda span: span.low):
        small = (
            span.high is not None
            and span.low >= 0
            and span.file.size < policy.small_bytes // 2
            and span.rows is not None
            and span.rows < policy.small_rows // 2
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


def _compacted(disk: Disk, state: TableState, group: list[OffsetSpan]) -> AddFile | None:
    """Write the compacted file of a group, and read it back before its use."""
    low, high = group[0].low, group[-1].high
    assert high is not None
    try:
        tables = list(scan(state.path, group, low, high, LOG_SCHEMA))
    except DataFileGoneError:
        return None
    rows = pa.concat_tables(tables).combine_chunks()
    check_contiguous(rows, low, state.path)
    if rows.num_rows != high - low + 1:
        raise CorruptDataError(f"{state.path} lacks offset {low + rows.num_rows}, although its files have it.")
    data = encode_parquet(rows)
    if not pq.read_table(pa.BufferReader(data)).cast(LOG_SCHEMA).equals(rows):
        raise CorruptDataError(f"A compacted file of {state.path} doesn't hold the rows of its sources; it isn't used.")
    return write_data_file(
        disk,
        state.path,
        f"{low:020d}",
        data,
        file_statistics(rows, STATISTICS_COLUMNS).to_json(),
        modification_time=_youngest(group),
        data_change=False,
    )


def _compacted_rows(disk: Disk, state: TableState, group: list[OffsetSpan]) -> AddFile | None:
    """Write the compacted file of a group; None if some of its files are gone."""
    tables = []
    for span in group:
        path = state.path / span.file.path
        try:
            tables.append(open_parquet_file(path).read())
        except FileNotFoundError:
            return None
        except (pa.ArrowException, OSError, ValueError) as fault:
            raise CorruptDataError(_damaged(path)) from fault
    try:
        # A job may have added columns meanwhile: files from before that lack them.
        rows = pa.concat_tables(tables, promote_options="default").combine_chunks()
    except pa.ArrowException as fault:
        raise CorruptDataError(_damaged(state.path)) from fault
    high = group[-1].high
    if rows.num_rows != sum(map(_rows_of, group)) or high is None:
        raise CorruptDataError(_damaged(state.path))
    return rewrite_row_file(disk, state, rows, last_offset=high, modification_time=_youngest(group))


def _damaged(path: Location) -> str:
    return f"{path} is damaged, or doesn't hold the rows that the table says: delete the table, its job makes it anew."


def _youngest(group: Sequence[OffsetSpan]) -> int:
    """The append time (epoch ms) of the youngest rows in files, which their compacted file keeps.

    A stream that begins with the whole table reads files in the order of that time, and a trim compares it with the
    streams' lag.
    """
    return max(span.file.modification_time for span in group)


def _replace_files(disk: Disk, state: TableState, files: Sequence[AddFile], add: AddFile) -> bool:
    """Commit the replacement of files by one written file with the same rows.

    Returns False if they are no longer all live. Raises LakeError if the disk refuses. The new file is deleted in both
    cases.
    """
    paths = [file.path for file in files]
    removed_at = now_ms()
    removes = [file.to_remove(removed_at, data_change=False) for file in files]
    info = commit_info("OPTIMIZE", {"predicate": "[]"})
    committed = commit_beside_writers(
        disk,
        state,
        lambda now: [info, *removes, add.to_action()] if now.files.holds_all(paths) else None,
        new_files=[add],
    )
    return committed is not None
