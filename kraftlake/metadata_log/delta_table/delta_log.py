"""Reading the transaction log of a Delta table: its newest state, anew or from a version that is known.

Checkpoint and commits are opened by name, so that opening to read takes as long whatever the log's age. The folder is
listed before a table is written to, and where the names contradict each other: only a listing tells that versions were
lost. Under a fast writer it can look as if one were, so that each is opened by its name again before it counts as lost.
Source: the Delta transaction log protocol, "Delta Log Entries", "Checkpoints", "Reader Requirements".
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
"""How often a state is read anew when writers and cleaners run beside the reader."""

FAR_BEHIND = 256
"""Number of versions above which a checkpoint takes less time than they do, one by one."""

_PROBES = (2, 3, *(2**step for step in range(2, 13)))
"""How far behind a state's version a reader looks for later ones by name: among the versions that follow some lost ones
lies one of these distances, whenever as many follow as were lost."""

_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.(\d{10})\.(\d{10}))?\.parquet")


class NotADeltaTableError(LakeError):
    """The folder holds no transaction log with a version in it."""


class ReplacedTableError(LakeError):
    """What lies at a table's place is not what was followed there."""

    def __init__(self, path: Location, version: int) -> None:
        super().__init__(
            f"{path} is no longer the table that was read there up to version {version}: it was deleted, or another "
            f"lake or an earlier state of this one was put in its place; start everything anew that uses the lake."
        )


class _ListingRaceError(Exception):
    """What a listing showed and what could be opened disagree; worth another try."""

    def __init__(self, version: int) -> None:
        super().__init__(version)
        self.version = version


def read_commit(table: Location, version: int) -> Commit | None:
    """A version of a table, None when there is none (or not any more)."""
    path = commit_path(table, version)
    try:
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as fault:
        raise refused_read(path, fault) from fault
    return decode_commit(data, version, str(path), table.name)


def read_commits(table: Location, from_version: int) -> Iterator[Commit]:
    """The versions of a table from one on, as far as they can be opened."""
    for version in count(from_version):
        commit = read_commit(table, version)
        if commit is None:
            return
        yield commit


def read_table(path: Location, *, listed: bool = False) -> TableState:
    """The newest state of the table at `path`; with `listed` the newest of which a listing shows a version.

    A checkpoint that is damaged is passed over, with a warning, where the commits that it stands for are all there.

    Raises NotADeltaTableError when there is none, LakeError for one that this release can't read or that lost a
    version, RefusedReadError (a LakeError), CorruptDataError for a log with a file that is torn.
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
    """Raise where a listing shows versions of a table after `version` between which one was lost.

    Raises LakeError naming it, CorruptDataError for a checkpoint after it that is torn, as `read_table` does.
    """
    commits, checkpoints = list_log(table / LOG_FOLDER, after=version)
    there = {*commits, *checkpoints}
    first = max(checkpoints, default=version) + 1
    if any(
        each not in there and not is_there(commit_path(table, each)) for each in range(first, max(there, default=0))
    ):
        read_table(table, listed=True)


def _read_hinted(path: Location) -> TableState | None:
    """The state reached by name from the checkpoint that `_last_checkpoint` names; None where that can't be read."""
    hint = _read_hint(path / LOG_FOLDER)
    if hint is None:
        return None
    try:
        base = _load_checkpoint(path, hint[0], _hinted_files(path / LOG_FOLDER, *hint))
    except (_ListingRaceError, CorruptDataError):
        return None  # a listing finds what else there is
    return _replay(path, base)


def _read_listed(path: Location) -> TableState:
    """The state reached by name from the newest checkpoint that can be read, or from version 0."""
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
    """The state of the newest checkpoint that can be read, and the versions of those above it that can't."""
    torn: list[int] = []
    for version in sorted(checkpoints, reverse=True):
        try:
            return _load_checkpoint(path, version, checkpoints[version]), torn
        except CorruptDataError:
            torn.append(version)
    return None, torn


def _with_all_listed(state: TableState) -> TableState:
    """The state advanced to the newest version that a listing shows; one that can be opened by name was not lost."""
    commits, checkpoints = list_log(state.path / LOG_FOLDER, after=state.version)
    newest = max([*commits, *checkpoints], default=-1)
    if newest > state.version:
        _replay(state.path, state)
        if newest > state.version:
            raise _ListingRaceError(state.version + 1)
    return state


def _is_newest(state: TableState) -> bool:
    """Whether a state that was reached by name is the newest, by the names that exist; it advances with a fast writer.

    A commit that is still there proves that the next one was never cleaned up, since the oldest go first; a version
    further on, or a later checkpoint, shows that one was lost. In an object store a listing takes less time than this.
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
    """`base` advanced by the commits after it that can be opened by name, up to version `upto`."""
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
    """The live files of a version by the commits up to it, and an older checkpoint: its own, `files`, is torn."""
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
    """The table at its newest version: `state`, advanced, or a new one where the commits can't be followed one by one.

    Raises ReplacedTableError, and what `read_table` raises.
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
    """Apply the versions made since, opened by name.

    Raises LakeError when they can't be followed one by one because the log was cleaned up, or so many are left that
    a checkpoint tells them sooner: read the table anew.
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
    """Whether a next version that is not there may be missing because it was cleaned up, or the table replaced.

    It only isn't made yet where `version` itself is there, by its commit or a checkpoint, and no later checkpoint is.
    """
    checkpoint = hinted_checkpoint(table / LOG_FOLDER, above=version - 1)
    return not is_there(commit_path(table, version)) if checkpoint is None else checkpoint > version


def hinted_checkpoint(log: Location, *, above: int = -1) -> int | None:
    """The version that `_last_checkpoint` names if it is later than `above` and that checkpoint exists.

    It is a hint only: missing, torn or of a checkpoint that isn't there, it says nothing.
    """
    hint = _read_hint(log)
    if hint is None or hint[0] <= above or not all(is_there(file) for file in _hinted_files(log, *hint)):
        return None
    return hint[0]


def _read_hint(log: Location) -> tuple[int, int | None] | None:
    """Version and number of parts (None: one file without a number) of the checkpoint that `_last_checkpoint` names."""
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
    """The file of a checkpoint of one part."""
    return log / f"{version:020d}.checkpoint.parquet"


def _hinted_files(log: Location, version: int, parts: int | None) -> CheckpointFiles:
    if parts is None:
        return (checkpoint_path(log, version),)
    return tuple(log / f"{version:020d}.checkpoint.{part:010d}.{parts:010d}.parquet" for part in range(1, parts + 1))


def list_log(log: Location, *, after: int = -1) -> tuple[list[int], dict[int, CheckpointFiles]]:
    """The versions above `after` in a listing, and the complete classic checkpoints above it with their files."""
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
    """Whether there is a file of this name; raises RefusedReadError where the disk or the store doesn't say."""
    try:
        return path.exists()
    except OSError as fault:
        raise refused_read(path, fault) from fault


def _names_in(folder: Location, *, after: str) -> list[str]:
    """The names right below a folder that sort behind `after`, in no order; raises FileNotFoundError, OSError."""
    if isinstance(folder, ObjectPath):
        return [path.name for path in folder.iterdir(after=after)]
    return [name for name in os.listdir(folder) if name > after]  # noqa: PTH208  # half the time
