"""The availability that the images of a log have, one after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

import attrs

from kraftlake.image.broker_partitions import min_insync_replicas
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.topics.partition_registration import PartitionRegistration
from kraftlake.records.batch import RecordBatch
from kraftlake.replay.loader.batch_loader import MetadataBatchLoader
from kraftlake.replay.queries.changes import ChangeFold

Key = tuple[str, int]
"""A topic's id, and a partition's number."""
EXISTS = "exists"


class Stretch(NamedTuple):
    """A stretch of a partition in a state, with its times."""

    key: Key
    state: str
    begin: int
    end: int


def states_of(image: MetadataImage, name: str, partition: PartitionRegistration) -> set[str]:
    leader = image.cluster.brokers.get(partition.leader)
    in_sync, replicas = len(partition.isr), len(partition.replicas)
    found = {
        "offline": partition.leader == -1,
        "led_by_fenced": leader is not None and leader.fenced,
        "under_min_isr": in_sync < min(min_insync_replicas(image, name), replicas),
        "one_in_sync": in_sync == 1 and replicas > 1,
    }
    return {EXISTS, *(state for state, is_so in found.items() if is_so)}


@attrs.define
class Fold:
    """Looks at one image after the other; `at` is the time from which the newest holds."""

    now: int = -1
    open: dict[tuple[Key, str], int] = attrs.field(factory=dict)
    ended: list[Stretch] = attrs.field(factory=list)
    names: dict[str, str] = attrs.field(factory=dict)

    def see(self, image: MetadataImage) -> None:
        holds = set()
        for name, topic in image.topics.topics_by_name().items():
            self.names[str(topic.id)] = name
            for number, partition in topic.partitions.items():
                holds |= {((str(topic.id), number), state) for state in states_of(image, name, partition)}
        for key, state in {*self.open} - holds:
            self.ended.append(Stretch(key, state, self.open.pop((key, state)), self.now))
        for one in holds - {*self.open}:
            self.open[one] = self.now

    def stretches(self, begin: int, end: int) -> list[Stretch]:
        """Those within a window, cut at its ends."""
        every = [*self.ended, *(Stretch(key, state, since, end) for (key, state), since in self.open.items())]
        cut = [one._replace(begin=max(one.begin, begin), end=min(one.end, end)) for one in every]
        return sorted(one for one in cut if one.end > one.begin)


def fold(batches: Iterable[RecordBatch], first: int = 0, begin: int | None = None) -> tuple[Fold, int, int]:
    """The fold of a log, with the begin and the end of its clock: from the offset `first` on, or from a time."""
    changes, found, at = ChangeFold(MetadataBatchLoader()), Fold(), begin
    last = -1
    for batch in batches:
        published = changes.take(batch)
        is_within = batch.last_offset >= first
        if is_within and (published or not changes.loader.in_transaction):
            found.now = max(found.now, batch.timestamp)
            if at is None and found.now >= 0:
                at = found.now
        for change in published:
            found.see(change.image)
        last = max(found.now, batch.timestamp)
    at = last if at is None else at
    return found, at, last


def sums(stretches: Iterable[Stretch]) -> dict[Key, Counter[str]]:
    """The milliseconds of each partition in each state."""
    made: dict[Key, Counter[str]] = {}
    for one in stretches:
        made.setdefault(one.key, Counter())[one.state] += one.end - one.begin
    return made


def union(stretches: Iterable[Stretch]) -> int:
    """The milliseconds in which any of them is."""
    total, reached = 0, -1
    for one in sorted(stretches, key=lambda stretch: stretch.begin):
        total += max(0, one.end - max(one.begin, reached))
        reached = max(reached, one.end)
    return total


def rows_by_partition(fold_: Fold, stretches: list[Stretch]) -> dict[Key, dict[str, Any]]:
    """What a row by partition says of its sums and of its longest stretch."""
    rows = {}
    for key, counts in sums(stretches).items():
        some = [one for one in stretches if one.key == key and one.state != EXISTS]
        order = ("offline", "led_by_fenced", "under_min_isr", "one_in_sync")
        worst = min(some, key=lambda one: (order.index(one.state), one.begin - one.end, one.begin), default=None)
        rows[key] = {
            "topic": fold_.names[key[0]],
            "seconds": counts[EXISTS] / 1000,
            **{f"{state}_seconds": counts[state] / 1000 for state in order},
            "any_offline_seconds": counts["offline"] / 1000,
            "longest_trouble": None if worst is None else worst.state,
            "longest_seconds": None if worst is None else (worst.end - worst.begin) / 1000,
            "longest_begin_timestamp": None if worst is None else worst.begin,
        }
    return rows
