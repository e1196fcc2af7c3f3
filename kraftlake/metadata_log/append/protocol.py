"""Committing to a log with concurrent writers: which commits of others an append tolerates, and which fence a writer.

Only the compare-and-set on the table's version decides. A writer that loses it reads the commits in between by name:
maintenance leaves the log's end and epoch as they were, so the append is tried at the next version; anything else means
that another writer extended the log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kraftlake.metadata_log.append.log_file import LogFile
from kraftlake.metadata_log.chain import FIRST_HASH, Chain, hash_of_rows
from kraftlake.metadata_log.delta_table.actions import AddFile, Commit, TableMetadata, transaction
from kraftlake.metadata_log.delta_table.commit import (
    CommitConflictError,
    UnknownOutcomeError,
    append_info,
    commit,
    now_ms,
    removed_unless_committed,
    write_data_file,
)
from kraftlake.metadata_log.delta_table.data_files import DataFileGoneError, offset_span, read_rows
from kraftlake.metadata_log.delta_table.schema import holds_columns
from kraftlake.metadata_log.delta_table.table_state import TableState, read_commit, read_table
from kraftlake.metadata_log.log_facts import (
    CHAIN,
    CHAIN_BEFORE,
    CHAIN_END,
    CHAIN_START,
    CLUSTER_ID,
    END_OFFSET,
    EPOCH,
    ROLE,
    START_OFFSET,
    LogEnd,
)
from kraftlake.metadata_log.storage.disk import Disk
from kraftlake.metadata_log.storage.location import Location
from kraftlake.records.rows import LOG_SCHEMA
from kraftlake.runtime.errors import CorruptDataError, EndOffsetError, FencedEpochError, LakeError

MAINTENANCE_RETRIES = 100
_LINK_LOOK_BACK = 16
"""Number of versions in which the newest append is searched; later ones are maintenance."""


class LogWentOnError(LakeError):
    """Another writer appended or claimed meanwhile; nothing of this append is in the log."""


def append_file(
    disk: Disk, state: TableState, file: LogFile | None, actions: Sequence[Mapping[str, Any]] = ()
) -> TableState:
    """Append a file's rows, which continue the log in `state`, in one commit, with further actions beside it.

    Returns the state after it, which may be another object. Raises as `commit_at_end`; the file goes when the commit
    is surely not made.
    """
    info = append_info()
    if file is None:
        return commit_at_end(disk, state, [info, *actions])
    add = write_log_file(disk, state.path, file, sync=False)
    unsynced = [state.path / add.path, state.path]
    begin = LogEnd.of(state).end_offset
    chain_start = begin if Chain.of(state) is None else None
    facts = end_facts(begin + file.record_count, file.last_epoch, file.chain, chain_start=chain_start)
    info["commitInfo"][CHAIN_BEFORE] = state.transactions.get(CHAIN)
    with removed_unless_committed(disk, unsynced[:1]):
        return commit_at_end(disk, state, [info, *actions, *facts, add.to_action()], unsynced)


def end_facts(end_offset: int, epoch: int, chain: int, *, chain_start: int | None) -> list[dict[str, Any]]:
    """The txn actions that state the log's end after a commit; `chain_start` where its chain begins with it."""
    facts = {END_OFFSET: end_offset, EPOCH: epoch, CHAIN: chain, CHAIN_END: end_offset}
    if chain_start is not None:
        facts[CHAIN_START] = chain_start
    now = now_ms()
    return [transaction(name, value, now) for name, value in facts.items()]


def write_log_file(disk: Disk, table: Location, file: LogFile, *, sync: bool = True) -> AddFile:
    """Write a data file of the log; it is no part of the log before a commit adds it.

    Without `sync` the file and the table's folder are left for that commit to make durable.
    """
    return write_data_file(disk, table, f"{file.first_offset:020d}", file.data, file.statistics, sync=sync)


def commit_at_end(
    disk: Disk, state: TableState, actions: Sequence[Mapping[str, Any]], unsynced: Sequence[Location] = ()
) -> TableState:
    """Commit actions that rely on the log's end in `state`; the state after it, which may be another object.

    Raises LogWentOnError when the log's end moved or the table became another one, UnknownOutcomeError, LakeError when
    the disk refuses. `state` may be of an older version then.
    """
    for _ in range(MAINTENANCE_RETRIES):
        try:
            commit(disk, state, actions, unsynced)
        except CommitConflictError as conflict:
            state = _after_maintenance(state, conflict.version)
        else:
            return state
    raise LakeError(f"{state.path} was compacted {MAINTENANCE_RETRIES} times in a row; try again.")


