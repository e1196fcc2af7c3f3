"""A fast path for the records that make up nearly all of a log; `topic_records` replays all others.

A plain partition has at most three replicas and no lists but replicas, ISR and directories, so that its row holds all
of it. These functions change nothing where a record is not plain.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kraftlake.kernels.language import inlined
from kraftlake.kernels.partition_row import COLUMNS, DIRECTORIES, ISR, LEADER, SHAPE, WIDTH
from kraftlake.kernels.replay.change_state import (
    DIRECTORIES_WRITTEN,
    DONE,
    GROW,
    N_DIRECTORIES,
    N_FRESH,
    N_TOUCHED,
    OTHER,
    TOUCHED,
)
from kraftlake.kernels.replay.partition_bytes import home_number, read_int


@inlined
def _parse_change(data: Any, p: Any, end: int) -> Any:
    """A change of the ISR or the leader or both: the position of the ISR's members, their number, the leader.

    The position is 0 without an ISR and -1 for any other change; the leader is -2 if it stays.
    """
    if p + 4 > end:
        return -1, 0, -2
    fields = np.int64(data[np.uint64(p)])
    p += 1
    members, count, leader = 0, 0, -2
    if data[np.uint64(p)] == 0:
        count = np.int64(data[np.uint64(p + 2)]) - 1
        size = np.int64(data[np.uint64(p + 1)])
        if count < 0 or count > WIDTH or size != 1 + 4 * count or p + 3 + 4 * count > end:
            return -1, count, leader
        members = p + 3
        p = members + 4 * count
        fields -= 1
    if fields == 1 and p + 6 == end and data[np.uint64(p)] == 1 and data[np.uint64(p + 1)] == 4:
        leader = read_int(data, p + 2)
        p += 6
        fields -= 1
    if fields != 0 or p != end:
        return -1, count, leader
    return members, count, leader


@inlined
def _write_change(rows: Any, r: Any, data: Any, members: Any, count: Any, leader: Any) -> None:
    if members > 0:
        for i in range(WIDTH):
            rows[r, ISR + i] = read_int(data, members + 4 * i) if i < count else 0
        rows[r, SHAPE] = (rows[r, SHAPE] & 0xFF) | (count << 8)
    if leader != -2:
        rows[r, LEADER] = leader
        rows[r, LEADER + 1] = np.int32(rows[r, LEADER + 1] + 1)
    rows[r, LEADER + 2] = np.int32(rows[r, LEADER + 2] + 1)


@inlined
def plain_row_change(rows: Any, r: Any, data: Any, p: Any, end: int) -> bool:
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
def plain_change(data: Any, p: Any, end: int, base_row: Any, base: Any, state: Any) -> Any:
    """Replay a PartitionChangeRecord on a row of the base; `p` is at its tagged fields."""
    row = np.uint64(base_row)
    if len(state.dense_flags) > 0:
        if not plain_row_change(state.dense_rows, row, data, p, end):
            return OTHER
        state.dense_flags[row] |= TOUCHED
        return DONE
    members, count, leader = _parse_change(data, p, end)
    if members < 0:
        return OTHER
    r = np.int64(state.slots[row]) - 1
    if r < 0:
        if base.rows[row, SHAPE] < 0:
            return OTHER
        r = state.counts[N_TOUCHED]
        if r >= len(state.touched):
            return GROW
        state.counts[N_TOUCHED] = r + 1
        state.slots[row] = r + 1
        state.touched[r] = base_row
        for i in range(COLUMNS):
            state.touched_rows[r, i] = base.rows[row, i]
        state.touched_info[r, 0] = state.touched_info[r, 1] = state.touched_info[r, 2] = 0
    elif state.touched_rows[r, SHAPE] < 0:
        return OTHER
    _write_change(state.touched_rows, np.uint64(r), data, members, count, leader)
    state.touched_info[r, 0] |= TOUCHED
    return DONE


@inlined
def _parse_partition(data: Any, p: Any, end: int) -> Any:
    """A PartitionRecord of version 1 or 2, from its replicas on: the leader's position, the numbers of replicas, ISR.

    The position is -1 if the record is not plain.
    """
    bad = -1
    replicas = np.int64(data[np.uint64(p)]) - 1
    if replicas < 1 or replicas > WIDTH or p + 1 + 4 * replicas >= end:
        return bad, replicas, 0
    p += 1 + 4 * replicas
    members = np.int64(data[np.uint64(p)]) - 1
    if members < 0 or members > WIDTH or p + 4 * members + 16 * replicas + 17 != end:
        return bad, replicas, members
    q = np.uint64(p + 1 + 4 * members)
    if data[q] != 1 or data[q + 1] != 1 or data[np.uint64(end - 1)] != 0:
        return bad, replicas, members
    if np.int64(data[q + 14]) != replicas + 1:
        return bad, replicas, members
    return np.int64(q) + 2, replicas, members


@inlined
def _write_partition(data: Any, at: Any, numbers: Any, replicas: Any, members: Any, row: Any, state: Any) -> None:
    rows = state.fresh_rows
    isr = at + 4 * replicas + 1
    ids = numbers + 13
    for i in range(WIDTH):
        if i < replicas:
            broker = read_int(data, at + 4 * i)
            rows[row, i] = broker
            rows[row, DIRECTORIES + i] = home_number(data, ids + 16 * i, broker, state)
        else:
            rows[row, i] = rows[row, DIRECTORIES + i] = 0
        rows[row, ISR + i] = read_int(data, isr + 4 * i) if i < members else 0
    for i in range(3):
        rows[row, LEADER + i] = read_int(data, numbers + 4 * i)
    rows[row, LEADER + 3] = 0
    rows[row, SHAPE] = replicas | members << 8


@inlined
def plain_partition(data: Any, p: Any, end: int, topic: Any, partition: Any, topics: int, state: Any) -> Any:
    """Replay a PartitionRecord of version 1 or 2 that follows the last one of its new topic; `p` is at the replicas."""
    counts = state.counts
    r = counts[N_FRESH]
    place, created = np.uint64(topic), np.uint64(topic - topics)
    size = np.int64(state.sizes[place])
    if size > 0 and np.int64(state.firsts[created]) + partition != r:
        return OTHER
    if p >= end or partition < 0:
        return OTHER
    numbers, replicas, members = _parse_partition(data, p, end)
    if numbers < 0:
        return OTHER
    if r >= len(state.fresh_topics) or counts[N_DIRECTORIES] + WIDTH > len(state.directories):
        return GROW
    row = np.uint64(r)
    if replicas == WIDTH and members == WIDTH:  # most are: a copy without branches
        _write_partition(data, p + 1, numbers, WIDTH, WIDTH, row, state)
    else:
        _write_partition(data, p + 1, numbers, replicas, members, row, state)
    state.fresh_topics[row] = topic
    state.fresh_partitions[row] = partition
    state.fresh_info[row, 0] = TOUCHED | DIRECTORIES_WRITTEN
    state.fresh_info[row, 1] = state.fresh_info[row, 2] = 0
    if size == 0:
        state.firsts[created] = r - partition
    state.sizes[place] = size + 1
    counts[N_FRESH] = r + 1
    return DONE
