"""The bytes of topic, partition and partition change records, replayed on rows of numbers.

Rows and the heap are those of `kraftlake.image.partition_rows`. A record is either replayed whole or leaves no trace:
whatever is unusual about it (and whatever is wrong with it) stops the loop in front of it, for the code that replays
objects to deal with.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from kraftlake.kernels.compiled import borrowed, compiled

LONGEST = 1024
"""Elements of a list that the kernels take."""
LONGEST_NAME = 249
"""Characters of a topic's name, as Kafka has it."""

DONE, STOPPED, GROW = 0, 1, 2
TOPIC, PARTITION, CHANGE, REMOVE, NO_OP, CLEAR_ELR = 2, 3, 5, 9, 20, 28
TOUCHED, DIRECTORIES_WRITTEN = 1, 2

# `counts`: how much of the growing arrays is in use
N_TOUCHED, N_FRESH, N_TOPICS, N_HEAP, N_DIRECTORIES, N_NAMES, N_ODD, N_OTHERS = range(8)
COUNTS = 8

_ISR, _DIR, _LEADER, _SHAPE = 3, 6, 9, 13


class Base(NamedTuple):
    """What the change begins with; read only. `ids` is uint64[T, 2]; `index` finds topics by id (see `index_ids`)."""

    rows: Any
    starts: Any
    heap: Any
    ids: Any
    index: Any
    sparse: Any


class State(NamedTuple):
    """What the change has made so far.

    `slots` (one a row of the base) holds 1 + the place among the touched ones. Topics of the base come first in
    `alive` and `sizes`; new ones, by T + place, have ids in `ids` and their first fresh row in `firsts`.
    `touched_info` and `fresh_info` are flags, unclean elections, elections from the ELR.
    """

    counts: Any
    slots: Any
    touched: Any
    touched_rows: Any
    touched_info: Any
    fresh_rows: Any
    fresh_topics: Any
    fresh_partitions: Any
    fresh_info: Any
    fresh_index: Any
    alive: Any
    sizes: Any
    ids: Any
    index: Any
    firsts: Any
    names: Any
    name_hashes: Any
    name_topics: Any
    heap: Any
    directories: Any
    directory_index: Any
    lists: Any
    lengths: Any
    before: Any
    before_lengths: Any


@compiled
def _uncounted_base(base: Any) -> Any:
    return Base(
        borrowed(base.rows),
        borrowed(base.starts),
        borrowed(base.heap),
        borrowed(base.ids),
        borrowed(base.index),
        borrowed(base.sparse),
    )


@compiled
def _uncounted_state(state: Any) -> Any:
    return State(
        borrowed(state.counts),
        borrowed(state.slots),
        borrowed(state.touched),
        borrowed(state.touched_rows),
        borrowed(state.touched_info),
        borrowed(state.fresh_rows),
        borrowed(state.fresh_topics),
        borrowed(state.fresh_partitions),
        borrowed(state.fresh_info),
        borrowed(state.fresh_index),
        borrowed(state.alive),
        borrowed(state.sizes),
        borrowed(state.ids),
        borrowed(state.index),
        borrowed(state.firsts),
        borrowed(state.names),
        borrowed(state.name_hashes),
        borrowed(state.name_topics),
        borrowed(state.heap),
        borrowed(state.directories),
        borrowed(state.directory_index),
        borrowed(state.lists),
        borrowed(state.lengths),
        borrowed(state.before),
        borrowed(state.before_lengths),
    )


@compiled
def _mix(high: Any, low: Any) -> Any:
    x = high * np.uint64(0x9E3779B97F4A7C15) ^ low
    x ^= x >> np.uint64(32)
    x *= np.uint64(0xD6E8FEB86659FD93)
    return x ^ (x >> np.uint64(32))


@compiled
def index_ids(ids: Any, count: int, index: Any) -> None:
    """Fill `index` (int32, a power of two, zeros) so that `find_id` finds the places of `ids`."""
    mask = np.uint64(len(index) - 1)
    for place in range(count):
        at = _mix(ids[place, 0], ids[place, 1]) & mask
        while index[at] != 0:
            at = (at + np.uint64(1)) & mask
        index[at] = place + 1


