"""What each broker and controller was registered as, one state after the other. Imports numpy."""

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
    """What a node was registered as from a place in the log on; None for not registered.

    The place is None for what the log begins with.
    """

    state: R | None
    since: LogPosition | None


@attrs.frozen(kw_only=True)
class Loss:
    """A broker that was unfenced is fenced, or was replaced; `orderly` after a controlled shutdown."""

    at: LogPosition
    orderly: bool


class RegistrationHistory:
    """The states of all brokers and controllers by node id, in the order of the log, after what was taken."""

    def __init__(self, image: MetadataImage) -> None:
        """Begin with the registrations of an image."""
        self.brokers: dict[int, list[Registered[BrokerRegistration]]] = {
            id_: [Registered(state=one, since=None)] for id_, one in image.cluster.brokers.items()
        }
        self.controllers: dict[int, list[Registered[ControllerRegistration]]] = {
            id_: [Registered(state=one, since=None)] for id_, one in image.cluster.controllers.items()
        }

    def take(self, others: Iterable[OtherChange]) -> None:
        """Take in the changes that follow those before."""
        for other in others:
            changed, at = other.change.cluster_delta, LogPosition.of(other.offset, other.time)
            if changed is None:
                continue
            for id_, broker in changed.changed_brokers.items():
                self.brokers.setdefault(id_, []).append(Registered(state=broker, since=at))
            for id_, controller in changed.changed_controllers.items():
                self.controllers.setdefault(id_, []).append(Registered(state=controller, since=at))

    def unchanged_since(self, node: str, of: Callable[[Any], object]) -> LogPosition | None:
        """Since when a part of the registration of `broker 3` or `controller 3` is as it is now.

        A voter is a controller. None where the log does not reach back so far.
        """
        kind, id_ = node.split()
        history: Mapping[int, Sequence[Registered[Any]]] = self.brokers if kind == "broker" else self.controllers
        since, part = None, None
        for one in history.get(int(id_), ()):
            now = None if one.state is None else of(one.state)
            if now != part:
                since, part = one.since, now
        return since

    def losses(self, broker: int) -> list[Loss]:
        """The times at which a broker stopped being unfenced."""
        return [
            Loss(at=after.since, orderly=before.state.in_controlled_shutdown)
            for before, after in pairwise(self.brokers.get(broker, ()))
            if before.state is not None and not before.state.fenced and after.since is not None
            and (after.state is None or after.state.fenced)
        ]  # fmt: skip


def incarnations(states: Sequence[Registered[R]]) -> Iterator[Registered[R]]:
    """The first state of each process in turn: another incarnation than that of the registration before it."""
    last = None
    for one in states:
        if one.state is not None and one.state.incarnation_id != last:
            last = one.state.incarnation_id
            yield one


def state_at(states: Sequence[Registered[R]], offset: int) -> R | None:
    """What a node was registered as after an offset."""
    place = place_at(states, offset)
    return states[place].state if place >= 0 else None


def place_at(states: Sequence[Registered[R]], offset: int) -> int:
    """The place of the state after an offset, -1 for none."""
    return bisect_right(states, offset, key=lambda one: -1 if one.since is None else one.since.offset) - 1


def failed_directories(states: Sequence[Registered[BrokerRegistration]]) -> dict[Uuid, LogPosition | None]:
    """The directories that a broker's last process had and lost while it ran: these were not taken out of log.dirs."""
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
