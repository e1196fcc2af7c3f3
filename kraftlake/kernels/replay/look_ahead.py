"""A look at the records that come next: all memory that their replay needs comes in at the same time.

Each loop only reads what the one before it has found. Nothing in them waits, so that a processor goes on to the next
record while the memory of this one is still on its way.
"""

from __future__ import annotations

import cython

from kraftlake.kernels.language import Bool, Bytes, Ids, Int32, Int64, Longs, UInt64, inlined
from kraftlake.kernels.partition_row import SHAPE
from kraftlake.kernels.record_types import CHANGE
from kraftlake.kernels.replay.change_state import ID, N_FRESH, OF, Base, State
from kraftlake.kernels.replay.indexes import find_id, mix
from kraftlake.kernels.replay.partition_bytes import read_int, read_long
from kraftlake.kernels.replay.row_lists import slot_of

_NONE, _AGAIN, _NAMED = -1, -2, -3
"""The topic of a record: none to look up, that of the record before, or another one."""
_UNKNOWN, _LOST = -1, -2
"""Instead of the number of the last record's topic: nothing is known yet; the topics don't follow one another."""


@inlined
def topic_of(high: UInt64, low: UInt64, base: Base, state: State) -> Int64:
    """The number of the topic with an id, or -1; of several, of which all but one are gone, that of the newest."""
    topic = find_id(base.ids, base.index, high, low)
    if topic < 0 or not state.alive[topic]:
        created = find_id(state.ids, state.index, high, low)
        if created >= 0:
            topic = created + len(base.ids)
    return topic


@inlined
def is_change(data: Bytes, p: Int64, end: Int64) -> Bool:
    """Whether a value is a PartitionChangeRecord that compiled code knows, up to its tagged fields."""
    return end - p >= 23 and data[p] == 1 and data[p + 1] == CHANGE and data[p + 2] <= 2


@inlined
def look_ahead(data: Bytes, starts: Longs, stops: Longs, first: Int64, last: Int64, base: Base, state: State) -> None:
    """Find what the PartitionChangeRecords among [first, last) change, and touch it.

    hints[0] gets the topics' numbers, -1 for a topic that is not there (it may come before the record is replayed) and
    for other records; hints[1] the partitions' places, see `Journal`. It is -1 where the partition is not there, or of
    a topic with odd partition ids.
    """
    touched = _touch_index(data, starts, stops, first, last, base, state)
    touched ^= _touch_ids(last - first, base, state)
    _find_places(data, starts, first, last, base, state)
    touched ^= _touch_rows(data, starts, first, last, base, state)
    state.hints[2, 0] = touched  # else a compiler would leave out the reads


@inlined
def place_ahead(k: Int64, state: State) -> Int64:
    """The place of the partition that the record k of a block changes, or -1, as `look_ahead` found it."""
    if state.hints[1, k] < 0 or not state.alive[state.hints[0, k]]:
        return -1
    return state.hints[1, k]


@inlined
def _touch_index(
    data: Bytes, starts: Longs, stops: Longs, first: Int64, last: Int64, base: Base, state: State
) -> Int64:
    """Note what each record names in hints[0], and the hash of its id in hints[1].

    As far as each topic is the one after the last one in the base, as in many logs, hints[0] gets its number at once.
    """
    of_base: Int64 = len(base.index) - 1
    of_new: Int64 = len(state.index) - 1
    touched: Int64 = 0
    last_high: UInt64 = 0
    last_low: UInt64 = 0
    topic: Int64 = _UNKNOWN
    for i in range(first, last):
        k = i - first
        p = starts[i]
        if not is_change(data, p, stops[i]):
            state.hints[0, k] = _NONE
            continue
        high, low = read_long(data, p + 7), read_long(data, p + 15)
        if topic != _UNKNOWN and high == last_high and low == last_low:
            state.hints[0, k] = _AGAIN
            continue
        last_high, last_low = high, low
        if topic != _LOST:
            topic = _next_topic(topic, high, low, base)
            if topic != _LOST:
                state.hints[0, k] = topic
                continue
        x = mix(high, low)
        state.hints[0, k] = _NAMED
        state.hints[1, k] = cython.cast(Int32, x)
        touched ^= base.index[x & of_base] ^ state.index[x & of_new]
    return touched


