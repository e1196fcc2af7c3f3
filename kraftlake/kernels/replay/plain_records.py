"""A fast path for the records that make up nearly all of a log; `topic_records` replays all others.

A plain partition has at most three replicas and no lists but replicas, ISR and directories, so that its row holds all
of it. These functions change nothing where a record is not plain.
"""

from __future__ import annotations

import cython

from kraftlake.kernels.language import Bool, Bytes, Int64, IntRowsOut, inlined
from kraftlake.kernels.partition_row import DIRECTORIES, ISR, LEADER, SHAPE, WIDTH
from kraftlake.kernels.replay import change_state as change
from kraftlake.kernels.replay.change_state import Base, State
from kraftlake.kernels.replay.partition_bytes import home_number, read_int
from kraftlake.kernels.replay.partition_records import add_touched
from kraftlake.kernels.replay.row_lists import change_epochs, copy_row, slot_of


@inlined
def _parse_change(data: Bytes, p: Int64, end: Int64) -> tuple[Int64, Int64, Int64]:
    """A change of the ISR or the leader or both: the position of the ISR's members, their number, the leader.

    The position is 0 without an ISR and -1 for any other change; the leader is -2 if it stays.
    """
    members: Int64 = 0
    count: Int64 = 0
    leader: Int64 = -2
    if p + 4 > end:
        return -1, count, leader
    fields = cython.cast(Int64, data[p])
    p += 1
    if data[p] == 0:
        size = cython.cast(Int64, data[p + 1])
        count = cython.cast(Int64, data[p + 2]) - 1
        if count < 0 or count > WIDTH or size != 1 + 4 * count or p + 3 + 4 * count > end:
            return -1, count, leader
        members = p + 3
        p = members + 4 * count
        fields -= 1
    if fields == 1 and p + 6 == end and data[p] == 1 and data[p + 1] == 4:
        leader = read_int(data, p + 2)
        p += 6
        fields -= 1
    if fields != 0 or p != end:
        return -1, count, leader
    return members, count, leader


@inlined
def _write_change(rows: IntRowsOut, r: Int64, data: Bytes, members: Int64, count: Int64, leader: Int64) -> None:
    if members > 0:
        for i in range(WIDTH):
            rows[r, ISR + i] = read_int(data, members + 4 * i) if i < count else 0
        rows[r, SHAPE] = (rows[r, SHAPE] & 0xFF) | (count << 8)
    change_epochs(rows, r, leader)


@inlined
def plain_row_change(rows: IntRowsOut, r: Int64, data: Bytes, p: Int64, end: Int64) -> Bool:
    """Replay a PartitionChangeRecord on a row; `p` is at its tagged fields.

    False, and nothing done, if the record or the row is not plain.
    """
    if rows[r, SHAPE] < 0:
        return False
    members, count, leader = _parse_change(data, p, end)
    if members < 0:
        return False
    _write_change(rows, r, data, members, count, leader)
    return True


@inlined
def plain_change(data: Bytes, p: Int64, end: Int64, row: Int64, base: Base, state: State) -> Int64:
    """Replay a PartitionChangeRecord on the row at a place, see `Journal`; `p` is at its tagged fields."""
    if row >= len(base.rows):
        row -= len(base.rows)
        if not plain_row_change(state.fresh_rows, row, data, p, end):
            return change.OTHER
        state.fresh_flags[row] |= change.TOUCHED
        return change.DONE
    members, count, leader = _parse_change(data, p, end)
    if members < 0:
        return change.OTHER
    r = slot_of(row, state)
    if r < 0:
        if base.rows[row, SHAPE] < 0:
            return change.OTHER
        r = state.counts[change.N_TOUCHED]
        if r >= len(state.touched):
            return change.GROW
        add_touched(row, state)
        copy_row(base.rows, row, state.touched_rows, r)
    elif state.touched_rows[r, SHAPE] < 0:
        return change.OTHER
    _write_change(state.touched_rows, r, data, members, count, leader)
    state.touched_flags[r] |= change.TOUCHED
    return change.DONE


@inlined
def _parse_partition(data: Bytes, p: Int64, end: Int64) -> tuple[Int64, Int64, Int64]:
    """A PartitionRecord of version 1 or 2, from its replicas on: the leader's position, the numbers of replicas, ISR.

    The position is -1 if the record is not plain.
    """
    members: Int64 = 0
    replicas = cython.cast(Int64, data[p]) - 1
    if replicas < 1 or replicas > WIDTH or p + 1 + 4 * replicas >= end:
        return -1, replicas, members
    p += 1 + 4 * replicas
    members = cython.cast(Int64, data[p]) - 1
    if members < 0 or members > WIDTH or p + 4 * members + 16 * replicas + 17 != end:
        return -1, replicas, members
    q = p + 1 + 4 * members
    if data[q] != 1 or data[q + 1] != 1 or data[end - 1] != 0 or data[q + 14] != replicas + 1:
        return -1, replicas, members
    return q + 2, replicas, members


@inlined
def _write_partition(
    data: Bytes, at: Int64, numbers: Int64, replicas: Int64, members: Int64, row: Int64, state: State
) -> None:
    isr = at + 4 * replicas + 1
    ids = numbers + 13
    for i in range(WIDTH):
        if i < replicas:
            broker = read_int(data, at + 4 * i)
            state.fresh_rows[row, i] = broker
            state.fresh_rows[row, DIRECTORIES + i] = home_number(data, ids + 16 * i, broker, state)
        else:
            state.fresh_rows[row, i] = state.fresh_rows[row, DIRECTORIES + i] = 0
        state.fresh_rows[row, ISR + i] = read_int(data, isr + 4 * i) if i < members else 0
    for i in range(3):
        state.fresh_rows[row, LEADER + i] = read_int(data, numbers + 4 * i)
    state.fresh_rows[row, LEADER + 3] = 0
    state.fresh_rows[row, SHAPE] = replicas | members << 8


@inlined
def plain_partition(
    data: Bytes, p: Int64, end: Int64, topic: Int64, partition: Int64, topics: Int64, state: State
) -> Int64:
    """Replay a PartitionRecord of version 1 or 2 that follows the last one of its new topic; `p` is at the replicas."""
    row = state.counts[change.N_FRESH]
    created = topic - topics
    size: Int64 = state.sizes[topic]
    if size > 0 and state.firsts[created] + partition != row:
        return change.OTHER
    if p >= end or partition < 0:
        return change.OTHER
    numbers, replicas, members = _parse_partition(data, p, end)
    if numbers < 0:
        return change.OTHER
    if row >= len(state.fresh) or state.counts[change.N_DIRECTORIES] + WIDTH > len(state.directories):
        return change.GROW
    if replicas == WIDTH and members == WIDTH:  # most are: a copy without branches
        _write_partition(data, p + 1, numbers, WIDTH, WIDTH, row, state)
    else:
        _write_partition(data, p + 1, numbers, replicas, members, row, state)
    state.fresh[row, change.OF] = topic
    state.fresh[row, change.ID] = partition
    state.fresh_flags[row] = change.TOUCHED | change.DIRECTORIES_WRITTEN
    state.fresh[row, change.UNCLEAN] = state.fresh[row, change.ELIGIBLE] = 0
    if size == 0:
        state.firsts[created] = row - partition
        state.begins[topic] = row
    state.sizes[topic] = size + 1
    state.counts[change.N_FRESH] = row + 1
    return change.DONE