@compiled
def find_id(ids: Any, index: Any, high: Any, low: Any) -> Any:
    """The place of an id, or -1."""
    mask = np.uint64(len(index) - 1)
    at = _mix(high, low) & mask
    while index[at] != 0:
        place = index[at] - 1
        if ids[place, 0] == high and ids[place, 1] == low:
            return place
        at = (at + np.uint64(1)) & mask
    return -1


@compiled
def insert_id(index: Any, high: Any, low: Any, place: int) -> None:
    """Note the place of an id that is not there yet."""
    mask = np.uint64(len(index) - 1)
    at = _mix(high, low) & mask
    while index[at] != 0:
        at = (at + np.uint64(1)) & mask
    index[at] = place + 1


@compiled
def hash_name(data: Any, start: int, stop: int) -> Any:
    """64 bits of a name."""
    x = np.uint64(0xCBF29CE484222325)
    for i in range(start, stop):
        x = (x ^ np.uint64(data[i])) * np.uint64(0x100000001B3)
    return _mix(x, np.uint64(stop - start))


@compiled
def index_names(data: Any, hashes: Any, topics: Any) -> None:
    """Fill the table of names from `data`: names of topics 0, 1, …, each with a newline behind it."""
    mask = np.uint64(len(hashes) - 1)
    start = 0
    topic = 0
    for i in range(len(data)):
        if data[i] == 10:
            x = hash_name(data, start, i)
            at = x & mask
            while topics[at] != 0:
                at = (at + np.uint64(1)) & mask
            hashes[at] = x
            topics[at] = topic + 1
            topic += 1
            start = i + 1


@compiled
def _int(data: Any, p: int) -> Any:
    return np.int32(
        np.uint32(data[p]) << np.uint32(24)
        | np.uint32(data[p + 1]) << np.uint32(16)
        | np.uint32(data[p + 2]) << np.uint32(8)
        | np.uint32(data[p + 3])
    )


@compiled
def _long(data: Any, p: int) -> Any:
    x = np.uint64(0)
    for i in range(8):
        x = x << np.uint64(8) | np.uint64(data[p + i])
    return x


@compiled
def _uvarint(data: Any, p: int, end: int) -> Any:
    """A number of at most 28 bits and the position behind it; -1 instead where there is none."""
    value = np.int64(0)
    for shift in (0, 7, 14, 21):
        if p >= end:
            return value, -1
        byte = np.int64(data[p])
        p += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, p
    return value, -1


@compiled
def _ints(data: Any, p: int, end: int, lists: Any, lengths: Any, which: int, nullable: bool) -> Any:
    """Read an int32 array; its length is -1 for null. The position behind it, or -1."""
    count, p = _uvarint(data, p, end)
    if p < 0 or (count == 0 and not nullable):
        return -1
    count -= 1
    if count > LONGEST or p + 4 * count > end:
        return -1
    lengths[which] = count
    for i in range(count):
        lists[which, i] = _int(data, p + 4 * i)
    return p + 4 * count if count > 0 else p


@compiled
def _directories(data: Any, p: int, end: int, state: Any, nullable: bool) -> Any:
    """Read an array of directory ids as their numbers, new ones appended. The position behind it, or -1."""
    count, p = _uvarint(data, p, end)
    if p < 0 or (count == 0 and not nullable):
        return -1
    count -= 1
    if count > LONGEST or p + 16 * count > end:
        return -1
    state.lengths[2] = count
    for i in range(count):
        high, low = _long(data, p), _long(data, p + 8)
        number = find_id(state.directories, state.directory_index, high, low)
        if number < 0:
            number = state.counts[N_DIRECTORIES]
            state.directories[number, 0] = high
            state.directories[number, 1] = low
            insert_id(state.directory_index, high, low, number)
            state.counts[N_DIRECTORIES] += 1
        state.lists[2, i] = number
        p += 16
    return p