def _after_maintenance(state: TableState, version: int) -> TableState:
    """The state after the version that was taken, if that one left everything that an append relies on."""
    between = read_commit(state.path, version)
    if between is None:
        # Cleaned up behind a checkpoint: the commits in between can't be read any more, only the state after them.
        fresh = read_table(state.path)
        same = LogEnd.of(fresh) == LogEnd.of(state) and _is_same_table(fresh.metadata, state)
    else:
        fresh = state
        if same := is_maintenance(between, state):
            state.apply(between)
    if not same:
        raise LogWentOnError(
            f"Another writer appended to {state.path} at the same time, at offset {LogEnd.of(state).end_offset}; "
            f"nothing of this append is in the lake: try again."
        )
    return fresh


def is_maintenance(commit: Commit, before: TableState) -> bool:
    """Whether a commit leaves the log's end, epoch and identity as they are in `before`.

    It has no transaction and adds no rows; what it removes for good lies below the start offset that is declared by
    then (a trim); new properties or another protocol are of the same table.
    """
    metadata = commit.metadata or before.metadata
    if commit.transactions or not _is_same_table(metadata, before):
        return False
    if not commit.changes_data:
        return True
    start = int(metadata.configuration[START_OFFSET])
    removed = [before.files.get(remove.path) for remove in commit.removes]
    highs = [None if file is None else offset_span(file).high for file in removed]
    return not commit.adds and all(high is not None and high < start for high in highs)


def _is_same_table(metadata: TableMetadata, before: TableState) -> bool:
    """Whether a table is still this log: same id, columns, cluster and role; its start offset may only have risen."""
    was, now = before.metadata.configuration, metadata.configuration
    start = now.get(START_OFFSET, "")
    return (
        metadata.id == before.metadata.id
        and metadata.partition_columns == before.metadata.partition_columns
        and all(now.get(name) == was.get(name) for name in (CLUSTER_ID, ROLE))
        and start.isdecimal()
        and int(was[START_OFFSET]) <= int(start) <= LogEnd.of(before).end_offset
        and holds_columns(metadata.schema_string, LOG_SCHEMA, str(before.path))
    )


def commit_outcome(table: Location, fault: UnknownOutcomeError) -> bool | None:
    """Whether the commit of unknown outcome `fault` is in the table; None while its version does not exist."""
    found = read_commit(table, fault.version)
    if found is None:
        if read_table(table).version < fault.version:
            return None
        # It may have been made between the two.
        found = read_commit(table, fault.version)
        if found is None:
            raise LakeError(f"Version {fault.version} of {table} was cleaned up: nothing tells whose it was.")
    return found.info.get("txnId") == fault.commit_id


def check_newest_link(state: TableState) -> None:
    """Raise CorruptDataError unless the newest rows continue the log's chain.

    Nothing is checked where their commit was cleaned up.

    A writer checks this once: otherwise its rows could be bound to another, or a shortened, log.
    """
    chain = Chain.of(state)
    if chain is None:
        return
    for version in range(state.version, max(state.version - _LINK_LOOK_BACK, -1), -1):
        found = read_commit(state.path, version)
        if found is None:
            return
        if CHAIN not in found.transactions:
            continue
        where = f"Version {version} of {state.path}"
        stated = (found.transactions.get(CHAIN_END), found.transactions[CHAIN])
        if stated != (chain.end, chain.hash):
            raise CorruptDataError(
                f"{where} says that the log ends before offset {stated[0]}, but a checkpoint says {chain.end}: one of "
                f"them was replaced. Nothing is appended to such a lake; restore it from a copy, or import anew."
            )
        before = FIRST_HASH if CHAIN_START in found.transactions else found.info.get(CHAIN_BEFORE)
        if before is None or len(found.adds) != 1:
            return
        path = state.path / found.adds[0].path
        try:
            rows = read_rows(path, LOG_SCHEMA)
        except DataFileGoneError as gone:
            if found.adds[0].path in state.files:
                raise gone.as_loss() from gone
            return  # compacted and vacuumed since
        if hash_of_rows(rows, before) != chain.hash:
            raise CorruptDataError(
                f"{path} holds other rows than those that {where[0].lower()}{where[1:]} was made of. Nothing is "
                f"appended to such a lake; restore it from a copy, or import anew."
            )
        return


def check_claimed(path: object, end: LogEnd, epoch: int, expected_end_offset: int) -> None:
    """Raise unless a writer of `epoch` that expects the log to end at an offset may go on there.

    Raises FencedEpochError where a higher epoch was claimed, LakeError where this one never was, EndOffsetError where
    the log of this epoch ends elsewhere.
    """
    if epoch < end.epoch:
        raise FencedEpochError(epoch, end.epoch)
    if epoch > end.epoch:
        raise LakeError(f"Epoch {epoch} was never claimed of {path}, whose epoch is {end.epoch}: claim it first.")
    if expected_end_offset != end.end_offset:
        raise EndOffsetError(expected_end_offset, end.end_offset)
