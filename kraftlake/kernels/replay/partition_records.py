"""Partition and partition change records of every kind, replayed on rows; `plain_records` has a faster way for most."""

from __future__ import annotations

from kraftlake.kernels.language import Bool, Bytes, Int64, IntRowsOut, inlined
from kraftlake.kernels.partition_row import COLUMNS
from kraftlake.kernels.record_types import CHANGE
from kraftlake.kernels.replay.change_state import (
    DIRECTORIES_WRITTEN,
    DONE,
    GROW,
    N_FRESH,
    N_ODD,
    N_TOUCHED,
    STOPPED,
    TOUCHED,
    Base,
    State,
)
from kraftlake.kernels.replay.indexes import free_place, mix
from kraftlake.kernels.replay.journal import NO_PLACE
from kraftlake.kernels.replay.partition_bytes import read_change, read_int, read_partition
from kraftlake.kernels.replay.row_lists import all_migrating, copy_row, load_row, merge, migrate, store_row


@inlined
def find_fresh(state: State, topic: Int64, partition: Int64, topics: Int64) -> Int64:
    """The fresh row of a partition, or -1."""
    r: Int64 = 0
    if topic >= topics:
        r = state.firsts[topic - topics] + partition
        if 0 <= r < state.counts[N_FRESH] and state.fresh_topics[r] == topic and state.fresh_partitions[r] == partition:
            return r
    if state.counts[N_ODD] == 0:
        return -1
    mask: Int64 = len(state.fresh_index) - 1
    at: Int64 = mix(topic, partition) & mask
    while state.fresh_index[at] != 0:
        r = state.fresh_index[at] - 1
        if state.fresh_topics[r] == topic and state.fresh_partitions[r] == partition:
            return r
        at = (at + 1) & mask
    return -1


@inlined
def place_of(data: Bytes, p: Int64, topic: Int64, base: Base, state: State) -> Int64:
    """The place of the partition that the record at `p` names, see `Journal`, or NO_PLACE."""
    partition: Int64 = read_int(data, p + 3)
    topics: Int64 = len(base.ids)
    if topic < topics and 0 <= partition < base.starts[topic + 1] - base.starts[topic]:
        return base.starts[topic] + partition
    at = find_fresh(state, topic, partition, topics)
    return NO_PLACE if at < 0 else len(base.rows) + at


@inlined
def copy_place(place: Int64, base: Base, state: State, rows: IntRowsOut, r: Int64) -> None:
    """Copy the row at a place, zeros for NO_PLACE: see `Journal`."""
    if place == NO_PLACE:
        for i in range(COLUMNS):
            rows[r, i] = 0
    elif place >= len(base.rows):
        copy_row(state.fresh_rows, place - len(base.rows), rows, r)
    elif len(state.dense_flags) > 0:
        copy_row(state.dense_rows, place, rows, r)
    elif state.slots[place] > 0:
        copy_row(state.touched_rows, state.slots[place] - 1, rows, r)
    else:
        copy_row(base.rows, place, rows, r)


@inlined
def _add_fresh(state: State, topic: Int64, partition: Int64, topics: Int64) -> Int64:
    r = state.counts[N_FRESH]
    state.counts[N_FRESH] += 1
    state.fresh_topics[r] = topic
    state.fresh_partitions[r] = partition
    state.fresh_info[r, 0] = state.fresh_info[r, 1] = state.fresh_info[r, 2] = 0
    state.sizes[topic] += 1
    if topic >= topics and state.sizes[topic] == 1:
        state.firsts[topic - topics] = r - partition
    elif topic < topics or state.firsts[topic - topics] + partition != r:
        state.fresh_index[free_place(state.fresh_index, mix(topic, partition))] = r + 1
        state.counts[N_ODD] += 1
    return r


