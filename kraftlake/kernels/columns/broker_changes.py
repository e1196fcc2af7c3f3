"""The changes of brokers caused by changes of partitions: a row for each broker and partition."""

from __future__ import annotations

from kraftlake.kernels.columns import change_buffers as change
from kraftlake.kernels.columns.change_buffers import BrokerChanges, ListRoom
from kraftlake.kernels.language import Bool, Bytes, Int64, IntRows, Ints, Longs, compiled, inlined
from kraftlake.kernels.partition_row import HEAP_LISTS, ISR, LEADER, SHAPE
from kraftlake.kernels.replay.row_lists import all_migrating, heap_at, load_row


@inlined
def _lists_of(rows: IntRows, r: Int64, base_heap: Ints, heap: Ints) -> tuple[Int64, Int64]:
    """The number of replicas of a row, and the length of its longest list."""
    shape: Int64 = rows[r, SHAPE]
    if shape >= 0:
        return shape & 0xFF, ISR
    at: Int64 = rows[r, 0]
    longest: Int64 = 0
    for which in range(HEAP_LISTS):
        longest = max(longest, heap_at(base_heap, heap, at + which))
    return heap_at(base_heap, heap, at), longest


@compiled
def most_changes(before: IntRows, after: IntRows, flags: Bytes, base_heap: Ints, heap: Ints) -> tuple[Int64, Int64]:
    """The largest number of rows that `changes_of_brokers` can return, and the length of the longest list."""
    most: Int64 = 0
    longest: Int64 = 0
    for r in range(len(flags)):
        if flags[r] & change.HAD:
            count, length = _lists_of(before, r, base_heap, heap)
            most += count
            longest = max(longest, length)
        if flags[r] & change.HAS:
            count, length = _lists_of(after, r, base_heap, heap)
            most += count
            longest = max(longest, length)
    return most, longest


@inlined
def _place_of(lists: IntRows, lengths: Longs, broker: Int64) -> Int64:
    """The first place of a broker among the replicas, or -1."""
    for i in range(lengths[0]):
        if lists[0, i] == broker:
            return i
    return -1


@inlined
def _may_host(rows: IntRows, r: Int64, broker: Int64) -> Bool:
    """Whether a broker is among the replicas of a row, or its lists are in the heap."""
    if rows[r, SHAPE] < 0:
        return True
    for i in range(rows[r, SHAPE] & 0xFF):
        if rows[r, i] == broker:
            return True
    return False


@inlined
def _stays_where_it_is(before: IntRows, after: IntRows, r: Int64, flags: Int64) -> Bool:
    """Whether a partition of at most three replicas keeps them in order, and no record has written its directories."""
    if flags != change.HAD | change.HAS or after[r, SHAPE] < 0 or before[r, SHAPE] < 0:
        return False
    if (before[r, SHAPE] ^ after[r, SHAPE]) & 0xFF:
        return False
    return before[r, 0] == after[r, 0] and before[r, 1] == after[r, 1] and before[r, 2] == after[r, 2]


@inlined
def _add(
    found: BrokerChanges, count: Int64, changed: Int64, broker: Int64, kind: Int64, directory: Int64, only: Ints
) -> Int64:
    """Add a row, if the broker is the one in `only`; gives how many there are."""
    if len(only) > 0 and only[0] != broker:
        return count
    found.changed[count] = changed
    found.brokers[count] = broker
    found.kinds[count] = kind
    found.directories[count] = directory
    return count + 1


@inlined
def _add_where_it_stays(
    after: IntRows, r: Int64, elected: Bool, only: Ints, found: BrokerChanges, count: Int64
) -> Int64:
    """Add the rows of the replicas of a partition that `_stays_where_it_is`; returns the number of rows."""
    for place in range(after[r, SHAPE] & 0xFF):
        broker = after[r, place]
        if (place > 0 and broker == after[r, 0]) or (place > 1 and broker == after[r, 1]):
            continue  # named twice
        kind: Int64 = change.FOLLOWER
        if after[r, LEADER] == broker:
            kind = change.ELECTED if elected else change.LEADING
        count = _add(found, count, r, broker, kind, -1, only)
    return count