@compiled
def _read_partition(data: Any, p: int, end: int, version: int, state: Any, numbers: Any) -> bool:
    """A PartitionRecord behind its topic id, into `state.lists` and `numbers` (leader, epochs, recovery state)."""
    lists, lengths = state.lists, state.lengths
    p = _ints(data, p, end, lists, lengths, 0, False)
    if p >= 0:
        p = _ints(data, p, end, lists, lengths, 1, False)
    if p >= 0:
        p = _ints(data, p, end, lists, lengths, 4, False)
    if p >= 0:
        p = _ints(data, p, end, lists, lengths, 3, False)
    if p < 0 or p + 12 > end:
        return False
    numbers[0] = _int(data, p)
    numbers[1] = _int(data, p + 4)
    numbers[2] = _int(data, p + 8)
    numbers[3] = 0
    p += 12
    lengths[2] = lengths[5] = lengths[6] = 0
    if version >= 1:
        p = _directories(data, p, end, state, False)
        if p < 0:
            return False
    count, p = _uvarint(data, p, end)
    for _ in range(count):
        if p < 0 or p + 2 > end:
            return False
        tag = data[p]
        size, p = _uvarint(data, p + 1, end)
        stop = p + size
        if p < 0 or stop > end:
            return False
        if tag == 0 and size == 1:
            numbers[3] = np.int8(data[p])
            p += 1
        elif version >= 2 and (tag == 1 or tag == 2):
            p = _ints(data, p, stop, lists, lengths, 4 + tag, True)
            lengths[4 + tag] = max(lengths[4 + tag], 0)
        else:
            return False
        if p != stop:
            return False
    return p == end


@compiled
def _read_change(data: Any, p: int, end: int, version: int, state: Any, numbers: Any) -> bool:
    """The tagged fields of a PartitionChangeRecord; what is not there has the length -1."""
    lists, lengths = state.lists, state.lengths
    lengths[:] = -1
    numbers[0] = -2
    numbers[3] = -1
    count, p = _uvarint(data, p, end)
    for _ in range(count):
        if p < 0 or p + 2 > end:
            return False
        tag = data[p]
        size, p = _uvarint(data, p + 1, end)
        stop = p + size
        if p < 0 or stop > end:
            return False
        if tag == 0:
            p = _ints(data, p, stop, lists, lengths, 1, True)
        elif tag == 1 and size == 4:
            numbers[0] = _int(data, p)
            p += 4
        elif tag == 2:
            p = _ints(data, p, stop, lists, lengths, 0, True)
        elif tag == 3:
            p = _ints(data, p, stop, lists, lengths, 4, True)
        elif tag == 4:
            p = _ints(data, p, stop, lists, lengths, 3, True)
        elif tag == 5 and size == 1:
            numbers[3] = np.int8(data[p])
            p += 1
        elif tag == 8 and version >= 1:
            p = _directories(data, p, stop, state, True)
        elif version >= 2 and (tag == 6 or tag == 7):
            p = _ints(data, p, stop, lists, lengths, tag - 1, True)
        else:
            return False
        if p != stop:
            return False
    return p == end


@compiled
def _load_row(rows: Any, r: int, base_heap: Any, heap: Any, lists: Any, lengths: Any) -> bool:
    """The lists of a row; false when one is too long."""
    shape = rows[r, _SHAPE]
    lengths[:] = 0
    if shape >= 0:
        lengths[0] = lengths[2] = shape & 0xFF
        lengths[1] = shape >> 8
        for i in range(3):
            lists[0, i] = rows[r, i]
            lists[1, i] = rows[r, _ISR + i]
            lists[2, i] = rows[r, _DIR + i]
        return True
    at = rows[r, 0]
    source = base_heap
    if at >= len(base_heap):
        source = heap
        at -= len(base_heap)
    for which in range(7):
        lengths[which] = source[at + which]
        if lengths[which] > LONGEST:
            return False
    at += 7
    for which in range(7):
        for i in range(lengths[which]):
            lists[which, i] = source[at + i]
        at += lengths[which]
    return True


@compiled
def _store_row(rows: Any, r: int, numbers: Any, base_heap: Any, state: Any) -> None:
    """Write `state.lists` and `numbers` as a row."""
    lists, lengths = state.lists, state.lengths
    for i in range(4):
        rows[r, _LEADER + i] = numbers[i]
    if lengths[0] <= 3 and lengths[1] <= 3 and lengths[3] + lengths[4] + lengths[5] + lengths[6] == 0:
        for i in range(3):
            rows[r, i] = lists[0, i] if i < lengths[0] else 0
            rows[r, _ISR + i] = lists[1, i] if i < lengths[1] else 0
            rows[r, _DIR + i] = lists[2, i] if i < lengths[2] else 0
        rows[r, _SHAPE] = lengths[0] | lengths[1] << 8
        return
    at = state.counts[N_HEAP]
    rows[r, 0] = len(base_heap) + at
    for i in range(1, _LEADER):
        rows[r, i] = 0
    rows[r, _SHAPE] = -1
    for which in range(7):
        state.heap[at + which] = lengths[which]
    at += 7
    for which in range(7):
        for i in range(lengths[which]):
            state.heap[at + i] = lists[which, i]
        at += lengths[which]
    state.counts[N_HEAP] = at


