"""The rules that a partition's states before and after a record show, whatever else is in the image. Imports numpy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from kraftlake.image.topics.partition_registration import NO_LEADER
from kraftlake.replay.log.broker_lists import BrokerLists
from kraftlake.replay.spec.partition_states import PartitionStates


class Ruling(NamedTuple):
    """A property by name, a mask of the states that it was judged on, and a mask of those that violate it."""

    name: str
    judged: Any
    violated: Any


def state_rulings(after: PartitionStates, elr_on: Any) -> Iterator[Ruling]:
    """The rulings on states alone; `elr_on` (bool[n]) says where eligible leader replicas are on."""
    everywhere = np.ones(len(after), np.bool_)
    replicas, isr, elr = (after.list_of(name) for name in ("replicas", "isr", "elr"))
    adding, removing = after.list_of("adding_replicas"), after.list_of("removing_replicas")
    with_elr = elr_on & elr.any
    doubled = _doubled(replicas) | _doubled(isr) | _doubled(elr)
    yield Ruling("replicas_distinct", everywhere, doubled | ~replicas.any)
    yield Ruling("isr_among_replicas", everywhere, isr.without(replicas).any)
    yield Ruling("elr_among_replicas", with_elr, elr.without(replicas).any)
    yield Ruling("elr_outside_isr", with_elr, elr.without(isr).lengths < elr.lengths)
    yield Ruling("leader_in_isr", after.leaders != NO_LEADER, after.led_by.without(isr).any)
    yield Ruling("recovering_isr", after.recovering, isr.lengths > 1)
    strangers = adding.without(replicas).any | removing.without(replicas).any
    both = adding.without(removing).lengths < adding.lengths
    yield Ruling("reassignment_among_replicas", adding.any | removing.any, strangers | both)


def change_rulings(
    before: PartitionStates, after: PartitionStates, had: Any, elr_on: Any, cleared: Any
) -> Iterator[Ruling]:
    """The rulings on changes; `had` (bool[n]) says which partitions existed before.

    `cleared` (bool[n]): a ClearElrRecord made the change; it forgets the last known leader too.
    """
    isr, elr, old_isr, old_elr = (
        states.list_of(name) for states in (after, before) for name in ("isr", "elr")
    )  # fmt: skip
    led, was_led = after.leaders != NO_LEADER, had & (before.leaders != NO_LEADER)
    moved = had & (after.leaders != before.leaders)
    known, old_known = after.sizes("last_known_elr"), before.sizes("last_known_elr")
    yield Ruling("isr_not_empty", ~elr_on, ~isr.any & (~had | old_isr.any))
    yield Ruling("elr_from_isr", elr_on & elr.any & had, elr.without(old_elr).without(old_isr).any)
    stays = led & (known > 0) & (~was_led | (old_known == 0))
    nobody = after.has("last_known_elr", np.full(len(after), NO_LEADER))
    yield Ruling("last_known_leader", elr_on, (known > 1) | stays | nobody)
    lost_all = elr_on & had & ~cleared & ~isr.any & ~elr.any
    yield Ruling("min_isr_recovery_quorum", lost_all, (known == 0) & (was_led | (old_known > 0)))

    ended = had & _ended(before, after)
    clean = before.has("isr", after.leaders) | before.has("elr", after.leaders)
    clean |= ended & was_led & after.has("isr", after.leaders)
    yield Ruling("leader_change_is_clean", moved & led, ~clean & ~after.recovering)
    yield Ruling("recovered_by_leader", had & before.recovering & ~after.recovering & ~ended, moved)

    replicas_differ = after.list_of("replicas").differ_from(before.list_of("replicas"))
    changed = moved | isr.differ_from(old_isr) | replicas_differ
    rise = after.partition_epochs.astype(np.int64) - before.partition_epochs
    yield Ruling("partition_epoch_rises", had, (rise < 0) | (changed & (rise == 0)))
    rise = after.leader_epochs.astype(np.int64) - before.leader_epochs
    yield Ruling("leader_epoch_rises", had, (rise < 0) | (moved & (rise == 0)))

    gone = before.list_of("removing_replicas")
    swapped = ended & gone.any & (gone.without(after.list_of("replicas")).lengths == gone.lengths)
    new = before.list_of("adding_replicas")
    stayed = new.without(new.without(after.list_of("replicas")))
    yield Ruling("reassignment_ends_in_sync", swapped, stayed.without(isr).any)


def _ended(before: PartitionStates, after: PartitionStates) -> Any:
    was = before.list_of("adding_replicas").any | before.list_of("removing_replicas").any
    return was & ~(after.list_of("adding_replicas").any | after.list_of("removing_replicas").any)


def _doubled(lists: BrokerLists) -> Any:
    """Whether a list has a member twice (bool[n])."""
    found = np.zeros(len(lists), np.bool_)
    rows = np.repeat(np.arange(len(lists), dtype=np.int64), lists.lengths)
    keys = np.sort((rows << 32) | lists.members.astype(np.int64))
    found[keys[1:][keys[1:] == keys[:-1]] >> 32] = True
    return found
