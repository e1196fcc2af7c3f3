"""Where a stream over the log's table starts: never with Delta's initial snapshot, which is not in offset order."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import attrs

from kraftlake.metadata_log.delta_table.actions import AddFile
from kraftlake.metadata_log.delta_table.table_state import TableState, read_commit
from kraftlake.metadata_log.storage.location import Location
from kraftlake.runtime.errors import UsageError

_PARTS_OF_A_CHECKPOINT = ("metadata", "offsets", "commits", "sources", "state")


@attrs.frozen(kw_only=True)
class StreamStart:
    """A version of the log's table from which on its commits can be streamed.

    `end_offset` is the log's end at `version`: offsets below it are read from the table itself, the others come
    through the stream, which starts with `version + 1`.
    """

    version: int
    end_offset: int


def choose_start(log: TableState, *, end_offset: int, needed: int) -> StreamStart:
    """The newest version at which the log ends at or before offset `needed`: a stream from there brings all the rest.

    If commits in between are missing (cleaned up), or their files (compacted and vacuumed), the oldest version after
    that gap. `end_offset` is the log's end at `log.version`.
    """
    start = StreamStart(version=log.version, end_offset=end_offset)
    for earlier in _earlier(log, start):
        if start.end_offset <= needed:
            break
        start = earlier
    return start


def _earlier(log: TableState, start: StreamStart) -> Iterator[StreamStart]:
    """The starts before `start`, the newest first, as long as the commits in between can be streamed."""
    while start.version > 0:
        commit = read_commit(log.path, start.version)
        if commit is None or commit.metadata is not None or commit.protocol is not None:
            return
        end_offset = start.end_offset
        for add in commit.adds:
            if add.data_change:
                first = _first_offset(log.path, add)
                if first is None:
                    return
                end_offset = min(end_offset, first)
        start = StreamStart(version=start.version - 1, end_offset=end_offset)
        yield start


def _first_offset(table: Location, add: AddFile) -> int | None:
    """The first offset in a file of the log; None if the file is missing or has no statistics."""
    statistics = add.statistics
    first = None if statistics is None else statistics.min_values.get("offset")
    return first if isinstance(first, int) and (table / add.path).exists() else None


def resumable(checkpoint: Path, log: TableState, *, end_offset: int, needed: int) -> bool:
    """Whether a stream can go on from its checkpoint and bring offset `needed` and all after it.

    It can't if the checkpoint is of another table, has no finished micro-batch, is ahead of the tables, or names
    commits or files that are missing. The tables' own offsets then replace the checkpoint.
    """
    position = _position(checkpoint)
    if position is None or position[0] != log.metadata.id:
        return False
    resumes_after = position[1] - 1
    if resumes_after > log.version:
        return False
    start = StreamStart(version=log.version, end_offset=end_offset)
    if start.version == resumes_after:
        return start.end_offset <= needed
    for earlier in _earlier(log, start):
        if earlier.version == resumes_after:
            return earlier.end_offset <= needed
    return False


def _position(checkpoint: Path) -> tuple[str, int] | None:
    """The table id, and the version that the stream reads next, of the last finished micro-batch."""
    try:
        finished = max(int(entry.name) for entry in (checkpoint / "commits").iterdir() if entry.name.isdecimal())
        lines = (checkpoint / "offsets" / str(finished)).read_text("utf-8").splitlines()
        offset = json.loads(lines[-1])
        return str(offset["reservoirId"]), int(offset["reservoirVersion"])
    except (OSError, ValueError, LookupError, TypeError):
        return None


def discard(checkpoint: Path) -> None:
    """Delete a stream's checkpoint, which is all that its folder holds.

    Raises UsageError for a folder with other files.
    """
    if not checkpoint.exists():
        return
    if not checkpoint.is_dir():
        raise UsageError(f"{checkpoint} is a file: a stream's checkpoint is a folder")
    names = {entry.name for entry in checkpoint.iterdir() if not entry.name.startswith(".")}
    if not names <= set(_PARTS_OF_A_CHECKPOINT):
        raise UsageError(
            f"{checkpoint} holds {sorted(names - set(_PARTS_OF_A_CHECKPOINT))[0]!r}, which is no part of a stream's "
            "checkpoint: name an empty folder or none"
        )
    shutil.rmtree(checkpoint)
