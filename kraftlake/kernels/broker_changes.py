"""What changes of partitions mean to brokers: a row for each broker and partition."""

from __future__ import annotations

from typing import Any

import numpy as np

from kraftlake.kernels.change_state import LONGEST
from kraftlake.kernels.compiled import compiled, inlined
from kraftlake.kernels.local_changes import place_of
from kraftlake.kernels.row_lists import LEADER, SHAPE, all_migrating, load_row

HAD, HAS, WRITTEN = 1, 2, 4
"""Flags of a changed partition: it was there before; it is there after; a record has written its directories."""

DELETE, DIRECTORY, FOLLOWER, LEADING, ELECTED = range(5)
"""What a broker is told, in the order of the words for it."""

TOO_LONG = -1


@inlined
def _replicas(rows: Any, r: Any, base_heap: Any, heap: Any) -> Any:
    """How many there are; TOO_LONG where the row has a list that is longer than those that the kernels take."""
    shape = np.int64(rows[r, SHAPE])
    if shape >= 0:
        return shape & 0xFF
    at = np.int64(rows[r, 0])
    source = base_heap
    if at >= len(base_heap):
        source = heap
        at -= len(base_heap)
    for which in range(7):
        if source[at + which] > LONGEST:
            return np.int64(TOO_LONG)
    return np.int64(source[at])


@compiled
def most_changes(before: Any, after: Any, flags: Any, base_heap: Any, heap: Any) -> Any:
    """How many rows `changes_of_brokers` gives at most; TOO_LONG where a list is longer than the kernels take."""
    most = np.int64(0)
    for r in range(len(flags)):
        if flags[r] & HAD:
            count = _replicas(before, r, base_heap, heap)
            if count < 0:
                return np.int64(TOO_LONG)
            most += count
        if flags[r] & HAS:
            count = _replicas(after, r, base_heap, heap)
            if count < 0:
                return np.int64(TOO_LONG)
            most += count
    return most


@inlined
def _stays_where_it_is(before: Any, after: Any, r: Any, flags: Any) -> Any:
    """Whether a partition of three replicas at most has the same ones in the same directories, none of them written."""
    if flags != HAD | HAS or after[r, SHAPE] < 0 or before[r, SHAPE] < 0:
        return False
    if (before[r, SHAPE] ^ after[r, SHAPE]) & 0xFF:
        return False
    return before[r, 0] == after[r, 0] and before[r, 1] == after[r, 1] and before[r, 2] == after[r, 2]


@compiled
def changes_of_brokers(order: Any, before: Any, after: Any, flags: Any, base_heap: Any, heap: Any, state: Any,
                       told: Any) -> Any:  # fmt: skip
    """What the brokers are told of n changed partitions, taken in an `order` (int64[n]); gives how many rows that is.

    `before` and `after` (int32[n, 14]) are the partitions' rows, `flags` (uint8[n]) says which of the two count. Row k
    of `told` gets `changed` (int64), the number of the partition among the n, `brokers` (int32), `kinds` (uint8) and
    `directories` (int32): the number of the directory that is assigned, -1 for none. It has room for `most_changes`,
    which has found no list too long; `state` lends room to work in.
    """
    lists, lengths, old_lists, old_lengths = state.lists, state.lengths, state.before, state.before_lengths
    count = np.int64(0)
    for k in range(len(order)):
        r = order[k]
        had, has = (flags[r] & HAD) != 0, (flags[r] & HAS) != 0
        epoch_changed = elected = True
        if had and has:
            elected = before[r, LEADER + 1] != after[r, LEADER + 1]
            epoch_changed = before[r, LEADER + 2] != after[r, LEADER + 2]
        if _stays_where_it_is(before, after, r, flags[r]):
            replicas = after[r, SHAPE] & 0xFF if epoch_changed else 0
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
        for place in range(old_lengths[0]):
            broker = old_lists[0, place]
            if place_of(old_lists, old_lengths, broker) != place or place_of(lists, lengths, broker) >= 0:
                continue
            told.changed[count], told.brokers[count] = r, broker
            told.kinds[count], told.directories[count] = DELETE, -1
            count += 1
    return count


@compiled
def sort_told(told: Any, numbers: Any, deltas: Any, places: Any, first: Any, into: Any) -> None:
    """Sort what brokers are told by delta, then by broker; what is of one delta and broker keeps its order.

    `numbers` (int64) has a number from 0 on for the broker of each row of `told`, in their order; `deltas` (int64) the
    delta of each changed partition. `places` (int64) lends room for all rows, `first` (int64) for one more than there
    are numbers or deltas, whichever are more. `into` is another `told`.
    """
    count = len(numbers)
    first[:] = 0
    for k in range(count):
        first[numbers[k] + 1] += 1
    for number in range(1, len(first)):
        first[number] += first[number - 1]
    for k in range(count):
        places[first[numbers[k]]] = k
        first[numbers[k]] += 1
    first[:] = 0
    for k in range(count):
        first[deltas[told.changed[k]] + 1] += 1
    for number in range(1, len(first)):
        first[number] += first[number - 1]
    for i in range(count):
        k = places[i]
        delta = deltas[told.changed[k]]
        at = first[delta]
        first[delta] = at + 1
        into.changed[at], into.brokers[at] = told.changed[k], told.brokers[k]
        into.kinds[at], into.directories[at] = told.kinds[k], told.directories[k]


@inlined
def _list_at(rows: Any, r: Any, which: Any, base_heap: Any, heap: Any) -> Any:
    """Where replicas (0) or ISR (1) of a row that lies in a heap begin, and how many there are."""
    at = np.int64(rows[r, 0])
    source = base_heap
    if at >= len(base_heap):
        source = heap
        at -= len(base_heap)
    return at + 7 + (np.int64(source[at]) if which else np.int64(0)), np.int64(source[at + which])


@compiled
def told_list_bounds(told: Any, rows: Any, which: int, base_heap: Any, heap: Any, bounds: Any) -> Any:
    """Where the replicas (0) or ISR (1) of each row of `told` begin and the last end, into `bounds` (int32[n + 1]).

    They are those of the changed partition's row; a DELETE has none. Gives how many members there are.
    """
    total = np.int64(0)
    for k in range(len(told.kinds)):
        bounds[k] = total
        if told.kinds[k] != DELETE:
            shape = np.int64(rows[told.changed[k], SHAPE])
            if shape < 0:
                total += _list_at(rows, told.changed[k], which, base_heap, heap)[1]
            else:
                total += shape >> 8 if which else shape & 0xFF
    bounds[len(told.kinds)] = total
    return total


@compiled
def told_lists(told: Any, rows: Any, which: int, base_heap: Any, heap: Any, bounds: Any, members: Any) -> None:
    """The members of these lists, one after the other, into `members` (int32)."""
    for k in range(len(told.kinds)):
        begin, size = np.int64(bounds[k]), np.int64(bounds[k + 1]) - np.int64(bounds[k])
        r = told.changed[k]
        if rows[r, SHAPE] >= 0:
            for i in range(size):
                members[begin + i] = rows[r, 3 * which + i]
        elif size > 0:
            at = _list_at(rows, r, which, base_heap, heap)[0]
            if np.int64(rows[r, 0]) >= len(base_heap):
                for i in range(size):
                    members[begin + i] = heap[at + i]
            else:
                for i in range(size):
                    members[begin + i] = base_heap[at + i]
