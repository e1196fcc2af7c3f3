"""The rows of a change put together anew: those of an image, and the two ways in which changed ones are held."""

from __future__ import annotations

from kraftlake.kernels.language import (
    Bool,
    Bytes,
    BytesOut,
    Int64,
    IntRows,
    IntRowsOut,
    Ints,
    IntsOut,
    Longs,
    LongsOut,
    UInt64,
    compiled,
    inlined,
)
from kraftlake.kernels.partition_row import COLUMNS, SHAPE
from kraftlake.kernels.replay.change_state import (
    ABSENT,
    ELIGIBLE,
    ID,
    N_FRESH,
    N_TOPICS,
    N_TOUCHED,
    OF,
    UNCLEAN,
    Base,
    State,
)  # fmt: skip
from kraftlake.kernels.replay.journal import NO_PLACE
from kraftlake.kernels.replay.look_ahead import topic_of
from kraftlake.kernels.replay.partition_records import copy_place, is_there, place_of, shape_at
from kraftlake.kernels.replay.row_lists import copy_row, touched_row


@compiled
def number_of_id(high: UInt64, low: UInt64, base: Base, state: State) -> Int64:
    """The number of the existing topic with an id, or -1."""
    topic = topic_of(high, low, base, state)
    return topic if topic >= 0 and state.alive[topic] else -1


@compiled
def place_of_partition(topic: Int64, partition: Int64, base: Base, state: State) -> Int64:
    """The place of a partition that is there, see `Journal`, or NO_PLACE."""
    place = place_of(topic, partition, base, state)
    return place if is_there(place, base, state) else NO_PLACE


@compiled
def find_bytes(data: Bytes, wanted: Bytes) -> Int64:
    """The number of the first of several values of the same length that is `wanted`, or -1."""
    size: Int64 = len(wanted)
    p: Int64 = 0
    while p + size <= len(data):
        k: Int64 = 0
        while k < size and data[p + k] == wanted[k]:
            k += 1
        if k == size:
            return p // size
        p += size
    return -1


@compiled
def put_rows(values: IntRows, places: Ints, count: Int64, rows: IntRowsOut) -> None:
    """Write the first `count` rows to their places."""
    for k in range(count):
        copy_row(values, k, rows, places[k])


@compiled
def touch(places: Ints, slots: IntsOut, touched: IntRowsOut) -> None:
    """Note rows of the base as touched, which no record has changed yet."""
    for k in range(len(places)):
        slots[places[k]] = k + 1
        touched[k, UNCLEAN] = touched[k, ELIGIBLE] = 0
        touched[k, OF] = places[k]


@compiled
def sizes_of(starts: Ints, sizes: IntsOut) -> None:
    """Count the rows of each topic of the base."""
    for topic in range(len(starts) - 1):
        sizes[topic] = starts[topic + 1] - starts[topic]


@compiled
def spread(state: State, rows: IntRowsOut) -> None:
    """Write the touched rows to their places."""
    for k in range(state.counts[N_TOUCHED]):
        copy_row(state.touched_rows, k, rows, touched_row(k, state))


@compiled
def touch_all(state: State, touched: IntRowsOut, flags: BytesOut) -> None:
    """Give all rows of the base, which lie in their order, the flags and elections of those that were touched."""
    for k in range(state.counts[N_TOUCHED]):
        row: Int64 = touched_row(k, state)
        flags[row] = state.touched_flags[k]
        touched[row, UNCLEAN], touched[row, ELIGIBLE] = state.touched[k, UNCLEAN], state.touched[k, ELIGIBLE]


@compiled
def sort_touched(state: State, touched: IntsOut, rows: IntRowsOut) -> None:
    """The touched rows by their numbers."""
    at: Int64 = 0
    for row in range(len(state.slots)):
        if state.slots[row] > 0:
            touched[at] = row
            copy_row(state.touched_rows, state.slots[row] - 1, rows, at)
            at += 1


@compiled
def lie_in_order(base: Base, state: State, starts: IntsOut) -> Bool:
    """Whether the rows of new topics lie side by side in the order of topics; where those of each topic begin."""
    topics: Int64 = len(base.ids)
    at: Int64 = 0
    for topic in range(topics + state.counts[N_TOPICS]):
        starts[topic] = at
        if topic >= topics and state.sizes[topic] > 0 and state.firsts[topic - topics] != at - len(base.rows):
            return False
        at += state.sizes[topic]
    starts[topics + state.counts[N_TOPICS]] = at
    return True


