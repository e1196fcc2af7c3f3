"""Topic records replayed as `topic_records` does it, with a journal of what each of them has made of its partition."""

from __future__ import annotations

from kraftlake.kernels.language import (
    Bytes,
    Int64,
    IntRows,
    IntRowsOut,
    Ints,
    IntsOut,
    Longs,
    UInt64,
    compiled,
    inlined,
)
from kraftlake.kernels.partition_row import HEAP_LISTS, SHAPE
from kraftlake.kernels.record_types import CHANGE, PARTITION, REMOVE, TOPIC
from kraftlake.kernels.replay.change_state import (
    BLOCK,
    DIRECTORIES_WRITTEN,
    DONE,
    N_FRESH,
    STOPPED,
    TOUCHED,
    Base,
    State,
)
from kraftlake.kernels.replay.journal import DID_ELIGIBLE, DID_UNCLEAN, NO_PLACE, Journal
from kraftlake.kernels.replay.look_ahead import is_change, look_ahead, place_ahead, topic_of
from kraftlake.kernels.replay.partition_bytes import read_long
from kraftlake.kernels.replay.partition_records import copy_place, place_of
from kraftlake.kernels.replay.plain_records import plain_change
from kraftlake.kernels.replay.topic_records import create_topic, remove_topic, replay_record


@inlined
def _did(flags: Int64, unclean: Int64, eligible: Int64) -> Int64:
    """What the last record has noted of a row, as the journal has it."""
    did = flags & DIRECTORIES_WRITTEN
    if unclean > 0:
        did |= DID_UNCLEAN
    if eligible > 0:
        did |= DID_ELIGIBLE
    return did


@inlined
def _forget(info: IntRowsOut, r: Int64) -> Int64:
    """What the last record has noted of a row; it is noted no more."""
    did = _did(info[r, 0], info[r, 1], info[r, 2])
    info[r, 0] &= TOUCHED
    info[r, 1] = info[r, 2] = 0
    return did


@inlined
def _take_did(place: Int64, base: Base, state: State) -> Int64:
    """What else the last record did to the partition at a place; the state forgets it."""
    if place >= len(base.rows):
        return _forget(state.fresh_info, place - len(base.rows))
    if len(state.dense_flags) == 0:
        return _forget(state.touched_info, state.slots[place] - 1)
    did = _did(state.dense_flags[place], state.dense_elections[place, 0], state.dense_elections[place, 1])
    state.dense_flags[place] &= TOUCHED
    state.dense_elections[place, 0] = state.dense_elections[place, 1] = 0
    return did


@compiled
def replay_journaled(
    data: Bytes, starts: Longs, stops: Longs, first: Int64, last: Int64, base: Base, state: State, journal: Journal,
    made: Int64,
) -> tuple[Int64, Int64, Int64]:  # fmt: skip
    """Replay the values data[starts[i]:stops[i]] for i in [first, last), of topics all of them.

    Gives a status and the first value that was not replayed, as `topic_records.replay` does, and the number of versions
    in the journal, which has `made` of them and room for one for each value. A RemoveTopicRecord makes one version
    without rows, whose place is -2 - the topic's number, a TopicRecord none.
    """
    named: Int64 = -1
    last_high: UInt64 = 0
    last_low: UInt64 = 0
    block = ahead = first
    for i in range(first, last):
        p, end = starts[i], stops[i]
        if i >= ahead and is_change(data, p, end):
            block = i
            ahead = min(i + BLOCK, last)
            look_ahead(data, starts, stops, block, ahead, base, state)
        if i < ahead:
            place = place_ahead(i - block, state)
            if place >= 0:
                copy_place(place, base, state, journal.before, made)
                if plain_change(data, p + 23, end, place, base, state) == DONE:
                    copy_place(place, base, state, journal.after, made)
                    journal.records[made], journal.places[made], journal.did[made] = i, place, 0
                    made += 1
                    continue
        if end - p < 3 or data[p] != 1 or data[p + 1] >= 128 or data[p + 2] >= 128:
            return STOPPED, i, made
        key, version = data[p + 1], data[p + 2]
        if key == PARTITION or key == CHANGE:
            if version > 2 or end - p < 23:
                return STOPPED, i, made
            topic: Int64 = -1
            if i < ahead:
                topic = state.hints[0, i - block]
            if topic < 0:
                high, low = read_long(data, p + 7), read_long(data, p + 15)
                if named < 0 or high != last_high or low != last_low:
                    last_high, last_low = high, low
                    named = topic_of(high, low, base, state)
                topic = named
            if topic < 0 or not state.alive[topic]:
                return STOPPED, i, made
            place = place_of(data, p, topic, base, state)
            copy_place(place, base, state, journal.before, made)
            status = replay_record(data, p, end, topic, base, state)
            if status != DONE:
                return status, i, made
            if place == NO_PLACE:
                place = len(base.rows) + state.counts[N_FRESH] - 1
            copy_place(place, base, state, journal.after, made)
            journal.did[made] = _take_did(place, base, state)
            journal.records[made], journal.places[made] = i, place
            made += 1
        elif key == TOPIC and version == 0:
            status = create_topic(data, p + 3, end, base, state)
            if status != DONE:
                return status, i, made
        elif key == REMOVE and version == 0:
            gone = remove_topic(data, p, end, base, state)
            if gone < 0:
                return STOPPED, i, made
            journal.records[made], journal.places[made] = i, -2 - gone
            made += 1
        else:
            return STOPPED, i, made
    return DONE, last, made


@compiled
def heap_size(rows: IntRows, heap: Ints) -> Int64:
    """How many numbers the lists of the rows take that have theirs in the heap."""
    size: Int64 = 0
    for r in range(len(rows)):
        if rows[r, SHAPE] < 0:
            size += _lists_size(heap, rows[r, 0])
    return size


@inlined
def _lists_size(heap: Ints, at: Int64) -> Int64:
    """How many numbers the lists take that stand in the heap from `at` on."""
    size: Int64 = HEAP_LISTS
    for which in range(HEAP_LISTS):
        size += heap[at + which]
    return size


@compiled
def move_lists(rows: IntRowsOut, heap: Ints, into: IntsOut) -> None:
    """Copy the lists of the rows that have theirs in the heap, one row after the other, into another one."""
    to: Int64 = 0
    for r in range(len(rows)):
        if rows[r, SHAPE] >= 0:
            continue
        at: Int64 = rows[r, 0]
        rows[r, 0] = to
        size = _lists_size(heap, at)
        for i in range(size):
            into[to + i] = heap[at + i]
        to += size
