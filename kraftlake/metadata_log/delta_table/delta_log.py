"""Reader of a Delta table's transaction log: its newest state, from scratch or from a known version.

Checkpoints and commits are opened by name, so that the time to open a table does not grow with the log's age. The
folder is listed before a table is written, and if the names contradict each other: only a listing reveals lost
versions. Under a fast writer a listing may seem to lack a version, so each missing version is opened by name again
before it counts as lost. Source: the Delta transaction log protocol, "Delta Log Entries", "Checkpoints", "Reader
Requirements".
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from itertools import count, islice
from typing import TYPE_CHECKING

from kraftlake.metadata_log.delta_table.actions import Commit, decode_commit
from kraftlake.metadata_log.delta_table.table_state import LOG_FOLDER, TableState, check_readable, commit_path
from kraftlake.metadata_log.storage.location import Location, refused_read
from kraftlake.metadata_log.storage.object_path import ObjectPath
from kraftlake.runtime.errors import CorruptDataError, LakeError, RefusedReadError

if TYPE_CHECKING:
    import pyarrow as pa

    from kraftlake.metadata_log.delta_table.checkpoint import CheckpointFiles

ATTEMPTS = 8
"""The maximum number of attempts to read a state while writers and cleaners run concurrently."""

FAR_BEHIND = 256
"""The number of versions above which reading a checkpoint is faster than reading them one by one."""

_PROBES = (2, 3, *(2**step for step in range(2, 13)))
"""Distances from a state's version at which a reader looks for later versions by name. If some versions were lost and
at least as many follow them, one of these distances hits an existing version."""

_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.(\d{10})\.(\d{10}))?\.parquet")


class NotADeltaTableError(LakeError):
    """The folder holds no transaction log with a version in it."""


class ReplacedTableError(LakeError):
    """Reports a table that was replaced while it was followed."""

    def __init__(self, path: Location, version: int) -> None:
        super().__init__(
            f"{path} is no longer the table that was read there up to version {version}: it was deleted, or another "
            f"lake or an earlier state of this one was put in its place; start everything anew that uses the lake."
        )


class _ListingRaceError(Exception):
    """Reports a listing that contradicts the files that could be opened; a retry may succeed."""

    def __init__(self, version: int) -> None:
        super().__init__(version)
        self.version = version


def read_commit(table: Location, version: int) -> Commit | None:
    """Read a version of a table; None if it does not exist, or no longer exists."""
    path = commit_path(table, version)
    try:
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as fault:
        raise refused_read(path, fault) from fault
    return decode_commit(data, version, str(path), table.name)


def read_commits(table: Location, from_version: int) -> Iterator[Commit]:
    """Yield the versions of a table from one on, as long as they can be opened."""
    for version in count(from_version):
        commit = read_commit(table, version)
        if commit is None:
            return
        yield commit


def read_table(path: Location, *, listed: bool = False) -> TableState:
    """Read the newest state of the table at `path`; with `listed`, the newest by a listing of the folder.

    A damaged checkpoint is skipped, with a warning, if all commits that it replaces exist.

    Raises NotADeltaTableError without a table, LakeError for a table that this release can't read or that lost a
    version, RefusedReadError (a LakeError), CorruptDataError for a log with a torn file.
    """
    version = -1
    for attempt in range(ATTEMPTS):
        try:
            state = _read_hinted(path) if attempt == 0 else None
            if state is None:
                state = _read_listed(path)
            elif not listed and _is_newest(state):
                return state
            return _with_all_listed(state)
        except _ListingRaceError as race:
            version = race.version
            time.sleep(0.001 * 2**attempt)
    raise LakeError(f"Version {version} of the Delta table {path} is missing although a later one exists.")


def check_none_lost(table: Location, version: int) -> None:
    """Raise if a listing shows versions of a table after `version` with a lost one in between.

    Raises LakeError naming it, CorruptDataError for a later torn checkpoint, as `read_table` does.
    """
    commits, checkpoints = list_log(table / LOG_FOLDER, after=version)
    there = {*commits, *checkpoints}
    first = max(checkpoints, default=version) + 1
    if any(
        each not in there and not is_there(commit_path(table, each)) for each in range(first, max(there, default=0))
    ):
        read_table(table, listed=True)


def _read_hinted(path: Location) -> TableState | None:
    """Return the state reached by name from the checkpoint in `_last_checkpoint`; None if that can't be read."""
    hint = _read_hint(path / LOG_FOLDER)
    if hint is None:
        return None
    try:
        base = _load_checkpoint(path, hint[0], _hinted_files(path / LOG_FOLDER, *hint))
    except (_ListingRaceError, CorruptDataError):
        return None  # a listing finds what else there is
    return _replay(path, base)


