"""Topic records replayed as `topic_records` does it, with a note of what each of them has made of its partition."""

from __future__ import annotations

from typing import Any

import numpy as np

from kraftlake.kernels.aot.compiled import compiled, inlined
from kraftlake.kernels.partition_row import COLUMNS, HEAP_LISTS, SHAPE
from kraftlake.kernels.record_types import CHANGE, PARTITION, REMOVE, TOPIC
from kraftlake.kernels.replay.change_state import (
    BLOCK,
    DIRECTORIES_WRITTEN,
    DONE,
    GROW,
    N_FRESH,
    N_NAMES,
    N_TOPICS,
    STOPPED,
    TOUCHED,
)
from kraftlake.kernels.replay.indexes import find_id
from kraftlake.kernels.replay.partition_bytes import read_int, read_long
from kraftlake.kernels.replay.plain_records import plain_row_change
from kraftlake.kernels.replay.topic_records import (
    LONGEST_NAME,
    create_topic,
    find_fresh,
    remove_topic,
    replay_record,
)

NO_PLACE = -1
"""The place of a record that is of no partition."""


DID_UNCLEAN, DID_ELIGIBLE = 4, 8
"""Beside DIRECTORIES_WRITTEN: the record was an unclean election, or one from the eligible leader replicas."""


@inlined
def _forget(info: Any, r: Any) -> Any:
    """What the last record has noted of a row; it is noted no more."""
    flags, unclean, eligible = np.int64(info[r, 0]) & DIRECTORIES_WRITTEN, info[r, 1], info[r, 2]
    info[r, 0] &= TOUCHED
    info[r, 1] = info[r, 2] = 0
    return flags, unclean, eligible


@inlined
def _did(flags: Any, unclean: Any, eligible: Any) -> Any:
    return flags | (DID_UNCLEAN if unclean > 0 else 0) | (DID_ELIGIBLE if eligible > 0 else 0)


@inlined
def _note(data: Any, p: Any, topic: Any, base: Any, state: Any, row: Any) -> Any:
    """Copy the row of the partition that the record at `p` names; gives its place, and what else the record did.

    The state forgets the latter, so that each record tells it of itself.
    """
    partition = np.int64(read_int(data, p + 3))
    topics = len(base.ids)
    if topic < topics and 0 <= partition < base.starts[topic + 1] - base.starts[topic]:
        r = np.int64(base.starts[topic]) + partition
        if len(state.dense_flags) > 0:
            for i in range(COLUMNS):
                row[i] = state.dense_rows[r, i]
            flags = np.int64(state.dense_flags[r]) & DIRECTORIES_WRITTEN
            state.dense_flags[r] &= TOUCHED
            unclean, eligible = state.dense_elections[r, 0], state.dense_elections[r, 1]
            state.dense_elections[r, 0] = state.dense_elections[r, 1] = 0
        else:
            at = np.int64(state.slots[r]) - 1
            for i in range(COLUMNS):
                row[i] = state.touched_rows[at, i]
            flags, unclean, eligible = _forget(state.touched_info, at)
        return r, _did(flags, unclean, eligible)
    at = np.int64(find_fresh(state, topic, partition, topics))
    for i in range(COLUMNS):
        row[i] = state.fresh_rows[at, i]
    flags, unclean, eligible = _forget(state.fresh_info, at)
    return np.int64(len(base.rows)) + at, _did(flags, unclean, eligible)


@inlined
def _topic_of(data: Any, p: Any, base: Any, state: Any) -> Any:
    """The number of the topic whose id the record at `p` names, or -1."""
    high, low = read_long(data, p + 7), read_long(data, p + 15)
    topic = np.int64(find_id(base.ids, base.index, high, low))
    if topic < 0:
        topic = np.int64(find_id(state.ids, state.index, high, low))
        if topic >= 0:
            topic += len(base.ids)
    return topic


@inlined
def _look_ahead(data: Any, starts: Any, stops: Any, first: int, last: int, base: Any, state: Any) -> None:
    """Find the topics that the records [first, last) name, or -1, and touch the rows that they change.

    The topics go to hints[0]; to hints[1] the row, dense or fresh, that a PartitionChangeRecord is of, or -1. All of
    them wait for memory at the same time so, not one after the other.
    """
    hints, topics = state.hints, len(base.ids)
    topic = np.int64(-1)
    last_high, last_low = np.uint64(0), np.uint64(0)
    for i in range(first, last):
        k = np.uint64(i - first)
        hints[0, k] = hints[1, k] = -1
        p = np.int64(starts[np.uint64(i)])
        if stops[np.uint64(i)] - p < 23:
            continue
        high, low = read_long(data, p + 7), read_long(data, p + 15)
        if topic < 0 or high != last_high or low != last_low:
            last_high, last_low = high, low
            topic = np.int64(_topic_of(data, p, base, state))
        hints[0, k] = topic
        if topic < 0 or data[np.uint64(p + 1)] != CHANGE:
            continue
        partition = np.int64(read_int(data, p + 3))
        if topic < topics:
            row = np.int64(base.starts[np.uint64(topic)]) + partition
            sound = partition >= 0 and row < base.starts[np.uint64(topic + 1)] and not base.sparse[np.uint64(topic)]
            if sound and len(state.dense_flags) > 0:
                hints[1, k] = row
                hints[2, k] = state.dense_rows[np.uint64(row), SHAPE]
        else:
            row = np.int64(state.firsts[np.uint64(topic - topics)]) + partition
            known = 0 <= row < state.counts[N_FRESH] and state.fresh_topics[np.uint64(row)] == topic
            if known and state.fresh_partitions[np.uint64(row)] == partition:
                hints[1, k] = row
                hints[2, k] = state.fresh_rows[np.uint64(row), SHAPE]


