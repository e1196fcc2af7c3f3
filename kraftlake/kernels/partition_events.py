"""What has happened to partitions, found by comparing two states of each: see `kraftlake.kernels.event_kinds`."""

from __future__ import annotations

from typing import Any

import numpy as np

from kraftlake.kernels.change_state import LONGEST
from kraftlake.kernels.compiled import compiled, inlined
from kraftlake.kernels.event_kinds import (
    ELR_CHANGED,
    ISR_CHANGED,
    ISR_EXPANDED,
    ISR_SHRANK,
    LEADER_ELECTED,
    LEADER_LOST,
    LEADER_MOVED,
    REASSIGNMENT_CANCELLED,
    REASSIGNMENT_CHANGED,
    REASSIGNMENT_FINISHED,
    REASSIGNMENT_STARTED,
    RECOVERY_BEGUN,
    RECOVERY_DONE,
    REPLICAS_CHANGED,
)
from kraftlake.kernels.row_lists import ISR, LEADER, SHAPE, load_row

RECOVERY = 12
REPLICAS_OF, ISR_OF, ADDING_OF, REMOVING_OF, ELR_OF = 0, 1, 3, 4, 5
GONE, COME = 7, 8
"""Rows of `lists` behind a partition's seven: what one list has and another lacks."""
LISTS = 9

_NO_LEADER = -1


def room_for_lists() -> tuple[Any, Any]:
    """Room for the lists of one state (int32[9, LONGEST]), and for their lengths (int32[7])."""
    return np.empty((LISTS, LONGEST), np.int32), np.empty(7, np.int32)


@inlined
def number_size(number: Any) -> Any:
    """How many characters a number takes."""
    value = np.int64(number)
    size = np.int64(1)
    if value < 0:
        value = -value
        size += 1
    while value >= 10:
        value //= 10
        size += 1
    return size


@inlined
def has_member(lists: Any, which: Any, count: Any, member: Any) -> bool:
    """Whether a list has a member."""
    for i in range(count):
        if lists[which, i] == member:
            return True
    return False


@inlined
def members_but(lists: Any, which: Any, count: Any, others: Any, of: Any, other_count: Any, into: Any) -> Any:
    """Those of one list that another one of `others` lacks, into the row `into` of `lists`; gives their number."""
    size = np.int64(0)
    for i in range(count):
        member = lists[which, i]
        if not has_member(others, of, other_count, member):
            lists[into, size] = member
            size += 1
    return size


@inlined
def _any_but(lists: Any, which: Any, count: Any, others: Any, of: Any, other_count: Any) -> bool:
    """Whether one list has a member that the other one lacks."""
    for i in range(count):
        if not has_member(others, of, other_count, lists[which, i]):
            return True
    return False


@inlined
def _unlike(lists: Any, count: Any, others: Any, other_count: Any, which: Any) -> bool:
    """Whether two lists differ, be it in their order."""
    if count != other_count:
        return True
    for i in range(count):
        if lists[which, i] != others[which, i]:
            return True
    return False


@inlined
def _lists_are_alike(before: Any, after: Any, r: Any) -> bool:
    """Whether two states have the same replicas and ISR, and none of the lists that are rare."""
    shape = before[r, SHAPE]
    if shape != after[r, SHAPE] or shape < 0:
        return False
    for i in range(2 * ISR):
        if before[r, i] != after[r, i]:
            return False
    return True


@inlined
def _isr_kind(work: Any) -> Any:
    had, has = work.lengths[ISR_OF], work.lengths_after[ISR_OF]
    gone = _any_but(work.lists, ISR_OF, had, work.lists_after, ISR_OF, has)
    come = _any_but(work.lists_after, ISR_OF, has, work.lists, ISR_OF, had)
    if gone:
        return ISR_CHANGED if come else ISR_SHRANK
    return ISR_EXPANDED if come else -1


@inlined
def _elr_kind(work: Any) -> Any:
    had, has = work.lengths[ELR_OF], work.lengths_after[ELR_OF]
    if _any_but(work.lists, ELR_OF, had, work.lists_after, ELR_OF, has):
        return ELR_CHANGED
    return ELR_CHANGED if _any_but(work.lists_after, ELR_OF, has, work.lists, ELR_OF, had) else -1


