"""Folds the versions of partitions after single records into their changes by metadata deltas."""

from __future__ import annotations

from typing import Any

import numpy as np

from kraftlake.kernels.aot.compiled import compiled, inlined
from kraftlake.kernels.columns.broker_changes import HAD, HAS, WRITTEN
from kraftlake.kernels.partition_row import COLUMNS, LEADER, SHAPE
from kraftlake.kernels.replay.change_state import BLOCK, DIRECTORIES_WRITTEN
from kraftlake.kernels.replay.partition_journal import DID_ELIGIBLE, DID_UNCLEAN


@inlined
def _is_same_state(ones: Any, r: Any, others: Any, p: Any, base_heap: Any, heap: Any) -> bool:
    """Whether two rows hold the same state, ignoring where their lists lie in the heap."""
    if ones[r, LEADER + 2] != others[p, LEADER + 2]:  # the partition epoch, which most changes raise
        return False
    first = 0
    if ones[r, SHAPE] < 0 and others[p, SHAPE] < 0:
        first = 1
        at, to = np.int64(ones[r, 0]), np.int64(others[p, 0])
        size, k = np.int64(7), np.int64(0)
        while k < size:
            one = heap[at + k - len(base_heap)] if at >= len(base_heap) else base_heap[at + k]
            other = heap[to + k - len(base_heap)] if to >= len(base_heap) else base_heap[to + k]
            if one != other:
                return False
            if k < 7:
                size += one
            k += 1
    for i in range(first, COLUMNS):
        if ones[r, i] != others[p, i]:
            return False
    return True


@compiled
def fold_versions(versions: Any, offsets: Any, times: Any, deltas: Any, now: Any, base_heap: Any, heap: Any,
                  changes: Any) -> Any:  # fmt: skip
    """Fold versions of partitions into changes: one for each partition and offset at which records take effect.

    `versions` has `places`, `rows`, `removed` and `did` (uint8) in the order of the log; `offsets`, `times` and
    `deltas` (int64, ascending but for the times) say where each takes effect. `now` has by place the `rows`, whether
    the partition is `there` (uint8), the offset and time at which its state began (`since`, `since_times`), and the
    number of its newest change (`newest`, int64; anything at first); `touched` (int64[1]) lends room. All but the last
    two are moved on.

    `changes` has room for as many changes as there are versions: `places`, `offsets`, `times`, `deltas`, `last` (int64;
    the last of its versions), the rows `before`, `since` and `since_times` of these, `flags` (uint8: HAD, HAS,
    WRITTEN), `altered` (uint8; 0 where the state after it is the one before), and by `elections` (int64[n, 2]) the
    number of elections that were unclean, or from the eligible leader replicas. They are in the order of their first
    versions. Gives their number, and the number of those whose partition has an earlier one in the same delta.
    """
    count, repeated, ahead = np.int64(0), np.int64(0), 0
    for i in range(len(versions.places)):
        if i >= ahead:
            ahead = min(i + BLOCK, len(versions.places))
            for k in range(i, ahead):  # all of these rows come from memory at the same time
                near = np.uint64(versions.places[np.uint64(k)])
                now.touched[0] = now.newest[near] + now.since[near] + now.rows[near, 0] + now.rows[near, SHAPE]
        place, offset = versions.places[i], offsets[i]
        at = now.newest[place]
        known = 0 <= at < count and changes.places[at] == place
        if not known or changes.offsets[at] != offset:
            if known and changes.deltas[at] == deltas[i]:
                repeated += 1
            at = count
            count += 1
            now.newest[place] = at
            changes.places[at], changes.deltas[at] = place, deltas[i]
            changes.offsets[at], changes.times[at] = offset, times[i]
            changes.flags[at] = HAD if now.there[place] != 0 else 0
            changes.since[at], changes.since_times[at] = now.since[place], now.since_times[place]
            changes.elections[at, 0] = changes.elections[at, 1] = 0
            for column in range(COLUMNS):
                changes.before[at, column] = now.rows[place, column]
        changes.last[at] = i
        flags = changes.flags[at] & (HAD | WRITTEN)
        if versions.did[i] & DIRECTORIES_WRITTEN:
            flags |= WRITTEN
        if versions.removed[i] == 0:
            flags |= HAS
        for column in range(COLUMNS):
            now.rows[place, column] = versions.rows[i, column]
        now.there[place] = 1 - versions.removed[i]
        changes.flags[at] = flags
        same = False
        if flags & HAD != 0 and flags & HAS != 0:
            same = _is_same_state(versions.rows, i, changes.before, at, base_heap, heap)
        changes.altered[at] = 0 if same else 1
        now.since[place] = changes.since[at] if same else offset
        now.since_times[place] = changes.since_times[at] if same else times[i]
        if versions.did[i] & DID_UNCLEAN:
            changes.elections[at, 0] += 1
        if versions.did[i] & DID_ELIGIBLE:
            changes.elections[at, 1] += 1
    return count, repeated
