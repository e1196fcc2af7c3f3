"""The bytes of topic, partition and partition change records, replayed on rows of numbers.

Rows and the heap are those of `image.topics.partition_rows`. A record is either replayed whole or changes nothing: the
loop stops before a record that is unusual or wrong, and objects replay that one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kraftlake.kernels.language import compiled, inlined
from kraftlake.kernels.partition_row import LEADER
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
    DIRECTORIES_WRITTEN,
    DONE,
    GROW,
    LONGEST,
    N_DIRECTORIES,
    N_FRESH,
    N_HEAP,
    N_NAMES,
    N_ODD,
    N_OTHERS,
    N_TOPICS,
    N_TOUCHED,
    OTHER,
    STOPPED,
    TOUCHED,
)
from kraftlake.kernels.replay.indexes import find_id, free_place, hash_name, insert_id, mix
from kraftlake.kernels.replay.partition_bytes import read_change, read_int, read_long, read_partition, read_uvarint
from kraftlake.kernels.replay.plain_records import plain_change, plain_partition
from kraftlake.kernels.replay.row_lists import all_migrating, load_row, merge, migrate, store_row

LONGEST_NAME = 249
"""Characters of a topic's name, as Kafka has it."""


@inlined
def find_fresh(state: Any, topic: Any, partition: Any, topics: int) -> Any:
    """The fresh row of a partition, or -1."""
    if topic >= topics:
        r = state.firsts[topic - topics] + partition
        if 0 <= r < state.counts[N_FRESH] and state.fresh_topics[r] == topic and state.fresh_partitions[r] == partition:
            return r
    if state.counts[N_ODD] == 0:
        return -1
    mask = np.uint64(len(state.fresh_index) - 1)
    at = mix(np.uint64(topic), np.uint64(partition)) & mask
    while state.fresh_index[at] != 0:
        r = state.fresh_index[at] - 1
        if state.fresh_topics[r] == topic and state.fresh_partitions[r] == partition:
            return r
        at = (at + 1) & mask
    return -1


@inlined
def _add_fresh(state: Any, topic: Any, partition: Any, topics: int) -> Any:
    r = state.counts[N_FRESH]
    state.counts[N_FRESH] += 1
    state.fresh_topics[r] = topic
    state.fresh_partitions[r] = partition
    state.fresh_info[r, 0] = state.fresh_info[r, 1] = state.fresh_info[r, 2] = 0
    state.sizes[topic] += 1
    if topic >= topics and state.sizes[topic] == 1:
        state.firsts[topic - topics] = r - partition
    elif topic < topics or state.firsts[topic - topics] + partition != r:
        state.fresh_index[free_place(state.fresh_index, mix(np.uint64(topic), np.uint64(partition)))] = r + 1
        state.counts[N_ODD] += 1
    return r


@inlined
def create_topic(data: Any, p: Any, end: int, base: Any, state: Any) -> Any:
    """Replay a TopicRecord."""
    counts = state.counts
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
    mask = np.uint64(len(state.name_hashes) - 1)
    at = x & mask
    while state.name_topics[at] != 0:
        if state.name_hashes[at] == x:
            if state.alive[state.name_topics[at] - 1]:
                return STOPPED
            break
        at = (at + 1) & mask
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


@inlined
def _elections(info: Any, column: int, r: Any, recovery: int, leader: int, state: Any) -> None:
    """Count an unclean election and one from the ELR, in two columns of `info`."""
    if recovery == 1:
        info[r, column] += 1
    for i in range(state.before_lengths[5]):
        if state.before[5, i] == leader:
            info[r, column + 1] += 1
            break


