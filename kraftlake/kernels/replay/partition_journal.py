"""Topic records replayed as `topic_records` does it, with a journal of what each of them has made of its partition."""

from __future__ import annotations

from typing import Any

import numpy as np

from kraftlake.kernels.language import compiled, inlined
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
"""The place of a partition that is not there."""

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
def _place_of(data: Any, p: Any, topic: Any, base: Any, state: Any) -> Any:
    """The place of the partition that the record at `p` names, or NO_PLACE."""
    partition = np.int64(read_int(data, p + 3))
    topics = len(base.ids)
    if topic < topics and 0 <= partition < base.starts[topic + 1] - base.starts[topic]:
        return np.int64(base.starts[topic]) + partition
    at = np.int64(find_fresh(state, topic, partition, topics))
    return np.int64(NO_PLACE) if at < 0 else np.int64(len(base.rows)) + at


@inlined
def _copy_row(place: Any, base: Any, state: Any, row: Any) -> None:
    """Copy the row at a place, zeros for NO_PLACE."""
    if place == NO_PLACE:
        for i in range(COLUMNS):
            row[i] = 0
        return
    rows, at = base.rows, place
    if place >= len(base.rows):
        rows, at = state.fresh_rows, place - len(base.rows)
    elif len(state.dense_flags) > 0:
        rows = state.dense_rows
    elif state.slots[place] > 0:
        rows, at = state.touched_rows, np.int64(state.slots[place]) - 1
    for i in range(COLUMNS):
        row[i] = rows[at, i]


@inlined
def _take_did(place: Any, base: Any, state: Any) -> Any:
    """What else the last record did to the partition at a place; the state forgets it."""
    if place >= len(base.rows):
        flags, unclean, eligible = _forget(state.fresh_info, place - len(base.rows))
    elif len(state.dense_flags) > 0:
        flags = np.int64(state.dense_flags[place]) & DIRECTORIES_WRITTEN
        state.dense_flags[place] &= TOUCHED
        unclean, eligible = state.dense_elections[place, 0], state.dense_elections[place, 1]
        state.dense_elections[place, 0] = state.dense_elections[place, 1] = 0
    else:
        flags, unclean, eligible = _forget(state.touched_info, np.int64(state.slots[place]) - 1)
    return flags | (DID_UNCLEAN if unclean > 0 else 0) | (DID_ELIGIBLE if eligible > 0 else 0)


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
    topic = -1
    last_high, last_low = 0, 0
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
def _replay_plain(data: Any, p: Any, end: int, topic: Any, row: Any, base: Any, state: Any, before: Any,
                  after: Any) -> Any:  # fmt: skip
    """Replay a PartitionChangeRecord on a row that `_look_ahead` has found, and copy the row; gives its place.

    NO_PLACE, and nothing done, where the record or the row is not plain. Neither writes directories nor is an election.
    """
    at, rows, place = np.uint64(row), state.fresh_rows, np.int64(len(base.rows)) + row
    if topic < len(base.ids):
        rows, place = state.dense_rows, row
    for i in range(COLUMNS):
        before[i] = rows[at, i]
    if not plain_row_change(rows, at, data, p + 23, end):
        return np.int64(NO_PLACE)
    if topic < len(base.ids):
        state.dense_flags[at] |= TOUCHED
    for i in range(COLUMNS):
        after[i] = rows[at, i]
    return place


@compiled
def replay_journaled(data: Any, starts: Any, stops: Any, first: int, last: int, base: Any, state: Any, journal: Any,
                     made: int) -> Any:  # fmt: skip
    """Replay the values data[starts[i]:stops[i]] for i in [first, last), of topics all of them.

    Gives a status and the first value that was not replayed, as `topic_records.replay` does, and the number of versions
    in the journal, which has `made` of them and room for one for each value. Of version v, records[v] (int64) is the
    number of its value, places[v] (int64) the partition's place: its row in the base, or the number of these plus its
    fresh row; it never changes while the state lives. before[v] (int32[COLUMNS]; zeros for a new partition) is what the
    partition is before the record, after[v] what it is after it, did[v] (uint8) says if that has written directories
    (DIRECTORIES_WRITTEN) or was an election (DID_UNCLEAN, DID_ELIGIBLE). A RemoveTopicRecord makes one version without
    rows, whose place is -2 - the topic's number, a TopicRecord none.
    """
    counts = state.counts
    block = ahead = first
    for i in range(first, last):
        if i >= ahead:
            block, ahead = i, min(i + BLOCK, last)
            _look_ahead(data, starts, stops, block, ahead, base, state)
        p, end = starts[np.uint64(i)], stops[np.uint64(i)]
        q = np.uint64(p)
        if end - p < 3 or data[q] != 1 or data[q + 1] >= 128 or data[q + 2] >= 128:
            return STOPPED, i, made
        key, version = data[q + 1], data[q + 2]
        v = np.uint64(made)
        if key == PARTITION or key == CHANGE:
            if version > 2 or end - p < 23:
                return STOPPED, i, made
            topic = np.int64(state.hints[0, np.uint64(i - block)])
            if topic < 0:
                topic = np.int64(_topic_of(data, p, base, state))  # it may have come since
                if topic < 0:
                    return STOPPED, i, made
            if not state.alive[np.uint64(topic)]:
                return STOPPED, i, made
            row, place = np.int64(state.hints[1, np.uint64(i - block)]), np.int64(NO_PLACE)
            journal.did[v] = 0
            if row >= 0:
                rows = journal.before[v], journal.after[v]
                place = np.int64(_replay_plain(data, p, end, topic, row, base, state, rows[0], rows[1]))
            if place == NO_PLACE:
                place = np.int64(_place_of(data, p, topic, base, state))
                _copy_row(place, base, state, journal.before[v])
                status = replay_record(data, p, end, topic, base, state)
                if status != DONE:
                    return status, i, made
                if place == NO_PLACE:
                    place = np.int64(len(base.rows)) + counts[N_FRESH] - 1
                _copy_row(place, base, state, journal.after[v])
                journal.did[v] = _take_did(place, base, state)
            journal.records[v], journal.places[v] = i, place
            made += 1
        elif key == TOPIC and version == 0:
            if counts[N_NAMES] + LONGEST_NAME + 1 > len(state.names) or counts[N_TOPICS] >= len(state.firsts):
                return GROW, i, made
            if create_topic(data, p + 3, end, base, state) != DONE:
                return STOPPED, i, made
        elif key == REMOVE and version == 0:
            gone = np.int64(remove_topic(data, p, end, base, state))
            if gone < 0:
                return STOPPED, i, made
            journal.records[v], journal.places[v] = i, -2 - gone
            made += 1
        else:
            return STOPPED, i, made
    return DONE, last, made


@compiled
def heap_size(rows: Any, heap: Any) -> Any:
    """How many numbers the lists of the rows take that have theirs in the heap."""
    size = 0
    for r in range(len(rows)):
        if rows[r, SHAPE] < 0:
            size += 7
            for which in range(HEAP_LISTS):
                size += heap[np.int64(rows[r, 0]) + which]
    return size


@compiled
def move_lists(rows: Any, heap: Any, into: Any) -> None:
    """Copy the lists of the rows that have theirs in the heap, one row after the other, into another one."""
    to = 0
    for r in range(len(rows)):
        if rows[r, SHAPE] >= 0:
            continue
        at = np.int64(rows[r, 0])
        rows[r, 0] = to
        size = 7
        for which in range(HEAP_LISTS):
            size += heap[at + which]
        for i in range(size):
            into[to + i] = heap[at + i]
        to += size