@compiled
def _all_migrating(lists: Any, lengths: Any) -> bool:
    for i in range(lengths[2]):
        if lists[2, i] != 0:
            return False
    return True


@compiled
def _migrate(lists: Any, lengths: Any) -> None:
    lengths[2] = lengths[0]
    for i in range(lengths[0]):
        lists[2, i] = 0


@compiled
def _merge(rows: Any, r: int, numbers: Any, state: Any) -> bool:
    """Complete the change in `state.lists` and `numbers` by the state in `state.before`; false if it does not fit."""
    lists, lengths = state.lists, state.lengths
    before, before_lengths = state.before, state.before_lengths
    new_replicas, given = lengths[0] >= 0, lengths[2]
    for which in range(7):
        if lengths[which] < 0:
            lengths[which] = before_lengths[which]
            for i in range(before_lengths[which]):
                lists[which, i] = before[which, i]
    if given > 0 and new_replicas and given != lengths[0]:
        return False
    if _all_migrating(lists, lengths):
        _migrate(lists, lengths)
    if lengths[2] != lengths[0]:
        return False
    if numbers[0] == -2:
        numbers[0] = rows[r, _LEADER]
        numbers[1] = rows[r, _LEADER + 1]
    else:
        numbers[1] = np.int32(rows[r, _LEADER + 1] + np.int32(1))
    numbers[2] = np.int32(rows[r, _LEADER + 2] + np.int32(1))
    if numbers[3] == -1:
        numbers[3] = rows[r, _LEADER + 3]
    return True


@compiled
def _find_fresh(state: Any, topic: int, partition: int, topics: int) -> Any:
    """The fresh row of a partition, or -1."""
    if topic >= topics:
        r = state.firsts[topic - topics] + partition
        if 0 <= r < state.counts[N_FRESH] and state.fresh_topics[r] == topic and state.fresh_partitions[r] == partition:
            return r
    if state.counts[N_ODD] == 0:
        return -1
    mask = np.uint64(len(state.fresh_index) - 1)
    at = _mix(np.uint64(topic), np.uint64(partition)) & mask
    while state.fresh_index[at] != 0:
        r = state.fresh_index[at] - 1
        if state.fresh_topics[r] == topic and state.fresh_partitions[r] == partition:
            return r
        at = (at + np.uint64(1)) & mask
    return -1


@compiled
def _add_fresh(state: Any, topic: int, partition: int, topics: int) -> Any:
    r = state.counts[N_FRESH]
    state.counts[N_FRESH] += 1
    state.fresh_topics[r] = topic
    state.fresh_partitions[r] = partition
    state.fresh_info[r, 0] = state.fresh_info[r, 1] = state.fresh_info[r, 2] = 0
    state.sizes[topic] += 1
    if topic >= topics and state.sizes[topic] == 1:
        state.firsts[topic - topics] = r - partition
    elif topic < topics or state.firsts[topic - topics] + partition != r:
        mask = np.uint64(len(state.fresh_index) - 1)
        at = _mix(np.uint64(topic), np.uint64(partition)) & mask
        while state.fresh_index[at] != 0:
            at = (at + np.uint64(1)) & mask
        state.fresh_index[at] = r + 1
        state.counts[N_ODD] += 1
    return r


