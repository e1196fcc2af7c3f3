"""Commits of a version of a Delta table: durable, atomic, and exclusive by put-if-absent.

Safety follows from the order: the Parquet file and its folder first, then the commit, which is complete and durable
when it becomes visible (on a disk: under a temporary name, then by link(2), then its folder; in an object store: by one
put). A visible commit is therefore complete, and an acknowledged commit is durable. A commit of another writer, which
may have died before it made the folder durable, is made so before the next one is visible: no power cut leaves a gap.
"""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from kraftlake.metadata_log.delta_table.actions import AddFile, Protocol, TableMetadata, commit_of, encode_commit
from kraftlake.metadata_log.delta_table.delta_log import ReplacedTableError, follow, list_log
from kraftlake.metadata_log.delta_table.schema import schema_string
from kraftlake.metadata_log.delta_table.table_state import LOG_FOLDER, TableState, commit_path
from kraftlake.metadata_log.maintenance.upkeep_policy import LONGEST_COMMIT_MS
from kraftlake.metadata_log.storage.disk import Disk, UnconfirmedWriteError, disk_fault
from kraftlake.metadata_log.storage.location import Location
from kraftlake.runtime.errors import KraftlakeError, LakeError

ENGINE = "kraftlake"

ZSTD_SUFFIX = ".zstd.parquet"

STATISTICS_COLUMNS = "delta.dataSkippingStatsColumns"
"""The table property with the columns whose bounds each file states, separated by commas."""

_ATTEMPTS = 10_000

SAFE_FROM_VACUUM_MS = LONGEST_COMMIT_MS // 2
"""The minimum age of a file without a version that any vacuum deletes, whatever its policy."""


class CommitConflictError(LakeError):
    """Reports that another writer made this version first; no part of this commit is visible."""

    def __init__(self, table: Location, version: int) -> None:
        super().__init__(f"Version {version} of {table} was made by another writer at the same time; try again.")
        self.version = version


class VacuumedFileError(LakeError):
    """Reports a data file that was deleted before the commit that should add it; no part of the commit is visible."""

    def __init__(self, path: Location, age_ms: int) -> None:
        super().__init__(
            f"{path} is gone: it was written {age_ms // 60_000} minutes ago, and a vacuum takes what no version names "
            f"for the rest of a crash. Nothing of this commit is in the lake: try again."
        )


class UnknownOutcomeError(LakeError):
    """Reports a commit with an unknown outcome: it may be, or become, part of the table, or be lost in a power cut.

    `MetadataLog.outcome` decides later; another commit at `version` settles the outcome.
    """

    def __init__(self, target: Location, commit_id: str, fault: OSError) -> None:
        super().__init__(
            f"{target} may have been written, but this was not confirmed ({fault.strerror or fault}): whether commit "
            f"{commit_id} is in the lake is known once it can be read again."
        )
        self.commit_id = commit_id
        self.version = int(target.name.removesuffix(".json"))


def create_table(
    disk: Disk,
    path: Location,
    *,
    name: str,
    schema: pa.Schema,
    statistics_columns: Sequence[str],
    configuration: Mapping[str, str],
    contents: Sequence[Mapping[str, Any]] = (),
    description: str | None = None,
) -> TableState:
    """Create version 0 of a table in `path`, whose parent folder exists; `contents` are its first files.

    Raises CommitConflictError if version 0 exists, LakeError if the disk refuses.
    """
    metadata = TableMetadata(
        id=str(uuid.uuid4()),
        name=name,
        schema_string=schema_string(schema),
        configuration={
            "delta.appendOnly": "true",
            STATISTICS_COLUMNS: ",".join(statistics_columns),
            **configuration,
        },
        created_time=now_ms(),
        description=description,
    )
    protocol = Protocol(min_reader_version=1, min_writer_version=2)
    parameters = {"isManaged": "false", "description": "", "partitionBy": "[]", "properties": "{}"}
    info = commit_info("CREATE TABLE", parameters, blind_append=True)
    try:
        disk.make_folder(path)
        disk.fsync(path.parent)
        disk.make_folder(path / LOG_FOLDER)
        disk.fsync(path)
    except OSError as fault:
        raise disk_fault(path, fault) from fault
    state = TableState(path=path, version=-1, protocol=protocol, metadata=metadata)
    commit(disk, state, [info, protocol.to_action(), metadata.to_action(), *contents])
    return state


@contextlib.contextmanager
def removed_unless_committed(disk: Disk, paths: Sequence[Location]) -> Iterator[None]:
    """Delete new data files if the commit that should add them was surely not made.

    After an UnknownOutcomeError, or an exception that is no KraftlakeError, the files stay: the commit may have been
    made.
    """
    try:
        yield
    except UnknownOutcomeError:
        raise
    except KraftlakeError:
        _delete(disk, paths)
        raise


def _delete(disk: Disk, paths: Sequence[Location]) -> None:
    for path in paths:
        with contextlib.suppress(OSError):
            disk.unlink(path)


