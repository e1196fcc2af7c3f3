"""Topic records replayed as `topic_records` does it, with a note of what each of them has made of its partition."""

from __future__ import annotations

from typing import Any

import numpy as np

from kraftlake.kernels.change_state import DIRECTORIES_WRITTEN, DONE, GROW, N_NAMES, N_TOPICS, STOPPED, TOUCHED
from kraftlake.kernels.compiled import compiled, inlined
from kraftlake.kernels.indexes import find_id
from kraftlake.kernels.partition_bytes import read_int, read_long
from kraftlake.kernels.row_lists import COLUMNS, SHAPE
from kraftlake.kernels.topic_records import (
    CHANGE,
    LONGEST_NAME,
    PARTITION,
    REMOVE,
    TOPIC,
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


@compiled
def replay_noting(data: Any, starts: Any, stops: Any, first: int, last: int, base: Any, state: Any, places: Any,
                  rows: Any, did: Any) -> Any:  # fmt: skip
    """Replay the values data[starts[i]:stops[i]] for i in [first, last), of topics all of them.

    Gives a status and the first value that was not replayed, as `topic_records.replay` does. places[i] (int64) is the
    partition's place: its row in the base, or the number of these plus its fresh row; it never changes while the state
    lives. rows[i] (int32[COLUMNS]) is what the partition is after the record, did[i] (uint8) says if that has written
    directories (DIRECTORIES_WRITTEN) or was an election (DID_UNCLEAN, DID_ELIGIBLE). Of a RemoveTopicRecord the place
    is -2 - the topic's number, of a TopicRecord NO_PLACE.
    """
    counts = state.counts
    topics = len(base.ids)
    for i in range(first, last):
        p, end = starts[i], stops[i]
        if end - p < 3 or data[p] != 1 or data[p + 1] >= 128 or data[p + 2] >= 128:
            return STOPPED, i
        key, version = data[p + 1], data[p + 2]
        places[i] = NO_PLACE
        did[i] = 0
        if key == PARTITION or key == CHANGE:
            if version > 2 or end - p < 23:
                return STOPPED, i
            high, low = read_long(data, p + 7), read_long(data, p + 15)
            topic = np.int64(find_id(base.ids, base.index, high, low))
            if topic < 0:
                topic = np.int64(find_id(state.ids, state.index, high, low))
                if topic < 0:
                    return STOPPED, i
                topic += topics
            if not state.alive[topic]:
                return STOPPED, i
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
def list_lengths(rows: Any, base_heap: Any, heap: Any, lengths: Any) -> None:
    """The lengths of the seven lists of each row, into `lengths` (int32[7, n])."""
    for r in range(len(rows)):
        shape = rows[r, SHAPE]
        if shape >= 0:
            lengths[0, r] = shape & 0xFF
            lengths[1, r] = shape >> 8
            lengths[2, r] = shape & 0xFF
            for which in range(3, 7):
                lengths[which, r] = 0
            continue
        at = np.int64(rows[r, 0])
        for which in range(7):
            if at >= len(base_heap):
                lengths[which, r] = heap[at - len(base_heap) + which]
            else:
                lengths[which, r] = base_heap[at + which]


@compiled
def list_values(rows: Any, base_heap: Any, heap: Any, lengths: Any, which: int, values: Any) -> None:
    """The members of one of the lists of each row, one row after the other, into `values`."""
    into = 0
    for r in range(len(rows)):
        count = lengths[which, r]
        if rows[r, SHAPE] >= 0:
            for i in range(count):
                values[into + i] = rows[r, 3 * which + i]
            into += count
            continue
        at = np.int64(rows[r, 0]) + 7
        for before in range(which):
            at += lengths[before, r]
        if at >= len(base_heap):
            at -= len(base_heap)
            for i in range(count):
                values[into + i] = heap[at + i]
        else:
            for i in range(count):
                values[into + i] = base_heap[at + i]
        into += count


@compiled
def heap_size(rows: Any, heap: Any) -> Any:
    """How many numbers the lists of the rows take that have theirs in the heap."""
    size = np.int64(0)
    for r in range(len(rows)):
        if rows[r, SHAPE] < 0:
            size += 7
            for which in range(7):
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
        for which in range(7):
            size += heap[at + which]
        for i in range(size):
            into[to + i] = heap[at + i]
        to += size
