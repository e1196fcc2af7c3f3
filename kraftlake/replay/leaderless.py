"""Since when partitions have had no leader, and who led them before."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import attrs

from kraftlake.image.partition_registration import NO_LEADER
from kraftlake.kafka_files import SourceKind
from kraftlake.records.batch import RecordBatch
from kraftlake.records.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    PartitionChangeRecord,
    PartitionRecord,
)
from kraftlake.records.serde import decode_value
from kraftlake.records.uuid import Uuid
from kraftlake.replay.base import usable_snapshots
from kraftlake.replay.source import Source
from kraftlake.runtime.errors import CorruptDataError

_WITH_LEADER = (PartitionRecord.API_KEY, PartitionChangeRecord.API_KEY)
_KEY = slice(3, 23)
"""Where both records have the partition's number and the topic's id: behind a frame of three bytes."""


@attrs.frozen
class Leaderless:
    """`since` is the time (epoch ms, -1 for none) of the record that took the leader away, `led_by` the broker that
    led until then: None where the partition never had a leader, or nothing tells any more.
    """

    since: int
    led_by: int | None


def leaderless_since(
    source: Source, partitions: Collection[tuple[Uuid, int]], at_offset: int
) -> dict[tuple[Uuid, int], Leaderless]:
    """What the log up to `at_offset` tells of partitions (topic id, number), all of which have no leader then.

    One that was without a leader at the beginning already is left out, and so are all where the log does not reach
    `at_offset`, such as those of a snapshot file. Where the log is broken on the way it is what the log behind the
    newest snapshot tells. Only records of these partitions are decoded.
    """
    start = source.start_offset
    if not partitions or source.kind is SourceKind.SNAPSHOT or at_offset >= source.end_offset:
        return {}
    keys = {number.to_bytes(4, "big", signed=True) + bytes(topic): (topic, number) for topic, number in partitions}
    ends = [s.end_offset for s in usable_snapshots(source.reader) if start <= s.end_offset <= at_offset + 1]
    try:
        found = _found(source, set(keys), min(ends, default=0) if start > 0 else 0, at_offset)
    except CorruptDataError:
        found = _found(source, set(keys), max(ends, default=0), at_offset)
    return {keys[key]: one for key, one in found.items()}


def _found(source: Source, keys: set[bytes], base_end: int, at_offset: int) -> dict[bytes, Leaderless]:
    """By key, from the snapshot that ends at `base_end` on, where that is not 0."""
    leaders: dict[bytes, int] = {}
    for snapshot in usable_snapshots(source.reader):
        if snapshot.end_offset == base_end:
            leaders = {key: leader for key, leader, _, _ in _leaders(snapshot.batches(), keys)}
    found: dict[bytes, Leaderless] = {}
    for key, leader, offset, time in _leaders(source.batches(max(base_end, source.start_offset), at_offset), keys):
        if not base_end <= offset <= at_offset:
            continue
        before, leaders[key] = leaders.get(key), leader
        if leader == NO_LEADER and before != NO_LEADER:
            found[key] = Leaderless(time, before)
    return found


def _leaders(batches: Iterator[RecordBatch], keys: set[bytes]) -> Iterator[tuple[bytes, int, int, int]]:
    """(key, leader, offset, time in epoch ms) of every record of one of the partitions that names a leader, or none.

    Those of a metadata transaction come at its end, with its offset and time; those of an aborted one never.
    """
    within: list[tuple[bytes, int]] | None = None
    for batch in batches:
        for index, value in enumerate(() if batch.control else batch.values):
            kind, offset, time = value[1] if len(value) > 1 else -1, batch.base_offset + index, batch.timestamps[index]
            if kind in _WITH_LEADER and (key := bytes(value[_KEY])) in keys:
                leader = _leader_of(value)
                if leader is None:
                    continue
                if within is None:
                    yield key, leader, offset, time
                else:
                    within.append((key, leader))
            elif kind == BeginTransactionRecord.API_KEY:
                within = []
            elif kind == EndTransactionRecord.API_KEY:
                yield from ((key, leader, offset, time) for key, leader in within or ())
                within = None
            elif kind == AbortTransactionRecord.API_KEY:
                within = None


def _leader_of(value: bytes) -> int | None:
    """The leader that a record names, None where it leaves it as it was."""
    message = decode_value(value).message
    if not isinstance(message, (PartitionRecord, PartitionChangeRecord)) or message.leader < NO_LEADER:
        return None
    return message.leader
