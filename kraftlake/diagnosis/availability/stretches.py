"""The stretches of time in which partitions were in a state of trouble, and what began each. Imports numpy."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final

import attrs
import numpy as np

from kraftlake.diagnosis.availability.broker_losses import BrokerLosses, Cause
from kraftlake.diagnosis.availability.partition_states import GONE, PartitionStates
from kraftlake.diagnosis.availability.timeline import NONE, Timeline
from kraftlake.image.partition_health import is_under_min_isr
from kraftlake.image.topics.partition_registration import NO_LEADER
from kraftlake.replay.log.broker_lists import BrokerLists


class Trouble(IntEnum):
    """The states that are measured, the worst first; a partition may be in several at a time.

    EXISTS is none: its stretches are the time that there was.
    """

    OFFLINE = 0
    LED_BY_FENCED = 1
    UNDER_MIN_ISR = 2
    ONE_IN_SYNC = 3
    EXISTS = 4


_BY_RECORD, _BY_BROKER, _BY_CONFIG = 0, 1, 2


@attrs.frozen(kw_only=True, eq=False)
class Stretches:
    """n stretches: the `keys` of their partitions, their `troubles`, and the times (epoch ms) `begins` and `ends`.

    `goes_on` (bool) is true for one that had no end. `causes` (Cause), the `brokers` (NONE for none) and the `offsets`
    of the records that began them; NONE where they are not known.
    """

    keys: Any
    troubles: Any
    begins: Any
    ends: Any
    goes_on: Any
    causes: Any
    brokers: Any
    offsets: Any

    @property
    def lengths(self) -> Any:
        """The milliseconds of each (int64[n])."""
        return self.ends - self.begins

    def take(self, rows: Any) -> Stretches:
        """Some stretches."""
        return Stretches(**{field.name: getattr(self, field.name)[rows] for field in attrs.fields(Stretches)})


@attrs.frozen(kw_only=True, eq=False)
class _Spans:
    """States, divided where the leader is fenced or unfenced, and where min.insync.replicas changes."""

    states: PartitionStates
    began_by: Any
    fenced: Any
    min_isr: Any


def find_stretches(
    states: PartitionStates, losses: BrokerLosses, topics_min_isr: Any, min_isr: Timeline, window: tuple[int, int, int]
) -> Stretches:
    """All stretches within a window, those that exist longer cut.

    `topics_min_isr` has the group in `min_isr` of each topic's number. The window is its begin and end (epoch ms), and
    a position after all others.
    """
    begin, end, last = window
    spans = _divided(states, losses, topics_min_isr, min_isr, (last, end))
    states = spans.states
    until = states.until((last, end))
    exists = states.leaders != GONE
    held = {
        Trouble.OFFLINE: states.leaders == NO_LEADER,
        Trouble.LED_BY_FENCED: exists & (spans.fenced > 0),
        Trouble.UNDER_MIN_ISR: exists & is_under_min_isr(states.in_sync, states.replicas, spans.min_isr),
        Trouble.ONE_IN_SYNC: exists & (states.in_sync == 1) & (states.replicas > 1),
        Trouble.EXISTS: exists,
    }
    found = []
    for trouble, is_so in held.items():
        starts, stops = _runs(states.keys, is_so)
        begins, ends = np.maximum(states.times[starts], begin), np.minimum(until[1][stops], end)
        some = ends > begins
        starts, stops = starts[some], stops[some]
        causes, brokers, offsets = _causes(trouble, spans, starts, losses, last)
        found.append(
            (
                states.keys[starts],
                np.full(len(starts), int(trouble)),
                begins[some],
                ends[some],
                until[0][stops] == last,
                causes,
                brokers,
                offsets,
            )
        )
    return Stretches(
        **{
            field.name: np.concatenate(columns)
            for field, columns in zip(attrs.fields(Stretches), zip(*found, strict=True), strict=True)
        }
    )


def _divided(
    states: PartitionStates, losses: BrokerLosses, topics_min_isr: Any, min_isr: Timeline, end: tuple[int, int]
) -> _Spans:
    last, _ = end
    fences, began_by = losses.fenced(last), np.full(len(states.keys), _BY_RECORD)
    for timeline, by in ((fences, _BY_BROKER), (min_isr, _BY_CONFIG)):
        groups = _leaders(states, losses) if by == _BY_BROKER else topics_min_isr[states.keys >> 32]
        first, counts = timeline.within(groups, states.positions, states.until(end)[0])
        rows = np.repeat(np.arange(len(counts)), 1 + counts)
        number = np.arange(len(rows)) - np.repeat(np.append(0, np.cumsum(1 + counts))[:-1], 1 + counts)
        states, began_by = states.take(rows), began_by[rows]
        later = np.flatnonzero(number)
        changes = first[rows[later]] + number[later] - 1
        for name in ("positions", "times", "offsets"):
            getattr(states, name)[later] = getattr(timeline, name)[changes]
        began_by[later] = by
    return _Spans(
        states=states,
        began_by=began_by,
        fenced=fences.values_at(_leaders(states, losses), states.positions, 0),
        min_isr=min_isr.values_at(topics_min_isr[states.keys >> 32], states.positions, 1),
    )


def _leaders(states: PartitionStates, losses: BrokerLosses) -> Any:
    return _numbers(states.leaders, losses)


def _numbers(brokers: Any, losses: BrokerLosses) -> Any:
    """The numbers of brokers; NONE for one that never was registered, and for none."""
    known, which = np.unique(brokers, return_inverse=True)
    return np.array([losses.ids.get(id_, NONE) for id_ in known.tolist()], np.int64)[which]


def _runs(keys: Any, is_so: Any) -> tuple[Any, Any]:
    """The first and the last rows of each run of one key for which it is so."""
    same = keys[1:] == keys[:-1]
    goes_on = same & is_so[1:] & is_so[:-1]
    edge = np.ones(min(len(keys), 1), np.bool_)
    starts = np.flatnonzero(is_so & np.append(edge, ~goes_on))
    return starts, np.flatnonzero(is_so & np.append(~goes_on, edge))


def _causes(trouble: Trouble, spans: _Spans, starts: Any, losses: BrokerLosses, last: int) -> tuple[Any, Any, Any]:
    """The Cause, the broker and the offset of what began stretches that start with some rows."""
    states, by = spans.states.take(starts), spans.began_by[starts]
    none = np.full(len(starts), NONE)
    is_earlier = (states.offsets < 0) & (by == _BY_RECORD)
    causes = np.where(by == _BY_CONFIG, int(Cause.CONFIGURED), int(Cause.CHANGED))
    causes[(states.led_by == GONE) & (by == _BY_RECORD)] = Cause.CREATED
    if trouble is Trouble.EXISTS:
        return causes, none, states.offsets
    if trouble is Trouble.OFFLINE:
        brokers = np.where(states.led_by >= 0, states.led_by, NONE)
    elif trouble is Trouble.LED_BY_FENCED:
        brokers = states.leaders
    else:
        brokers = _lost_of(states.left, states.positions, losses, last)
    brokers = np.where((by == _BY_CONFIG) | is_earlier, NONE, brokers)
    found, offsets = losses.losses_at(_numbers(brokers, losses), states.positions, last)
    is_out = (brokers >= 0) & (found == NONE)
    causes = np.where(brokers >= 0, np.where(is_out, _OF_RUNNING[trouble], found), causes)
    offsets = np.where((brokers >= 0) & ~is_out, offsets, states.offsets)
    return np.where(is_earlier, int(Cause.EARLIER), causes), brokers, offsets


_OF_RUNNING: Final = {
    Trouble.OFFLINE: Cause.CHANGED,
    Trouble.LED_BY_FENCED: Cause.CHANGED,
    Trouble.UNDER_MIN_ISR: Cause.OUT_OF_SYNC,
    Trouble.ONE_IN_SYNC: Cause.OUT_OF_SYNC,
}
"""What began a trouble with a broker that ran on."""


def _lost_of(left: BrokerLists, positions: Any, losses: BrokerLosses, last: int) -> Any:
    """One of the brokers of each list: the first that was lost at the position, else the first; NONE for none."""
    rows = np.repeat(np.arange(len(left)), left.lengths)
    members = left.members.astype(np.int64)
    runs_on = losses.losses_at(_numbers(members, losses), positions[rows], last)[0] == NONE
    order = np.lexsort((np.arange(len(rows)), runs_on, rows))
    found = np.full(len(left), NONE)
    kept, first = np.unique(rows[order], return_index=True)
    found[kept] = members[order[first]]
    return found
