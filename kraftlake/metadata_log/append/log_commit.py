"""A commit of the log: the rows that continue it, the end that it states, and the concurrent commits that it tolerates.

The compare-and-set on the table's version alone decides. A writer that loses it reads the commits in between by name:
maintenance keeps the log's end and epoch, so the append is retried at the next version; any other commit means that
another writer extended the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from kraftlake.metadata_log.append.log_file import FIRST_HASH, LogEnd, RowsFile, hash_of_rows
from kraftlake.metadata_log.delta_table.actions import Commit, TableMetadata, transaction
from kraftlake.metadata_log.delta_table.commit import (
    CommitConflictError,
    UnknownOutcomeError,
    append_info,
    commit,
    now_ms,
    removed_unless_committed,
)
from kraftlake.metadata_log.delta_table.data_files import DataFileGoneError, offset_span, read_rows
from kraftlake.metadata_log.delta_table.delta_log import read_commit, read_table
from kraftlake.metadata_log.delta_table.scan import first_false, steps_of
from kraftlake.metadata_log.delta_table.schema import holds_columns
from kraftlake.metadata_log.delta_table.table_state import TableState
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
)
from kraftlake.metadata_log.storage.disk import Disk
from kraftlake.metadata_log.storage.location import Location
from kraftlake.records.batch import RecordBatch
from kraftlake.records.rows import LOG_SCHEMA, to_rows
from kraftlake.runtime.arrow import pc
from kraftlake.runtime.errors import (
    CorruptDataError,
    EndOffsetError,
    FencedEpochError,
    ImportConflictError,
    LakeError,
)

if TYPE_CHECKING:
    from kraftlake.records.batch_values import BatchValues

MAX_COMMIT_ROWS = 200_000
MAX_COMMIT_BYTES = 64 * 1024 * 1024
"""The bounds of one commit of a bulk import, which is built in memory and read as one micro-batch."""

MAINTENANCE_RETRIES = 100
_LINK_LOOK_BACK = 16
"""The number of versions in which the newest append is searched; later ones are maintenance."""

BatchesT = TypeVar("BatchesT", bound="RecordBatch | BatchValues")
PartT = TypeVar("PartT")


class LogWentOnError(LakeError):
    """Reports that another writer appended or claimed meanwhile; no part of this append is in the log."""


def commit_groups(parts: Iterable[BatchesT]) -> Iterator[list[BatchesT]]:
    """Group batches, in order, for one `append` each; no element is split, whatever its size."""
    sizes = ((part, part.record_count, part.payload_bytes) for part in parts)
    return bounded_groups(sizes, MAX_COMMIT_ROWS, MAX_COMMIT_BYTES)


def bounded_groups(parts: Iterable[tuple[PartT, int, int]], most_rows: int, most_bytes: int) -> Iterator[list[PartT]]:
    """Group parts with their rows and bytes, in order; a group exceeds neither bound, unless it is one part."""
    group: list[PartT] = []
    rows = size = 0
    for part, more_rows, more_bytes in parts:
        if group and (rows + more_rows > most_rows or size + more_bytes > most_bytes):
            yield group
            group, rows, size = [], 0, 0
        group.append(part)
        rows += more_rows
        size += more_bytes
    if group:
        yield group


def file_that_follows(
    end: LogEnd, rows: pa.Table | Sequence[RecordBatch], *, claimed_epoch: int | None = None
) -> RowsFile | None:
    """Return the rows as a file, None for no rows, if they continue a log with this end; raises as `checked_rows`."""
    before = end.chain or FIRST_HASH
    if isinstance(rows, pa.Table):
        rows = checked_rows(rows, end, claimed_epoch=claimed_epoch)
        return RowsFile.of_rows(rows, before) if rows.num_rows else None
    check_batches(rows, end, claimed_epoch=claimed_epoch)
    return RowsFile.of_batches(rows, before) if rows else None


def checked_rows(rows: pa.Table, end: LogEnd, *, claimed_epoch: int | None = None) -> pa.Table:
    """Return the rows in LOG_SCHEMA, if they continue a log with this end.

    With a `claimed_epoch`, all rows must have this epoch.

    Raises ImportConflictError with the offset of a gap, an overlap or a decreasing epoch, LakeError for rows that are
    not log rows, or for a first batch without its start.
    """
    try:
        rows = rows.select(LOG_SCHEMA.names)
        for field in LOG_SCHEMA:
            if not field.nullable and rows.column(field.name).null_count:
                raise LakeError(f"The rows to append lack a value in column {field.name}.")
        rows = rows.cast(LOG_SCHEMA).combine_chunks()
    except (pa.ArrowException, KeyError, ValueError) as fault:
        raise LakeError("The rows to append haven't the columns of a metadata log.") from fault
    if rows.num_rows:
        _check_offsets(rows.column("offset"), end.end_offset)
        _check_batches(rows)
        _check_epochs(rows, end.epoch)
        for found in (rows.column("epoch")[0].as_py(), rows.column("epoch")[-1].as_py()):
            if claimed_epoch not in (None, found):
                raise LakeError(f"A writer of epoch {claimed_epoch} can't append batches of epoch {found}.")
    return rows


def check_batches(batches: Sequence[RecordBatch], end: LogEnd, *, claimed_epoch: int | None = None) -> None:
    """Check the batches like `checked_rows` their rows, batch by batch instead of row by row; raises as it does."""
    expected, least = end.end_offset, end.epoch
    for batch in batches:
        if batch.base_offset != expected or batch.epoch < least or claimed_epoch not in (None, batch.epoch):
            checked_rows(to_rows(batches), end, claimed_epoch=claimed_epoch)
            return
        expected, least = batch.last_offset + 1, batch.epoch


def _check_offsets(offsets: pa.ChunkedArray, end_offset: int) -> None:
    first = offsets[0].as_py()
    if first > end_offset:
        raise ImportConflictError(
            f"The lake ends before offset {end_offset}, but what follows begins at {first}: "
            f"offsets {end_offset} to {first - 1} are missing."
        )
    if first < end_offset:
        raise ImportConflictError(
            f"The lake holds offsets up to {end_offset - 1} already; offset {first} can't be appended to it."
        )
    steps = pc.equal(steps_of(offsets), 1)
    if (at := first_false(steps)) is not None:
        raise ImportConflictError(f"Offset {offsets[at].as_py()} is followed by {offsets[at + 1].as_py()}.")


def _check_batches(rows: pa.Table) -> None:
    offsets, batches = rows.column("offset"), rows.column("batch")
    if batches[0].as_py() != offsets[0].as_py():
        raise LakeError(f"Offset {offsets[0].as_py()} lies inside of a batch; only whole batches can be appended.")
    goes_on = pc.equal(steps_of(batches), 0)
    begins = pc.equal(batches.slice(1), offsets.slice(1))
    if (at := first_false(pc.or_(goes_on, begins))) is not None:
        raise LakeError(f"Offset {offsets[at + 1].as_py()} neither begins a batch nor continues the one before it.")
    same_epoch = pc.equal(steps_of(rows.column("epoch")), 0)
    if (at := first_false(pc.or_(begins, same_epoch))) is not None:
        raise LakeError(f"The epoch changes inside of a batch at offset {offsets[at + 1].as_py()}.")


def _check_epochs(rows: pa.Table, epoch: int) -> None:
    offsets, epochs = rows.column("offset"), rows.column("epoch")
    if epochs[0].as_py() < epoch:
        raise ImportConflictError(
            f"The epoch goes down from {epoch} to {epochs[0].as_py()} at offset {offsets[0].as_py()}: "
            f"this is another cluster's log, or a damaged one."
        )
    if (at := first_false(pc.greater_equal(steps_of(epochs), 0))) is not None:
        raise ImportConflictError(
            f"The epoch goes down from {epochs[at].as_py()} to {epochs[at + 1].as_py()} "
            f"at offset {offsets[at + 1].as_py()}."
        )


def append_file(
    disk: Disk, state: TableState, file: RowsFile | None, actions: Sequence[Mapping[str, Any]] = ()
) -> TableState:
    """Append a file's rows, which continue the log in `state`, in one commit, together with further actions.

    Returns the state after the commit, which may be another object. Raises LogWentOnError if the log's end moved or the
    table was replaced, UnknownOutcomeError, LakeError if the disk refuses; the file is deleted if the commit was surely
    not made. `state` may then have an older version.
    """
    info = append_info()
    actions = [info, *actions]
    unsynced: list[Location] = []
    if file is not None:
        end = LogEnd.of(state)
        add = file.write(disk, state.path, sync=False)
        unsynced = [state.path / add.path, state.path]
        info["commitInfo"][CHAIN_BEFORE] = state.transactions.get(CHAIN)
        actions += end_facts(file.end, chain_start=end.end_offset if end.chain is None else None)
        actions.append(add.to_action())
    with removed_unless_committed(disk, unsynced[:1]):
        for _ in range(MAINTENANCE_RETRIES):
            try:
                commit(disk, state, actions, unsynced)
            except CommitConflictError as conflict:
                state = _after_maintenance(state, conflict.version)
            else:
                return state
        raise LakeError(f"{state.path} was compacted {MAINTENANCE_RETRIES} times in a row; try again.")


def end_facts(end: LogEnd, *, chain_start: int | None) -> list[dict[str, Any]]:
    """Return the txn actions that state the log's end after a commit.

    With `chain_start`, the chain begins with this commit.
    """
    assert end.chain is not None
    facts = {END_OFFSET: end.end_offset, EPOCH: end.epoch, CHAIN: end.chain, CHAIN_END: end.end_offset}
    if chain_start is not None:
        facts[CHAIN_START] = chain_start
    now = now_ms()
    return [transaction(name, value, now) for name, value in facts.items()]


def _after_maintenance(state: TableState, version: int) -> TableState:
    """Return the state after the version that was taken, if that version keeps everything on which an append relies."""
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
    """Whether a commit keeps the log's end, epoch and identity as in `before`.

    Maintenance has no transaction and adds no rows; rows that it removes lie below the start offset declared by then (a
    trim); new properties or another protocol belong to the same table.
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


