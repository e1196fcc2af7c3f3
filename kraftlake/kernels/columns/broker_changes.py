"""The changes of brokers that changes of partitions make: a row for each broker and partition."""

from __future__ import annotations

from typing import Any

import numpy as np

from kraftlake.kernels.language import compiled, inlined
from kraftlake.kernels.partition_row import HEAP_LISTS, ISR, LEADER, SHAPE
from kraftlake.kernels.replay.local_changes import place_of
from kraftlake.kernels.replay.row_lists import all_migrating, load_row

HAD, HAS, WRITTEN = 1, 2, 4
"""Flags of a changed partition: it was there before; it is there after; a record has written its directories."""

DELETE, DIRECTORY, FOLLOWER, LEADING, ELECTED = range(5)
"""The kinds of changes, in the order of their names in the table `local_changes/`."""


@inlined
def _lists_of(rows: Any, r: Any, base_heap: Any, heap: Any) -> Any:
    """The number of replicas of a row, and the length of its longest list."""
    shape = np.int64(rows[r, SHAPE])
    if shape >= 0:
        return shape & 0xFF, np.int64(ISR)
    at = np.int64(rows[r, 0])
    source = base_heap
    if at >= len(base_heap):
        source = heap
        at -= len(base_heap)
    longest = 0
    for which in range(HEAP_LISTS):
        longest = max(longest, np.int64(source[at + which]))
    return np.int64(source[at]), longest


@compiled
def most_changes(before: Any, after: Any, flags: Any, base_heap: Any, heap: Any) -> Any:
    """The largest number of rows that `changes_of_brokers` can return, and the length of the longest list."""
    most = longest = 0
    for r in range(len(flags)):
        if flags[r] & HAD:
            count, length = _lists_of(before, r, base_heap, heap)
            most += count
            longest = max(longest, length)
        if flags[r] & HAS:
            count, length = _lists_of(after, r, base_heap, heap)
            most += count
            longest = max(longest, length)
    return most, longest


@inlined
def _stays_where_it_is(before: Any, after: Any, r: Any, flags: Any) -> Any:
    """Whether a partition of at most three replicas keeps them in order, and no record has written its directories."""
    if flags != HAD | HAS or after[r, SHAPE] < 0 or before[r, SHAPE] < 0:
        return False
    if (before[r, SHAPE] ^ after[r, SHAPE]) & 0xFF:
        return False
    return before[r, 0] == after[r, 0] and before[r, 1] == after[r, 1] and before[r, 2] == after[r, 2]


@compiled
def changes_of_brokers(order: Any, before: Any, after: Any, flags: Any, base_heap: Any, heap: Any, room: Any,
                       told: Any) -> Any:  # fmt: skip
    """The changes of brokers that n changed partitions make, taken in an `order` (int64[n]).

    Gives how many rows that is, and how many replicas and members of the ISR the partitions of all rows have, none
    where a broker is to delete one.
    `before` and `after` (int32[n, 14]) are the partitions' rows, `flags` (uint8[n]) says which of the two count. Row k
    of `told` gets `changed` (int64), the number of the partition among the n, `brokers` (int32), `kinds` (uint8) and
    `directories` (int32): the number of the directory that is assigned, -1 for none. It has room for `most_changes`.
    `room` lends memory: `lists` and `before` (int32[7, m], m at least the longest list), `lengths` and
    `before_lengths` (int32[7]).
    """
    lists, lengths, old_lists, old_lengths = room.lists, room.lengths, room.before, room.before_lengths
    count = all_replicas = members = 0
    for k in range(len(order)):
        r = order[k]
        had, has = (flags[r] & HAD) != 0, (flags[r] & HAS) != 0
        epoch_changed = elected = True
        if had and has:
            elected = before[r, LEADER + 1] != after[r, LEADER + 1]
            epoch_changed = before[r, LEADER + 2] != after[r, LEADER + 2]
        if _stays_where_it_is(before, after, r, flags[r]):
            replicas = np.int64(after[r, SHAPE]) & 0xFF if epoch_changed else 0
            told_before = count
            for place in range(replicas):
                broker = after[r, place]
                if (place > 0 and broker == after[r, 0]) or (place > 1 and broker == after[r, 1]):
                    continue  # named twice
                kind = FOLLOWER
                if after[r, LEADER] == broker:
                    kind = ELECTED if elected else LEADING
                told.changed[count], told.brokers[count] = r, broker
                told.kinds[count], told.directories[count] = kind, -1
                count += 1
            all_replicas += (count - told_before) * replicas
            members += (count - told_before) * (np.int64(after[r, SHAPE]) >> 8)
            continue
        lengths[0] = old_lengths[0] = 0
        if had:
            load_row(before, r, base_heap, heap, old_lists, old_lengths)
        if has:
            load_row(after, r, base_heap, heap, lists, lengths)
        written = both_migrating = False
        if had and has:
            both_migrating = all_migrating(lists, lengths) and all_migrating(old_lists, old_lengths)
            written = (flags[r] & WRITTEN) != 0
        told_before = count
        for place in range(lengths[0]):
            broker = lists[0, place]
            if place_of(lists, lengths, broker) != place:
                continue  # named twice
            directory = -1
            if not had:
                directory = lists[2, place]
            else:
                old_place = place_of(old_lists, old_lengths, broker)
                if old_place >= 0 and not both_migrating and (written or old_place != place):
                    directory = lists[2, place]
            kind = DIRECTORY
            if epoch_changed:
                kind = FOLLOWER
                if after[r, LEADER] == broker:
                    kind = ELECTED if elected else LEADING
            elif directory < 0:
                continue
            told.changed[count], told.brokers[count] = r, broker
            told.kinds[count], told.directories[count] = kind, directory
            count += 1
        if count > told_before:
            all_replicas += (count - told_before) * lengths[0]
            members += (count - told_before) * lengths[1]
        for place in range(old_lengths[0]):
            broker = old_lists[0, place]
            if place_of(old_lists, old_lengths, broker) != place or place_of(lists, lengths, broker) >= 0:
                continue
            told.changed[count], told.brokers[count] = r, broker
            told.kinds[count], told.directories[count] = DELETE, -1
            count += 1
    return count, all_replicas, members
