"""What is wrong with the log of a Delta table, past what stops a reader: its kept history and its checkpoints."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from kraftlake.metadata_log.delta_table.checkpoint import CheckpointFiles, read_checkpoint
from kraftlake.metadata_log.delta_table.table_state import LOG_FOLDER, commit_path, list_log, read_table
from kraftlake.metadata_log.storage.location import Location
from kraftlake.runtime.errors import CorruptDataError


def table_problems(table: Location) -> Iterator[tuple[str, str]]:
    """The file at fault and a sentence for each problem in the log of a table.

    Raises NotADeltaTableError where there is none, LakeError and CorruptDataError where it can't be read.
    """
    read_table(table, listed=True)
    commits, checkpoints = list_log(table / LOG_FOLDER)
    for version in _holes(table, sorted(commits)):
        path = commit_path(table, version)
        yield path.name, f"{path} is missing although an earlier version is there: streams can't read past it."
    for _, files in sorted(checkpoints.items()):
        if (fault := _fault_of(files)) is not None:
            yield files[0].name, fault


def _holes(table: Location, commits: list[int]) -> Iterator[int]:
    """The versions that are missing between the commits of a listing.

    A clean-up takes the oldest first, so that one which an older version outlives was lost.
    """
    for older, newer in pairwise(commits):
        for version in range(older + 1, newer):
            if not commit_path(table, version).exists() and commit_path(table, older).exists():
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
