"""The times at which brokers were lost: fenced, shut down, unregistered, or with a failed log directory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Any

import attrs
import numpy as np

from kraftlake.diagnosis.availability.timeline import NONE, Change, Timeline
from kraftlake.image.broker_registration import BrokerRegistration
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.replay.log.other_records import OtherChange


class Cause(IntEnum):
    """What began a state of a partition; the first ones are losses of a broker."""

    FENCED = 0
    SHUT_DOWN = 1
    STARTED_ANEW = 2
    UNREGISTERED = 3
    DIRECTORY_FAILED = 4
    OUT_OF_SYNC = 5
    CONFIGURED = 6
    CREATED = 7
    CHANGED = 8
    EARLIER = 9

    @property
    def words(self) -> str:
        """`shut down`."""
        return self.name.lower().replace("_", " ")


@attrs.define
class _Standing:
    """A broker's registration, and the offset and way in which it was lost; it is active without a way."""

    registration: BrokerRegistration | None = None
    lost_at: int = NONE
    way: Cause | None = Cause.EARLIER


class BrokerLosses:
    """The states of all brokers at the deltas that were added."""

    def __init__(self, image: MetadataImage) -> None:
        """Begin with the brokers of an image, at the position 0."""
        self.ids: dict[int, int] = {}
        """The number of each broker, by id."""
        self._standings: dict[int, _Standing] = {}
        self._fenced: list[Change] = []
        self._lost: list[Change] = []
        """The offset at which a broker was lost, NONE for one that is active."""
        self._ways: list[Change] = []
        self._failed: list[Change] = []
        for id_, broker in sorted(image.cluster.brokers.items()):
            self._take(id_, broker, 0, image.provenance.timestamp, NONE, is_begin=True)

    def take(self, others: Iterable[OtherChange], position: int, times: Any) -> None:
        """Add changes that follow the earlier ones; `times` are those of the deltas from `position` on."""
        for other in others:
            cluster = other.change.cluster_delta
            changed: Mapping[int, BrokerRegistration | None] = {} if cluster is None else cluster.changed_brokers
            for id_, broker in sorted(changed.items()):
                self._take(id_, broker, position + other.delta, int(times[other.delta]), other.offset)

    def _take(
        self, id_: int, now: BrokerRegistration | None, position: int, time: int, offset: int, *, is_begin: bool = False
    ) -> None:
        number = self.ids.setdefault(id_, len(self.ids))
        standing = self._standings.setdefault(id_, _Standing())
        before, standing.registration = standing.registration, now
        is_active = now is not None and not now.fenced and not now.in_controlled_shutdown
        if is_active:
            standing.lost_at, standing.way = NONE, None
        elif standing.way is None or is_begin:
            standing.lost_at, standing.way = offset, Cause.EARLIER if is_begin else _way(before, now)
        at = (number, position, time, offset)
        fenced = now is not None and now.fenced
        self._fenced.append(Change(*at, int(fenced)))
        self._lost.append(Change(*at, standing.lost_at))
        self._ways.append(Change(*at, NONE if standing.way is None else standing.way))
        if before is not None and now is not None and {*before.directories} - {*now.directories}:
            self._failed.append(Change(*at, offset))

    def fenced(self, end: int) -> Timeline:
        """Whether each broker, by number, is registered and fenced (1) or not."""
        return Timeline.of(self._fenced, end)

    def fenced_within(self, end: int, window_begin: int, window_end: int) -> tuple[Any, Any]:
        """By broker's number the ms that each was fenced within a window of times, and how often it was lost there."""
        count = len(self.ids)
        fenced = self.fenced(end)
        last = np.append(fenced.groups[1:] != fenced.groups[:-1], True)[: len(fenced.groups)]
        until = np.where(last, window_end, np.append(fenced.times[1:], window_end)[: len(last)])
        begins, ends = np.maximum(fenced.times, window_begin), np.minimum(until, window_end)
        lengths = np.where(fenced.values > 0, np.maximum(ends - begins, 0), 0)
        lost = Timeline.of(self._lost, end)
        was = np.append(NONE, lost.values[:-1])[: len(lost.values)]
        same = np.append(False, lost.groups[1:] == lost.groups[:-1])[: len(lost.values)]
        is_loss = (
            same & (was == NONE) & (lost.values != NONE) & (lost.times >= window_begin) & (lost.times <= window_end)
        )
        return np.bincount(fenced.groups, lengths, count), np.bincount(lost.groups[is_loss], minlength=count)

    def losses_at(self, numbers: Any, positions: Any, end: int) -> tuple[Any, Any]:
        """The Cause for which brokers, by number, were lost after deltas at positions, and the offset of its record.

        NONE for a broker that was not.
        """
        lost, ways = Timeline.of(self._lost, end), Timeline.of(self._ways, end)
        offsets, causes = (one.values_at(numbers, positions, NONE) for one in (lost, ways))
        failed = Timeline.of(self._failed, end)
        found = failed.at(numbers, positions)
        if len(self._failed):
            here = (causes == NONE) & (found >= 0) & (failed.positions[found] == positions)
            offsets = np.where(here, failed.values[found], offsets)
            causes = np.where(here, int(Cause.DIRECTORY_FAILED), causes)
        return causes, offsets


def _way(before: BrokerRegistration | None, now: BrokerRegistration | None) -> Cause:
    """How an active broker was lost."""
    if now is None:
        return Cause.UNREGISTERED
    if before is not None and before.incarnation_id != now.incarnation_id:
        return Cause.STARTED_ANEW
    return Cause.FENCED if now.fenced else Cause.SHUT_DOWN
