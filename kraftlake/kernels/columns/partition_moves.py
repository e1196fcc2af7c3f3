"""Folds the versions of partitions, around single records, into their changes by metadata deltas."""

from __future__ import annotations

from typing import Any

import numpy as np

from kraftlake.kernels.columns.broker_changes import HAD, HAS, WRITTEN
from kraftlake.kernels.language import compiled, inlined
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
        size, k = 7, 0
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

    `versions` has `places`, the rows `before` and `after`, `removed` and `did` (uint8) in the order of the log;
    `offsets`, `times` and `deltas` (int64, ascending but for the times) say where each takes effect. `now` has by place
    whether the partition is `there` (uint8), the offset and time at which its state began (`since`, `since_times`), and
    the number of its newest change (`newest`, int64; anything at first); `touched` (int64[1]) lends room. All but the
    last two are moved on.

    `changes` has room for as many changes as there are versions: the `first` and the `last` of its versions (int64),
    `since` and `since_times` of the state before it, `flags` (uint8: HAD, HAS, WRITTEN), `altered` (uint8; 0 where the
    state after it is the one before), and the numbers of elections (int64) that were `unclean`, or from the `eligible`
    leader replicas. They are in the order of their first versions. Gives their number, and the number of those whose
    partition has an earlier one in the same delta.
    """
    count, repeated, ahead = 0, 0, 0
    for k in range(len(versions.places)):
        if k >= ahead:
            ahead = min(k + BLOCK, len(versions.places))
            for j in range(k, ahead):  # all of these come from memory at the same time
                near = np.uint64(versions.places[np.uint64(j)])
                now.touched[0] = now.newest[near] + now.since[near] + now.since_times[near] + now.there[near]
        i = np.uint64(k)
        place = np.uint64(versions.places[i])
        at = np.uint64(now.newest[place])
        first = np.uint64(changes.first[at]) if at < np.uint64(count) else i
        known = first != i and np.uint64(versions.places[first]) == place
        if not known or offsets[first] != offsets[i]:
            if known and deltas[first] == deltas[i]:
                repeated += 1
            at, first = np.uint64(count), i
            count += 1
            now.newest[place] = at
            changes.first[at] = k
            changes.flags[at] = HAD if now.there[place] != 0 else 0
            changes.since[at], changes.since_times[at] = now.since[place], now.since_times[place]
            changes.unclean[at] = changes.eligible[at] = 0
        changes.last[at] = k
        flags = changes.flags[at] & (HAD | WRITTEN)
        if versions.did[i] & DIRECTORIES_WRITTEN:
            flags |= WRITTEN
        if versions.removed[i] == 0:
            flags |= HAS
        now.there[place] = 1 - versions.removed[i]
        changes.flags[at] = flags
        same = False
        if flags & HAD != 0 and flags & HAS != 0:
            same = _is_same_state(versions.after, i, versions.before, first, base_heap, heap)
        changes.altered[at] = 0 if same else 1
        now.since[place] = changes.since[at] if same else offsets[i]
        now.since_times[place] = changes.since_times[at] if same else times[i]
        if versions.did[i] & DID_UNCLEAN:
            changes.unclean[at] += 1
        if versions.did[i] & DID_ELIGIBLE:
            changes.eligible[at] += 1
    return count, repeated