@compiled
def count_rows(base: Base, state: State, sizes: IntsOut) -> None:
    """Count the partitions of each topic; a deleted topic has none."""
    for topic in range(len(base.ids)):
        if state.alive[topic]:
            for place in range(base.starts[topic], base.starts[topic + 1]):
                if shape_at(place, base, state) != ABSENT:
                    sizes[topic] += 1
    for r in range(state.counts[N_FRESH]):
        if state.alive[state.fresh[r, OF]] and state.fresh_rows[r, SHAPE] != ABSENT:
            sizes[state.fresh[r, OF]] += 1


@inlined
def _sift(partitions: IntsOut, places: LongsOut, first: Int64, root: Int64, count: Int64) -> None:
    """Sink a partition to its place in a heap."""
    while 2 * root + 1 < count:
        child = 2 * root + 1
        if child + 1 < count and partitions[first + child] < partitions[first + child + 1]:
            child += 1
        if partitions[first + root] >= partitions[first + child]:
            return
        _swap(partitions, places, first + root, first + child)
        root = child


@inlined
def _swap(partitions: IntsOut, places: LongsOut, one: Int64, other: Int64) -> None:
    partition: Int64 = partitions[one]
    partitions[one] = partitions[other]
    partitions[other] = partition
    place: Int64 = places[one]
    places[one] = places[other]
    places[other] = place


@inlined
def _sort(partitions: IntsOut, places: LongsOut, first: Int64, last: Int64) -> None:
    """Sort the partitions [first, last) by their ids, as most are."""
    at = first + 1
    while at < last and partitions[at - 1] < partitions[at]:
        at += 1
    if at >= last:
        return
    count = last - first
    for k in range(count // 2):
        _sift(partitions, places, first, count // 2 - 1 - k, count)
    for k in range(count - 1):
        _swap(partitions, places, first, last - 1 - k)
        _sift(partitions, places, first, 0, count - 1 - k)


@compiled
def lay_out(
    base: Base, state: State, starts: Ints, partitions: IntsOut, places: LongsOut, ends: IntsOut, is_odd: BytesOut
) -> None:
    """The partitions that are there by topic and id: their ids and places, from `starts` of their topics on.

    `ends` gets where those of each topic end, `is_odd` whether the topic's ids are not 0, 1, 2, ….
    """
    topics: Int64 = len(base.ids) + state.counts[N_TOPICS]
    odd: Int64 = 0
    for topic in range(topics):
        ends[topic] = starts[topic]
    for topic in range(len(base.ids)):
        for place in range(base.starts[topic], base.starts[topic + 1]):
            partition: Int64 = place - base.starts[topic]
            if base.sparse[topic]:
                partition = state.odd[odd, 1]
                odd += 1
            if state.alive[topic] and shape_at(place, base, state) != ABSENT:
                partitions[ends[topic]], places[ends[topic]] = partition, place
                ends[topic] += 1
    for r in range(state.counts[N_FRESH]):
        topic = state.fresh[r, OF]
        if state.alive[topic] and state.fresh_rows[r, SHAPE] != ABSENT:
            partitions[ends[topic]], places[ends[topic]] = state.fresh[r, ID], len(base.rows) + r
            ends[topic] += 1
    for topic in range(topics):
        _sort(partitions, places, starts[topic], ends[topic])
        for at in range(starts[topic], ends[topic]):
            if partitions[at] != at - starts[topic]:
                is_odd[topic] = 1
                break


@compiled
def rows_at(places: Longs, base: Base, state: State, rows: IntRowsOut) -> None:
    """The rows at places."""
    for at in range(len(places)):
        copy_place(places[at], base, state, rows, at)


@compiled
def note_odd(base: Base, partitions: Ints, odd: IntRowsOut) -> None:
    """Note the partitions of topics of the base whose ids are not 0, 1, 2, …, which `partitions` has in a row."""
    at: Int64 = 0
    for topic in range(len(base.ids)):
        if base.sparse[topic]:
            for place in range(base.starts[topic], base.starts[topic + 1]):
                odd[at, 0], odd[at, 1], odd[at, 2] = topic, partitions[at], place
                at += 1


@inlined
def _differ(rows: IntRows, others: IntRows, r: Int64, is_same_heap: Bool) -> Bool:
    if rows[r, SHAPE] < 0 and not is_same_heap:
        return True
    for column in range(COLUMNS):
        if rows[r, column] != others[r, column]:
            return True
    return False


@compiled
def differing_topics(rows: IntRows, others: IntRows, starts: Ints, is_same_heap: Bool, found: BytesOut) -> None:
    """Mark the topics that differ in two images of the same topics; lists in different heaps count as different."""
    for topic in range(len(starts) - 1):
        for r in range(starts[topic], starts[topic + 1]):
            if _differ(rows, others, r, is_same_heap):
                found[topic] = 1
                break