@inlined
def _partition(data: Any, p: Any, end: int, key: int, version: int, topic: Any, base: Any, state: Any) -> Any:
    """Replay a PartitionRecord or PartitionChangeRecord of a topic; `p` is at the partition id."""
    topics = len(base.ids)
    numbers = state.numbers
    partition = read_int(data, p)
    if topic < topics and base.sparse[topic]:
        return STOPPED
    in_base = False
    r = -1
    base_row = -1
    dense = len(state.dense_flags) > 0
    if topic < topics and 0 <= partition < base.starts[topic + 1] - base.starts[topic]:
        base_row = np.int64(base.starts[topic]) + partition
        in_base = True
        r = base_row if dense else np.int64(state.slots[base_row]) - 1
        if r < 0 and state.counts[N_TOUCHED] >= len(state.touched):
            return GROW
    else:
        r = np.int64(find_fresh(state, topic, partition, topics))
        if partition < 0 or (key == CHANGE and r < 0):
            return STOPPED
        full = state.counts[N_FRESH] >= len(state.fresh_topics) or 2 * state.counts[N_ODD] >= len(state.fresh_index)
        if r < 0 and full:
            return GROW
    there = in_base or r >= 0
    whole = key == PARTITION
    if whole:
        good = read_partition(data, p + 20, end, version, state, numbers)
    else:
        good = read_change(data, p + 20, end, version, state, numbers)
    if not good:
        return STOPPED
    leader, recovery, wrote_directories = numbers[0], numbers[3], state.lengths[2] >= 0
    rows, at = state.fresh_rows, r
    if in_base:
        rows = state.dense_rows if dense else state.touched_rows
    if there:
        if in_base and r < 0:
            loaded = load_row(base.rows, base_row, base.heap, state.heap, state.before, state.before_lengths)
        else:
            loaded = load_row(rows, at, base.heap, state.heap, state.before, state.before_lengths)
        if not loaded:
            return STOPPED
    if whole:
        if all_migrating(state.lists, state.lengths) and (state.lengths[2] in (0, state.lengths[0])):
            migrate(state.lists, state.lengths)
        if state.lengths[2] != state.lengths[0]:
            return STOPPED
    elif in_base and r < 0:
        if not merge(base.rows, base_row, numbers, state):
            return STOPPED
    elif not merge(rows, at, numbers, state):
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
    store_row(rows, r, numbers, base.heap, state)
    flags = TOUCHED | (DIRECTORIES_WRITTEN if wrote_directories else 0)
    if in_base and dense:
        state.dense_flags[r] |= flags
        _elections(state.dense_elections, 0, r, recovery, leader, state)
        return DONE
    info = state.touched_info if in_base else state.fresh_info
    info[r, 0] |= flags
    if there:
        _elections(info, 1, r, recovery, leader, state)
    return DONE


@inlined
def _look_ahead(data: Any, starts: Any, stops: Any, first: int, last: int, base: Any, state: Any) -> None:
    """Find the topics of the base that the records [first, last) name, and touch the rows that they change.

    Their numbers, or -1, go to hints[0]; to hints[1] the rows of those that are PartitionChangeRecords of such a topic
    without odd partition ids, or -1. All of them wait for memory at the same time so, not one after the other.
    """
    hints = state.hints
    dense = len(state.dense_flags) > 0
    topic = -1
    begin, size = 0, 0
    last_high, last_low = 0, 0
    for i in range(first, last):
        k = np.uint64(i - first)
        hints[0, k] = hints[1, k] = -1
        p = starts[np.uint64(i)]
        if stops[np.uint64(i)] - p < 23:
            continue
        high, low = read_long(data, p + 7), read_long(data, p + 15)
        if high != last_high or low != last_low:
            last_high, last_low = high, low
            topic = np.int64(_next_or_found(base, topic, high, low))
            if topic >= 0:
                begin = np.int64(base.starts[np.uint64(topic)])
                size = base.starts[np.uint64(topic + 1)] - begin
        hints[0, k] = topic
        partition = np.int64(read_int(data, p + 3))
        if topic >= 0 and 0 <= partition < size:
            row = np.uint64(begin + partition)
            if _is_change(data, p) and not base.sparse[np.uint64(topic)]:
                hints[1, k] = row
            if dense:
                hints[2, k] = state.dense_rows[row, LEADER]
            else:
                hints[2, k] = state.slots[row] + base.rows[row, LEADER]


@inlined
def _is_change(data: Any, p: Any) -> Any:
    """Whether the value at `p` begins as a PartitionChangeRecord does."""
    q = np.uint64(p)
    return data[q] == 1 and data[q + 1] == CHANGE and data[q + 2] <= 2


@inlined
def _next_or_found(base: Any, topic: Any, high: Any, low: Any) -> Any:
    """The number of the topic of the base with an id, or -1; a log often names the topic after the last one."""
    following = np.uint64(topic + 1)
    if following < np.uint64(len(base.ids)) and base.ids[following, 0] == high and base.ids[following, 1] == low:
        return topic + 1
    return np.int64(find_id(base.ids, base.index, high, low))


@compiled
def changes_ahead(data: Any, starts: Any, stops: Any, first: int, last: int, base: Any, state: Any) -> Any:
    """Look up what the records [first, last) name, and replay those that are plain changes, up to one that is not.

    Gives the first that was not replayed, or `last`. A function of its own: within `replay` it would slow down the loop
    over new partitions.
    """
    _look_ahead(data, starts, stops, first, last, base, state)
    for i in range(first, last):
        k = np.uint64(i - first)
        row = np.int64(state.hints[1, k])
        if row < 0 or not state.alive[np.uint64(state.hints[0, k])]:
            return i
        if plain_change(data, starts[np.uint64(i)] + 23, stops[np.uint64(i)], row, base, state) != DONE:
            return i
    return last


