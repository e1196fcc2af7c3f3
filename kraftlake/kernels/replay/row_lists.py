"""Rows of a packed image as lists of numbers, and the change of one by a record."""

from __future__ import annotations

import cython

from kraftlake.kernels.language import (
    Bool,
    Int64,
    IntRows,
    IntRowsOut,
    Ints,
    Longs,
    LongsOut,
    compiled,
    inlined,
)
from kraftlake.kernels.partition_row import COLUMNS, DIRECTORIES, HEAP_LISTS, ISR, LEADER, RARE, SHAPE, WIDTH
from kraftlake.kernels.replay.change_state import N_HEAP, N_TOUCHED, OF, Base, State


@inlined
def copy_row(rows: IntRows, r: Int64, others: IntRowsOut, at: Int64) -> None:
    """Copy a row."""
    for i in range(COLUMNS):
        others[at, i] = rows[r, i]


@inlined
def slot_of(row: Int64, state: State) -> Int64:
    """The place of a row of the base among the touched ones, or -1."""
    return row if len(state.slots) == 0 else state.slots[row] - 1


@inlined
def touched_row(k: Int64, state: State) -> Int64:
    """The row of the base that a touched row is of."""
    return k if len(state.slots) == 0 else state.touched[k, OF]


@inlined
def _load_lists(source: Ints, at: Int64, lists: IntRowsOut, lengths: LongsOut) -> Int64:
    """The lists that stand in a heap from `at` on, if `lists` has room; gives how long the longest is."""
    longest: Int64 = 0
    for which in range(HEAP_LISTS):
        lengths[which] = source[at + which]
        longest = max(longest, lengths[which])
    if longest > lists.shape[1]:
        return longest
    at += HEAP_LISTS
    for which in range(HEAP_LISTS):
        for i in range(lengths[which]):
            lists[which, i] = source[at + i]
        at += lengths[which]
    return longest


@inlined
def load_row(rows: IntRows, r: Int64, base_heap: Ints, heap: Ints, lists: IntRowsOut, lengths: LongsOut) -> Int64:
    """The lists of a row, if `lists` has room for them; gives how long the longest is, if it is longer than WIDTH."""
    shape: Int64 = rows[r, SHAPE]
    if shape < 0:
        at: Int64 = rows[r, 0]
        if at < len(base_heap):
            return _load_lists(base_heap, at, lists, lengths)
        return _load_lists(heap, at - len(base_heap), lists, lengths)
    lengths[0] = lengths[2] = shape & 0xFF
    lengths[1] = shape >> 8
    for which in range(3, HEAP_LISTS):
        lengths[which] = 0
    for i in range(WIDTH):
        lists[0, i] = rows[r, i]
        lists[1, i] = rows[r, ISR + i]
        lists[2, i] = rows[r, DIRECTORIES + i]
    return 0


@inlined
def store_row(base: Base, state: State) -> None:
    """Write `state.lists` and `state.numbers` as a row, to `state.row[0]`."""
    for i in range(4):
        state.row[0, LEADER + i] = state.numbers[i]
    replicas, members, directories = state.lengths[0], state.lengths[1], state.lengths[2]
    others = state.lengths[3] + state.lengths[4] + state.lengths[5] + state.lengths[6]
    if replicas <= WIDTH and members <= WIDTH and others == 0:
        for i in range(WIDTH):
            state.row[0, i] = state.lists[0, i] if i < replicas else 0
            state.row[0, ISR + i] = state.lists[1, i] if i < members else 0
            state.row[0, DIRECTORIES + i] = state.lists[2, i] if i < directories else 0
        state.row[0, SHAPE] = replicas | members << 8
        return
    at = state.counts[N_HEAP]
    state.row[0, 0] = len(base.heap) + at
    for i in range(1, LEADER):
        state.row[0, i] = 0
    state.row[0, SHAPE] = RARE
    for which in range(HEAP_LISTS):
        state.heap[at + which] = state.lengths[which]
    at += HEAP_LISTS
    for which in range(HEAP_LISTS):
        for i in range(state.lengths[which]):
            state.heap[at + i] = state.lists[which, i]
        at += state.lengths[which]
    state.counts[N_HEAP] = at


