"""The changes of a cluster's counts by deltas, of a whole log, of a shard, and merged. Imports numpy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import attrs
import numpy as np

from kraftlake.image.topics.row_queries import count_rows
from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.kernels import compiled
from kraftlake.kernels.columns.change_buffers import COUNTS, CountedChanges
from kraftlake.replay.log.delta_chunk import DeltaBoundaries, DeltaChunk
from kraftlake.tables.metrics.health_shares import HealthShares

_COLUMNS: Final = 1 + COUNTS


@attrs.frozen(eq=False)
class CountChanges:
    """The changes of counts of topics and partitions by the deltas of `boundaries`.

    `growth` (int64[n, 9]) has that of the number of topics, then the columns of `kernels.columns.change_buffers`, the
    elections last; `shares` are the changes that count by what brokers and configs say.
    """

    boundaries: DeltaBoundaries
    growth: Any
    shares: HealthShares

    @classmethod
    def of_chunk(cls, chunk: DeltaChunk) -> CountChanges:
        """The changes by the deltas of a chunk, all of them."""
        growth = np.zeros((len(chunk.boundaries), _COLUMNS), np.int64)
        for of, sign in ((chunk.partitions.created, 1), (chunk.partitions.removed, -1)):
            np.add.at(growth[:, 0], of[:, 0], sign)
        changes, counts = chunk.partitions.by_delta(), np.zeros((len(growth), COUNTS), np.int64)
        columns = (np.ascontiguousarray(getattr(changes, name)) for name in CountedChanges._fields)
        compiled.count_changes(compiled.CountedChanges(*columns), *changes.heaps, counts)
        growth[:, 1:] = counts
        return cls(chunk.boundaries, growth, HealthShares.of_changes(changes))

    @classmethod
    def of_topics(cls, topics: TopicsImage) -> CountChanges:
        """The change of one delta that makes the topics of an image."""
        growth = np.array([[topics.topic_count, *count_rows(topics.rows())]], np.int64)
        return cls(DeltaBoundaries.single(-1, -1, -1), growth, HealthShares.of_topics(topics))

    @classmethod
    def none_in(cls, boundaries: DeltaBoundaries) -> CountChanges:
        """Deltas that change none."""
        return cls(boundaries, np.zeros((len(boundaries), _COLUMNS), np.int64), HealthShares())

    @classmethod
    def joined(cls, some: Sequence[CountChanges]) -> CountChanges:
        """The changes of shards, and of parts of a log, merged: each delta once, in order, as the first has it."""
        every = [cls.none_in(DeltaBoundaries.single(-1, -1, -1).part(0, 0)), *some]
        boundaries = DeltaBoundaries.joined([each.boundaries for each in every])
        offsets, first, numbers = np.unique(boundaries.offsets, return_index=True, return_inverse=True)
        growth = np.zeros((len(offsets), _COLUMNS), np.int64)
        np.add.at(growth, numbers, np.concatenate([each.growth for each in every]))
        edges = np.cumsum([len(each.boundaries) for each in every])[:-1]
        shares = HealthShares.joined(
            (each.shares, places) for each, places in zip(every, np.split(numbers, edges), strict=True)
        )
        return cls(boundaries.where(first), growth, shares)

    def changing(self) -> CountChanges:
        """The deltas that change a count, or have an election."""
        shares = self.shares.summed()
        changes = self.growth.any(axis=1)
        changes[shares.deltas] = True
        some = np.flatnonzero(changes)
        numbered = attrs.evolve(shares, deltas=np.searchsorted(some, shares.deltas))
        return CountChanges(self.boundaries.where(some), self.growth[some], numbered)
