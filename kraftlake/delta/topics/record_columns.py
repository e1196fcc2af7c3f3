"""Encodes many record objects column by column, for `BulkChange` to replay. Imports numpy."""

from __future__ import annotations

import struct
from collections.abc import Collection, Sequence
from itertools import chain
from typing import Any, Final

import numpy as np

from kraftlake.delta.topics.bulk_change import BulkChange
from kraftlake.kernels import compiled
from kraftlake.kernels.batches.record_columns import CHANGE_BYTES, PARTITION_BYTES, TOPIC_BYTES, Columns
from kraftlake.records.metadata_records import (
    ClearElrRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from kraftlake.records.serde import encode_value

AT_ONCE: Final = 1 << 13
"""Number of records encoded at a time: their columns fit a processor's caches."""

_KINDS: Final[dict[type, int]] = {
    cls: cls.API_KEY for cls in (TopicRecord, PartitionRecord, PartitionChangeRecord, ClearElrRecord)
}


def replay_records(bulk: BulkChange, records: Sequence[Any]) -> int:
    """Replay records of topics, but no RemoveTopicRecord, as far as possible; returns the number replayed."""
    done = 0
    while done < len(records):
        chunk = records[done : done + AT_ONCE]
        try:
            data, starts, stops = _values(chunk)
        except (AttributeError, OverflowError, TypeError, ValueError, struct.error):
            break  # Kafka could not write one of them: objects find which
        count, others = bulk.replay(data, starts, stops, 0, len(chunk))
        assert not others, "all are records of topics"
        done += count
        if count < len(chunk):
            break
    return done


def remove_topic(bulk: BulkChange, record: RemoveTopicRecord) -> str | None:
    """Replay the record and return the topic's name; None if objects have to replay it."""
    value = np.frombuffer(encode_value(record, 0), np.uint8)
    replayed, others = bulk.replay(value, np.zeros(1, np.int64), np.full(1, len(value), np.int64), 0, 1)
    return others[0][1] if replayed else None


def _values(records: Sequence[Any]) -> tuple[Any, Any, Any]:
    """The records as they would be in a batch: data (uint8), and where each begins and ends in it (int64)."""
    numbers: Any = np.empty(len(records), np.uint8)
    if {*map(type, records)} == {PartitionChangeRecord}:
        numbers[:] = PartitionChangeRecord.API_KEY
        topics, partitions, changes = [], _NO_PARTITIONS, _changes(records)
    else:
        numbers[:] = [_KINDS[kind] for kind in map(type, records)]
        topics = [record for record in records if type(record) is TopicRecord]
        partitions = _partitions([record for record in records if type(record) is PartitionRecord])
        changes = _changes([record for record in records if type(record) is PartitionChangeRecord])
    names = [topic.name.encode() for topic in topics]
    lengths = np.fromiter(map(len, names), np.int64, len(names))
    size = int(lengths.sum()) + TOPIC_BYTES * (len(records) - len(partitions.leaders))
    size += PARTITION_BYTES * len(partitions.leaders) + _list_bytes(partitions)
    size += CHANGE_BYTES * len(changes.leaders) + _list_bytes(changes)
    data = np.empty(size, np.uint8)
    starts, stops = np.empty(len(records), np.int64), np.empty(len(records), np.int64)
    compiled.write_values(
        numbers,
        compiled.Columns(*partitions),
        compiled.Columns(*changes),
        _ids([topic.topic_id for topic in topics]),
        lengths,
        np.frombuffer(b"".join(names), np.uint8),
        data,
        starts,
        stops,
    )
    return data, starts, stops


def _list_bytes(columns: Columns) -> int:
    return 4 * len(columns.values) + len(columns.directories)


_EMPTY: Final = 0
_NULL: Final = -1
"""Columns whose lists are all empty, or all null."""


def _partitions(records: Sequence[PartitionRecord]) -> Columns:
    rare = [
        True
        for r in records
        if r.adding_replicas or r.removing_replicas or r.eligible_leader_replicas is not None
        or r.last_known_elr is not None
    ]  # fmt: skip
    return _columns(
        records,
        leader_epochs=[r.leader_epoch for r in records],
        partition_epochs=[r.partition_epoch for r in records],
        lists=[
            [r.replicas for r in records],
            [r.isr for r in records],
            [r.directories for r in records],
            [r.adding_replicas for r in records] if rare else _EMPTY,
            [r.removing_replicas for r in records] if rare else _EMPTY,
            [r.eligible_leader_replicas for r in records] if rare else _NULL,
            [r.last_known_elr for r in records] if rare else _NULL,
        ],
    )


def _changes(records: Sequence[PartitionChangeRecord]) -> Columns:
    """The columns. Most records change only leader and ISR: one test of the other lists takes half the time."""
    rare = [
        True
        for r in records
        if r.replicas is not None or r.directories is not None or r.adding_replicas is not None
        or r.removing_replicas is not None or r.eligible_leader_replicas is not None or r.last_known_elr is not None
    ]  # fmt: skip
    return _columns(
        records,
        leader_epochs=[],
        partition_epochs=[],
        lists=[
            [r.replicas for r in records] if rare else _NULL,
            [r.isr for r in records],
            [r.directories for r in records] if rare else _NULL,
            [r.adding_replicas for r in records] if rare else _NULL,
            [r.removing_replicas for r in records] if rare else _NULL,
            [r.eligible_leader_replicas for r in records] if rare else _NULL,
            [r.last_known_elr for r in records] if rare else _NULL,
        ],
    )


def _columns(
    records: Sequence[PartitionRecord] | Sequence[PartitionChangeRecord],
    *,
    leader_epochs: list[int],
    partition_epochs: list[int],
    lists: Sequence[list[Any] | int],
) -> Columns:
    lengths = np.empty((len(lists), len(records)), np.int32)
    elements = [_flat(column, lengths[which]) for which, column in enumerate(lists)]
    directories = _ids([*elements[2]])
    values = [_int32s(flat) for which, flat in enumerate(elements) if which != 2]
    sizes = [*map(len, values)]
    firsts = np.zeros(len(lists), np.int64)
    firsts[[0, 1, 3, 4, 5, 6]] = np.cumsum([0, *sizes[:-1]])
    return Columns(
        ids=_ids([r.topic_id for r in records]),
        partitions=_int32s([r.partition_id for r in records]),
        leaders=_int32s([r.leader for r in records]),
        leader_epochs=_int32s(leader_epochs),
        partition_epochs=_int32s(partition_epochs),
        recovery=_within_int8([r.leader_recovery_state for r in records]),
        lengths=lengths,
        firsts=firsts,
        values=np.concatenate(values),
        directories=directories,
    )


def _int32s(numbers: Collection[int]) -> Any:
    """Numbers as int32 array, in half the time of np.array. Raises struct.error for a number that is no int32."""
    return np.frombuffer(struct.pack(f"={len(numbers)}i", *numbers), np.int32)


def _within_int8(numbers: list[int]) -> Any:
    if numbers and not -128 <= min(numbers) <= max(numbers) <= 127:
        raise OverflowError("a leader recovery state is an int8")
    return _int32s(numbers)


def _flat(column: list[Any] | int, lengths: Any) -> list[Any]:
    """The elements of all lists, concatenated; their lengths, -1 for null, are written to `lengths`."""
    if isinstance(column, int):
        lengths[:] = column
        return []
    try:
        lengths[:] = np.fromiter(map(len, column), np.int32, len(column))
    except TypeError:  # some are null
        lengths[:] = [-1 if members is None else len(members) for members in column]
        column = [members for members in column if members]
    return [*chain.from_iterable(column)]


def _ids(ids: Sequence[bytes]) -> Any:
    joined = b"".join(ids)
    if len(joined) != 16 * len(ids):
        raise ValueError("a Uuid has 16 bytes")
    return np.frombuffer(joined, np.uint8)


_NO_PARTITIONS: Final = _partitions([])
