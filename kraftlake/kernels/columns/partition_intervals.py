"""The intervals in which partitions were what they were, out of notes of what records have made of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from kraftlake.kernels.aot.compiled import compiled, inlined
from kraftlake.kernels.replay.change_state import LONGEST
from kraftlake.kernels.replay.row_lists import COLUMNS, SHAPE

NOT_OPEN = -1
"""Where a partition that is not there begins."""


@inlined
def _is_same(ones: Any, r: Any, others: Any, p: Any, base_heap: Any, heap: Any) -> bool:
    """Whether two rows hold the same state, be it that their lists lie elsewhere in the heap."""
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
                size += min(one, LONGEST)
            k += 1
    for i in range(first, COLUMNS):
        if ones[r, i] != others[p, i]:
            return False
    return True


@compiled
def end_intervals(notes: Any, offsets: Any, times: Any, repeats: Any, base_heap: Any, heap: Any, now: Any,
                  ended: Any) -> Any:  # fmt: skip
    """End the states that the notes change and begin what they change them to; gives how many have ended.

    `notes` has `places`, `rows` and `removed` (uint8) in the order of the log, no two of one place at one of `offsets`
    (int64), which with `times` is where they take effect. A note of `repeats` (uint8) which says what is so changes
    nothing. `now` has the rows that are open and where they begin (`begins`, `begin_times`), by place: NOT_OPEN for
    what is not there. `ended` has room for as many states as there are notes.
    """
    count = 0
    for i in range(len(notes.places)):
        place = notes.places[i]
        begin = now.begins[place]
        if begin != NOT_OPEN:
            if repeats[i] != 0 and _is_same(notes.rows, i, now.rows, place, base_heap, heap):
                continue
            if begin != offsets[i]:
                ended.places[count] = place
                for column in range(COLUMNS):
                    ended.rows[count, column] = now.rows[place, column]
                ended.begins[count] = begin
                ended.begin_times[count] = now.begin_times[place]
                ended.ends[count] = offsets[i]
                ended.end_times[count] = times[i]
                count += 1
        if notes.removed[i] != 0:
            now.begins[place] = NOT_OPEN
            continue
        for column in range(COLUMNS):
            now.rows[place, column] = notes.rows[i, column]
        now.begins[place] = offsets[i]
        now.begin_times[place] = times[i]
    return count