def commit(
    disk: Disk, state: TableState, actions: Sequence[Mapping[str, Any]], unsynced: Sequence[Location] = ()
) -> None:
    """Commit these actions as the version after `state`, and apply them to `state`; durable on return.

    `unsynced` are the files and folders of the commit that were written but not made durable; they become durable
    before the commit is visible.

    Raises CommitConflictError if that version exists, or did before a clean-up (nothing is visible then), LakeError if
    the disk refuses or the table requires unsupported writer features, ReplacedTableError if the table is no longer the
    one of `state`, VacuumedFileError if a vacuum deleted a file that was written long ago (nothing is visible then
    either), UnknownOutcomeError if the outcome is unknown.
    """
    state.check_writable()
    version = state.version + 1
    target = commit_path(state.path, version)
    data = encode_commit(actions, state.path.name, version)
    if _was_passed(state):  # a commit in the place of one that is cleaned up would be acknowledged, but never be read
        raise CommitConflictError(state.path, version)
    if state.durable_version < state.version:
        unsynced = [*unsynced, state.path / LOG_FOLDER]
    try:
        _check_there(state.path, actions, disk.clock.milliseconds())
        disk.put_if_absent(target, data, unsynced)
    except FileExistsError as fault:
        raise CommitConflictError(state.path, version) from fault
    except UnconfirmedWriteError as fault:
        commit_id = next((str(action["commitInfo"]["txnId"]) for action in actions if "commitInfo" in action), "")
        raise UnknownOutcomeError(target, commit_id, fault) from fault
    except OSError as fault:
        raise disk_fault(target, fault) from fault
    state.apply(commit_of(actions, version, str(target)))
    state.durable_version = version


def _was_passed(state: TableState) -> bool:
    """Whether later versions than that of `state` exist, so that the name of the next one may only appear free.

    The oldest commits are cleaned up first: while that of `state` exists, no later one was deleted. The check opens one
    name, and lists the folder if that name is missing. Raises ReplacedTableError, RefusedReadError.
    """
    with contextlib.suppress(OSError):  # a listing shows it, too
        if state.version < 0 or commit_path(state.path, state.version).exists():
            return False
    commits, checkpoints = list_log(state.path / LOG_FOLDER, after=state.version - 1)
    newest = max([*commits, *checkpoints], default=-1)
    if newest < state.version:
        raise ReplacedTableError(state.path, state.version)
    return newest > state.version


def commit_beside_writers(
    disk: Disk,
    state: TableState,
    make: Callable[[TableState], Sequence[Mapping[str, Any]] | None],
    *,
    new_files: Sequence[AddFile] = (),
) -> TableState | None:
    """Commit the actions that `make` returns for the newest state.

    After a conflict, `make` is called with the new state. Returns None if `make` does: the plan is obsolete. Otherwise
    returns the state after the commit, which may be another object than `state`. `new_files` were written for the
    commit; they are deleted if it was surely not made. Raises LakeError if the disk refuses.
    """
    paths = [state.path / file.path for file in new_files]
    with removed_unless_committed(disk, paths):
        for _ in range(_ATTEMPTS):
            state.check_writable()  # before `make` writes files
            actions = make(state)
            if actions is None:
                _delete(disk, paths)
                return None
            try:
                commit(disk, state, actions)
            except CommitConflictError:
                state = follow(state)
            else:
                return state
        raise LakeError(f"{state.path} was written to by others {_ATTEMPTS:,} times in a row; try again.")


def _check_there(table: Location, actions: Sequence[Mapping[str, Any]], now: int) -> None:
    """Raise VacuumedFileError for a file to add that a vacuum deleted while its writer was suspended.

    No vacuum deletes a younger file, so other commits skip the check; a file from the future indicates a changed clock.
    Raises OSError if the disk does not answer.
    """
    for action in actions:
        if (add := action.get("add")) is None or 0 <= now - add["modificationTime"] < SAFE_FROM_VACUUM_MS:
            continue
        path = table / unquote(add["path"])
        if not path.exists():
            raise VacuumedFileError(path, now - add["modificationTime"])


def commit_info(operation: str, parameters: Mapping[str, str], *, blind_append: bool = False) -> dict[str, Any]:
    """Build a commitInfo action with the current time, for information only; no reader relies on it."""
    return {
        "commitInfo": {
            "timestamp": now_ms(),
            "operation": operation,
            "operationParameters": dict(parameters),
            "isBlindAppend": blind_append,
            "engineInfo": ENGINE,
            "txnId": str(uuid.uuid4()),
        }
    }


def append_info() -> dict[str, Any]:
    """Build the commitInfo of an append."""
    return commit_info("WRITE", {"mode": "Append", "partitionBy": "[]"}, blind_append=True)


def now_ms() -> int:
    """The wall clock in epoch milliseconds, as in Delta's actions."""
    return time.time_ns() // 1_000_000
