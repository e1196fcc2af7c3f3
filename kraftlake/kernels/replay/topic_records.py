"""The bytes of topic, partition and partition change records, replayed on rows of numbers.

Rows and the heap are those of `image.topics.partition_rows`. A record is either replayed whole or changes nothing: the
loop stops before a record that is unusual or wrong, and objects replay that one.
"""

from __future__ import annotations

from kraftlake.kernels.language import Bytes, Int64, LongRowsOut, Longs, LongsOut, UInt64, compiled, inlined
from kraftlake.kernels.record_types import (
    ABORT_TRANSACTION,
    BEGIN_TRANSACTION,
    CHANGE,
    CLEAR_ELR,
    NO_OP,
    PARTITION,
    REMOVE,
    TOPIC,
    TYPES,
)
from kraftlake.kernels.replay.change_state import (
    BLOCK,
    DONE,
    GROW,
    LONGEST,
    LONGEST_NAME,
    N_DIRECTORIES,
    N_HEAP,
    N_NAMES,
    N_ODD,
    N_OTHERS,
    N_TOPICS,
    OTHER,
    STOPPED,
    Base,
    State,
)
from kraftlake.kernels.replay.indexes import find_id, hash_name, insert_id
from kraftlake.kernels.replay.journal import NO_PLACE
from kraftlake.kernels.replay.look_ahead import is_change, look_ahead, place_ahead, topic_of
from kraftlake.kernels.replay.partition_bytes import read_int, read_long, read_uvarint
from kraftlake.kernels.replay.partition_records import place_of, replay_partition
from kraftlake.kernels.replay.plain_records import plain_change, plain_partition


@inlined
def create_topic(data: Bytes, p: Int64, end: Int64, base: Base, state: State) -> Int64:
    """Replay a TopicRecord."""
    if state.counts[N_NAMES] + LONGEST_NAME + 1 > len(state.names) or state.counts[N_TOPICS] >= len(state.firsts):
        return GROW
    length, p = read_uvarint(data, p, end)
    length -= 1
    if p < 0 or length < 1 or length > LONGEST_NAME or p + length + 17 != end or data[end - 1] != 0:
        return STOPPED
    high, low = read_long(data, p + length), read_long(data, p + length + 8)
    if find_id(base.ids, base.index, high, low) >= 0 or find_id(state.ids, state.index, high, low) >= 0:
        return STOPPED
    for i in range(p, p + length):
        if data[i] >= 128 or data[i] == 10:
            return STOPPED
    x = hash_name(data, p, p + length)
    mask: Int64 = len(state.name_hashes) - 1
    at: Int64 = x & mask
    while state.name_topics[at] != 0:
        if state.name_hashes[at] == x:
            if state.alive[state.name_topics[at] - 1]:
                return STOPPED
            break
        at = (at + 1) & mask
    place = state.counts[N_TOPICS]
    topic: Int64 = len(base.ids) + place
    state.name_hashes[at] = x
    state.name_topics[at] = topic + 1
    state.ids[place, 0] = high
    state.ids[place, 1] = low
    insert_id(state.index, high, low, place)
    state.alive[topic] = 1
    state.sizes[topic] = 0
    state.firsts[place] = 0
    used = state.counts[N_NAMES]
    for i in range(length):
        state.names[used + i] = data[p + i]
    state.names[used + length] = 10
    state.counts[N_NAMES] = used + length + 1
    state.counts[N_TOPICS] = place + 1
    return DONE


@inlined
def remove_topic(data: Bytes, p: Int64, end: Int64, base: Base, state: State) -> Int64:
    """Replay a RemoveTopicRecord; gives the topic's number, -1 where it can't be."""
    if end - p != 20 or data[end - 1] != 0:
        return -1
    gone = topic_of(read_long(data, p + 3), read_long(data, p + 11), base, state)
    if gone < 0 or not state.alive[gone]:
        return -1
    state.alive[gone] = 0
    return gone


