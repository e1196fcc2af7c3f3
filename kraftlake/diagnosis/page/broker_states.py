"""The states of brokers over time: active, fenced, shutting down, or not registered. Imports numpy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np

from kraftlake.image.broker_registration import BrokerRegistration

ABSENT, ACTIVE, FENCED, SHUTTING_DOWN = range(4)
"""The states of a broker. A broker that is fenced during a controlled shutdown is FENCED."""


@attrs.frozen(kw_only=True, eq=False)
class BrokerTimes:
    """The brokers of a range by their `ids` (list, ascending), with the newest rack of each (`racks`, None for none).

    Their states, in the order of time: from `moments` (int64) on the broker with the number `brokers` (int32) is in one
    of `states` (uint8).
    """

    ids: list[int]
    racks: list[str | None]
    moments: Any
    brokers: Any
    states: Any


class BrokerStates:
    """Takes changes of registrations in their order; `times` returns the resulting states."""

    def __init__(self) -> None:
        self._now: dict[int, int] = {}
        self._racks: dict[int, str | None] = {}
        self._changes: list[tuple[int, int, int]] = []

    def take(self, moment: int, changed: Mapping[int, BrokerRegistration | None]) -> None:
        """Add the registrations that changed at a moment; None is for a removed one."""
        for id_, broker in sorted(changed.items()):
            state = state_of(broker)
            if broker is not None:
                self._racks[id_] = broker.rack
            if state != self._now.get(id_, ABSENT):
                self._now[id_] = state
                self._changes.append((moment, id_, state))

    def times(self) -> BrokerTimes:
        """The states of all brokers."""
        ids = sorted(self._now)
        moments, brokers, states = np.array(self._changes, np.int64).reshape(-1, 3).T
        return BrokerTimes(
            ids=ids,
            racks=[self._racks[id_] for id_ in ids],
            moments=moments,
            brokers=np.searchsorted(ids, brokers).astype(np.int32) if ids else brokers.astype(np.int32),
            states=states.astype(np.uint8),
        )


def state_of(broker: BrokerRegistration | None) -> int:
    """The state of a broker."""
    if broker is None:
        return ABSENT
    if broker.fenced:
        return FENCED
    return SHUTTING_DOWN if broker.in_controlled_shutdown else ACTIVE
