"""The growth of a controller's counts by changes of partitions."""

from __future__ import annotations

from typing import Any

import numpy as np

from kraftlake.kernels.columns.broker_changes import HAD, HAS
from kraftlake.kernels.language import compiled, inlined
from kraftlake.kernels.partition_row import HEAP_LISTS, LEADER, SHAPE

_NO_LEADER = -1

PARTITIONS, OFFLINE, IMBALANCED, UNCLEAN, ELIGIBLE, COUNTS = range(6)
"""The columns of a delta's counts: the growth of those of partitions, then the elections of each kind."""


@inlined
def _preferred(rows: Any, r: Any, base_heap: Any, heap: Any) -> Any:
    """The first replica of a row, _NO_LEADER without one."""
    at = np.int64(rows[r, 0])
    if rows[r, SHAPE] >= 0:
        return at if rows[r, SHAPE] & 0xFF else np.int64(_NO_LEADER)
    source = base_heap
    if at >= len(base_heap):
        source = heap
        at -= len(base_heap)
    return np.int64(source[at + HEAP_LISTS]) if source[at] > 0 else np.int64(_NO_LEADER)


@inlined
def _count(rows: Any, r: Any, sign: int, base_heap: Any, heap: Any, counts: Any) -> None:
    leader = rows[r, LEADER]
    counts[PARTITIONS] += sign
    if leader == _NO_LEADER:
        counts[OFFLINE] += sign
    if leader != _preferred(rows, r, base_heap, heap):
        counts[IMBALANCED] += sign


@compiled
def count_changes(changes: Any, base_heap: Any, heap: Any, counts: Any) -> None:
    """Add changes of partitions to the counts of their deltas: int64[d, COUNTS].

    `changes` has `deltas`, `before`, `after`, `flags`, `unclean` and `eligible` of `PartitionChanges`, one change for
    each partition and delta. The elections of partitions that still exist count, as in Kafka.
    """
    before, after = changes.before, changes.after
    for i in range(len(changes.flags)):
        r = np.uint64(i)
        had, has = changes.flags[r] & HAD != 0, changes.flags[r] & HAS != 0
        of = counts[changes.deltas[r]]
        if has and (changes.unclean[r] or changes.eligible[r]):
            of[UNCLEAN] += changes.unclean[r]
            of[ELIGIBLE] += changes.eligible[r]
        stays = had and has and before[r, LEADER] == after[r, LEADER]
        if stays and before[r, 0] == after[r, 0] and before[r, SHAPE] == after[r, SHAPE]:
            continue  # as most changes
        if had:
            _count(before, r, -1, base_heap, heap, of)
        if has:
            _count(after, r, 1, base_heap, heap, of)