@inlined
def _note_plain(data: Any, p: Any, end: int, topic: Any, row: Any, base: Any, state: Any, noted: Any) -> Any:
    """Replay a PartitionChangeRecord on a row that `_look_ahead` has found, and copy the row; gives its place.

    -1, and nothing done, where the record or the row is not plain. Neither writes directories nor is an election.
    """
    at = np.uint64(row)
    if topic < len(base.ids):
        if not plain_row_change(state.dense_rows, at, data, p + 23, end):
            return np.int64(-1)
        state.dense_flags[at] |= TOUCHED
        for i in range(COLUMNS):
            noted[i] = state.dense_rows[at, i]
        return row
    if not plain_row_change(state.fresh_rows, at, data, p + 23, end):
        return np.int64(-1)
    for i in range(COLUMNS):
        noted[i] = state.fresh_rows[at, i]
    return np.int64(len(base.rows)) + row


@compiled
def replay_journaled(data: Any, starts: Any, stops: Any, first: int, last: int, base: Any, state: Any, places: Any,
                  rows: Any, did: Any) -> Any:  # fmt: skip
    """Replay the values data[starts[i]:stops[i]] for i in [first, last), of topics all of them.

    Gives a status and the first value that was not replayed, as `topic_records.replay` does. places[i] (int64) is the
    partition's place: its row in the base, or the number of these plus its fresh row; it never changes while the state
    lives. rows[i] (int32[COLUMNS]) is what the partition is after the record, did[i] (uint8) says if that has written
    directories (DIRECTORIES_WRITTEN) or was an election (DID_UNCLEAN, DID_ELIGIBLE). Of a RemoveTopicRecord the place
    is -2 - the topic's number, of a TopicRecord NO_PLACE.
    """
    counts = state.counts
    block = ahead = first
    for i in range(first, last):
        if i >= ahead:
            block, ahead = i, min(i + BLOCK, last)
            _look_ahead(data, starts, stops, block, ahead, base, state)
        p, end = starts[np.uint64(i)], stops[np.uint64(i)]
        q = np.uint64(p)
        if end - p < 3 or data[q] != 1 or data[q + np.uint64(1)] >= 128 or data[q + np.uint64(2)] >= 128:
            return STOPPED, i
        key, version = data[q + np.uint64(1)], data[q + np.uint64(2)]
        places[np.uint64(i)] = NO_PLACE
        did[np.uint64(i)] = 0
        if key == PARTITION or key == CHANGE:
            if version > 2 or end - p < 23:
                return STOPPED, i
            topic = np.int64(state.hints[0, np.uint64(i - block)])
            if topic < 0:
                topic = np.int64(_topic_of(data, p, base, state))  # it may have come since
                if topic < 0:
                    return STOPPED, i
            if not state.alive[np.uint64(topic)]:
                return STOPPED, i
            row = np.int64(state.hints[1, np.uint64(i - block)])
            if row >= 0:
                place = _note_plain(data, p, end, topic, row, base, state, rows[np.uint64(i)])
                if place >= 0:
                    places[np.uint64(i)] = place
                    continue
            status = replay_record(data, p, end, topic, base, state)
            if status != DONE:
                return status, i
            places[i], did[i] = _note(data, p, topic, base, state, rows[i])
        elif key == TOPIC and version == 0:
            if counts[N_NAMES] + LONGEST_NAME + 1 > len(state.names) or counts[N_TOPICS] >= len(state.firsts):
                return GROW, i
            if create_topic(data, p + 3, end, base, state) != DONE:
                return STOPPED, i
        elif key == REMOVE and version == 0:
            gone = np.int64(remove_topic(data, p, end, base, state))
            if gone < 0:
                return STOPPED, i
            places[i] = -2 - gone
        else:
            return STOPPED, i
    return DONE, last


@compiled
def heap_size(rows: Any, heap: Any) -> Any:
    """How many numbers the lists of the rows take that have theirs in the heap."""
    size = np.int64(0)
    for r in range(len(rows)):
        if rows[r, SHAPE] < 0:
            size += 7
            for which in range(HEAP_LISTS):
                size += heap[np.int64(rows[r, 0]) + which]
    return size


@compiled
def move_lists(rows: Any, heap: Any, into: Any) -> None:
    """Copy the lists of the rows that have theirs in the heap, one row after the other, into another one."""
    to = np.int64(0)
    for r in range(len(rows)):
        if rows[r, SHAPE] >= 0:
            continue
        at = np.int64(rows[r, 0])
        rows[r, 0] = to
        size = np.int64(7)
        for which in range(HEAP_LISTS):
            size += heap[at + which]
        for i in range(size):
            into[to + i] = heap[at + i]
        to += size
