"""A log, or a snapshot, cut into pieces for parallel processes: disjoint ranges of offsets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import attrs
import pyarrow as pa

from kraftlake.metadata_log.delta_table.data_files import integer_bounds, open_live
from kraftlake.metadata_log.snapshots.snapshot_rows import groups_with, rows_in_group
from kraftlake.metadata_log.storage.location import lake_location

if TYPE_CHECKING:
    from kraftlake.metadata_log.reading.readable_log import ReadableLog
    from kraftlake.metadata_log.snapshots.snapshot_table import LakeSnapshot


def log_pieces(log: ReadableLog, from_offset: int, to_offset: int, rows: int) -> list[tuple[int, int]]:
    """Cut the offsets [from_offset, to_offset] into ranges, both ends included, of about `rows` offsets or fewer.

    The cuts are at the starts of files, where possible, so that no row group is read twice. Empty for an empty range.
    """
    begins = sorted({span.low for span in log.files_between(from_offset, to_offset)})
    return list(cut(begins, from_offset, to_offset, rows))


def cut(begins: Iterable[int], low: int, high: int, rows: int) -> Iterator[tuple[int, int]]:
    """Cut [low, high] into ranges that begin at some of `begins` (sorted), or, between two distant ones, anywhere.

    No range is longer than 1.5 × `rows`.
    """
    assert rows > 0, "a piece holds something"
    start = low
    for begin in [*(b for b in begins if low < b <= high), high + 1]:
        while begin - start > rows + rows // 2:
            yield start, start + rows - 1
            start += rows
        if begin - start >= rows // 2 or begin == high + 1:
            if begin > start:
                yield start, begin - 1
            start = begin


@attrs.frozen(kw_only=True)
class SnapshotPiece:
    """Row groups of a snapshot's files that hold a range of its offsets; can be sent to another process.

    `groups` are a file's path and the number of a row group in it. Pieces don't overlap: each ends before the next
    one's `first_offset`.
    """

    end_offset: int
    first_offset: int
    rows: int
    groups: tuple[tuple[str, int], ...]


def snapshot_pieces(snapshot: LakeSnapshot, rows: int) -> list[SnapshotPiece]:
    """Cut a snapshot into pieces of about `rows` rows, by offset.

    Raises CorruptDataError for a missing or damaged file.
    """
    groups: list[tuple[int, int, int, str, int]] = []
    for path in snapshot.data_paths:
        parquet = open_live(path)
        offsets = integer_bounds(parquet, "offset")
        for index, _ in groups_with(parquet, snapshot.end_offset):
            low, high = offsets[index] or (0, snapshot.record_count - 1)
            groups.append((low, high, parquet.metadata.row_group(index).num_rows, str(path), index))
    return list(_gathered(sorted(groups), snapshot.end_offset, rows))


def _gathered(groups: Sequence[tuple[int, int, int, str, int]], end_offset: int, rows: int) -> Iterator[SnapshotPiece]:
    held: list[tuple[int, int, int, str, int]] = []
    highest = -1
    for group in groups:
        if held and group[0] > highest and sum(each[2] for each in held) >= rows:
            yield _piece(held, end_offset)
            held = []
        held.append(group)
        highest = max(highest, group[1])
    if held:
        yield _piece(held, end_offset)


def _piece(held: Sequence[tuple[int, int, int, str, int]], end_offset: int) -> SnapshotPiece:
    return SnapshotPiece(
        end_offset=end_offset,
        first_offset=held[0][0],
        rows=sum(each[2] for each in held),
        groups=tuple((path, index) for *_, path, index in held),
    )


def read_piece(piece: SnapshotPiece) -> pa.Table:
    """Read the rows of a piece in LOG_SCHEMA, sorted by offset; raises CorruptDataError."""
    tables = []
    for path, index in piece.groups:
        place = lake_location(path)
        tables.append(rows_in_group(open_live(place), place, index, piece.end_offset))
    return pa.concat_tables(tables).sort_by("offset")