@compiled
def changes_of_brokers(
    order: Longs, before: IntRows, after: IntRows, flags: Bytes, base_heap: Ints, heap: Ints, only: Ints,
    room: ListRoom, found: BrokerChanges,
) -> tuple[Int64, Int64, Int64]:  # fmt: skip
    """Kafka's `TopicsDelta.localChanges` of the broker in `only` (int32), or of all brokers where that is empty.

    They are the changes that n changed partitions make, taken in an `order` (int64[n]). Gives how many rows that is,
    and how many replicas and members of the ISR the partitions of all rows have, none where a broker is to delete one.
    `before` and `after` (int32[n, 14]) are the partitions' rows, `flags` (uint8[n]) says which of the two count. Row k
    of `found` gets `changed` (int64), the number of the partition among the n, `brokers` (int32), `kinds` (uint8) and
    `directories` (int32): the number of the directory that is assigned, -1 for none. It has room for `most_changes`.

    Kafka compares references of directories, not ids. Every record that writes directories brings new objects; only
    "all replicas are migrating" is one shared constant. Without such a record, a replica has another object only if its
    place in the list changed. A broker that is new among the replicas of an existing partition gets none.
    `room` lends memory: `lists` and `before` (int32[7, m], m at least the longest list), `lengths` and
    `before_lengths` (int64[7]).
    """
    lists = room.lists
    lengths = room.lengths
    old_lists = room.before
    old_lengths = room.before_lengths
    count: Int64 = 0
    all_replicas: Int64 = 0
    members: Int64 = 0
    for k in range(len(order)):
        r = order[k]
        had: Bool = (flags[r] & change.HAD) != 0
        has: Bool = (flags[r] & change.HAS) != 0
        if len(only) > 0 and not (has and _may_host(after, r, only[0])) and not (had and _may_host(before, r, only[0])):
            continue
        epoch_changed: Bool = True
        elected: Bool = True
        if had and has:
            elected = before[r, LEADER + 1] != after[r, LEADER + 1]
            epoch_changed = before[r, LEADER + 2] != after[r, LEADER + 2]
        rows_before = count
        if _stays_where_it_is(before, after, r, flags[r]):
            if epoch_changed:
                count = _add_where_it_stays(after, r, elected, only, found, count)
                all_replicas += (count - rows_before) * (after[r, SHAPE] & 0xFF)
                members += (count - rows_before) * (after[r, SHAPE] >> 8)
            continue
        lengths[0] = old_lengths[0] = 0
        if had:
            load_row(before, r, base_heap, heap, old_lists, old_lengths)
        if has:
            load_row(after, r, base_heap, heap, lists, lengths)
        written: Bool = False
        both_migrating: Bool = False
        if had and has:
            both_migrating = all_migrating(lists, lengths) and all_migrating(old_lists, old_lengths)
            written = (flags[r] & change.WRITTEN) != 0
        for place in range(lengths[0]):
            broker = lists[0, place]
            if _place_of(lists, lengths, broker) != place:
                continue  # named twice
            directory: Int64 = -1
            if not had:
                directory = lists[2, place]
            else:
                old_place = _place_of(old_lists, old_lengths, broker)
                if old_place >= 0 and not both_migrating and (written or old_place != place):
                    directory = lists[2, place]
            kind: Int64 = change.DIRECTORY
            if epoch_changed:
                kind = change.FOLLOWER
                if after[r, LEADER] == broker:
                    kind = change.ELECTED if elected else change.LEADING
            elif directory < 0:
                continue
            count = _add(found, count, r, broker, kind, directory, only)
        if count > rows_before:
            all_replicas += (count - rows_before) * lengths[0]
            members += (count - rows_before) * lengths[1]
        for place in range(old_lengths[0]):
            broker = old_lists[0, place]
            if _place_of(old_lists, old_lengths, broker) != place or _place_of(lists, lengths, broker) >= 0:
                continue
            count = _add(found, count, r, broker, change.DELETE, -1, only)
    return count, all_replicas, members