@compiled
def _create(data: Any, p: int, end: int, base: Any, state: Any) -> Any:
    """Replay a TopicRecord."""
    counts = state.counts
    length, p = _uvarint(data, p, end)
    length -= 1
    if p < 0 or length < 1 or length > LONGEST_NAME or p + length + 17 != end or data[end - 1] != 0:
        return STOPPED
    high, low = _long(data, p + length), _long(data, p + length + 8)
    if find_id(base.ids, base.index, high, low) >= 0 or find_id(state.ids, state.index, high, low) >= 0:
        return STOPPED
    for i in range(p, p + length):
        if data[i] >= 128 or data[i] == 10:
            return STOPPED
    x = hash_name(data, p, p + length)
    mask = np.uint64(len(state.name_hashes) - 1)
    at = x & mask
    while state.name_topics[at] != 0:
        if state.name_hashes[at] == x:
            if state.alive[state.name_topics[at] - 1]:
                return STOPPED
            break
        at = (at + np.uint64(1)) & mask
    place = counts[N_TOPICS]
    topic = len(base.ids) + place
    state.name_hashes[at] = x
    state.name_topics[at] = topic + 1
    state.ids[place, 0] = high
    state.ids[place, 1] = low
    insert_id(state.index, high, low, place)
    state.alive[topic] = 1
    state.sizes[topic] = 0
    state.firsts[place] = 0
    used = counts[N_NAMES]
    for i in range(length):
        state.names[used + i] = data[p + i]
    state.names[used + length] = 10
    counts[N_NAMES] = used + length + 1
    counts[N_TOPICS] = place + 1
    return DONE


@compiled
def _elections(info: Any, r: int, recovery: int, leader: int, state: Any) -> None:
    if recovery == 1:
        info[r, 1] += 1
    for i in range(state.before_lengths[5]):
        if state.before[5, i] == leader:
            info[r, 2] += 1
            break


@compiled
def _partition(data: Any, p: int, end: int, key: int, version: int, topic: int, base: Any, state: Any,
               numbers: Any) -> Any:  # fmt: skip
    """Replay a PartitionRecord or PartitionChangeRecord of a topic; `p` is at the partition id."""
    topics = len(base.ids)
    partition = _int(data, p)
    if topic < topics and base.sparse[topic]:
        return STOPPED
    in_base = False
    r = -1
    base_row = -1
    if topic < topics and 0 <= partition < base.starts[topic + 1] - base.starts[topic]:
        base_row = base.starts[topic] + partition
        in_base = True
        r = state.slots[base_row] - 1
    else:
        r = _find_fresh(state, topic, partition, topics)
    there = in_base or r >= 0
    if partition < 0 or (key == CHANGE and not there):
        return STOPPED
    whole = key == PARTITION
    if whole:
        good = _read_partition(data, p + 20, end, version, state, numbers)
    else:
        good = _read_change(data, p + 20, end, version, state, numbers)
    if not good:
        return STOPPED
    leader, recovery, wrote_directories = numbers[0], numbers[3], state.lengths[2] >= 0
    if there:
        if in_base and r < 0:
            loaded = _load_row(base.rows, base_row, base.heap, state.heap, state.before, state.before_lengths)
        elif in_base:
            loaded = _load_row(state.touched_rows, r, base.heap, state.heap, state.before, state.before_lengths)
        else:
            loaded = _load_row(state.fresh_rows, r, base.heap, state.heap, state.before, state.before_lengths)
        if not loaded:
            return STOPPED
    if whole:
        if _all_migrating(state.lists, state.lengths) and (state.lengths[2] in (0, state.lengths[0])):
            _migrate(state.lists, state.lengths)
        if state.lengths[2] != state.lengths[0]:
            return STOPPED
    elif in_base and r < 0:
        if not _merge(base.rows, base_row, numbers, state):
            return STOPPED
    elif in_base:
        if not _merge(state.touched_rows, r, numbers, state):
            return STOPPED
    elif not _merge(state.fresh_rows, r, numbers, state):
        return STOPPED
    if numbers[3] != 0 and numbers[3] != 1:
        return STOPPED
    if in_base and r < 0:
        r = state.counts[N_TOUCHED]
        state.counts[N_TOUCHED] += 1
        state.slots[base_row] = r + 1
        state.touched[r] = base_row
        state.touched_info[r, 0] = state.touched_info[r, 1] = state.touched_info[r, 2] = 0
    elif r < 0:
        r = _add_fresh(state, topic, partition, topics)
    flags = TOUCHED | (DIRECTORIES_WRITTEN if wrote_directories else 0)
    if in_base:
        _store_row(state.touched_rows, r, numbers, base.heap, state)
        state.touched_info[r, 0] |= flags
        if there:
            _elections(state.touched_info, r, recovery, leader, state)
    else:
        _store_row(state.fresh_rows, r, numbers, base.heap, state)
        state.fresh_info[r, 0] |= flags
        if there:
            _elections(state.fresh_info, r, recovery, leader, state)
    return DONE


