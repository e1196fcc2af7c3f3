"""The bytes of topic, partition and partition change records, replayed on rows of numbers.

Rows and the heap are those of `image.topics.partition_rows`. A record is either replayed whole or changes nothing, but
for a ClearElrRecord that needs more room and goes on: the loop stops before a record that contradicts the state.
"""

from __future__ import annotations

from kraftlake.kernels import record_types as kind
from kraftlake.kernels.language import Bool, Bytes, Int64, LongRowsOut, Longs, LongsOut, UInt64, compiled, inlined
from kraftlake.kernels.replay import change_state as change
from kraftlake.kernels.replay.change_state import Base, State
from kraftlake.kernels.replay.indexes import hash_name, put_id
from kraftlake.kernels.replay.journal import NO_PLACE, Journal
from kraftlake.kernels.replay.look_ahead import is_change, look_ahead, place_ahead, topic_of
from kraftlake.kernels.replay.partition_bytes import read_int, read_long, read_uvarint
from kraftlake.kernels.replay.partition_journal import note_before, note_version, take_did
from kraftlake.kernels.replay.partition_records import copy_place, place_of, replay_partition
from kraftlake.kernels.replay.plain_records import plain_change, plain_partition
from kraftlake.kernels.replay.whole_topics import clear_partitions, end_partitions


@inlined
def _name_slot(data: Bytes, p: Int64, length: Int64, x: UInt64, state: State) -> Int64:
    """The slot of the name at `p`, whose hash is x, in the table of names, or a free slot."""
    mask: Int64 = len(state.name_hashes) - 1
    at: Int64 = x & mask
    while state.name_topics[at] != 0:
        if state.name_hashes[at] == x:
            topic: Int64 = state.name_topics[at] - 1
            begin: Int64 = state.name_ends[topic - 1] + 1 if topic > 0 else 0
            same: Bool = state.name_ends[topic] - begin == length
            k: Int64 = 0
            while same and k < length:
                same = state.names[begin + k] == data[p + k]
                k += 1
            if same:
                return at
        at = (at + 1) & mask
    return at


@inlined
def create_topic(i: Int64, data: Bytes, p: Int64, end: Int64, base: Base, state: State, journal: Journal) -> Int64:
    """Replay a TopicRecord; what stands behind its frame begins at `p`."""
    length, p = read_uvarint(data, p, end)
    length -= 1
    if p < 0 or length < 0 or p + length + 17 != end or data[end - 1] != 0:
        return change.STOPPED
    if not state.counts[change.IS_CHECKED]:
        for k in range(p, p + length):
            if data[k] >= 128:
                return change.STOPPED
    used, place = state.counts[change.N_NAMES], state.counts[change.N_TOPICS]
    if used + length + 1 > len(state.names) or place >= len(state.firsts) or len(state.name_hashes) == 0:
        return change.GROW
    high, low = read_long(data, p + length), read_long(data, p + length + 8)
    topic = topic_of(high, low, base, state)
    x = hash_name(data, p, p + length)
    at = _name_slot(data, p, length, x, state)
    holder: Int64 = state.name_topics[at] - 1
    if topic >= 0 and holder == topic:
        return _begin_again(i, topic, base, state, journal)
    if (topic >= 0 and state.alive[topic]) or (holder >= 0 and state.alive[holder]):
        return change.STOPPED
    topic = len(base.ids) + place
    state.name_hashes[at] = x
    state.name_topics[at] = topic + 1
    put_id(state.ids, state.index, high, low, place)
    state.ids[place, 0] = high
    state.ids[place, 1] = low
    state.alive[topic] = change.ALIVE
    state.sizes[topic] = state.begins[topic] = 0
    state.firsts[place] = 0
    for k in range(length):
        state.names[used + k] = data[p + k]
    state.names[used + length] = 10
    state.name_ends[topic] = used + length
    state.counts[change.N_NAMES] = used + length + 1
    state.counts[change.N_TOPICS] = place + 1
    return change.DONE


@inlined
def _begin_again(i: Int64, topic: Int64, base: Base, state: State, journal: Journal) -> Int64:
    """Replay the TopicRecord of a topic with the id and name of one that is there or was."""
    exists: Bool = state.alive[topic] != change.GONE
    status = end_partitions(i, topic, exists and len(journal.records) > 0, True, base, state, journal)
    if status != change.DONE:
        return status
    if state.alive[topic] != change.AGAIN:
        state.alive[topic] = change.ANEW if exists else change.AGAIN
    return change.OTHER if not exists else change.DONE


