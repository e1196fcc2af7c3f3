"""The partitions of a cluster behind a log's deltas: one store for all tables of a run. Imports numpy.

Records go in (`fold`), and the partitions that they change come out, before and after each change, as PartitionChanges:
columns that the tables are functions of. Records go through compiled code; the rest of a chunk from an odd record on is
folded as objects, into the same columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.records import metadata_records as r
from kraftlake.replay.log.compiled_partitions import CompiledPartitions
from kraftlake.replay.log.effective_records import UNKNOWN_KIND, EffectiveRecords
from kraftlake.replay.log.object_partitions import ObjectPartitions
from kraftlake.replay.log.partition_changes import PartitionChanges, PartitionRows

TOPIC_KINDS: Final = tuple(
    cls.API_KEY
    for cls in (r.TopicRecord, r.PartitionRecord, r.PartitionChangeRecord, r.RemoveTopicRecord, r.ClearElrRecord)
)
"""The api keys of the records that change topics and partitions."""


class PartitionStore:
    """The state of each partition, and the offset and time at which it began, after the records that were folded.

    What comes out depends on the records and deltas alone, not on how they are cut: between two deltas.
    """

    def __init__(self, topics: TopicsImage = TopicsImage.EMPTY, *, bulk: bool = True, of_shard: bool = False) -> None:
        """Begin with an image; without `bulk`, all records are folded as odd ones are.

        Each state begins at offset and time -1, unless `begin` says otherwise. `of_shard`: a ClearElrRecord may name a
        topic that is not here.
        """
        self._bulk = bulk
        self._of_shard = of_shard
        self._held: CompiledPartitions | ObjectPartitions | None = None
        self.begin(topics, -1, -1)

    def begin(self, topics: TopicsImage, since: Any, since_times: Any) -> None:
        """Begin with the partitions of an image.

        `since` and `since_times` (epoch ms, -1 for none) are int64 arrays in the order of `topics.rows()`, or one
        number for all partitions: where the state of each began.
        """
        self._begin, self._held = (topics, since, since_times), None

    @property
    def is_compiled(self) -> bool:
        """Whether compiled code is at work."""
        return not isinstance(self._partitions, ObjectPartitions)

    @property
    def count(self) -> int:
        """The number of partitions."""
        return self._partitions.count

    @property
    def topic_count(self) -> int:
        """The number of topics."""
        return self._partitions.topic_count

    def topics(self) -> TopicsImage:
        """The topics as an image."""
        return self.image()[0]

    def image(self) -> tuple[TopicsImage, Any, Any]:
        """The topics as an image, and since which offset and time each partition is so: what `begin` takes."""
        return self._partitions.image()

    def rows(self) -> PartitionRows:
        """All partitions, with where the state of each began."""
        return self._partitions.rows()

    def fold(self, records: EffectiveRecords, deltas: Any) -> Iterator[tuple[int, PartitionChanges]]:
        """Fold the records of whole deltas, which follow those before.

        `deltas` (int64, ascending) are the numbers of the records' deltas. Gives the changes by runs of whole deltas,
        each run with the number of the record behind it; records of other kinds make none. At least one run is given.
        Raises ReplayError or CorruptDataError, naming the offset, for a record that
        contradicts the state, after the changes of the deltas before its own; the records of that delta, and those
        after it, may then be folded without it.
        """
        chosen = np.flatnonzero(records.are_of((*TOPIC_KINDS, UNKNOWN_KIND)))
        some, deltas_of = records.where(chosen), deltas[chosen]
        done, partitions = 0, self._partitions
        is_old = self._bulk and len(some) > 0 if isinstance(partitions, ObjectPartitions) else partitions.is_worn
        if is_old:
            partitions = self._held = CompiledPartitions(*partitions.image())
        if not isinstance(partitions, ObjectPartitions):
            done, changes = partitions.fold(some, deltas_of)
            if done == len(some):
                yield len(records), _numbered(changes, chosen)
                return
            if done:
                yield int(np.searchsorted(deltas, deltas_of[done])), _numbered(changes, chosen)
            partitions = self._held = ObjectPartitions(*partitions.image(), of_shard=self._of_shard)
        more, changes, fault = partitions.fold(some.where(np.s_[done:]), deltas_of[done:])
        if fault is None:
            yield len(records), _numbered(changes, chosen[done:])
            return
        yield int(np.searchsorted(deltas, deltas_of[done + more])), _numbered(changes, chosen[done:])
        raise fault

    @property
    def _partitions(self) -> CompiledPartitions | ObjectPartitions:
        """The partitions; made of what the store begins with when they are first asked for."""
        if self._held is None:
            topics, *since = self._begin
            count = topics.partition_count
            begins = (np.broadcast_to(np.asarray(numbers, np.int64), (count,)) for numbers in since)
            self._begin = (TopicsImage.EMPTY, -1, -1)
            self._held = (
                CompiledPartitions(topics, *begins)
                if self._bulk
                else ObjectPartitions(topics, *begins, of_shard=self._of_shard)
            )
        return self._held


def _numbered(changes: PartitionChanges, records: Any) -> PartitionChanges:
    """The same with the numbers that records have among others."""
    changes.removed[:, 2] = records[changes.removed[:, 2]]
    return changes
