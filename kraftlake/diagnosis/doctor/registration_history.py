"""The registrations of each broker and controller, one state after the other. Imports numpy."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Generic, TypeVar

import attrs

from kraftlake.diagnosis.doctor.group import LogPosition
from kraftlake.image.broker_registration import BrokerRegistration
from kraftlake.image.controller_registration import ControllerRegistration
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.records.uuid import Uuid
from kraftlake.replay.log.other_records import OtherChange

R = TypeVar("R", BrokerRegistration, ControllerRegistration)


@attrs.frozen(kw_only=True)
class Registered(Generic[R]):
    """The registration of a node from a position in the log on; None for not registered.

    The position is None for the states with which the log begins.
    """

    state: R | None
    since: LogPosition | None

    @property
    def offset(self) -> int:
        """The offset from which it is so, -1 for the states with which the log begins."""
        return -1 if self.since is None else self.since.offset


@attrs.frozen(kw_only=True)
class Turn:
    """The start of a broker's process, or the end of its unfenced state by fencing or a replacement.

    `orderly`: a controlled shutdown precedes it, or nothing.
    """

    at: LogPosition
    orderly: bool


class RegistrationHistory:
    """The states of all brokers and controllers by node id, in the order of the log, up to the last added change."""

    def __init__(self, image: MetadataImage) -> None:
        """Initialize with the registrations of an image."""
        self.brokers: dict[int, list[Registered[BrokerRegistration]]] = {
            id_: [Registered(state=one, since=None)] for id_, one in image.cluster.brokers.items()
        }
        self.controllers: dict[int, list[Registered[ControllerRegistration]]] = {
            id_: [Registered(state=one, since=None)] for id_, one in image.cluster.controllers.items()
        }

    def take(self, others: Iterable[OtherChange]) -> None:
        """Add the changes that follow the earlier ones."""
        for other in others:
            changed, at = other.change.cluster_delta, LogPosition.of(other.offset, other.time)
            if changed is None:
                continue
            for id_, broker in changed.changed_brokers.items():
                self.brokers.setdefault(id_, []).append(Registered(state=broker, since=at))
            for id_, controller in changed.changed_controllers.items():
                self.controllers.setdefault(id_, []).append(Registered(state=controller, since=at))

    def unchanged_since(self, node: str, of: Callable[[Any], object]) -> LogPosition | None:
        """The position from which a part of the registration of `broker 3` or `controller 3` has been unchanged.

        A voter is a controller. None where the log does not reach that far back.
        """
        kind, id_ = node.split()
        history: Mapping[int, Sequence[Registered[Any]]] = self.brokers if kind == "broker" else self.controllers
        since, part = None, None
        for one in history.get(int(id_), ()):
            now = None if one.state is None else of(one.state)
            if now != part:
                since, part = one.since, now
        return since

    def starts(self, broker: int) -> list[Turn]:
        """The positions at which processes of a broker registered."""
        states = self.brokers.get(broker, ())
        before = {id(after): one.state for one, after in pairwise(states)}
        return [
            Turn(at=one.since, orderly=(last := before.get(id(one))) is None or last.in_controlled_shutdown)
            for one in incarnations(states)
            if one.since is not None
        ]

    def losses(self, broker: int) -> list[Turn]:
        """The positions at which a broker stopped being unfenced."""
        return [
            Turn(at=after.since, orderly=before.state.in_controlled_shutdown)
            for before, after in pairwise(self.brokers.get(broker, ()))
            if before.state is not None and not before.state.fenced and after.since is not None
            and (after.state is None or after.state.fenced)
        ]  # fmt: skip


def incarnations(states: Sequence[Registered[R]]) -> Iterator[Registered[R]]:
    """The first state of each process in turn: its incarnation differs from that of the registration before it."""
    last = None
    for one in states:
        if one.state is not None and one.state.incarnation_id != last:
            last = one.state.incarnation_id
            yield one


def state_at(states: Sequence[Registered[R]], offset: int) -> R | None:
    """The registration of a node after an offset."""
    place = place_at(states, offset)
    return states[place].state if place >= 0 else None


def place_at(states: Sequence[Registered[R]], offset: int) -> int:
    """The index of the state after an offset, -1 for none."""
    return bisect_right(states, offset, key=lambda one: one.offset) - 1


def failed_directories(states: Sequence[Registered[BrokerRegistration]]) -> dict[Uuid, LogPosition | None]:
    """The directories that a broker's last process had and lost while it ran: these were not removed from log.dirs."""
    failed: dict[Uuid, LogPosition | None] = {}
    for before, after in pairwise(states):
        if before.state is None or after.state is None or before.state.incarnation_id != after.state.incarnation_id:
            failed.clear()
            continue
        online = set(after.state.directories)
        failed.update({one: after.since for one in before.state.directories if one not in online})
        for directory in online:
            failed.pop(directory, None)
    return {} if not states or states[-1].state is None else failed