@compiled
def replay(data: Any, starts: Any, stops: Any, first: int, last: int, base: Any, state: Any, others: Any) -> Any:
    """Replay the values data[starts[i]:stops[i]] for i in [first, last).

    Gives a status and the first value that was not replayed. Values of other types are passed over: their places go to
    `others` (int64[n, 2]) with -1, and those of RemoveTopicRecords with the number of the topic. GROW: some array has
    to grow before it goes on.
    """
    counted_base, counted_state = base, state
    base, state = _uncounted_base(counted_base), _uncounted_state(counted_state)
    data, starts, stops, others = borrowed(data), borrowed(starts), borrowed(stops), borrowed(others)
    counts = state.counts
    own_numbers = np.empty(4, np.int32)
    numbers = borrowed(own_numbers)
    topic = -1
    last_high, last_low = np.uint64(0), np.uint64(0)
    topics = len(base.ids)
    for i in range(first, last):
        p, end = starts[i], stops[i]
        if end - p < 3 or data[p] != 1 or data[p + 1] >= 128 or data[p + 2] >= 128:
            return STOPPED, i
        key, version = data[p + 1], data[p + 2]
        if key == PARTITION or key == CHANGE:
            if version > 2 or end - p < 23:
                return STOPPED, i
            if (
                counts[N_HEAP] + 7 * (LONGEST + 1) > len(state.heap)
                or counts[N_DIRECTORIES] + LONGEST > len(state.directories)
            ):  # fmt: skip
                return GROW, i
            high, low = _long(data, p + 7), _long(data, p + 15)
            if topic < 0 or high != last_high or low != last_low:
                topic = find_id(base.ids, base.index, high, low)
                if topic < 0:
                    topic = find_id(state.ids, state.index, high, low)
                    if topic < 0:
                        return STOPPED, i
                    topic += topics
                last_high, last_low = high, low
            if not state.alive[topic]:
                return STOPPED, i
            if _partition(data, p + 3, end, key, version, topic, base, state, numbers) != DONE:
                return STOPPED, i
        elif key == TOPIC and version == 0:
            if counts[N_NAMES] + LONGEST_NAME + 1 > len(state.names):
                return GROW, i
            if _create(data, p + 3, end, base, state) != DONE:
                return STOPPED, i
        elif key == REMOVE and version == 0:
            if end - p != 20 or data[end - 1] != 0:
                return STOPPED, i
            high, low = _long(data, p + 3), _long(data, p + 11)
            gone = find_id(base.ids, base.index, high, low)
            if gone < 0:
                gone = find_id(state.ids, state.index, high, low)
                if gone < 0:
                    return STOPPED, i
                gone += topics
            if not state.alive[gone]:
                return STOPPED, i
            state.alive[gone] = 0
            others[counts[N_OTHERS], 0] = i
            others[counts[N_OTHERS], 1] = gone
            counts[N_OTHERS] += 1
        elif key == NO_OP and version == 0 and end - p == 4 and data[end - 1] == 0:
            continue
        elif key == TOPIC or key == REMOVE or 23 <= key <= 25 or key == CLEAR_ELR:
            return STOPPED, i
        else:
            others[counts[N_OTHERS], 0] = i
            others[counts[N_OTHERS], 1] = -1
            counts[N_OTHERS] += 1
    own_numbers[0] = 0  # it lives until here
    return DONE, last


@compiled
def count_types(data: Any, starts: Any, stops: Any, first: int, last: int, counts: Any) -> None:
    """How many values of each type (below 30) there are."""
    for i in range(first, last):
        if stops[i] - starts[i] >= 3 and data[starts[i] + 1] < 30:
            counts[data[starts[i] + 1]] += 1


@compiled
def move_names(hashes: Any, topics: Any, new_hashes: Any, new_topics: Any) -> None:
    """Put the table of names into a larger one."""
    mask = np.uint64(len(new_hashes) - 1)
    for i in range(len(hashes)):
        if topics[i] != 0:
            at = hashes[i] & mask
            while new_topics[at] != 0:
                at = (at + np.uint64(1)) & mask
            new_hashes[at] = hashes[i]
            new_topics[at] = topics[i]


