"""Partitions without a leader: the record that took it, and their last leader."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from kraftlake.diagnosis.since import partitions_by_columns, partitions_in
from kraftlake.diagnosis.thing_changes import changes_of
from kraftlake.diagnosis.things import Thing
from kraftlake.image.topics.partition_registration import NO_LEADER
from kraftlake.kafka_files.sniffing.source_kind import SourceKind
from kraftlake.replay.queries.source import LogSource
from kraftlake.runtime.errors import KraftlakeError


@attrs.frozen
class Leaderless:
    """`since` is the time (epoch ms, None for none) at which the leader was taken away, `led_by` the broker that led
    until then: None where the partition never had a leader.
    """

    since: int | None
    led_by: int | None


def leaderless_since(source: LogSource, topics: Mapping[str, Any], at: int) -> dict[tuple[str, str], Leaderless]:
    """The loss of the leader of partitions that have none at the offset `at`, by topic and number.

    `topics` is that of an image's JSON form, or a part of it. Left out are partitions that had no leader at the log's
    start, and all of them where the log does not reach `at`, such as those of a snapshot file. Where the log is
    damaged, only the log after the newest snapshot counts, and where that is damaged too, nothing is known.
    """
    if source.kind is SourceKind.SNAPSHOT or at >= source.end_offset or not topics:
        return {}
    keys = {(name, number): Thing.partition(name, int(number), "leader") for name, number in partitions_in(topics)}
    try:
        by_columns = partitions_by_columns(source, topics, at, lenient=False)
        lines = {} if by_columns else changes_of(source, keys.values(), at, newest_only=True).lines
    except KraftlakeError:
        return {}
    if by_columns:
        return {
            (name, number): Leaderless(leader["timestamp"], led_by)
            for name, number, (leader, *_), led_by in by_columns
            if "orEarlier" not in leader
        }
    newest = {key: lines[thing][-1] for key, thing in keys.items() if thing in lines}
    return {
        key: Leaderless(one.since_time, one.before)
        for key, one in newest.items()
        if one.after == NO_LEADER and not one.or_earlier
    }
