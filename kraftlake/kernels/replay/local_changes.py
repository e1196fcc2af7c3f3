"""The local changes of one broker, from changed rows."""

from __future__ import annotations

from kraftlake.kernels.language import Bool, Int64, IntRows, IntRowsOut, Ints, Longs, LongsOut, compiled, inlined
from kraftlake.kernels.partition_row import LEADER, SHAPE
from kraftlake.kernels.replay.change_state import (
    ABSENT,
    ALIVE,
    DIRECTORIES_WRITTEN,
    N_FRESH,
    N_TOUCHED,
    TOUCHED,
    Base,
    State,
)
from kraftlake.kernels.replay.row_lists import all_migrating, copy_row, load_row


@inlined
def place_of(lists: IntRows, lengths: Longs, broker: Int64) -> Int64:
    """The first place of a broker among the replicas, or -1."""
    for i in range(lengths[0]):
        if lists[0, i] == broker:
            return i
    return -1


@inlined
def _topic_of(starts: Ints, row: Int64) -> Int64:
    """The number of the topic of a row of the base."""
    first: Int64 = 0
    last: Int64 = len(starts) - 1
    while last - first > 1:
        middle = (first + last) >> 1
        if starts[middle] <= row:
            first = middle
        else:
            last = middle
    return first


@inlined
def _may_host(rows: IntRows, r: Int64, broker: Int64) -> Bool:
    """Whether the broker is among the replicas of a row, or its lists are in the heap."""
    if rows[r, SHAPE] < 0:
        return rows[r, SHAPE] != ABSENT
    for i in range(rows[r, SHAPE] & 0xFF):
        if rows[r, i] == broker:
            return True
    return False


@inlined
def _add(found: IntRowsOut, counts: LongsOut, kind: Int64, place: Int64) -> None:
    found[kind, counts[kind]] = place
    counts[kind] += 1


@compiled
def local_changes(
    base: Base, state: State, patched: IntRows, broker: Int64, found: IntRowsOut, counts: LongsOut
) -> None:
    """The changes of a broker that the touched and fresh rows make: see `TopicDelta.add_local_changes`.

    `found` (int32[5, n]) gets places: of deletes, leaders, elected leaders, followers and directories, `counts` how
    many. Fresh rows count from N_TOUCHED on. The first `patched` touched rows were in the base as they are in
    `state.patches`.
    """
    touched = state.counts[N_TOUCHED]
    topic: Int64 = 0
    for k in range(touched + state.counts[N_FRESH]):
        fresh: Bool = k >= touched
        if fresh:
            r = k - touched
            flags: Int64 = state.fresh_info[r, 0]
            if flags & TOUCHED == 0 or not _may_host(state.fresh_rows, r, broker):
                continue
            topic = state.fresh_topics[r]
            copy_row(state.fresh_rows, r, state.row, 1)
        else:
            r = k
            flags = state.touched_info[r, 0]
            if flags & TOUCHED == 0 or state.touched_rows[r, SHAPE] == ABSENT:
                continue
            row: Int64 = state.touched[r]
            if row < base.starts[topic] or row >= base.starts[topic + 1]:  # few: rows are mostly touched in order
                topic = _topic_of(base.starts, row)
            copy_row(state.touched_rows, r, state.row, 1)
        if not state.alive[topic]:
            continue
        new: Bool = fresh or state.alive[topic] != ALIVE
        load_row(state.row, 1, base.heap, state.heap, state.lists, state.lengths)
        place = place_of(state.lists, state.lengths, broker)
        old_place: Int64 = -1
        if not new:
            if r < len(patched):
                copy_row(patched, r, state.row, 0)
            else:
                copy_row(base.rows, state.touched[r], state.row, 0)
            load_row(state.row, 0, base.heap, state.heap, state.before, state.before_lengths)
            old_place = place_of(state.before, state.before_lengths, broker)
        if place < 0:
            if old_place >= 0:
                _add(found, counts, 0, k)
            continue
        if new or state.row[0, LEADER + 2] != state.row[1, LEADER + 2]:
            if state.row[1, LEADER] != broker:
                _add(found, counts, 3, k)
            else:
                _add(found, counts, 1, k)
                if new or state.row[0, LEADER + 1] != state.row[1, LEADER + 1]:
                    _add(found, counts, 2, k)
        if not new and (old_place < 0 or (old_place == place and flags & DIRECTORIES_WRITTEN == 0)):
            continue
        if new or not (all_migrating(state.lists, state.lengths) and all_migrating(state.before, state.before_lengths)):
            _add(found, counts, 4, k)
