"""Partition and partition change records of every kind, replayed on rows; `plain_records` has a faster way for most."""

from __future__ import annotations

from kraftlake.kernels.language import Bool, Bytes, Int64, IntRowsOut, inlined
from kraftlake.kernels.partition_row import COLUMNS, HEAP_LISTS, SHAPE
from kraftlake.kernels.record_types import CHANGE
from kraftlake.kernels.replay import change_state as change
from kraftlake.kernels.replay.change_state import Base, State
from kraftlake.kernels.replay.indexes import free_place, mix
from kraftlake.kernels.replay.journal import NO_PLACE
from kraftlake.kernels.replay.partition_bytes import read_change, read_int, read_partition
from kraftlake.kernels.replay.row_lists import all_migrating, copy_row, load_row, merge, migrate, slot_of, store_row


@inlined
def _find_odd(topic: Int64, partition: Int64, state: State) -> Int64:
    """The place of a partition that does not stand where its id says, or NO_PLACE."""
    mask: Int64 = len(state.odd_index) - 1
    at: Int64 = mix(topic, partition) & mask
    while state.odd_index[at] != 0:
        k: Int64 = state.odd_index[at] - 1
        if state.odd[k, 0] == topic and state.odd[k, 1] == partition:
            return state.odd[k, 2]
        at = (at + 1) & mask
    return NO_PLACE


@inlined
def place_of(topic: Int64, partition: Int64, base: Base, state: State) -> Int64:
    """The place of a partition, see `Journal`, or NO_PLACE."""
    topics: Int64 = len(base.ids)
    if topic >= topics:
        r: Int64 = state.firsts[topic - topics] + partition
        if (
            0 <= r < state.counts[change.N_FRESH]
            and state.fresh[r, change.OF] == topic
            and state.fresh[r, change.ID] == partition
        ):
            return len(base.rows) + r
    elif not base.sparse[topic] and 0 <= partition < base.starts[topic + 1] - base.starts[topic]:
        return base.starts[topic] + partition
    return NO_PLACE if state.counts[change.N_ODD] == 0 else _find_odd(topic, partition, state)


@inlined
def shape_at(place: Int64, base: Base, state: State) -> Int64:
    """The shape of the row at a place."""
    if place >= len(base.rows):
        return state.fresh_rows[place - len(base.rows), SHAPE]
    r = slot_of(place, state)
    return state.touched_rows[r, SHAPE] if r >= 0 else base.rows[place, SHAPE]


@inlined
def is_there(place: Int64, base: Base, state: State) -> Bool:
    """Whether there is a partition at a place, which may be NO_PLACE."""
    return place != NO_PLACE and shape_at(place, base, state) != change.ABSENT


@inlined
def copy_place(place: Int64, base: Base, state: State, rows: IntRowsOut, r: Int64) -> None:
    """Copy the row at a place, zeros for NO_PLACE: see `Journal`."""
    if place == NO_PLACE:
        for i in range(COLUMNS):
            rows[r, i] = 0
    elif place >= len(base.rows):
        copy_row(state.fresh_rows, place - len(base.rows), rows, r)
    elif slot_of(place, state) >= 0:
        copy_row(state.touched_rows, slot_of(place, state), rows, r)
    else:
        copy_row(base.rows, place, rows, r)


@inlined
def _add_fresh(state: State, topic: Int64, partition: Int64, base: Base) -> Int64:
    topics: Int64 = len(base.ids)
    r = state.counts[change.N_FRESH]
    state.counts[change.N_FRESH] += 1
    state.fresh[r, change.OF] = topic
    state.fresh[r, change.ID] = partition
    state.fresh_flags[r] = state.fresh[r, change.UNCLEAN] = state.fresh[r, change.ELIGIBLE] = 0
    of_base: Int64 = base.starts[topic + 1] - base.starts[topic] if topic < topics else 0
    if state.sizes[topic] == of_base:
        state.begins[topic] = r
    state.sizes[topic] += 1
    if topic >= topics and state.sizes[topic] == 1 and partition >= 0:
        state.firsts[topic - topics] = r - partition
    elif topic < topics or state.firsts[topic - topics] + partition != r:
        k = state.counts[change.N_ODD]
        state.odd[k, 0], state.odd[k, 1], state.odd[k, 2] = topic, partition, len(base.rows) + r
        state.odd_index[free_place(state.odd_index, mix(topic, partition))] = k + 1
        state.counts[change.N_ODD] = k + 1
    return r


