"""The local changes of one broker, from changed rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from kraftlake.kernels.language import compiled, inlined
from kraftlake.kernels.partition_row import LEADER, SHAPE
from kraftlake.kernels.replay.change_state import (
    DIRECTORIES_WRITTEN,
    N_FRESH,
    N_TOUCHED,
    TOUCHED,
)
from kraftlake.kernels.replay.row_lists import all_migrating, load_row


@inlined
def place_of(lists: Any, lengths: Any, broker: int) -> Any:
    """The first place of a broker among the replicas, or -1."""
    for i in range(lengths[0]):
        if lists[0, i] == broker:
            return i
    return -1


@compiled
def local_changes(base: Any, state: Any, patched: Any, broker: int, found: Any, counts: Any) -> None:
    """The changes of a broker that the touched and fresh rows make: see `TopicDelta.add_local_changes`.

    `found` (int32[5, n]) gets places: of deletes, leaders, elected leaders, followers and directories, `counts` how
    many. Fresh rows count from N_TOUCHED on. The first `patched` touched rows were in the base as they are in
    `state.patches`.
    """
    touched = state.counts[N_TOUCHED]
    lists, lengths, before, before_lengths = state.lists, state.lengths, state.before, state.before_lengths
    for k in range(touched + state.counts[N_FRESH]):
        fresh = k >= touched
        r = k - touched if fresh else k
        info = state.fresh_info if fresh else state.touched_info
        rows = state.fresh_rows if fresh else state.touched_rows
        if not info[r, 0] & TOUCHED:
            continue
        if rows[r, SHAPE] >= 0 and fresh:
            n = rows[r, SHAPE] & 0xFF
            hosted = False
            for i in range(n):
                hosted |= rows[r, i] == broker
            if not hosted:
                continue
        topic = state.fresh_topics[r] if fresh else np.searchsorted(base.starts, state.touched[r], side="right") - 1
        if not state.alive[topic]:
            continue
        load_row(rows, r, base.heap, state.heap, lists, lengths)
        place = place_of(lists, lengths, broker)
        old_place = -1
        old_epoch = old_leader_epoch = 0
        if not fresh:
            old_rows = patched if r < len(patched) else base.rows
            old = r if r < len(patched) else state.touched[r]
            load_row(old_rows, old, base.heap, state.heap, before, before_lengths)
            old_place = place_of(before, before_lengths, broker)
            old_leader_epoch, old_epoch = old_rows[old, LEADER + 1], old_rows[old, LEADER + 2]
        if place < 0:
            if old_place >= 0:
                found[0, counts[0]] = k
                counts[0] += 1
            continue
        if fresh or old_epoch != rows[r, LEADER + 2]:
            if rows[r, LEADER] != broker:
                found[3, counts[3]] = k
                counts[3] += 1
            else:
                found[1, counts[1]] = k
                counts[1] += 1
                if fresh or old_leader_epoch != rows[r, LEADER + 1]:
                    found[2, counts[2]] = k
                    counts[2] += 1
        moved = fresh
        if not fresh and old_place >= 0:
            both = all_migrating(lists, lengths) and all_migrating(before, before_lengths)
            written = (info[r, 0] & DIRECTORIES_WRITTEN) != 0
            moved = not both and (written or old_place != place)
        if moved:
            found[4, counts[4]] = k
            counts[4] += 1
