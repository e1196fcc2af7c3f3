"""Reading the state of a Delta table from its transaction log: the newest checkpoint and the commits after it.

Checkpoint and commits are opened by name, so that opening takes as long whatever the log's age, and the folder is
listed only where the names contradict each other: a listing under a fast writer can look as if a version were missing,
so that a contradiction is tried again.
Source: the Delta transaction log protocol, "Delta Log Entries", "Checkpoints", "Reader Requirements".
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from itertools import count
from typing import TYPE_CHECKING

import attrs

from kraftlake.metadata_log.delta_actions import Commit, Protocol, TableMetadata, decode_commit
from kraftlake.metadata_log.live_files import LiveFiles
from kraftlake.metadata_log.location import Location
from kraftlake.metadata_log.log_facts import CHAIN, CHAIN_BEFORE
from kraftlake.metadata_log.tombstones import Tombstones
from kraftlake.runtime.errors import CorruptDataError, LakeError

if TYPE_CHECKING:
    from kraftlake.metadata_log.checkpoint import CheckpointFiles

LOG_FOLDER = "_delta_log"
ATTEMPTS = 8
"""How often a state is read anew when writers and cleaners run beside the reader."""

_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.(\d{10})\.(\d{10}))?\.parquet")
_HARMLESS_READER_FEATURES = frozenset({"columnMapping", "timestampNtz", "vacuumProtocolCheck"})
_HARMLESS_WRITER_FEATURES = frozenset({"appendOnly", "invariants"})


class NotADeltaTableError(LakeError):
    """The folder holds no transaction log with a version in it."""


class _ListingRaceError(Exception):
    """What a listing showed and what could be opened disagree; worth another try."""

    def __init__(self, version: int) -> None:
        super().__init__(version)
        self.version = version


@attrs.define(kw_only=True)
class TableState:
    """A table at a version: its live files by path, properties and transactions. `apply` moves it on.

    `tombstones` are the files it had; `checkpoint_version` is the checkpoint that it was read from, -1 without one.
    """

    path: Location
    version: int
    protocol: Protocol
    metadata: TableMetadata
    transactions: dict[str, int] = attrs.field(factory=dict)
    files: LiveFiles = attrs.field(factory=LiveFiles)
    tombstones: Tombstones = attrs.field(factory=Tombstones)
    checkpoint_version: int = -1

    def apply(self, commit: Commit) -> None:
        """Take the next version in; nothing changes when it can't be read, or continues another log."""
        assert commit.version == self.version + 1
        _check_continues(self, commit)
        if commit.protocol or commit.metadata:
            _check_readable(self.path, commit.protocol or self.protocol, commit.metadata or self.metadata)
        for remove in commit.removes:
            self.files.remove(remove.path)
            self.tombstones.bury(remove)
        for add in commit.adds:
            self.files.add(add)
            self.tombstones.raise_up(add.path)
        self.transactions.update(commit.transactions)
        self.protocol = commit.protocol or self.protocol
        self.metadata = commit.metadata or self.metadata
        self.version = commit.version

    def advance(self) -> list[Commit]:
        """Take in the versions that were made since, opened by name; an empty list when there are none.

        Raises LakeError when they can't be followed one by one because the log was cleaned up: read the table anew.
        """
        taken = []
        for commit in read_commits(self.path, self.version + 1):
            self.apply(commit)
            taken.append(commit)
        hint = hinted_checkpoint(self.path / LOG_FOLDER)
        if hint is not None and hint > self.version and not commit_path(self.path, self.version + 1).exists():
            raise LakeError(f"Version {self.version + 1} of {self.path} was cleaned up; open the lake again.")
        return taken

    def check_writable(self) -> None:
        """Raises LakeError when the table asks its writers for what this one doesn't do."""
        version = self.protocol.min_writer_version
        unknown = set(self.protocol.writer_features) - _HARMLESS_WRITER_FEATURES
        if not (version <= 2 or (version == 7 and not unknown)):
            raise LakeError(
                f"{self.path} asks its writers for Delta protocol {version}"
                f"{' with ' + ', '.join(sorted(unknown)) if unknown else ''}, which this release doesn't write."
            )


def commit_path(table: Location, version: int) -> Location:
    """The file that makes a version of a table."""
    return table / f"{LOG_FOLDER}/{version:020d}.json"


def read_commit(table: Location, version: int) -> Commit | None:
    """A version of a table, None when there is none (or not any more)."""
    path = commit_path(table, version)
    try:
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as fault:
        raise LakeError(f"{path} can't be read: {fault.strerror}.") from fault
    return decode_commit(data, version, str(path))


def read_commits(table: Location, from_version: int) -> Iterator[Commit]:
    """The versions of a table from one on, as far as they can be opened."""
    for version in count(from_version):
        commit = read_commit(table, version)
        if commit is None:
            return
        yield commit


