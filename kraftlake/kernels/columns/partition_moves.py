"""What metadata deltas make of partitions, out of notes of what single records have made of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from kraftlake.kernels.aot.compiled import compiled, inlined
from kraftlake.kernels.columns.broker_changes import HAD, HAS, WRITTEN
from kraftlake.kernels.replay.change_state import BLOCK, DIRECTORIES_WRITTEN
from kraftlake.kernels.replay.partition_journal import DID_ELIGIBLE, DID_UNCLEAN
from kraftlake.kernels.replay.row_lists import COLUMNS, LEADER, SHAPE

_NO_LEADER = -1


@inlined
def _touch(now: Any, places: Any, first: int, last: int) -> None:
    """Look at what the partitions are that notes name, so that all of it comes from memory at the same time."""
    for i in range(first, last):
        place = np.uint64(places[np.uint64(i)])
        now.touched[0] = now.told[place] + now.rows[place, 0] + now.rows[place, SHAPE]


@compiled
def move_on(notes: Any, deltas: Any, now: Any, moved: Any) -> Any:
    """Move what partitions are on over notes, and tell each partition's move within each delta; gives their number.

    `notes` has `places`, `rows`, `removed` and `did` (uint8) in the order of the log, `deltas` (int64) the numbers of
    their deltas, ascending. `now` has by place the rows, whether the partition is `there` (uint8), and where its newest
    move was told (`told`, int64; anything at first). `moved` has room for as many moves as there are notes: `places`,
    `deltas`, the rows `before` and `after`, `flags` (uint8: HAD, HAS, WRITTEN), and by `elections` (int64[n, 2]) how
    many were unclean or from the eligible leader replicas. They are in the order of their first notes.
    """
    count, ahead = np.int64(0), 0
    for i in range(len(notes.places)):
        if i >= ahead:
            ahead = min(i + BLOCK, len(notes.places))
            _touch(now, notes.places, i, ahead)
        place, delta = notes.places[i], deltas[i]
        at = now.told[place]
        if at < 0 or at >= count or moved.places[at] != place or moved.deltas[at] != delta:
            at = count
            count += 1
            now.told[place] = at
            moved.places[at], moved.deltas[at] = place, delta
            moved.flags[at] = HAD if now.there[place] != 0 else 0
            moved.elections[at, 0] = moved.elections[at, 1] = 0
            for column in range(COLUMNS):
                moved.before[at, column] = now.rows[place, column]
        for column in range(COLUMNS):
            value = notes.rows[i, column]
            moved.after[at, column] = value
            now.rows[place, column] = value
        flags = moved.flags[at] & (HAD | WRITTEN)
        if notes.did[i] & DIRECTORIES_WRITTEN:
            flags |= WRITTEN
        if notes.removed[i] == 0:
            flags |= HAS
        now.there[place] = 1 - notes.removed[i]
        moved.flags[at] = flags
        if notes.did[i] & DID_UNCLEAN:
            moved.elections[at, 0] += 1
        if notes.did[i] & DID_ELIGIBLE:
            moved.elections[at, 1] += 1
    return count


@inlined
def _preferred(rows: Any, r: Any, base_heap: Any, heap: Any) -> Any:
    """The first replica of a row, or none."""
    at = np.int64(rows[r, 0])
    if rows[r, SHAPE] >= 0:
        return at if rows[r, SHAPE] & 0xFF else np.int64(_NO_LEADER)
    if at >= len(base_heap):
        at -= len(base_heap)
        return np.int64(heap[at + 7]) if heap[at] > 0 else np.int64(_NO_LEADER)
    return np.int64(base_heap[at + 7]) if base_heap[at] > 0 else np.int64(_NO_LEADER)


@compiled
def count_on(notes: Any, deltas: Any, now: Any, base_heap: Any, heap: Any, changes: Any) -> None:
    """Move what partitions are on over notes, and add to the deltas' `changes` what that makes of the counts.

    The first three are those of `move_on`. `changes` (int64[d, 3]) is by how much the numbers of partitions, of those
    without a leader and of those that another than their first replica leads, or nobody, grow within each delta.
    """
    for i in range(len(notes.places)):
        place, delta = notes.places[i], deltas[i]
        if now.there[place] != 0:
            leader = now.rows[place, LEADER]
            changes[delta, 0] -= 1
            changes[delta, 1] -= leader == _NO_LEADER
            changes[delta, 2] -= leader != _preferred(now.rows, place, base_heap, heap)
        for column in range(COLUMNS):
            now.rows[place, column] = notes.rows[i, column]
        now.there[place] = 1 - notes.removed[i]
        if notes.removed[i] == 0:
            leader = notes.rows[i, LEADER]
            changes[delta, 0] += 1
            changes[delta, 1] += leader == _NO_LEADER
            changes[delta, 2] += leader != _preferred(notes.rows, i, base_heap, heap)
