"""The racks of leaders' brokers, and the division of partitions' states by changes of racks. Imports numpy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from kraftlake.kernels.partition_row import LEADER
from kraftlake.tables.history.history_columns import STILL_SO
from kraftlake.tables.history.state_columns import NO_RACK, States

if TYPE_CHECKING:
    from kraftlake.image.broker_registration import BrokerRegistration
    from kraftlake.replay.log.other_records import OtherChange


class RackChange(NamedTuple):
    """A broker's rack from an offset on, by its number; `time` is the offset's (epoch ms, -1 for none)."""

    offset: int
    time: int
    broker: int
    rack: int


class LeaderRacks:
    """The rack of each broker, with the offset since which it has it, as far as it has changed.

    A state of a partition is divided where its leader's broker gets another rack. The part before the change is
    returned when the change is added: of the state itself the part after the last change remains.
    """

    def __init__(self, brokers: Mapping[int, BrokerRegistration]) -> None:
        """Initialize with the registrations of an image."""
        self._numbers: dict[str, int] = {}
        self._racks = {broker: self._number(registration.rack) for broker, registration in brokers.items()}
        self._since: dict[int, RackChange] = {}

    @property
    def names(self) -> pa.Array:
        """The racks, by number."""
        return pa.array([*self._numbers], pa.string())

    def changes_in(self, others: Iterable[OtherChange]) -> list[RackChange]:
        """The changes of racks, in order."""
        return [
            RackChange(other.offset, other.time, broker, self._number(rack))
            for other in others
            for broker, rack in other.racks.items()
        ]

    def known(self, states: States) -> States:
        """The states with the racks of their leaders, each as far as it remains after the added changes."""
        leaders = states.rows[:, LEADER]
        begins, times = self.begins(leaders, states.begins, states.begin_times)
        ids = np.array(sorted(self._racks), np.int64)
        racks = np.full(len(leaders), NO_RACK, np.int32)
        if len(ids):
            places = np.minimum(np.searchsorted(ids, leaders), len(ids) - 1)
            of_brokers = np.array([self._racks[broker] for broker in ids.tolist()], np.int32)
            racks = np.where(ids[places] == leaders, of_brokers[places], np.int32(NO_RACK))
        return states._replace(begins=begins, begin_times=times, racks=racks)

    def begins(self, leaders: Any, since: Any, since_times: Any) -> tuple[Any, Any]:
        """The starts of the remaining parts of states that began at these offsets and times (int64), by leader."""
        begins, times = since.copy(), since_times.copy()
        if self._since:
            brokers = np.array(sorted(self._since), np.int64)
            changed = np.array([self._since[broker][:2] for broker in brokers.tolist()], np.int64)
            places = np.minimum(np.searchsorted(brokers, leaders), len(brokers) - 1)
            later = (brokers[places] == leaders) & (since < changed[places, 0])
            begins[later], times[later] = changed[places[later]].T
        return begins, times

    def divided(self, states: States, changes: Iterable[RackChange]) -> list[States]:
        """The parts of states that changes end, which follow the added ones, and last what remains of the states."""
        left, parts = self.known(states), list[States]()
        leaders = left.rows[:, LEADER]
        for offset, time, broker, rack in changes:
            led = np.flatnonzero(leaders == broker)
            later = left.begins[led] >= offset
            left.racks[led[later]] = rack
            ends = left.ends[led]
            ended = led[~later & ((ends > offset) | (ends == STILL_SO))]
            if len(ended):
                at = np.full(len(ended), offset), np.full(len(ended), time)
                parts.append(States(*(array[ended] for array in left))._replace(ends=at[0], end_times=at[1]))
                left.begins[ended], left.begin_times[ended], left.racks[ended] = offset, time, rack
        return [*parts, left]

    def take(self, changes: Iterable[RackChange]) -> None:
        """Add changes, after the states before them."""
        for change in changes:
            self._racks[change.broker], self._since[change.broker] = change.rack, change

    def _number(self, rack: str | None) -> int:
        return NO_RACK if rack is None else self._numbers.setdefault(rack, len(self._numbers))