def check_claimed(path: object, end: LogEnd, epoch: int, expected_end_offset: int) -> None:
    """Raise unless a writer of `epoch` that expects the log to end at an offset may continue there.

    Raises FencedEpochError if a higher epoch was claimed, LakeError if this one never was, EndOffsetError if the log of
    this epoch ends elsewhere.
    """
    if epoch < end.epoch:
        raise FencedEpochError(epoch, end.epoch)
    if epoch > end.epoch:
        raise LakeError(f"Epoch {epoch} was never claimed of {path}, whose epoch is {end.epoch}: claim it first.")
    if expected_end_offset != end.end_offset:
        raise EndOffsetError(expected_end_offset, end.end_offset)


def check_newest_link(state: TableState) -> None:
    """Raise CorruptDataError unless the newest rows continue the log's chain.

    If their commit was cleaned up, nothing is checked.

    A writer checks this once: otherwise its rows could be bound to another, or a shortened, log.
    """
    end = LogEnd.of(state)
    if end.chain is None:
        return
    for version in range(state.version, max(state.version - _LINK_LOOK_BACK, -1), -1):
        found = read_commit(state.path, version)
        if found is None:
            return
        if CHAIN not in found.transactions:
            continue
        where = f"Version {version} of {state.path}"
        stated = (found.transactions.get(CHAIN_END), found.transactions[CHAIN])
        if stated != (end.end_offset, end.chain):
            raise CorruptDataError(
                f"{where} says that the log ends before offset {stated[0]}, but a checkpoint says {end.end_offset}: "
                f"one of them was replaced. Nothing is appended to such a lake; restore it from a copy, or import anew."
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
        if hash_of_rows(rows, before) != end.chain:
            raise CorruptDataError(
                f"{path} holds other rows than those that {where[0].lower()}{where[1:]} was made of. Nothing is "
                f"appended to such a lake; restore it from a copy, or import anew."
            )
        return
