"""The placement of new replicas: striped over racks, then over the brokers of each rack.

Source: org.apache.kafka.metadata.placement.StripedReplicaPlacer, with its order of random draws.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import attrs

from kraftlake.controller.errors import ControllerApiError
from kraftlake.protocol.error_code import ErrorCode

NextInt: TypeAlias = Callable[[int], int]
"""Returns a random number from 0 to below its argument."""


@attrs.frozen
class UsableBroker:
    """A broker that may get replicas; unfenced brokers are preferred."""

    id: int
    rack: str | None
    fenced: bool


def place_replicas(
    brokers: Iterable[UsableBroker], *, partitions: int, replication_factor: int, next_int: NextInt
) -> list[tuple[int, ...]]:
    """Return the replicas of each new partition; the first one, the leader, is on an unfenced broker.

    The leaders of successive partitions are on successive racks, the other replicas on the racks that follow, one rack
    after the other. Within a rack brokers take turns, unfenced ones first. Raises
    ControllerApiError(INVALID_REPLICATION_FACTOR) for more replicas than brokers, or without an unfenced broker.
    """
    racks = _Racks(brokers, next_int)
    if replication_factor <= 0:
        raise _invalid(f"a replication factor of {replication_factor} is not positive")
    if racks.unfenced == 0:
        raise _invalid("every broker is fenced, or has no log directory that isn't cordoned")
    if replication_factor > racks.total:
        raise _invalid(
            f"a replication factor of {replication_factor} needs as many brokers, and {racks.total} may get replicas"
        )
    return [racks.place(replication_factor) for _ in range(partitions)]


def _invalid(reason: str) -> ControllerApiError:
    return ControllerApiError(ErrorCode.INVALID_REPLICATION_FACTOR, reason[0].upper() + reason[1:] + ".")


class _Brokers:
    """Brokers that take turns; the first broker moves by one with each epoch, which is one partition."""

    def __init__(self) -> None:
        self.ids: list[int] = []
        self._index = 0
        self._offset = 0
        self._epoch = 0

    def initialize(self, next_int: NextInt) -> None:
        if self.ids:
            self.ids.sort()
            self._offset = next_int(len(self.ids))

    def next(self, epoch: int) -> int | None:
        if not self.ids:
            return None
        if self._epoch != epoch:
            self._epoch = epoch
            self._index = 0
            self._offset = (self._offset + 1) % len(self.ids)
        if self._index >= len(self.ids):
            return None
        self._index += 1
        return self.ids[(self._index - 1 + self._offset) % len(self.ids)]


class _Rack:
    def __init__(self) -> None:
        self.fenced = _Brokers()
        self.unfenced = _Brokers()

    def next(self, epoch: int) -> int | None:
        broker = self.unfenced.next(epoch)
        return self.fenced.next(epoch) if broker is None else broker


class _Racks:
    def __init__(self, brokers: Iterable[UsableBroker], next_int: NextInt) -> None:
        self._next_int = next_int
        self._racks: dict[str | None, _Rack] = {}
        self.total = self.unfenced = 0
        for broker in brokers:
            rack = self._racks.setdefault(broker.rack, _Rack())
            (rack.fenced if broker.fenced else rack.unfenced).ids.append(broker.id)
            self.total += 1
            self.unfenced += not broker.fenced
        self._names = sorted(self._racks, key=lambda name: (name is not None, name or ""))
        for name in self._names:
            self._racks[name].fenced.initialize(next_int)
            self._racks[name].unfenced.initialize(next_int)
        self._epoch = 0
        self._offset = next_int(len(self._names)) if self._names else 0

    def place(self, replication_factor: int) -> tuple[int, ...]:
        if self._epoch == self.unfenced and self.unfenced > 1:
            self._shuffle()
            self._epoch = 0
        if self._offset == len(self._names):
            self._offset = 0
        first = self._offset
        leader = self._racks[self._names[first]].unfenced.next(self._epoch)
        while leader is None:
            first = (first + 1) % len(self._names)
            leader = self._racks[self._names[first]].unfenced.next(self._epoch)
        replicas = [leader]
        skip: int | None = first  # the first round skips the rack of the leader
        place = self._offset
        while len(replicas) < replication_factor:
            broker = None
            if place == skip:
                skip = None
            else:
                broker = self._racks[self._names[place]].next(self._epoch)
            place = (place + 1) % len(self._names)
            if broker is not None:
                replicas.append(broker)
        self._epoch += 1
        self._offset += 1
        return tuple(replicas)

    def _shuffle(self) -> None:
        self._shuffle_list(self._names)
        for name in sorted(self._racks, key=lambda name: (name is not None, name or "")):
            self._shuffle_list(self._racks[name].fenced.ids)
            self._shuffle_list(self._racks[name].unfenced.ids)

    def _shuffle_list(self, items: list[Any]) -> None:
        for size in range(len(items), 1, -1):
            other = self._next_int(size)
            items[size - 1], items[other] = items[other], items[size - 1]