def _read_listed(path: Location) -> TableState:
    """Return the state reached by name from the newest readable checkpoint, or from version 0."""
    commits, checkpoints = list_log(path / LOG_FOLDER)
    base, torn = _newest_readable(path, checkpoints)
    state = _replay(path, base)
    if torn and (state is None or state.version < torn[0]):
        raise _lost(checkpoints[torn[0]])
    if state is None:
        if commits:
            raise _ListingRaceError(0)
        raise NotADeltaTableError(f"{path} holds no Delta table.")
    for version in torn:
        _warn_of(checkpoints[version])
    return state


def _newest_readable(path: Location, checkpoints: Mapping[int, CheckpointFiles]) -> tuple[TableState | None, list[int]]:
    """Return the state of the newest readable checkpoint, and the versions of later unreadable ones."""
    torn: list[int] = []
    for version in sorted(checkpoints, reverse=True):
        try:
            return _load_checkpoint(path, version, checkpoints[version]), torn
        except CorruptDataError:
            torn.append(version)
    return None, torn


def _with_all_listed(state: TableState) -> TableState:
    """Return the state advanced to the newest version in a listing.

    A version that can be opened by name is not lost.
    """
    commits, checkpoints = list_log(state.path / LOG_FOLDER, after=state.version)
    newest = max([*commits, *checkpoints], default=-1)
    if newest > state.version:
        _replay(state.path, state)
        if newest > state.version:
            raise _ListingRaceError(state.version + 1)
    return state


def _is_newest(state: TableState) -> bool:
    """Whether a state reached by name is the newest, by the existing names; the state advances with a fast writer.

    An existing commit proves that the next one was never cleaned up, since the oldest are deleted first; a later
    version beyond a gap, or a later checkpoint, reveals a lost one. In an object store a listing is faster than this
    check.
    """
    if isinstance(state.path, ObjectPath):
        return False
    for _ in range(ATTEMPTS):
        version = state.version
        if not any(is_there(commit_path(state.path, version + distance)) for distance in _PROBES):
            later = hinted_checkpoint(state.path / LOG_FOLDER, above=version)
            return later is None and is_there(commit_path(state.path, version))
        _replay(state.path, state)
        if state.version == version:
            return False
    return False


def _replay(path: Location, base: TableState | None, upto: int | None = None) -> TableState | None:
    """Return `base` advanced by the later commits that can be opened by name, up to version `upto`."""
    state = base
    begin = 0 if base is None else base.version + 1
    for commit in islice(read_commits(path, begin), None if upto is None else upto + 1 - begin):
        if state is None:
            if commit.protocol is None or commit.metadata is None:
                raise LakeError(f"Version 0 of the Delta table {path} lacks its protocol or its metadata.")
            check_readable(path, commit.protocol, commit.metadata)
            state = TableState(path=path, version=-1, protocol=commit.protocol, metadata=commit.metadata)
        state.apply(commit)
    return state


def _load_checkpoint(path: Location, version: int, files: CheckpointFiles) -> TableState:
    from kraftlake.metadata_log.delta_table.checkpoint import read_checkpoint

    try:
        content = read_checkpoint(files, lambda: _files_by_commits(path, version, files))
    except FileNotFoundError as fault:
        raise _ListingRaceError(version) from fault
    check_readable(path, content.protocol, content.metadata)
    return TableState(
        path=path,
        version=version,
        protocol=content.protocol,
        metadata=content.metadata,
        transactions=content.transactions,
        files=content.files,
        tombstones=content.tombstones,
        checkpoint_version=version,
    )


def _files_by_commits(path: Location, version: int, files: CheckpointFiles) -> pa.Table:
    """Return the live files of a version whose checkpoint is torn, from an older one and the commits after it."""
    _, checkpoints = list_log(path / LOG_FOLDER)
    base, _ = _newest_readable(path, {older: checkpoints[older] for older in checkpoints if older < version})
    state = _replay(path, base, upto=version)
    if state is None or state.version != version:
        raise _lost(files)
    _warn_of(files)
    return state.files.to_table()


def _lost(files: CheckpointFiles) -> CorruptDataError:
    return CorruptDataError(
        f"{files[0]} is no checkpoint of a Delta table that can be read, and the commits that it stands for are not "
        f"all there: restore it from a copy of the lake."
    )


def _warn_of(files: CheckpointFiles) -> None:
    from kraftlake.runtime.log import get_logger

    get_logger(__name__).warning(
        "checkpoint_unreadable", file=str(files[0]), way_out="the commits were read in its place: delete it"
    )