@compiled
def move_fresh(old: Any, new: Any, topics: Any, partitions: Any) -> None:
    """Put the table of fresh rows into a larger one."""
    mask = np.uint64(len(new) - 1)
    for i in range(len(old)):
        if old[i] != 0:
            at = _mix(np.uint64(topics[old[i] - 1]), np.uint64(partitions[old[i] - 1])) & mask
            while new[at] != 0:
                at = (at + np.uint64(1)) & mask
            new[at] = old[i]


@compiled
def scatter(rows: Any, places: Any, values: Any, count: int) -> Any:
    """Write `values` at `places` of `rows`; gives how many differed."""
    changed = 0
    for k in range(count):
        r = places[k]
        differs = False
        for i in range(14):
            if rows[r, i] != values[k, i]:
                differs = True
                rows[r, i] = values[k, i]
        changed += differs
    return changed


@compiled
def _place(lists: Any, lengths: Any, broker: int) -> Any:
    for i in range(lengths[0]):
        if lists[0, i] == broker:
            return i
    return -1


@compiled
def local_changes(base: Any, state: Any, patched: Any, broker: int, found: Any, counts: Any) -> None:
    """What the touched and fresh rows mean to a broker: see `TopicDelta.add_local_changes`.

    `found` (int32[5, n]) gets places: of deletes, leaders, elected leaders, followers and directories, `counts` how
    many. Fresh rows count from N_TOUCHED on. The first `patched` touched rows were in the base as they are in
    `state.patches`.
    """
    counted_base, counted_state = base, state
    base, state = _uncounted_base(counted_base), _uncounted_state(counted_state)
    patched, found = borrowed(patched), borrowed(found)
    touched = state.counts[N_TOUCHED]
    lists, lengths, before, before_lengths = state.lists, state.lengths, state.before, state.before_lengths
    for k in range(touched + state.counts[N_FRESH]):
        fresh = k >= touched
        r = k - touched if fresh else k
        info = state.fresh_info if fresh else state.touched_info
        rows = state.fresh_rows if fresh else state.touched_rows
        if not info[r, 0] & TOUCHED:
            continue
        if rows[r, _SHAPE] >= 0 and fresh:
            n = rows[r, _SHAPE] & 0xFF
            hosted = False
            for i in range(n):
                hosted |= rows[r, i] == broker
            if not hosted:
                continue
        topic = state.fresh_topics[r] if fresh else np.searchsorted(base.starts, state.touched[r], side="right") - 1
        if not state.alive[topic]:
            continue
        _load_row(rows, r, base.heap, state.heap, lists, lengths)
        place = _place(lists, lengths, broker)
        old_place = -1
        old_epoch = old_leader_epoch = np.int32(0)
        if not fresh:
            old_rows = patched if r < len(patched) else base.rows
            old = r if r < len(patched) else state.touched[r]
            _load_row(old_rows, old, base.heap, state.heap, before, before_lengths)
            old_place = _place(before, before_lengths, broker)
            old_leader_epoch, old_epoch = old_rows[old, _LEADER + 1], old_rows[old, _LEADER + 2]
        if place < 0:
            if old_place >= 0:
                found[0, counts[0]] = k
                counts[0] += 1
            continue
        if fresh or old_epoch != rows[r, _LEADER + 2]:
            if rows[r, _LEADER] != broker:
                found[3, counts[3]] = k
                counts[3] += 1
            else:
                found[1, counts[1]] = k
                counts[1] += 1
                if fresh or old_leader_epoch != rows[r, _LEADER + 1]:
                    found[2, counts[2]] = k
                    counts[2] += 1
        moved = fresh
        if not fresh and old_place >= 0:
            both = _all_migrating(lists, lengths) and _all_migrating(before, before_lengths)
            written = (info[r, 0] & DIRECTORIES_WRITTEN) != 0
            moved = not both and (written or old_place != place)
        if moved:
            found[4, counts[4]] = k
            counts[4] += 1


@compiled
def hosted_rows(rows: Any, first: int, last: int, base_heap: Any, heap: Any, broker: int, lists: Any, lengths: Any,
                found: Any) -> Any:  # fmt: skip
    """Which rows in [first, last) have the broker among their replicas, into `found`; gives how many."""
    count = 0
    for r in range(first, last):
        _load_row(rows, r, base_heap, heap, lists, lengths)
        if _place(lists, lengths, broker) >= 0:
            found[count] = r
            count += 1
    return count
