"""The partitions that the records of a change have changed: their rows before and after it."""

from __future__ import annotations

from kraftlake.kernels.columns.change_buffers import HAD, HAS, WRITTEN, ChangedRows
from kraftlake.kernels.language import Int64, IntRows, IntRowsOut, Ints, compiled, inlined
from kraftlake.kernels.partition_row import COLUMNS
from kraftlake.kernels.replay import change_state as change
from kraftlake.kernels.replay.change_state import Base, State
from kraftlake.kernels.replay.journal import NO_PLACE
from kraftlake.kernels.replay.partition_records import copy_place, is_there
from kraftlake.kernels.replay.row_lists import copy_row, slot_of, touched_row


@inlined
def _least(numbers: Ints, count: Int64, wanted: Int64) -> Int64:
    """The first place among sorted numbers at which there is one of at least `wanted`."""
    low: Int64 = 0
    high: Int64 = count
    while low < high:
        middle = (low + high) // 2
        if numbers[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def _copy_base(row: Int64, base: Base, patched: Ints, patches: IntRows, rows: IntRowsOut, r: Int64) -> None:
    """Copy a row of the base, which may be patched."""
    k = _least(patched, len(patched), row)
    if k < len(patched) and patched[k] == row:
        copy_row(patches, k, rows, r)
    else:
        copy_row(base.rows, row, rows, r)


@inlined
def _partition_at(topic: Int64, row: Int64, base: Base, state: State) -> Int64:
    """The id of the partition at a row of the base."""
    if not base.sparse[topic]:
        return row - base.starts[topic]
    low: Int64 = 0
    high: Int64 = state.counts[change.N_ODD]
    while low < high:  # their places grow
        middle = (low + high) // 2
        if state.odd[middle, 2] < row:
            low = middle + 1
        else:
            high = middle
    return state.odd[low, 1]


@inlined
def _flags(place: Int64, base: Base, state: State) -> Int64:
    """The flags of a partition that records have changed."""
    if place >= len(base.rows):
        return state.fresh_flags[place - len(base.rows)]
    return state.touched_flags[slot_of(place, state)]


@inlined
def _elections(place: Int64, which: Int64, base: Base, state: State) -> Int64:
    """The number of elections of a kind of a partition that records have changed."""
    if place >= len(base.rows):
        return state.fresh[place - len(base.rows), which]
    return state.touched[slot_of(place, state), which]


@inlined
def _add(
    place: Int64, topic: Int64, count: Int64, base: Base, state: State, patched: Ints, patches: IntRows,
    found: ChangedRows,
) -> Int64:  # fmt: skip
    """Add the partition at a place, if records have changed it and it is there; gives how many there are."""
    flags = _flags(place, base, state)
    if not flags & change.TOUCHED or not state.alive[topic] or not is_there(place, base, state):
        return count
    found.topics[count] = topic
    found.flags[count] = HAS | WRITTEN if flags & change.DIRECTORIES_WRITTEN else HAS
    found.elections[count, 0] = _elections(place, change.UNCLEAN, base, state)
    found.elections[count, 1] = _elections(place, change.ELIGIBLE, base, state)
    copy_place(place, base, state, found.after, count)
    if place < len(base.rows):
        found.partitions[count] = _partition_at(topic, place, base, state)
    else:
        found.partitions[count] = state.fresh[place - len(base.rows), change.ID]
    if place < len(base.rows) and state.alive[topic] == change.ALIVE:
        found.flags[count] |= HAD
        _copy_base(place, base, patched, patches, found.before, count)
    else:
        copy_place(NO_PLACE, base, state, found.before, count)
    return count + 1


@inlined
def _add_removed(
    row: Int64, topic: Int64, count: Int64, base: Base, state: State, patched: Ints, patches: IntRows,
    found: ChangedRows,
) -> Int64:  # fmt: skip
    """Add the partition at a row of a topic that was removed; gives how many there are."""
    found.topics[count], found.partitions[count] = topic, _partition_at(topic, row, base, state)
    found.flags[count] = HAD
    found.elections[count, 0] = found.elections[count, 1] = 0
    _copy_base(row, base, patched, patches, found.before, count)
    for column in range(COLUMNS):
        found.after[count, column] = 0
    return count + 1


@compiled
def most_changed(base: Base, state: State) -> Int64:
    """The largest number of rows that `changed_rows` can return."""
    most: Int64 = state.counts[change.N_FRESH]
    for k in range(state.counts[change.N_TOUCHED]):
        if state.touched_flags[k] != 0:
            most += 1
    for topic in range(len(base.ids)):
        if state.alive[topic] == change.GONE or state.alive[topic] == change.AGAIN:
            most += base.starts[topic + 1] - base.starts[topic]
    return most


@compiled
def changed_rows(base: Base, state: State, patched: Ints, patches: IntRows, found: ChangedRows) -> Int64:
    """The partitions that records have changed and that are there, then those of removed topics; gives how many.

    `patched` and `patches` are those of the base. Row k of `found` gets the numbers of a topic and a partition (int32),
    `before` and `after` (int32[n, 14]; zeros where there is none), `flags` (HAD, HAS, WRITTEN), and in `elections` the
    numbers of unclean elections and of those from the ELR. It has room for `most_changed`.
    """
    count: Int64 = 0
    topics: Int64 = len(base.ids)
    for k in range(state.counts[change.N_TOUCHED]):
        if state.touched_flags[k] != 0:
            row = touched_row(k, state)
            owner = _least(base.starts, topics + 1, row + 1) - 1
            count = _add(row, owner, count, base, state, patched, patches, found)
    for r in range(state.counts[change.N_FRESH]):
        count = _add(len(base.rows) + r, state.fresh[r, change.OF], count, base, state, patched, patches, found)
    for topic in range(topics):
        if state.alive[topic] == change.GONE or state.alive[topic] == change.AGAIN:
            for row in range(base.starts[topic], base.starts[topic + 1]):
                count = _add_removed(row, topic, count, base, state, patched, patches, found)
    return count