def follow(state: TableState) -> TableState:
    """Return the table at its newest version: `state`, advanced if possible, else a new state.

    Raises ReplacedTableError, and the errors of `read_table`.
    """
    try:
        advance(state)
    except RefusedReadError:
        raise
    except LakeError:
        try:
            newest = read_table(state.path)
        except NotADeltaTableError as fault:
            raise ReplacedTableError(state.path, state.version) from fault
        if newest.metadata.id != state.metadata.id or newest.version < state.version:
            raise ReplacedTableError(state.path, state.version) from None
        return newest
    return state


def advance(state: TableState) -> None:
    """Apply the newer versions, opened by name.

    Raises LakeError if they can't be followed one by one because the log was cleaned up, or because so many remain that
    a checkpoint is faster: read the table anew.
    """
    begin, log = state.version, state.path / LOG_FOLDER
    for commit in read_commits(state.path, begin + 1):
        state.apply(commit)
        far = (state.version - begin) % FAR_BEHIND == 0
        if far and hinted_checkpoint(log, above=state.version + FAR_BEHIND) is not None:
            raise LakeError(f"A checkpoint of {state.path} is far above version {state.version}; open the lake again.")
    if is_left_behind(state.path, state.version) and not is_there(commit_path(state.path, state.version + 1)):
        raise LakeError(f"Version {state.version + 1} of {state.path} was cleaned up; open the lake again.")


def is_left_behind(table: Location, version: int) -> bool:
    """Whether a missing next version may have been cleaned up, or the table replaced.

    The next version is merely not made yet if `version` itself exists, by its commit or a checkpoint, and no later
    checkpoint does.
    """
    checkpoint = hinted_checkpoint(table / LOG_FOLDER, above=version - 1)
    return not is_there(commit_path(table, version)) if checkpoint is None else checkpoint > version


def hinted_checkpoint(log: Location, *, above: int = -1) -> int | None:
    """Return the version in `_last_checkpoint` if it is later than `above` and that checkpoint exists.

    The file is only a hint: a missing or torn one, or one without its checkpoint, has no effect.
    """
    hint = _read_hint(log)
    if hint is None or hint[0] <= above or not all(is_there(file) for file in _hinted_files(log, *hint)):
        return None
    return hint[0]


def _read_hint(log: Location) -> tuple[int, int | None] | None:
    """Return the version and the parts (None: one file without a number) of `_last_checkpoint`."""
    try:
        hint = json.loads((log / "_last_checkpoint").read_bytes())
        version, parts = hint["version"], hint.get("parts")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    if (
        not isinstance(version, int)
        or version < 0
        or not (parts is None or (isinstance(parts, int) and 0 < parts < 10**6))
    ):
        return None
    return version, parts


def checkpoint_path(log: Location, version: int) -> Location:
    """The path of a checkpoint of one part."""
    return log / f"{version:020d}.checkpoint.parquet"


def _hinted_files(log: Location, version: int, parts: int | None) -> CheckpointFiles:
    if parts is None:
        return (checkpoint_path(log, version),)
    return tuple(log / f"{version:020d}.checkpoint.{part:010d}.{parts:010d}.parquet" for part in range(1, parts + 1))


def list_log(log: Location, *, after: int = -1) -> tuple[list[int], dict[int, CheckpointFiles]]:
    """List the versions above `after`, and the complete classic checkpoints above it with their files."""
    try:
        names = _names_in(log, after="" if after < 0 else commit_path(log.parent, after).name)
    except (FileNotFoundError, NotADirectoryError):
        return [], {}
    except OSError as fault:
        raise refused_read(log, fault) from fault
    commits = [int(match[1]) for match in map(_COMMIT.fullmatch, names) if match]
    parts: dict[tuple[int, int], list[Location]] = {}
    for name in sorted(names):
        if match := _CHECKPOINT.fullmatch(name):
            parts.setdefault((int(match[1]), int(match[3] or 1)), []).append(log / name)
    complete = {version: tuple(files) for (version, total), files in parts.items() if len(files) == total}
    return commits, complete


def is_there(path: Location) -> bool:
    """Whether a file of this name exists; raises RefusedReadError if the disk or the store does not answer."""
    try:
        return path.exists()
    except OSError as fault:
        raise refused_read(path, fault) from fault


def _names_in(folder: Location, *, after: str) -> list[str]:
    """Return the names directly below a folder that sort after `after`, in no order.

    Raises FileNotFoundError, OSError.
    """
    if isinstance(folder, ObjectPath):
        return [path.name for path in folder.iterdir(after=after)]
    return [name for name in os.listdir(folder) if name > after]  # noqa: PTH208  # half the time
