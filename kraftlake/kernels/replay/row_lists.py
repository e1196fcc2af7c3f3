"""Rows of a packed image as lists of numbers, and the change of one by a record."""

from __future__ import annotations

from typing import Any

import numpy as np

from kraftlake.kernels.language import compiled, inlined
from kraftlake.kernels.partition_row import COLUMNS, DIRECTORIES, HEAP_LISTS, ISR, LEADER, RARE, SHAPE, WIDTH
from kraftlake.kernels.replay.change_state import N_HEAP


@inlined
def load_row(rows: Any, r: Any, base_heap: Any, heap: Any, lists: Any, lengths: Any) -> bool:
    """The lists of a row; false when one is longer than `lists` has room for."""
    shape = rows[r, SHAPE]
    lengths[:] = 0
    if shape >= 0:
        lengths[0] = lengths[2] = shape & 0xFF
        lengths[1] = shape >> 8
        for i in range(WIDTH):
            lists[0, i] = rows[r, i]
            lists[1, i] = rows[r, ISR + i]
            lists[2, i] = rows[r, DIRECTORIES + i]
        return True
    at = rows[r, 0]
    source = base_heap
    if at >= len(base_heap):
        source = heap
        at -= len(base_heap)
    for which in range(HEAP_LISTS):
        lengths[which] = source[at + which]
        if lengths[which] > lists.shape[1]:
            return False
    at += HEAP_LISTS
    for which in range(HEAP_LISTS):
        for i in range(lengths[which]):
            lists[which, i] = source[at + i]
        at += lengths[which]
    return True


@inlined
def store_row(rows: Any, r: Any, numbers: Any, base_heap: Any, state: Any) -> None:
    """Write `state.lists` and `numbers` as a row."""
    lists, lengths = state.lists, state.lengths
    for i in range(4):
        rows[r, LEADER + i] = numbers[i]
    if lengths[0] <= WIDTH and lengths[1] <= WIDTH and lengths[3] + lengths[4] + lengths[5] + lengths[6] == 0:
        for i in range(WIDTH):
            rows[r, i] = lists[0, i] if i < lengths[0] else 0
            rows[r, ISR + i] = lists[1, i] if i < lengths[1] else 0
            rows[r, DIRECTORIES + i] = lists[2, i] if i < lengths[2] else 0
        rows[r, SHAPE] = lengths[0] | lengths[1] << 8
        return
    at = state.counts[N_HEAP]
    rows[r, 0] = len(base_heap) + at
    for i in range(1, LEADER):
        rows[r, i] = 0
    rows[r, SHAPE] = RARE
    for which in range(HEAP_LISTS):
        state.heap[at + which] = lengths[which]
    at += HEAP_LISTS
    for which in range(HEAP_LISTS):
        for i in range(lengths[which]):
            state.heap[at + i] = lists[which, i]
        at += lengths[which]
    state.counts[N_HEAP] = at


@inlined
def all_migrating(lists: Any, lengths: Any) -> bool:
    """Whether no directory was ever recorded."""
    for i in range(lengths[2]):
        if lists[2, i] != 0:
            return False
    return True


@inlined
def migrate(lists: Any, lengths: Any) -> None:
    """One MIGRATING for each replica."""
    lengths[2] = lengths[0]
    for i in range(lengths[0]):
        lists[2, i] = 0


@inlined
def merge(rows: Any, r: Any, numbers: Any, state: Any) -> bool:
    """Complete the change in `state.lists` and `numbers` by the state in `state.before`; false if it does not fit."""
    lists, lengths = state.lists, state.lengths
    before, before_lengths = state.before, state.before_lengths
    new_replicas, given = lengths[0] >= 0, lengths[2]
    for which in range(HEAP_LISTS):
        if lengths[which] < 0:
            lengths[which] = before_lengths[which]
            for i in range(before_lengths[which]):
                lists[which, i] = before[which, i]
    if given > 0 and new_replicas and given != lengths[0]:
        return False
    if all_migrating(lists, lengths):
        migrate(lists, lengths)
    if lengths[2] != lengths[0]:
        return False
    if numbers[0] == -2:
        numbers[0] = rows[r, LEADER]
        numbers[1] = rows[r, LEADER + 1]
    else:
        numbers[1] = np.int32(rows[r, LEADER + 1] + 1)
    numbers[2] = np.int32(rows[r, LEADER + 2] + 1)
    if numbers[3] == -1:
        numbers[3] = rows[r, LEADER + 3]
    return True


@compiled
def any_differs(rows: Any, others: Any) -> Any:
    """Whether two arrays of rows differ; stops at the first difference. 1 or 0."""
    for r in range(len(rows)):
        for i in range(COLUMNS):
            if rows[r, i] != others[r, i]:
                return 1
    return 0


@compiled
def any_differs_at(rows: Any, places: Any, values: Any, first: int, last: int) -> Any:
    """Whether `values` [first, last) differ from `rows` at `places`; stops at the first difference. 1 or 0."""
    for k in range(first, last):
        r = places[k]
        for i in range(COLUMNS):
            if rows[r, i] != values[k, i]:
                return 1
    return 0