@inlined
def _was_cancelled(work: Any) -> bool:
    """Whether the replicas are those that would have stayed, and these are not the ones that were to be."""
    before, after = work.lists, work.lists_after
    had, has = work.lengths[REPLICAS_OF], work.lengths_after[REPLICAS_OF]
    adding, removing = work.lengths[ADDING_OF], work.lengths[REMOVING_OF]
    other = False
    for i in range(had):
        member = before[REPLICAS_OF, i]
        added = has_member(before, ADDING_OF, adding, member)
        if not added and not has_member(after, REPLICAS_OF, has, member):
            return False
        if added != has_member(before, REMOVING_OF, removing, member):
            other = True
    for i in range(has):
        member = after[REPLICAS_OF, i]
        if has_member(before, ADDING_OF, adding, member) or not has_member(before, REPLICAS_OF, had, member):
            return False
    return other


@inlined
def _hosts_kind(work: Any) -> Any:
    had, has = work.lengths, work.lengths_after
    was_moving = had[ADDING_OF] + had[REMOVING_OF] > 0
    is_moving = has[ADDING_OF] + has[REMOVING_OF] > 0
    if is_moving and not was_moving:
        return REASSIGNMENT_STARTED
    if is_moving:
        unlike = _unlike(work.lists, had[ADDING_OF], work.lists_after, has[ADDING_OF], ADDING_OF)
        unlike |= _unlike(work.lists, had[REMOVING_OF], work.lists_after, has[REMOVING_OF], REMOVING_OF)
        return REASSIGNMENT_CHANGED if unlike else -1
    if was_moving:
        return REASSIGNMENT_CANCELLED if _was_cancelled(work) else REASSIGNMENT_FINISHED
    unlike = _unlike(work.lists, had[REPLICAS_OF], work.lists_after, has[REPLICAS_OF], REPLICAS_OF)
    return REPLICAS_CHANGED if unlike else -1


@inlined
def _list_size(lists: Any, which: Any, count: Any) -> Any:
    """The characters of a list as text: `[1, 2, 3]`; a few more for none."""
    size = np.int64(2)
    for i in range(count):
        size += number_size(lists[which, i]) + 2
    return size


@inlined
def _listed(found: Any, count: Any, j: Any, kind: Any, which: Any, work: Any) -> Any:
    """Note an event of lists, if it is one; gives how many there are by then."""
    if kind < 0:
        return count
    found.places[count], found.kinds[count] = j, kind
    found.sizes[count] = _list_size(work.lists, which, work.lengths[which])
    found.sizes[count] += _list_size(work.lists_after, which, work.lengths_after[which])
    return count + 1


@compiled
def find_events(states: Any, order: Any, work: Any, found: Any) -> Any:
    """The events of the partitions order[j] (int64), in that order, into `found`; gives their number.

    `states` has the rows `before` and `after`, and the heaps that their lists may lie in. Of each event `places` gets
    the j (int64), `kinds` (uint8) what it is, `sizes` (int32) as many characters as its two sides take as text, or
    more. `found` has room for `event_kinds.MOST` of each partition; `work` for the lists of two states.
    """
    count = np.int64(0)
    before, after = states.before, states.after
    for j in range(len(order)):
        r = order[j]
        had, has = before[r, LEADER], after[r, LEADER]
        if had != has:
            kind = LEADER_LOST if has == _NO_LEADER else (LEADER_ELECTED if had == _NO_LEADER else LEADER_MOVED)
            found.places[count], found.kinds[count] = j, kind
            found.sizes[count] = number_size(had) + number_size(has)
            count += 1
        if before[r, RECOVERY] != after[r, RECOVERY]:
            found.places[count] = j
            found.kinds[count] = RECOVERY_BEGUN if after[r, RECOVERY] != 0 else RECOVERY_DONE
            found.sizes[count] = 24
            count += 1
        if _lists_are_alike(before, after, r):
            continue
        load_row(before, r, states.base_heap, states.heap, work.lists, work.lengths)
        load_row(after, r, states.base_heap, states.heap, work.lists_after, work.lengths_after)
        count = _listed(found, count, j, _isr_kind(work), ISR_OF, work)
        count = _listed(found, count, j, _elr_kind(work), ELR_OF, work)
        count = _listed(found, count, j, _hosts_kind(work), REPLICAS_OF, work)
    return count
