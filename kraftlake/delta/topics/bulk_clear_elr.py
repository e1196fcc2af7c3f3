"""ClearElrRecords on rows: one change for each partition with eligible leader replicas. Imports numpy."""

from __future__ import annotations

from typing import Any

import numpy as np

from kraftlake.delta.topics.bulk_state import BulkState
from kraftlake.image.topics.partition_rows import HEAP_LISTS, RARE, SHAPE
from kraftlake.kernels.replay.change_state import LONGEST, N_FRESH
from kraftlake.records.metadata_records import ClearElrRecord, PartitionChangeRecord
from kraftlake.records.serde import decode_value, encode_value
from kraftlake.records.uuid import Uuid
from kraftlake.runtime import CorruptDataError

_ELR = 5
"""The index of the ELR among a partition's lists; the last known ELR follows it."""
_CLEARED = encode_value(
    PartitionChangeRecord(partition_id=0, topic_id=Uuid.ZERO, eligible_leader_replicas=(), last_known_elr=()), 2
)
_PARTITION_ID, _TOPIC_ID = slice(3, 7), slice(7, 23)
"""The places of these fields in the value of a PartitionChangeRecord."""


def changes_clearing_elr(bulk: BulkState, value: bytes) -> Any:
    """The PartitionChangeRecords that replace a ClearElrRecord, as values: uint8[n, bytes of one value].

    None if objects have to replay the value: another record, an unknown topic, lists that are too long for rows.
    Source of the semantics: `ObjectChange.replay`.
    """
    if len(value) < 4 or value[1] != ClearElrRecord.API_KEY:
        return None
    try:
        record = decode_value(value).message
    except CorruptDataError:
        return None
    if not isinstance(record, ClearElrRecord):
        return None
    topic = bulk.topic_number(record.topic_name) if record.topic_name else -1
    if record.topic_name and topic < 0:
        return None
    found = _with_elr(bulk, topic)
    if found is None:
        return None
    topics, partitions = found
    changes = np.empty((len(topics), len(_CLEARED)), np.uint8)
    changes[:] = np.frombuffer(_CLEARED, np.uint8)
    changes[:, _PARTITION_ID] = partitions.astype(">i4").view(np.uint8).reshape(-1, 4)
    changes[:, _TOPIC_ID] = bulk.topic_ids()[topics]
    return changes


def _with_elr(bulk: BulkState, topic: int) -> tuple[Any, Any] | None:
    """Topic numbers and partition ids of the partitions with an ELR, of one topic or (-1) of all.

    None if a list is too long for rows.
    """
    state, heap, starts = bulk.state, bulk.heap(), bulk.base.starts
    fresh = bulk.count(N_FRESH)
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
    if (lengths[chosen] > LONGEST).any() or bulk.base.sparse[known].any():
        return None
    return topics[chosen], partitions[chosen]


def _rows_of_base(bulk: BulkState, topic: int) -> tuple[Any, Any]:
    """The current rows of the base, and their numbers: those of one topic, or all."""
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
