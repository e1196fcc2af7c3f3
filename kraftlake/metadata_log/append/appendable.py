"""The checks of rows to append: whole batches that continue the log, in commits of bounded size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from kraftlake.records.batch import RecordBatch
from kraftlake.records.control_records import LeaderChangeMessage, LeaderChangeVoter
from kraftlake.records.rows import LOG_SCHEMA, to_rows
from kraftlake.runtime.arrow import pc
from kraftlake.runtime.errors import ImportConflictError, LakeError

if TYPE_CHECKING:
    from kraftlake.records.batch_values import BatchValues

MAX_COMMIT_ROWS = 200_000
MAX_COMMIT_BYTES = 64 * 1024 * 1024
"""The bounds of one commit of a bulk import, which is built in memory and read as one micro-batch."""


BatchesT = TypeVar("BatchesT", bound="RecordBatch | BatchValues")


def commit_groups(parts: Iterable[BatchesT]) -> Iterator[list[BatchesT]]:
    """Cut batches, in order, into groups for one `append` each; no element is split, however large."""
    group: list[BatchesT] = []
    rows = size = 0
    for part in parts:
        if group and (rows + part.record_count > MAX_COMMIT_ROWS or size + part.payload_bytes > MAX_COMMIT_BYTES):
            yield group
            group, rows, size = [], 0, 0
        group.append(part)
        rows += part.record_count
        size += part.payload_bytes
    if group:
        yield group


def leader_change(node_id: int, offset: int, epoch: int, timestamp: int) -> RecordBatch:
    """The control batch that an epoch begins with: the node leads, and is its own only voter.

    Of version 0, the only one that Kafka 4.4 reads.
    """
    voter = LeaderChangeVoter(voter_id=node_id)
    message = LeaderChangeMessage(version=0, leader_id=node_id, voters=(voter,), granting_voters=(voter,))
    return RecordBatch.control_of(offset, epoch, timestamp, [message])


def checked_rows(rows: pa.Table, end_offset: int, epoch: int, *, claimed_epoch: int | None = None) -> pa.Table:
    """The rows as LOG_SCHEMA has them, if they continue a log that ends before `end_offset` with `epoch`.

    With a `claimed_epoch` all of them must be of that one.

    Raises ImportConflictError naming the offset of a gap, an overlap or an epoch that goes down, LakeError for rows
    that are no log rows or batches that are not whole at their start.
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
        _check_offsets(rows.column("offset"), end_offset)
        _check_batches(rows)
        _check_epochs(rows, epoch)
        for found in (rows.column("epoch")[0].as_py(), rows.column("epoch")[-1].as_py()):
            if claimed_epoch not in (None, found):
                raise LakeError(f"A writer of epoch {claimed_epoch} can't append batches of epoch {found}.")
    return rows


def check_batches(
    batches: Sequence[RecordBatch], end_offset: int, epoch: int, *, claimed_epoch: int | None = None
) -> None:
    """As `checked_rows` of the batches' rows, but asks each batch instead of each row; raises as it does."""
    expected, least = end_offset, epoch
    for batch in batches:
        if batch.base_offset != expected or batch.epoch < least or claimed_epoch not in (None, batch.epoch):
            checked_rows(to_rows(batches), end_offset, epoch, claimed_epoch=claimed_epoch)
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
    steps = pc.equal(_steps(offsets), 1)
    if (at := _first_false(steps)) is not None:
        raise ImportConflictError(f"Offset {offsets[at].as_py()} is followed by {offsets[at + 1].as_py()}.")


def _check_batches(rows: pa.Table) -> None:
    offsets, batches = rows.column("offset"), rows.column("batch")
    if batches[0].as_py() != offsets[0].as_py():
        raise LakeError(f"Offset {offsets[0].as_py()} lies inside of a batch; only whole batches can be appended.")
    goes_on = pc.equal(_steps(batches), 0)
    begins = pc.equal(batches.slice(1), offsets.slice(1))
    if (at := _first_false(pc.or_(goes_on, begins))) is not None:
        raise LakeError(f"Offset {offsets[at + 1].as_py()} neither begins a batch nor continues the one before it.")
    same_epoch = pc.equal(_steps(rows.column("epoch")), 0)
    if (at := _first_false(pc.or_(begins, same_epoch))) is not None:
        raise LakeError(f"The epoch changes inside of a batch at offset {offsets[at + 1].as_py()}.")


def _check_epochs(rows: pa.Table, epoch: int) -> None:
    offsets, epochs = rows.column("offset"), rows.column("epoch")
    if epochs[0].as_py() < epoch:
        raise ImportConflictError(
            f"The epoch goes down from {epoch} to {epochs[0].as_py()} at offset {offsets[0].as_py()}: "
            f"this is another cluster's log, or a damaged one."
        )
    if (at := _first_false(pc.greater_equal(_steps(epochs), 0))) is not None:
        raise ImportConflictError(
            f"The epoch goes down from {epochs[at].as_py()} to {epochs[at + 1].as_py()} "
            f"at offset {offsets[at + 1].as_py()}."
        )


def _steps(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.subtract(column.slice(1), column.slice(0, len(column) - 1))


def _first_false(column: pa.ChunkedArray) -> int | None:
    at: int = pc.index(column, pa.scalar(False)).as_py()
    return at if at >= 0 else None
