"""States of partitions, as rows that lie anywhere, into the columns of a table, in two passes over them."""

from __future__ import annotations

from typing import Any

import numpy as np

from kraftlake.kernels.aot.compiled import compiled
from kraftlake.kernels.replay.row_lists import LEADER, SHAPE

US_IN_MS = 1000


@compiled
def fill_columns(states: Any, order: Any, base_heap: Any, heap: Any, used: Any, columns: Any) -> Any:
    """The numbers of the states that `order` (int64[n]) names, and where each of their lists begins.

    `states` has `topics`, `partitions`, `rows`, `begins`, `begin_times`, `ends` and `end_times`. `columns` has room for
    `topics`, `partitions`, `leaders`, `leader_epochs`, `partition_epochs`, `recoveries` (int32[n]), `begins`, `ends`
    and, in microseconds, `begin_times` and `end_times` (int64[n]), and `bounds` (int32[7, n + 1]). The topics of the
    states become 1 in `used` (uint8). Gives the numbers of negative `ends`, `begin_times` and `end_times`.
    """
    bounds = columns.bounds
    for which in range(7):
        bounds[which, 0] = 0
    still_so = begins_unknown = ends_unknown = 0
    for i in range(len(order)):
        r = order[i]
        topic = states.topics[r]
        columns.partitions[i] = states.partitions[r]
        columns.topics[i] = topic
        used[topic] = 1
        columns.leaders[i] = states.rows[r, LEADER]
        columns.leader_epochs[i] = states.rows[r, LEADER + 1]
        columns.partition_epochs[i] = states.rows[r, LEADER + 2]
        columns.recoveries[i] = states.rows[r, LEADER + 3]
        columns.begins[i] = states.begins[r]
        columns.ends[i] = states.ends[r]
        columns.begin_times[i] = states.begin_times[r] * US_IN_MS
        columns.end_times[i] = states.end_times[r] * US_IN_MS
        still_so += states.ends[r] < 0
        begins_unknown += states.begin_times[r] < 0
        ends_unknown += states.end_times[r] < 0
        shape = states.rows[r, SHAPE]
        if shape >= 0:
            replicas = shape & 0xFF
            bounds[0, i + 1] = bounds[0, i] + replicas
            bounds[1, i + 1] = bounds[1, i] + (shape >> 8)
            bounds[2, i + 1] = bounds[2, i] + replicas
            for which in range(3, 7):
                bounds[which, i + 1] = bounds[which, i]
            continue
        at = np.int64(states.rows[r, 0])
        for which in range(7):
            length = heap[at + which - len(base_heap)] if at >= len(base_heap) else base_heap[at + which]
            bounds[which, i + 1] = bounds[which, i] + length
    return still_so, begins_unknown, ends_unknown


@compiled
def fill_members(rows: Any, order: Any, base_heap: Any, heap: Any, bounds: Any, starts: Any, members: Any) -> None:
    """The members of the lists of the rows that `order` names: those of list `which` in `members` from `starts[which]`.

    `bounds` are those that `fill_columns` gives.
    """
    for i in range(len(order)):
        r = order[i]
        if rows[r, SHAPE] >= 0:
            for which in range(3):
                into = starts[which] + bounds[which, i]
                for k in range(bounds[which, i + 1] - bounds[which, i]):
                    members[into + k] = rows[r, 3 * which + k]
            continue
        at = np.int64(rows[r, 0]) + 7
        in_base = at < len(base_heap)
        if not in_base:
            at -= len(base_heap)
        for which in range(7):
            into = starts[which] + bounds[which, i]
            count = bounds[which, i + 1] - bounds[which, i]
            for k in range(count):
                members[into + k] = base_heap[at + k] if in_base else heap[at + k]
            at += count


@compiled
def renumber(numbers: Any, of: Any) -> None:
    """Put `of[n]` in the place of each of the numbers n."""
    for i in range(len(numbers)):
        numbers[i] = of[numbers[i]]
