"""The partitions of a cluster behind a log's deltas: one store for all tables of a run. Imports numpy.

Records go in (`fold`), and the partitions that they change come out, before and after each change, as PartitionChanges:
columns that the tables are functions of.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from kraftlake.delta.topics.bulk_change import TOPIC_KINDS
from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.replay.log.compiled_partitions import CompiledPartitions
from kraftlake.replay.log.effective_records import UNKNOWN_KIND, EffectiveRecords
from kraftlake.replay.log.partition_changes import PartitionChanges, PartitionRows


class PartitionStore:
    """The state of each partition, and the offset and time at which it began, after the records that were folded.

    What comes out depends on the records and deltas alone, not on how they are cut: between two deltas.
    """

    def __init__(self, topics: TopicsImage = TopicsImage.EMPTY, *, of_shard: bool = False) -> None:
        """Begin with an image.

        Each state begins at offset and time -1, unless `begin` says otherwise. `of_shard`: a ClearElrRecord may name a
        topic that is not here.
        """
        self._of_shard = of_shard
        self._held: CompiledPartitions | None = None
        self.begin(topics, -1, -1)

    def begin(self, topics: TopicsImage, since: Any, since_times: Any) -> None:
        """Begin with the partitions of an image.

        `since` and `since_times` (epoch ms, -1 for none) are int64 arrays in the order of `topics.rows()`, or one
        number for all partitions: where the state of each began.
        """
        self._begin, self._held = (topics, since, since_times), None

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
        Raises ReplayError, UnknownRecordError or CorruptDataError, naming the offset, for a record that can't be
        replayed, after the changes of the deltas before its own; the records of that delta, and those after it, may
        then be folded without it.
        """
        chosen = np.flatnonzero(records.are_of((*TOPIC_KINDS, UNKNOWN_KIND)))
        some, deltas_of = records.where(chosen), deltas[chosen]
        partitions = self._partitions
        if partitions.is_worn:
            partitions = self._held = self._begun(*partitions.image())
        changes, fault = partitions.fold(some, deltas_of)
        if fault is None:
            yield len(records), _numbered(changes, chosen)
            return
        place, error = fault
        self._held = self._begun(*partitions.image())  # without what the delta of the fault has done already
        yield int(np.searchsorted(deltas, deltas_of[place])), _numbered(changes, chosen)
        raise error

    @property
    def _partitions(self) -> CompiledPartitions:
        """The partitions; made of what the store begins with when they are first asked for."""
        if self._held is None:
            topics, *since = self._begin
            count = topics.partition_count
            begins = (np.broadcast_to(np.asarray(numbers, np.int64), (count,)) for numbers in since)
            self._begin = (TopicsImage.EMPTY, -1, -1)
            self._held = self._begun(topics, *begins)
        return self._held

    def _begun(self, topics: TopicsImage, since: Any, since_times: Any) -> CompiledPartitions:
        return CompiledPartitions(topics, since, since_times, of_shard=self._of_shard)


def _numbered(changes: PartitionChanges, records: Any) -> PartitionChanges:
    """The same with the numbers that records have among others."""
    changes.removed[:, 2] = records[changes.removed[:, 2]]
    return changes