@inlined
def remove_topic(
    i: Int64, data: Bytes, p: Int64, end: Int64, base: Base, state: State, journal: Journal
) -> tuple[Int64, Int64]:
    """Replay a RemoveTopicRecord; gives a status and the topic's number."""
    if end - p != 20 or data[end - 1] != 0 or state.counts[change.HAS_TAKEN_NAMES]:
        return change.STOPPED, -1
    gone = topic_of(read_long(data, p + 3), read_long(data, p + 11), base, state)
    if gone < 0 or not state.alive[gone]:
        return change.STOPPED, -1
    if len(journal.records) > 0 and end_partitions(i, gone, True, False, base, state, journal) == change.GROW:
        return change.GROW, -1
    state.alive[gone] = change.GONE
    return change.DONE, gone


@inlined
def clear_elr(i: Int64, data: Bytes, p: Int64, end: Int64, base: Base, state: State, journal: Journal) -> Int64:
    """Replay a ClearElrRecord; what stands behind its frame begins at `p`."""
    topic: Int64 = -1
    length, p = read_uvarint(data, p, end)
    length -= 1
    if p < 0 or length < 0 or p + length + 1 != end or data[end - 1] != 0:
        return change.STOPPED
    if length > 0:
        if len(state.name_hashes) == 0:
            return change.GROW
        topic = state.name_topics[_name_slot(data, p, length, hash_name(data, p, p + length), state)] - 1
        if topic < 0 or not state.alive[topic]:
            return change.STOPPED
    status = clear_partitions(i, topic, base, state, journal)
    if status == change.DONE:
        state.counts[change.HAS_CLEARED_ELR] = 1
    return status


@inlined
def replay_record(data: Bytes, p: Int64, end: Int64, topic: Int64, base: Base, state: State) -> Int64:
    """Replay a record of a partition of a topic that is alive; `p` is at the value's start."""
    key, version = data[p + 1], data[p + 2]
    topics: Int64 = len(base.ids)
    partition: Int64 = read_int(data, p + 3)
    status: Int64 = change.OTHER
    if key == kind.CHANGE:
        place = place_of(topic, partition, base, state)
        if place != NO_PLACE:
            status = plain_change(data, p + 23, end, place, base, state)
    elif (
        topic >= topics
        and version >= 1
        and (state.counts[change.N_ODD] == 0 or place_of(topic, partition, base, state) == NO_PLACE)
    ):
        status = plain_partition(data, p + 23, end, topic, partition, topics, state)
    if status != change.OTHER:
        return status
    return replay_partition(data, p + 3, end, key, version, topic, base, state)


