"""Since when partitions have had no leader, and their last leader."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress

import attrs

from kraftlake.image.topics.partition_registration import NO_LEADER
from kraftlake.kafka_files import SourceKind
from kraftlake.records.uuid import Uuid
from kraftlake.replay.queries.leader_records import Keys, key_of, leaders_named
from kraftlake.replay.queries.source import LogSource
from kraftlake.replay.reading.chunks import chunks_of, chunks_of_snapshot
from kraftlake.replay.reading.replay_base import usable_snapshots
from kraftlake.runtime.errors import CorruptDataError


@attrs.frozen
class Leaderless:
    """`since` is the time (epoch ms, -1 for none) of the record that took the leader away, `led_by` the broker that
    led until then: None where the partition never had a leader, or the log no longer says.
    """

    since: int
    led_by: int | None


def leaderless_since(
    source: LogSource, partitions: Collection[tuple[Uuid, int]], at_offset: int
) -> dict[tuple[Uuid, int], Leaderless]:
    """Since when partitions (topic id, number), all without a leader at `at_offset`, have had none, by the log.

    Left out are partitions that had no leader at the log's start, and all of them where the log does not reach
    `at_offset`, such as those of a snapshot file. Where the log is damaged, only the log after the newest snapshot
    counts, and where that is damaged too, nothing is known. Only records of these partitions are decoded.
    """
    start = source.start_offset
    if not partitions or source.kind is SourceKind.SNAPSHOT or at_offset >= source.end_offset:
        return {}
    keys = {key_of(*partition): partition for partition in partitions}
    ends = [s.end_offset for s in usable_snapshots(source.reader) if start <= s.end_offset <= at_offset + 1]
    for base_end in (min(ends, default=0) if start > 0 else 0, max(ends, default=0)):
        with suppress(CorruptDataError):
            found = _found(source, Keys(keys), base_end, at_offset)
            return {keys[key]: one for key, one in found.items()}
    return {}


def _found(source: LogSource, keys: Keys, base_end: int, at_offset: int) -> dict[bytes, Leaderless]:
    """By key, from the snapshot that ends at `base_end` on, where that is not 0."""
    leaders: dict[bytes, int] = {}
    for snapshot in usable_snapshots(source.reader):
        if snapshot.end_offset == base_end:
            leaders = {key: leader for key, leader, _, _ in leaders_named(chunks_of_snapshot(snapshot), keys)}
    found: dict[bytes, Leaderless] = {}
    parts = chunks_of(source.reader, max(base_end, source.start_offset), at_offset)
    for key, leader, offset, time in leaders_named(parts, keys):
        if not base_end <= offset <= at_offset:
            continue
        before, leaders[key] = leaders.get(key), leader
        if leader == NO_LEADER and before != NO_LEADER:
            found[key] = Leaderless(time, before)
    return found