def read_table(path: Location) -> TableState:
    """The newest state of the table at `path`.

    Raises NotADeltaTableError when there is none, LakeError for one that this release can't read, CorruptDataError
    for a log with a version missing or torn.
    """
    version = -1
    for attempt in range(ATTEMPTS):
        try:
            return _read_table(path, trust_hint=attempt == 0)
        except _ListingRaceError as race:
            version = race.version
            time.sleep(0.001 * 2**attempt)
    raise LakeError(f"Version {version} of the Delta table {path} is missing although a later one exists.")


def _read_table(path: Location, *, trust_hint: bool) -> TableState:
    log = path / LOG_FOLDER
    hint = _read_hint(log) if trust_hint else None
    if hint is not None:
        state = _replay(path, _load_checkpoint(path, hint[0], _hinted_files(log, *hint)))
        if state is not None and _is_newest(log, state.version):
            return state
    commits, checkpoints = list_log(log)
    newest = max(checkpoints, default=None)
    state = _replay(path, None if newest is None else _load_checkpoint(path, newest, checkpoints[newest]))
    commits, _ = list_log(log)
    reached = -1 if state is None else state.version
    if max(commits, default=-1) > reached:
        raise _ListingRaceError(reached + 1)
    if state is None:
        raise NotADeltaTableError(f"{path} holds no Delta table.")
    return state


def _is_newest(log: Location, version: int) -> bool:
    """Whether a state that was reached by name is the newest, as far as names tell.

    A commit that is still there proves that the next one was never cleaned up, since the oldest go first; a version
    further on, or a later checkpoint, tells that one was lost, or is just being made.
    """
    return (
        commit_path(log.parent, version).exists()
        and not commit_path(log.parent, version + 2).exists()
        and (hinted_checkpoint(log) or -1) <= version
    )


def _replay(path: Location, base: TableState | None) -> TableState | None:
    state = base
    for commit in read_commits(path, 0 if base is None else base.version + 1):
        if state is None:
            if commit.protocol is None or commit.metadata is None:
                raise LakeError(f"Version 0 of the Delta table {path} lacks its protocol or its metadata.")
            _check_readable(path, commit.protocol, commit.metadata)
            state = TableState(
                path=path,
                version=-1,
                protocol=commit.protocol,
                metadata=commit.metadata,
            )
        state.apply(commit)
    return state


def _load_checkpoint(path: Location, version: int, files: CheckpointFiles) -> TableState | None:
    from kraftlake.metadata_log.checkpoint import read_checkpoint

    try:
        content = read_checkpoint(files)
    except FileNotFoundError as fault:
        raise _ListingRaceError(version) from fault
    _check_readable(path, content.protocol, content.metadata)
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


def hinted_checkpoint(log: Location) -> int | None:
    """The version that `_last_checkpoint` names. It is a hint only: missing or torn, a listing finds the same."""
    hint = _read_hint(log)
    return None if hint is None else hint[0]


def _read_hint(log: Location) -> tuple[int, int | None] | None:
    """Version and number of parts (None: one file without a number) of the checkpoint that `_last_checkpoint` names."""
    try:
        hint = json.loads((log / "_last_checkpoint").read_bytes())
        version, parts = hint["version"], hint.get("parts")
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
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


def list_log(log: Location) -> tuple[list[int], dict[int, CheckpointFiles]]:
    """The versions in a listing, and the complete classic checkpoints with their files."""
    try:
        names = [entry.name for entry in log.iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return [], {}
    except OSError as fault:
        raise LakeError(f"{log} can't be read: {fault.strerror}.") from fault
    commits = [int(match[1]) for match in map(_COMMIT.fullmatch, names) if match]
    parts: dict[tuple[int, int], list[Location]] = {}
    for name in sorted(names):
        if match := _CHECKPOINT.fullmatch(name):
            parts.setdefault((int(match[1]), int(match[3] or 1)), []).append(log / name)
    complete = {version: tuple(files) for (version, total), files in parts.items() if len(files) == total}
    return commits, complete


def _check_continues(state: TableState, commit: Commit) -> None:
    """Raise CorruptDataError for an append that was made upon other rows than those that the state has."""
    chain = state.transactions.get(CHAIN)
    if commit.info.get(CHAIN_BEFORE, chain) != chain:
        raise CorruptDataError(
            f"{commit_path(state.path, commit.version)} was not made upon version {state.version}: its rows follow "
            f"others than those of that version. Commits of several lakes were mixed up, or one was replaced; restore "
            f"them from a copy."
        )


def _check_readable(path: Location, protocol: Protocol, metadata: TableMetadata) -> None:
    unknown = set(protocol.reader_features) - _HARMLESS_READER_FEATURES
    if protocol.min_reader_version > 3 or unknown:
        raise LakeError(
            f"{path} asks its readers for Delta protocol {protocol.min_reader_version}"
            f"{' with ' + ', '.join(sorted(unknown)) if unknown else ''}, which this release doesn't read."
        )
    if metadata.configuration.get("delta.columnMapping.mode", "none") != "none":
        raise LakeError(f"{path} maps its columns to other names, which this release doesn't read.")