@inlined
def replay_record(data: Bytes, p: Int64, end: Int64, topic: Int64, base: Base, state: State) -> Int64:
    """Replay a record of a partition of a topic that is alive; `p` is at the value's start."""
    key, version = data[p + 1], data[p + 2]
    topics: Int64 = len(base.ids)
    status: Int64 = OTHER
    if key == CHANGE:
        place = place_of(data, p, topic, base, state)
        if place != NO_PLACE and (topic >= topics or not base.sparse[topic]):
            status = plain_change(data, p + 23, end, place, base, state)
    elif topic >= topics and version >= 1 and state.counts[N_ODD] == 0:
        status = plain_partition(data, p + 23, end, topic, read_int(data, p + 3), topics, state)
    if status != OTHER:
        return status
    heap, directories = state.counts[N_HEAP], state.counts[N_DIRECTORIES]
    if heap + 7 * (LONGEST + 1) > len(state.heap) or directories + LONGEST > len(state.directories):
        return GROW
    return replay_partition(data, p + 3, end, key, version, topic, base, state)


@compiled
def replay(
    data: Bytes, starts: Longs, stops: Longs, first: Int64, last: Int64, base: Base, state: State, others: LongRowsOut
) -> tuple[Int64, Int64]:
    """Replay the values data[starts[i]:stops[i]] for i in [first, last).

    Gives a status and the first value that was not replayed. Values of other types are passed over: their places go to
    `others` (int64[n, 2]) with -1, and those of RemoveTopicRecords with the number of the topic. GROW: some array has
    to grow before it goes on.
    """
    topic: Int64 = -1
    last_high: UInt64 = 0
    last_low: UInt64 = 0
    ahead = block = first
    for i in range(first, last):
        p, end = starts[i], stops[i]
        if i >= ahead and is_change(data, p, end):
            block = i
            ahead = min(i + BLOCK, last)
            look_ahead(data, starts, stops, block, ahead, base, state)
        if i < ahead:
            place = place_ahead(i - block, state)
            if place >= 0 and plain_change(data, p + 23, end, place, base, state) == DONE:
                continue
        if end - p < 3 or data[p] != 1 or data[p + 1] >= 128 or data[p + 2] >= 128:
            return STOPPED, i
        key, version = data[p + 1], data[p + 2]
        if key == PARTITION or key == CHANGE:
            if version > 2 or end - p < 23:
                return STOPPED, i
            known: Int64 = -1
            if i < ahead:
                known = state.hints[0, i - block]
            if known < 0:
                high, low = read_long(data, p + 7), read_long(data, p + 15)
                if topic < 0 or high != last_high or low != last_low:
                    topic = topic_of(high, low, base, state)
                    if topic < 0:
                        return STOPPED, i
                    last_high, last_low = high, low
                known = topic
            if not state.alive[known]:
                return STOPPED, i
            status = replay_record(data, p, end, known, base, state)
            if status != DONE:
                return status, i
        elif key == TOPIC and version == 0:
            status = create_topic(data, p + 3, end, base, state)
            if status != DONE:
                return status, i
        elif key == REMOVE and version == 0:
            gone = remove_topic(data, p, end, base, state)
            if gone < 0:
                return STOPPED, i
            _pass_on(i, gone, state, others)
        elif key == NO_OP and version == 0 and end - p == 4 and data[end - 1] == 0:
            continue
        elif key == TOPIC or key == REMOVE or BEGIN_TRANSACTION <= key <= ABORT_TRANSACTION or key == CLEAR_ELR:
            return STOPPED, i
        else:
            _pass_on(i, -1, state, others)
    return DONE, last


@inlined
def _pass_on(i: Int64, topic: Int64, state: State, others: LongRowsOut) -> None:
    """Note a value that other parts have to replay."""
    at = state.counts[N_OTHERS]
    others[at, 0], others[at, 1] = i, topic
    state.counts[N_OTHERS] = at + 1


@compiled
def count_types(
    data: Bytes, starts: Longs, stops: Longs, first: Int64, last: Int64, step: Int64, counts: LongsOut
) -> None:
    """How many values are of each type and, last, the bytes of TopicRecords: of one in `step`."""
    block = first
    while block < last:
        i = block + (block - first) // step * 7919 % step  # which one differs, as logs repeat themselves
        if i < last and stops[i] - starts[i] >= 3 and data[starts[i] + 1] < TYPES:
            counts[data[starts[i] + 1]] += 1
            if data[starts[i] + 1] == TOPIC:
                counts[TYPES] += stops[i] - starts[i]
        block += step
