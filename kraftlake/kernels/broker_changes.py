"""What changes of partitions mean to brokers: a row for each broker and partition."""

from __future__ import annotations

from typing import Any

from kraftlake.kernels.compiled import compiled
from kraftlake.kernels.local_changes import place_of
from kraftlake.kernels.row_lists import LEADER, all_migrating, load_row

HAD, HAS, WRITTEN = 1, 2, 4
"""Flags of a changed partition: it was there before; it is there after; a record has written its directories."""

DELETE, DIRECTORY, FOLLOWER, LEADING, ELECTED = range(5)
"""What a broker is told, in the order of the words for it."""

TOO_LONG = -1


@compiled
def changes_of_brokers(before: Any, after: Any, flags: Any, base_heap: Any, heap: Any, state: Any, changed: Any,
                       brokers: Any, kinds: Any, directories: Any) -> Any:  # fmt: skip
    """What the brokers are told of n changed partitions; gives how many rows that makes.

    `before` and `after` (int32[n, 14]) are the partitions' rows, `flags` (uint8[n]) says which of the two count. Where
    `kinds` has no room the rows are counted only; else row k gets `changed` (int64), the number of the partition among
    the n, `brokers` (int32), `kinds` (uint8) and `directories` (int32): the number of the directory that is assigned,
    -1 for none. TOO_LONG where a list is longer than those that the kernels take; `state` lends room to work in.
    """
    lists, lengths, old_lists, old_lengths = state.lists, state.lengths, state.before, state.before_lengths
    writes = len(kinds) > 0
    count = 0
    for r in range(len(flags)):
        had, has = (flags[r] & HAD) != 0, (flags[r] & HAS) != 0
        lengths[0] = old_lengths[0] = 0
        if had and not load_row(before, r, base_heap, heap, old_lists, old_lengths):
            return TOO_LONG
        if has and not load_row(after, r, base_heap, heap, lists, lengths):
            return TOO_LONG
        epoch_changed = elected = True
        written = both_migrating = False
        if had and has:
            elected = before[r, LEADER + 1] != after[r, LEADER + 1]
            epoch_changed = before[r, LEADER + 2] != after[r, LEADER + 2]
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
            if writes:
                changed[count], brokers[count], kinds[count], directories[count] = r, broker, kind, directory
            count += 1
        for place in range(old_lengths[0]):
            broker = old_lists[0, place]
            if place_of(old_lists, old_lengths, broker) != place or place_of(lists, lengths, broker) >= 0:
                continue
            if writes:
                changed[count], brokers[count], kinds[count], directories[count] = r, broker, DELETE, -1
            count += 1
    return count