@inlined
def _replay_values(
    data: Bytes, starts: Longs, stops: Longs, first: Int64, last: Int64, base: Base, state: State, journal: Journal,
    others: LongRowsOut, journaled: Bool,
) -> tuple[Int64, Int64]:  # fmt: skip
    """Replay the values data[starts[i]:stops[i]] for i in [first, last).

    Gives a status and the first value that was not replayed. Values of other types are passed over: their places go to
    `others` (int64[n, 2]) with -1, and those of RemoveTopicRecords with the number of the topic. A journal has room for
    a version for each value. GROW: some array has to grow before it goes on.
    """
    made = state.counts[change.N_VERSIONS]
    topic: Int64 = -1
    last_high: UInt64 = 0
    last_low: UInt64 = 0
    place: Int64 = NO_PLACE
    ahead = block = first
    for i in range(first, last):
        p, end = starts[i], stops[i]
        if i >= ahead and is_change(data, p, end):
            block = i
            ahead = min(i + change.BLOCK, last)
            look_ahead(data, starts, stops, block, ahead, base, state)
        if i < ahead:
            place = place_ahead(i - block, state)
            if place >= 0 and (not journaled or made < len(journal.records)):
                if journaled:
                    copy_place(place, base, state, journal.before, made)
                if plain_change(data, p + 23, end, place, base, state) == change.DONE:
                    if journaled:
                        note_version(made, i, place, 0, base, state, journal)
                        made += 1
                    continue
        if end - p > 3 and data[p] == 1 and data[p + 1] >= 128 and 0 < data[p + 2] < 128:
            _pass_on(i, -1, state, others)  # its type has a number from 128 on: none of Kafka's
            continue
        if end - p < 3 or data[p] != 1 or data[p + 1] >= 128 or data[p + 2] >= 128:
            return change.STOPPED, i
        key, version = data[p + 1], data[p + 2]
        if key == kind.PARTITION or key == kind.CHANGE:
            if version > 2 or end - p < 23:
                return change.STOPPED, i
            known: Int64 = -1
            if i < ahead:
                known = state.hints[0, i - block]
            if known < 0:
                high, low = read_long(data, p + 7), read_long(data, p + 15)
                if topic < 0 or high != last_high or low != last_low:
                    topic = topic_of(high, low, base, state)
                    if topic < 0:
                        return change.STOPPED, i
                    last_high, last_low = high, low
                known = topic
            if not state.alive[known]:
                last_high, last_low = read_long(data, p + 7), read_long(data, p + 15)
                known = topic = topic_of(last_high, last_low, base, state)
                if known < 0 or not state.alive[known]:
                    return change.STOPPED, i
            if journaled:
                if made >= len(journal.records):
                    state.counts[change.VERSIONS_NEEDED] = made + 1
                    return change.GROW, i
                place = place_of(known, read_int(data, p + 3), base, state)
                note_before(made, place, base, state, journal)
            status = replay_record(data, p, end, known, base, state)
            if status != change.DONE:
                return status, i
            if journaled:
                if place == NO_PLACE:
                    place = len(base.rows) + state.counts[change.N_FRESH] - 1
                note_version(made, i, place, take_did(place, base, state), base, state, journal)
                made += 1
        elif key == kind.TOPIC and version == 0:
            created = state.counts[change.N_TOPICS]
            status = create_topic(i, data, p + 3, end, base, state, journal)
            if status != change.DONE and status != change.OTHER:
                return status, i
            made = state.counts[change.N_VERSIONS]
            if journaled and (status == change.OTHER or state.counts[change.N_TOPICS] > created):
                high, low = read_long(data, end - 17), read_long(data, end - 9)
                _pass_on(i, topic_of(high, low, base, state), state, others)
        elif key == kind.REMOVE and version == 0:
            status, gone = remove_topic(i, data, p, end, base, state, journal)
            if status != change.DONE:
                return status, i
            made = state.counts[change.N_VERSIONS]
            _pass_on(i, gone, state, others)
        elif key == kind.CLEAR_ELR and version == 0:
            status = clear_elr(i, data, p + 3, end, base, state, journal)
            made = state.counts[change.N_VERSIONS]
            if status != change.DONE:
                return status, i
        elif key == kind.NO_OP and version == 0 and end - p == 4 and data[end - 1] == 0:
            continue
        elif (
            key == kind.TOPIC
            or key == kind.REMOVE
            or kind.BEGIN_TRANSACTION <= key <= kind.ABORT_TRANSACTION
            or key == kind.CLEAR_ELR
        ):
            return change.STOPPED, i
        else:
            _pass_on(i, -1, state, others)
    return change.DONE, last


@compiled
def replay(
    data: Bytes, starts: Longs, stops: Longs, first: Int64, last: Int64, base: Base, state: State, journal: Journal,
    others: LongRowsOut,
) -> tuple[Int64, Int64]:  # fmt: skip
    """Replay the values."""
    if len(journal.records) > 0:
        return _replay_values(data, starts, stops, first, last, base, state, journal, others, True)
    return _replay_values(data, starts, stops, first, last, base, state, journal, others, False)


@inlined
def _pass_on(i: Int64, topic: Int64, state: State, others: LongRowsOut) -> None:
    """Note a value that other parts have to replay."""
    at = state.counts[change.N_OTHERS]
    others[at, 0], others[at, 1] = i, topic
    state.counts[change.N_OTHERS] = at + 1


@compiled
def count_types(
    data: Bytes, starts: Longs, stops: Longs, first: Int64, last: Int64, step: Int64, counts: LongsOut
) -> None:
    """Count the values of each type and, last, the bytes of TopicRecords, in one value of `step`."""
    block = first
    while block < last:
        i = block + (block - first) // step * 7919 % step  # which one differs, as logs repeat themselves
        if i < last and stops[i] - starts[i] >= 3 and data[starts[i] + 1] < kind.TYPES:
            counts[data[starts[i] + 1]] += 1
            if data[starts[i] + 1] == kind.TOPIC:
                counts[kind.TYPES] += stops[i] - starts[i]
        block += step
