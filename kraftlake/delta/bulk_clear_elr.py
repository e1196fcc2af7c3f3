"""ClearElrRecords on rows: each partition with eligible leader replicas gets one change. Imports numpy and numba."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kraftlake.image.partition_rows import HEAP_LISTS, RARE, SHAPE
from kraftlake.kernels import change_state as columns
from kraftlake.records.metadata_records import ClearElrRecord, PartitionChangeRecord
from kraftlake.records.serde import decode_value
from kraftlake.runtime.errors import CorruptDataError

if TYPE_CHECKING:
    from kraftlake.delta.bulk_change import BulkChange

_ELR = 5
"""The place of the ELR among a partition's lists; the last known one comes behind it."""


def clear_elr(bulk: BulkChange, value: bytes) -> bool:
    """Replay the record whose value this is; false where that is for objects to do.

    Source of the semantics: `ObjectChange.replay`.
    """
    try:
        record = decode_value(value).message
    except CorruptDataError:
        return False
    if not isinstance(record, ClearElrRecord):
        return False
    topic = -1
    if record.topic_name:
        topic = number_of(bulk, record.topic_name)
        if topic < 0:
            return False
    found = _with_elr(bulk, topic)
    if found is None:
        return False
    changes = []
    for number, partition in found:
        changes.append(
            PartitionChangeRecord(
                topic_id=bulk.topic_id(number),
                partition_id=partition,
                eligible_leader_replicas=(),
                last_known_elr=(),
            )
        )
    if changes:
        from kraftlake.delta.record_columns import replay_records

        if replay_records(bulk, changes) < len(changes):
            return False  # without compiled code: objects clear what still has one
    bulk.has_cleared_elr = True
    return True


def number_of(bulk: BulkChange, name: str) -> int:
    """The number of the topic that has the name now, or -1."""
    alive, table = bulk.state.alive, bulk.packed.table
    number = table.by_name.get(name)
    if number is not None and alive[number]:
        return number
    for place, new_name in enumerate(bulk.new_names, start=table.topic_count):
        if new_name == name and alive[place]:
            return place
    return -1


def _with_elr(bulk: BulkChange, topic: int) -> list[tuple[int, int]] | None:
    """Topic and partition of those with an ELR, of one topic or (-1) of all; None where a list is too long for rows."""
    state, heap, starts = bulk.state, bulk.heap(), bulk.base.starts
    fresh = int(state.counts[columns.N_FRESH])
    rows, numbers = _rows_of_base(bulk, topic)
    rare = rows[:, SHAPE] == RARE
    rows, numbers = rows[rare], numbers[rare]
    topics = np.searchsorted(starts, numbers, side="right") - 1
    partitions = numbers - starts[topics] if len(topics) else numbers
    new = state.fresh_rows[:fresh, SHAPE] == RARE
    if topic >= 0:
        new &= state.fresh_topics[:fresh] == topic
    rows = np.concatenate((rows, state.fresh_rows[:fresh][new]))
    topics = np.concatenate((topics, state.fresh_topics[:fresh][new]))
    partitions = np.concatenate((partitions, state.fresh_partitions[:fresh][new]))
    lengths = heap[rows[:, 0][:, None] + np.arange(HEAP_LISTS)] if len(rows) else np.empty((0, HEAP_LISTS), np.int32)
    chosen = (lengths[:, _ELR:].sum(axis=1) > 0) & (state.alive[topics] != 0)
    known = topics[chosen & (topics < len(bulk.base.sparse))]
    if (lengths[chosen] > columns.LONGEST).any() or bulk.base.sparse[known].any():
        return None
    return list(zip(topics[chosen].tolist(), partitions[chosen].tolist(), strict=True))


def _rows_of_base(bulk: BulkChange, topic: int) -> tuple[Any, Any]:
    """Rows of the base as they are now, and their numbers: those of one topic, or all."""
    state, starts = bulk.state, bulk.base.starts
    if topic >= bulk.packed.table.topic_count:
        return bulk.base.rows[:0], np.empty(0, np.int64)
    first, last = (0, bulk.packed.partition_count) if topic < 0 else (int(starts[topic]), int(starts[topic + 1]))
    if len(state.dense_flags):
        return state.dense_rows[first:last], np.arange(first, last)
    rows = bulk.base.rows[first:last]
    slots = state.slots[first:last]
    touched = np.flatnonzero(slots)
    if len(touched):
        rows = rows.copy()
        rows[touched] = state.touched_rows[slots[touched] - 1]
    return rows, np.arange(first, last)
