"""Partitions before and after each change: the columns that all tables of partitions are made of. Imports numpy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import attrs
import numpy as np
import pyarrow as pa

from kraftlake.image.topics.row_lists import RowLists
from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.kernels.columns.change_buffers import HAD, HAS, WRITTEN
from kraftlake.records.uuid import Uuid

__all__ = [
    "HAD",
    "HAS",
    "WRITTEN",
    "Heaps",
    "Names",
    "PartitionChanges",
    "PartitionRows",
    "changes_of_image",
]


class Names(NamedTuple):
    """The strings that numbers in rows and columns stand for: arrays, by number.

    `topics` are the topics' names and `ids` their ids, `directories` the ids of log directories; ids are in Kafka's
    22-character base64.
    """

    topics: pa.Array
    ids: pa.Array
    directories: pa.Array

    @classmethod
    def of(cls, topics: Sequence[str], ids: Sequence[str], directories: Sequence[Uuid]) -> Names:
        """Names of strings."""
        return cls(*(pa.array(some, pa.string()) for some in (topics, ids, [*map(str, directories)])))


class Heaps(NamedTuple):
    """The lists of rows that have no room for them (see `kraftlake.image.topics.partition_rows`): int32 arrays.

    Places from len(base) on are those of `added`.
    """

    base: Any
    added: Any


@attrs.frozen(kw_only=True, eq=False)
class PartitionChanges:
    """The changes of partitions by records: n changes, in the order of the log. Self-contained and never modified.

    A change is what all records that take effect at one offset make of one partition (`by_delta`: all records of one
    metadata delta). By change: `offsets` and `times` (int64; epoch ms, -1 for none) say where it takes effect, `deltas`
    (int64, ascending) the number of its metadata delta. `partitions` (int32) is the partition's id, `topics` (int32)
    the number of its topic in `names`; `places` (int64) are the same for the same partition, and differ for others.

    `before` and `after` (int32[n, 14], rows of `image.topics.partition_rows`, with lists in `heaps` and directories
    in `names`) are the partition's states; `flags` (uint8) says which of them count: HAD (it existed before), HAS (it
    exists after) and WRITTEN (a record has written its directories, perhaps with the same ids) of
    `kernels.columns.change_buffers`. Neither HAD nor HAS: it was created and removed in between. `altered` (bool) is
    false where both states are the same. `since` and `since_times` (int64) are the offset and time at which the state
    before it began. `unclean` and `eligible` (int64) are the numbers of unclean leader elections, and of those from the
    eligible leader replicas.

    `created` (int64[c, 2]) has the delta and topic of each topic that was created, `removed` (int64[r, 3]) the delta
    and topic of each that was removed, and the number of its record among the records that were folded. `sizes` (int64,
    by topic) is the number of partitions of each topic after the last change. `repeated` says
    whether some partition has several changes in one delta.
    """

    offsets: Any
    times: Any
    deltas: Any
    partitions: Any
    topics: Any
    places: Any
    before: Any
    after: Any
    flags: Any
    altered: Any
    since: Any
    since_times: Any
    unclean: Any
    eligible: Any
    created: Any
    removed: Any
    sizes: Any
    names: Names
    heaps: Heaps
    repeated: bool

    @classmethod
    def of_one_delta(cls, **columns: Any) -> PartitionChanges:
        """The changes of one delta, number 0, of which nothing is known but what is given.

        `columns` are `partitions`, `topics`, `before`, `after`, `flags`, `names` and `heaps`.
        """
        count = len(columns["flags"])
        none = np.zeros(count, np.int64)
        unknown: dict[str, Any] = dict.fromkeys(
            ("offsets", "times", "deltas", "since", "since_times", "unclean", "eligible", "sizes"), none
        )
        return cls(
            **columns,
            **unknown,
            places=np.arange(count),
            altered=np.ones(count, np.bool_),
            created=np.empty((0, 2), np.int64),
            removed=np.empty((0, 3), np.int64),
            repeated=False,
        )

    def __len__(self) -> int:
        return len(self.flags)

    @property
    def touches_topics(self) -> bool:
        """Whether a topic or a partition was named."""
        return len(self) > 0 or len(self.created) > 0 or len(self.removed) > 0

    def take(self, some: Any) -> PartitionChanges:
        """The changes that a slice or an array of indices names."""
        by_change = ("offsets", "times", "deltas", "partitions", "topics", "places", "before", "after", "flags",
                     "altered", "since", "since_times", "unclean", "eligible")  # fmt: skip
        columns = {name: getattr(self, name) for name in by_change}
        if isinstance(some, slice):
            return attrs.evolve(self, **{name: column[some] for name, column in columns.items()})
        return attrs.evolve(self, **{name: column.take(some, axis=0) for name, column in columns.items()})

    def in_front_of(self, delta: int) -> PartitionChanges:
        """The changes of the deltas in front of one, by number."""
        count = int(np.searchsorted(self.deltas, delta))
        flags, topics, sizes = self.flags[count:] & (HAD | HAS), self.topics[count:], self.sizes.copy()
        np.subtract.at(sizes, topics[flags == HAS], 1)
        np.add.at(sizes, topics[flags == HAD], 1)
        created, removed = (of[of[:, 0] < delta] for of in (self.created, self.removed))
        return attrs.evolve(self.take(slice(0, count)), created=created, removed=removed, sizes=sizes)

    def none(self) -> PartitionChanges:
        """No changes of partitions or topics."""
        return attrs.evolve(self.take(slice(0, 0)), created=self.created[:0], removed=self.removed[:0], repeated=False)

    def lists(self, rows: Any) -> RowLists:
        """The lists of rows, of `before` or `after`."""
        return RowLists(rows, *self.heaps)

    def by_delta(self) -> PartitionChanges:
        """One change for each partition and delta; in the order of the first record of each."""
        if not self.repeated or not len(self):
            return self
        keys = self.deltas * (int(self.places.max()) + 1) + self.places
        order = np.argsort(keys, kind="stable")
        begins = np.flatnonzero(np.diff(keys[order], prepend=-1))
        first, last = order[begins], order[np.append(begins[1:], len(order)) - 1]
        flags = self.flags[first] & HAD | self.flags[last] & HAS
        flags |= np.bitwise_or.reduceat(self.flags[order] & WRITTEN, begins)
        unclean, eligible = (np.add.reduceat(counts[order], begins) for counts in (self.unclean, self.eligible))
        altered = np.logical_or.reduceat(self.altered[order], begins)
        in_order = np.argsort(first)
        first, last = first[in_order], last[in_order]
        return attrs.evolve(
            self,
            **{name: getattr(self, name)[last] for name in ("offsets", "times", "deltas", "after")},
            **{
                name: getattr(self, name)[first]
                for name in ("partitions", "topics", "places", "before", "since", "since_times")
            },
            flags=flags[in_order],
            altered=altered[in_order],
            unclean=unclean[in_order],
            eligible=eligible[in_order],
            repeated=False,
        )


@attrs.frozen(kw_only=True, eq=False)
class PartitionRows:
    """All partitions at one offset: their `rows` (int32[n, 14]), `topics` and `partitions` (int32).

    `since` and `since_times` (int64) are where the state of each began; the rest is as in PartitionChanges.
    Self-contained and never modified.
    """

    rows: Any
    topics: Any
    partitions: Any
    since: Any
    since_times: Any
    names: Names
    heaps: Heaps


def changes_of_image(topics: TopicsImage) -> PartitionChanges:
    """The changes of the one delta that makes an image of the empty one; see `PartitionChanges.of_one_delta`."""
    packed = topics.rows().merged()
    table, count, heap = packed.table, packed.partition_count, np.asarray(packed.heap)
    ids = [str(table.id_of(number)) for number in range(table.topic_count)]
    return PartitionChanges.of_one_delta(
        partitions=table.partition_ids(),
        topics=table.topic_numbers(),
        before=np.zeros_like(packed.rows),
        after=packed.rows,
        flags=np.full(count, HAS, np.uint8),
        names=Names.of(table.names, ids, packed.directories),
        heaps=Heaps(heap, heap[:0]),
    )
