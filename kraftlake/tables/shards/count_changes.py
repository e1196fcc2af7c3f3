"""The changes of a cluster's counts by deltas, by shard and merged. Imports numpy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

from kraftlake.replay.log.delta_chunk import DeltaBoundaries, DeltaChunk
from kraftlake.tables.metrics.cluster_counts import TOPIC_COUNTS, topic_counts


@attrs.frozen(eq=False)
class CountChanges:
    """`changes` (int64[n, 6]) of `topic_counts` by the deltas of `boundaries`."""

    boundaries: DeltaBoundaries
    changes: Any

    @classmethod
    def of_chunk(cls, chunk: DeltaChunk) -> CountChanges:
        """The changes by the deltas of a chunk that change a count, or have an election."""
        changes = topic_counts(chunk.partitions, len(chunk.boundaries))
        some = np.flatnonzero(changes.any(axis=1))
        return cls(chunk.boundaries.where(some), changes[some])

    @classmethod
    def none_in(cls, boundaries: DeltaBoundaries) -> CountChanges:
        """Deltas that change none."""
        return cls(boundaries, np.zeros((len(boundaries), TOPIC_COUNTS), np.int64))

    @classmethod
    def joined(cls, some: Sequence[CountChanges]) -> CountChanges:
        """The changes of shards, and of parts of a log, merged: each delta once, in order, as the first has it."""
        none = cls.none_in(DeltaBoundaries.single(-1, -1, -1).part(0, 0))
        boundaries = DeltaBoundaries.joined([each.boundaries for each in (none, *some)])
        offsets, first, numbers = np.unique(boundaries.offsets, return_index=True, return_inverse=True)
        changes = np.zeros((len(offsets), TOPIC_COUNTS), np.int64)
        np.add.at(changes, numbers.reshape(-1), np.concatenate([each.changes for each in (none, *some)]))
        return cls(boundaries.where(first), changes)