@inlined
def replay_record(data: Any, p: Any, end: int, topic: Any, base: Any, state: Any) -> Any:
    """Replay a record of a partition of a topic that is alive; `p` is at the value's start."""
    key, version = data[p + 1], data[p + 2]
    topics = len(base.ids)
    partition = np.int64(read_int(data, p + 3))
    status = OTHER
    if topic >= topics:
        if key == PARTITION and version >= 1 and state.counts[N_ODD] == 0:
            status = plain_partition(data, p + 23, end, topic, partition, topics, state)
    elif key == CHANGE and not base.sparse[topic]:
        row = np.int64(base.starts[topic]) + partition
        if partition >= 0 and row < base.starts[topic + 1]:
            status = plain_change(data, p + 23, end, row, base, state)
    if status != OTHER:
        return status
    counts = state.counts
    if counts[N_HEAP] + 7 * (LONGEST + 1) > len(state.heap) or counts[N_DIRECTORIES] + LONGEST > len(state.directories):
        return GROW
    return _partition(data, p + 3, end, key, version, topic, base, state)


@compiled
def replay(data: Any, starts: Any, stops: Any, first: int, last: int, base: Any, state: Any, others: Any) -> Any:
    """Replay the values data[starts[i]:stops[i]] for i in [first, last).

    Gives a status and the first value that was not replayed. Values of other types are passed over: their places go to
    `others` (int64[n, 2]) with -1, and those of RemoveTopicRecords with the number of the topic. GROW: some array has
    to grow before it goes on.
    """
    counts = state.counts
    topic = -1
    last_high, last_low = 0, 0
    topics = len(base.ids)
    ahead = block = replayed = first
    for i in range(first, last):
        if topics > 0:
            if i >= ahead:
                block = i
                ahead = min(i + BLOCK, last)
                replayed = changes_ahead(data, starts, stops, block, ahead, base, state)
            if i < replayed:
                continue
        p, end = starts[np.uint64(i)], stops[np.uint64(i)]
        q = np.uint64(p)
        if end - p < 3 or data[q] != 1 or data[q + 1] >= 128 or data[q + 2] >= 128:
            return STOPPED, i
        key, version = data[q + 1], data[q + 2]
        if key == PARTITION or key == CHANGE:
            if version > 2 or end - p < 23:
                return STOPPED, i
            known = np.int64(state.hints[0, np.uint64(i - block)]) if topics > 0 else -1
            if known < 0:
                high, low = read_long(data, p + 7), read_long(data, p + 15)
                if topic < 0 or high != last_high or low != last_low:
                    topic = np.int64(find_id(state.ids, state.index, high, low))
                    if topic < 0:
                        return STOPPED, i
                    topic += topics
                    last_high, last_low = high, low
                known = topic
            if not state.alive[np.uint64(known)]:
                return STOPPED, i
            status = replay_record(data, p, end, known, base, state)
            if status != DONE:
                return status, i
        elif key == TOPIC and version == 0:
            if counts[N_NAMES] + LONGEST_NAME + 1 > len(state.names) or counts[N_TOPICS] >= len(state.firsts):
                return GROW, i
            if create_topic(data, p + 3, end, base, state) != DONE:
                return STOPPED, i
        elif key == REMOVE and version == 0:
            gone = remove_topic(data, p, end, base, state)
            if gone < 0:
                return STOPPED, i
            others[counts[N_OTHERS], 0] = i
            others[counts[N_OTHERS], 1] = gone
            counts[N_OTHERS] += 1
        elif key == NO_OP and version == 0 and end - p == 4 and data[end - 1] == 0:
            continue
        elif key == TOPIC or key == REMOVE or BEGIN_TRANSACTION <= key <= ABORT_TRANSACTION or key == CLEAR_ELR:
            return STOPPED, i
        else:
            others[counts[N_OTHERS], 0] = i
            others[counts[N_OTHERS], 1] = -1
            counts[N_OTHERS] += 1
    return DONE, last


@inlined
def remove_topic(data: Any, p: Any, end: int, base: Any, state: Any) -> Any:
    """Replay a RemoveTopicRecord; gives the topic's number, -1 where it can't be."""
    if end - p != 20 or data[end - 1] != 0:
        return -1
    high, low = read_long(data, p + 3), read_long(data, p + 11)
    gone = np.int64(find_id(base.ids, base.index, high, low))
    if gone < 0:
        gone = np.int64(find_id(state.ids, state.index, high, low))
        if gone < 0:
            return gone
        gone += len(base.ids)
    if not state.alive[gone]:
        return -1
    state.alive[gone] = 0
    return gone


@compiled
def count_types(data: Any, starts: Any, stops: Any, first: int, last: int, step: int, counts: Any) -> None:
    """How many values are of each type and, last, the bytes of TopicRecords: of one in `step`."""
    for block in range(first, last, step):
        i = block + (block - first) // step * 7919 % step  # which one differs, as logs repeat themselves
        if i < last and stops[i] - starts[i] >= 3 and data[starts[i] + 1] < TYPES:
            counts[data[starts[i] + 1]] += 1
            counts[TYPES] += stops[i] - starts[i] if data[starts[i] + 1] == TOPIC else 0