@inlined
def _next_topic(topic: Int64, high: UInt64, low: UInt64, base: Base) -> Int64:
    """The number of the topic of the base with an id, if it is the first one or follows `topic`, else _LOST."""
    if topic == _UNKNOWN:
        topic = find_id(base.ids, base.index, high, low)
        return topic if topic >= 0 else _LOST
    topic += 1
    if topic < len(base.ids) and base.ids[topic, 0] == high and base.ids[topic, 1] == low:
        return topic
    return _LOST


@inlined
def _touch_ids(count: Int64, base: Base, state: State) -> Int64:
    of_base: Int64 = len(base.index) - 1
    of_new: Int64 = len(state.index) - 1
    touched: Int64 = 0
    for k in range(count):
        if state.hints[0, k] == _NAMED:
            x: Int64 = state.hints[1, k]
            touched ^= _touch_id(base.ids, base.index[x & of_base]) ^ _touch_id(state.ids, state.index[x & of_new])
    return touched


@inlined
def _touch_id(ids: Ids, number: Int64) -> Int64:
    return ids[number - 1, 0] & 1 if number > 0 else 0


@inlined
def _find_places(data: Bytes, starts: Longs, first: Int64, last: Int64, base: Base, state: State) -> None:
    """Write topics into hints[0], and into hints[1] the places where the partitions are if they are anywhere, or -1."""
    topics: Int64 = len(base.ids)
    topic: Int64 = -1
    begin: Int64 = 0  # the place of a topic's first partition, and how many places there are for its partitions
    size: Int64 = 0
    for i in range(first, last):
        k = i - first
        named = state.hints[0, k]
        state.hints[1, k] = -1
        if named == _NONE:
            continue
        p = starts[i]
        if named != _AGAIN:
            topic = named
            if named == _NAMED:
                topic = topic_of(read_long(data, p + 7), read_long(data, p + 15), base, state)
            size = 0
            if topic >= topics:
                begin = state.firsts[topic - topics] + len(base.rows)
                size = len(base.rows) + state.counts[N_FRESH] - begin
            elif topic >= 0 and not base.sparse[topic]:
                begin = base.starts[topic]
                size = base.starts[topic + 1] - begin
        state.hints[0, k] = topic
        partition: Int64 = read_int(data, p + 3)
        if 0 <= partition < size and (topic < topics or begin + partition >= len(base.rows)):
            state.hints[1, k] = begin + partition


@inlined
def _touch_rows(data: Bytes, starts: Longs, first: Int64, last: Int64, base: Base, state: State) -> Int64:
    """Touch both ends of each row, which lies in two lines of a cache; forget the fresh rows of other partitions."""
    of_base: Int64 = len(base.rows)
    touched: Int64 = 0
    for i in range(first, last):
        k = i - first
        place: Int64 = state.hints[1, k]
        if place < 0:
            continue
        if place >= of_base:
            row = place - of_base
            touched ^= state.fresh_rows[row, 0] ^ state.fresh_rows[row, SHAPE] ^ state.fresh_flags[row]
            partition = read_int(data, starts[i] + 3)
            if state.fresh[row, OF] != state.hints[0, k] or state.fresh[row, ID] != partition:
                state.hints[1, k] = -1
        elif slot_of(place, state) >= 0:
            row = slot_of(place, state)
            touched ^= state.touched_rows[row, 0] ^ state.touched_rows[row, SHAPE] ^ state.touched_flags[row]
        else:
            touched ^= base.rows[place, 0] ^ base.rows[place, SHAPE]
    return touched
