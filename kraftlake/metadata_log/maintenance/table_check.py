"""Finds problems of a Delta table that do not prevent a reader from opening it: in its log, and in its data files."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pyarrow as pa

from kraftlake.metadata_log.delta_table.checkpoint import CheckpointFiles, read_checkpoint
from kraftlake.metadata_log.delta_table.data_files import open_parquet_file
from kraftlake.metadata_log.delta_table.delta_log import is_there, list_log, read_table
from kraftlake.metadata_log.delta_table.table_state import LOG_FOLDER, commit_path
from kraftlake.metadata_log.storage.location import Location
from kraftlake.runtime.errors import CorruptDataError


def table_problems(table: Location) -> Iterator[tuple[str, str]]:
    """Yield the file at fault and a sentence for each problem in the log of a table.

    Raises NotADeltaTableError without a table, LakeError and CorruptDataError for an unreadable one.
    """
    read_table(table, listed=True)
    commits, checkpoints = list_log(table / LOG_FOLDER)
    for version in _holes(table, sorted(commits)):
        path = commit_path(table, version)
        yield path.name, f"{path} is missing although an earlier version is there: streams can't read past it."
    for _, files in sorted(checkpoints.items()):
        if (fault := _fault_of(files)) is not None:
            yield files[0].name, fault


def damaged_files(table: Location) -> Iterator[str]:
    """Return the names of the table's missing or damaged data files: all content is read, one row group at a time.

    Raises LakeError and CorruptDataError if the table's log can't be read.
    """
    for file in read_table(table).files.values():
        try:
            parquet = open_parquet_file(table / file.path)
            for group in range(parquet.num_row_groups):
                parquet.read_row_group(group)
        except (pa.ArrowException, OSError, ValueError):
            yield file.path


def _holes(table: Location, commits: list[int]) -> Iterator[int]:
    """Yield the missing versions between the commits of a listing.

    A clean-up deletes the oldest first, so a missing version with an older existing one was lost.
    """
    for older, newer in pairwise(commits):
        for version in range(older + 1, newer):
            if not is_there(commit_path(table, version)) and is_there(commit_path(table, older)):
                yield version


def _fault_of(files: CheckpointFiles) -> str | None:
    try:
        content = read_checkpoint(files)
        len(content.files)
        content.tombstones.since(0)
    except CorruptDataError as fault:
        return str(fault)
    except FileNotFoundError:
        return None  # cleaned up meanwhile
    return None