@inlined
def add_touched(row: Int64, state: State) -> Int64:
    """Make a touched row, yet without its numbers, for a row of the base that has none; there is room for it."""
    r = state.counts[change.N_TOUCHED]
    state.counts[change.N_TOUCHED] = r + 1
    state.slots[row] = r + 1
    state.touched[r, change.OF] = row
    state.touched_flags[r] = state.touched[r, change.UNCLEAN] = state.touched[r, change.ELIGIBLE] = 0
    return r


@inlined
def _elections(info: IntRowsOut, r: Int64, recovery: Int64, leader: Int64, state: State) -> None:
    """Count an unclean election and one from the ELR, in a row of `touched` or `fresh`."""
    if recovery == 1:
        info[r, change.UNCLEAN] += 1
    for i in range(state.before_lengths[5]):
        if state.before[5, i] == leader:
            info[r, change.ELIGIBLE] += 1
            break


@inlined
def _complete(key: Int64, state: State) -> Bool:
    """Complete the record read into `state.lists` and `numbers` by the row before it; false if it doesn't fit."""
    if key == CHANGE:
        return merge(state)
    directories = state.lengths[2]
    if all_migrating(state.lists, state.lengths) and (directories == 0 or directories == state.lengths[0]):
        migrate(state)
    return state.lengths[2] == state.lengths[0]


@inlined
def load_place(place: Int64, base: Base, state: State) -> Bool:
    """The row at a place into `state.row[0]` and its lists into `state.before`; false if they have no room yet."""
    copy_place(place, base, state, state.row, 0)
    longest = load_row(state.row, 0, base.heap, state.heap, state.before, state.before_lengths)
    if longest > state.before.shape[1]:
        state.counts[change.LONGEST_LIST] = max(longest, state.counts[change.LONGEST_LIST])
        return False
    return True


@inlined
def lacks_room(place: Int64, base: Base, state: State) -> Bool:
    """Whether there is too little room for another state of the partition at a place, whatever lists it has."""
    longest: Int64 = state.lists.shape[1]
    if state.counts[change.N_HEAP] + HEAP_LISTS * (longest + 1) > len(state.heap):
        return True
    if place == NO_PLACE:
        return state.counts[change.N_FRESH] >= len(state.fresh) or state.counts[change.N_ODD] >= len(state.odd)
    if place >= len(base.rows) or slot_of(place, state) >= 0:
        return False
    return state.counts[change.N_TOUCHED] >= len(state.touched)


@inlined
def put_place(place: Int64, flags: Int64, base: Base, state: State) -> None:
    """Write `state.row[0]` to a place, and add to the flags of its partition."""
    if place >= len(base.rows):
        r = place - len(base.rows)
        copy_row(state.row, 0, state.fresh_rows, r)
        state.fresh_flags[r] |= flags
    else:
        r = slot_of(place, state)
        if r < 0:
            r = add_touched(place, state)
        copy_row(state.row, 0, state.touched_rows, r)
        state.touched_flags[r] |= flags


@inlined
def replay_partition(
    data: Bytes, p: Int64, end: Int64, key: Int64, version: Int64, topic: Int64, base: Base, state: State
) -> Int64:
    """Replay a PartitionRecord or PartitionChangeRecord of a topic; `p` is at the partition id."""
    partition: Int64 = read_int(data, p)
    place = place_of(topic, partition, base, state)
    known = is_there(place, base, state)
    if key == CHANGE and not known:
        return change.STOPPED
    if lacks_room(place, base, state) or state.counts[change.N_DIRECTORIES] + state.lists.shape[1] > len(
        state.directories
    ):
        return change.GROW
    good: Bool = False
    if key == CHANGE:
        good = read_change(data, p + 20, end, version, state)
    else:
        good = read_partition(data, p + 20, end, version, state)
    if not good:
        return change.GROW if state.counts[change.LONGEST_LIST] > state.lists.shape[1] else change.STOPPED
    if known and not load_place(place, base, state):
        return change.GROW
    leader: Int64 = state.numbers[0]
    recovery: Int64 = state.numbers[3]
    flags: Int64 = change.TOUCHED | change.DIRECTORIES_WRITTEN if state.lengths[2] >= 0 else change.TOUCHED
    if not _complete(key, state) or (state.numbers[3] != 0 and state.numbers[3] != 1):
        return change.STOPPED
    store_row(base, state)
    if place == NO_PLACE:
        place = len(base.rows) + _add_fresh(state, topic, partition, base)
    put_place(place, flags, base, state)
    if known:
        if place >= len(base.rows):
            _elections(state.fresh, place - len(base.rows), recovery, leader, state)
        else:
            _elections(state.touched, slot_of(place, state), recovery, leader, state)
    return change.DONE