@inlined
def all_migrating(lists: IntRows, lengths: Longs) -> Bool:
    """Whether no directory was ever recorded."""
    for i in range(lengths[2]):
        if lists[2, i] != 0:
            return False
    return True


@inlined
def migrate(state: State) -> None:
    """One MIGRATING for each replica."""
    state.lengths[2] = state.lengths[0]
    for i in range(state.lengths[0]):
        state.lists[2, i] = 0


@inlined
def change_epochs(rows: IntRowsOut, r: Int64, leader: Int64) -> None:
    """Raise a changed row's partition epoch, and its leader epoch where a leader is named (-2: none), even the same."""
    if leader != -2:
        rows[r, LEADER] = leader
        rows[r, LEADER + 1] = cython.cast(Int64, rows[r, LEADER + 1]) + 1
    rows[r, LEADER + 2] = cython.cast(Int64, rows[r, LEADER + 2]) + 1


@inlined
def merge(state: State) -> Bool:
    """Complete the change in `state.lists` and `numbers` by `state.row[0]`, whose lists are in `state.before`.

    False if the change does not fit.
    """
    new_replicas: Bool = state.lengths[0] >= 0
    given = state.lengths[2]
    for which in range(HEAP_LISTS):
        if state.lengths[which] < 0:
            state.lengths[which] = state.before_lengths[which]
            for i in range(state.before_lengths[which]):
                state.lists[which, i] = state.before[which, i]
    if given > 0 and new_replicas and given != state.lengths[0]:
        return False
    if all_migrating(state.lists, state.lengths):
        migrate(state)
    if state.lengths[2] != state.lengths[0]:
        return False
    change_epochs(state.row, 0, state.numbers[0])
    for i in range(3):
        state.numbers[i] = state.row[0, LEADER + i]
    if state.numbers[3] == -1:
        state.numbers[3] = state.row[0, LEADER + 3]
    return True


@inlined
def heap_at(base_heap: Ints, heap: Ints, at: Int64) -> Int64:
    """The number at an index of the base's heap or, after it, of the other one."""
    return base_heap[at] if at < len(base_heap) else heap[at - len(base_heap)]


@inlined
def _lists_differ(one: Int64, other: Int64, base_heap: Ints, heap: Ints) -> Bool:
    """Whether the lists differ that stand at two places of the heaps."""
    size: Int64 = HEAP_LISTS
    for which in range(HEAP_LISTS):
        size += heap_at(base_heap, heap, one + which)
    for i in range(size):
        if heap_at(base_heap, heap, one + i) != heap_at(base_heap, heap, other + i):
            return True
    return False


@inlined
def row_differs(rows: IntRows, r: Int64, others: IntRows, other: Int64, base_heap: Ints, heap: Ints) -> Bool:
    """Whether two rows hold different states, wherever their lists lie in the heaps."""
    if rows[r, LEADER + 2] != others[other, LEADER + 2]:  # the partition epoch, which most changes raise
        return True
    is_rare: Bool = rows[r, SHAPE] == RARE and others[other, SHAPE] == RARE
    for i in range(COLUMNS):
        if rows[r, i] != others[other, i] and not (is_rare and i == 0):
            return True
    return is_rare and rows[r, 0] != others[other, 0] and _lists_differ(rows[r, 0], others[other, 0], base_heap, heap)


@compiled
def any_differs(rows: IntRows, others: IntRows, base: Base, state: State) -> Bool:
    """Whether two arrays of rows differ; stops at the first difference."""
    for r in range(len(rows)):
        if row_differs(rows, r, others, r, base.heap, state.heap):
            return True
    return False


@compiled
def any_touched_differs(first: Int64, base: Base, state: State) -> Bool:
    """Whether the touched rows from `first` on differ from those of the base; stops at the first difference."""
    for k in range(first, state.counts[N_TOUCHED]):
        if row_differs(state.touched_rows, k, base.rows, touched_row(k, state), base.heap, state.heap):
            return True
    return False