@inlined
def add_touched(row: Int64, state: State) -> Int64:
    """Make a touched row, yet without its numbers, for a row of the base that has none; there is room for it."""
    r = state.counts[N_TOUCHED]
    state.counts[N_TOUCHED] = r + 1
    state.slots[row] = r + 1
    state.touched[r] = row
    state.touched_info[r, 0] = state.touched_info[r, 1] = state.touched_info[r, 2] = 0
    return r


@inlined
def _elections(info: IntRowsOut, column: Int64, r: Int64, recovery: Int64, leader: Int64, state: State) -> None:
    """Count an unclean election and one from the ELR, in two columns of `info`."""
    if recovery == 1:
        info[r, column] += 1
    for i in range(state.before_lengths[5]):
        if state.before[5, i] == leader:
            info[r, column + 1] += 1
            break


@inlined
def _complete(key: Int64, place: Int64, base: Base, state: State) -> Bool:
    """Complete the record read into `state.lists` and `numbers` by the row at a place; false if it doesn't fit."""
    if place != NO_PLACE:
        copy_place(place, base, state, state.row, 0)
        if not load_row(state.row, 0, base.heap, state.heap, state.before, state.before_lengths):
            return False
    if key == CHANGE:
        return merge(state)
    directories = state.lengths[2]
    if all_migrating(state.lists, state.lengths) and (directories == 0 or directories == state.lengths[0]):
        migrate(state)
    return state.lengths[2] == state.lengths[0]


@inlined
def replay_partition(
    data: Bytes, p: Int64, end: Int64, key: Int64, version: Int64, topic: Int64, base: Base, state: State
) -> Int64:
    """Replay a PartitionRecord or PartitionChangeRecord of a topic; `p` is at the partition id."""
    topics: Int64 = len(base.ids)
    partition: Int64 = read_int(data, p)
    place: Int64 = NO_PLACE
    r: Int64 = -1
    if topic < topics and base.sparse[topic]:
        return STOPPED
    in_base: Bool = topic < topics and 0 <= partition < base.starts[topic + 1] - base.starts[topic]
    if in_base:
        place = base.starts[topic] + partition
        r = state.slots[place] - 1 if len(state.dense_flags) == 0 else place
        if r < 0 and state.counts[N_TOUCHED] >= len(state.touched):
            return GROW
    else:
        r = find_fresh(state, topic, partition, topics)
        if partition < 0 or (key == CHANGE and r < 0):
            return STOPPED
        if r >= 0:
            place = len(base.rows) + r
        elif state.counts[N_FRESH] >= len(state.fresh_topics) or 2 * state.counts[N_ODD] >= len(state.fresh_index):
            return GROW
    good: Bool = False
    if key == CHANGE:
        good = read_change(data, p + 20, end, version, state)
    else:
        good = read_partition(data, p + 20, end, version, state)
    if not good:
        return STOPPED
    leader: Int64 = state.numbers[0]
    recovery: Int64 = state.numbers[3]
    flags: Int64 = TOUCHED | DIRECTORIES_WRITTEN if state.lengths[2] >= 0 else TOUCHED
    if not _complete(key, place, base, state) or (state.numbers[3] != 0 and state.numbers[3] != 1):
        return STOPPED
    store_row(base, state)
    if not in_base:
        if r < 0:
            r = _add_fresh(state, topic, partition, topics)
        copy_row(state.row, 0, state.fresh_rows, r)
        state.fresh_info[r, 0] |= flags
        if place != NO_PLACE:
            _elections(state.fresh_info, 1, r, recovery, leader, state)
    elif len(state.dense_flags) > 0:
        copy_row(state.row, 0, state.dense_rows, r)
        state.dense_flags[r] |= flags
        _elections(state.dense_elections, 0, r, recovery, leader, state)
    else:
        if r < 0:
            r = add_touched(place, state)
        copy_row(state.row, 0, state.touched_rows, r)
        state.touched_info[r, 0] |= flags
        _elections(state.touched_info, 1, r, recovery, leader, state)
    return DONE
