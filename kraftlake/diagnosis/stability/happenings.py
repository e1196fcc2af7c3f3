"""What happened to the nodes of a cluster, and when: the events that its stability is counted by. Imports numpy."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any, Final

import attrs
import numpy as np

from kraftlake.diagnosis.doctor.activity import moved_leaders, replicas_that_left
from kraftlake.diagnosis.doctor.group import LogPosition
from kraftlake.diagnosis.doctor.registration_history import RegistrationHistory, incarnations
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.records.control_records import LeaderChangeMessage
from kraftlake.replay.log.delta_chunk import DeltaChunk
from kraftlake.replay.log.partition_changes import HAD, HAS, PartitionChanges
from kraftlake.tables.events.distinct_changes import event_columns

KINDS: Final = {
    "fencings": "a broker that was not fenced was fenced, or is gone",
    "starts": "a process of a broker registered",
    "lost_leaderships": "a partition that a broker led has another leader, or none",
    "unclean_elections": "a broker was elected that may lack records",
    "isr_shrinks": "a replica of a broker left an ISR, and was not moved away",
    "isr_expands": "a replica of a broker joined an ISR",
    "controller_changes": "a leader of the quorum began its epoch",
}
"""The kinds of events, with their meanings."""
NUMBERS: Final = {kind: number for number, kind in enumerate(KINDS)}

NO_BROKER: Final = -1
"""The broker of an event of the quorum."""


@attrs.frozen(kw_only=True, eq=False)
class Happened:
    """Events by column: the number of each one's kind in KINDS, its offset, time (epoch ms), broker, and `orderly`.

    Orderly is what a controlled shutdown explains, or the return of a leadership to the preferred replica.
    """

    kinds: Any
    offsets: Any
    times: Any
    brokers: Any
    orderly: Any

    def where(self, some: Any) -> Happened:
        """The events that a mask chooses."""
        return Happened(**{field.name: getattr(self, field.name)[some] for field in attrs.fields(Happened)})


class Happenings:
    """Gathers the events of a log; `first_time` and `last_time` (epoch ms) are those of its batches, -1 for none."""

    def __init__(self, image: MetadataImage) -> None:
        """Initialize with the image before the first delta."""
        self._registrations = RegistrationHistory(image)
        self._rows: list[tuple[Any, ...]] = []
        self.first_time = self.last_time = -1

    def take(self, chunk: DeltaChunk) -> None:
        """Add the deltas that follow the earlier ones."""
        timed = chunk.boundaries.times[chunk.boundaries.times >= 0]
        if len(timed):
            self.first_time = int(timed.min()) if self.first_time < 0 else min(self.first_time, int(timed.min()))
            self.last_time = max(self.last_time, int(timed.max()))
        self._registrations.take(chunk.others)
        led = (one for one in chunk.quorum if isinstance(one.message, LeaderChangeMessage))
        self._add_positions(
            "controller_changes", ((LogPosition.of(one.offset, one.time), NO_BROKER, False) for one in led)
        )
        changes = chunk.partitions
        both = np.flatnonzero((changes.flags & (HAD | HAS) == HAD | HAS) & changes.altered)
        if len(both):
            self._add_changes(changes.take(both), chunk.boundaries.offsets)

    def happened(self) -> Happened:
        """All events that have a time, by offset; to be called at the end, once."""
        for broker, states in self._registrations.brokers.items():
            losses = ((loss.at, broker, loss.orderly) for loss in self._registrations.losses(broker))
            self._add_positions("fencings", losses)
            before = {id(after): one.state for one, after in pairwise(states)}
            for one in incarnations(states):
                last = before.get(id(one))
                self._add_positions("starts", [(one.since, broker, last is None or last.in_controlled_shutdown)])
        rows = np.concatenate([np.empty((5, 0), np.int64), *(np.array(row, np.int64) for row in self._rows)], axis=1)
        rows = rows[:, rows[2] >= 0]
        kinds, offsets, times, brokers, orderly = rows[:, np.argsort(rows[1], kind="stable")]
        found = Happened(kinds=kinds, offsets=offsets, times=times, brokers=brokers, orderly=orderly > 0)
        return attrs.evolve(found, orderly=found.orderly | self._explained(found))

    def _add_positions(self, kind: str, some: Iterable[tuple[LogPosition | None, int, bool]]) -> None:
        for at, broker, orderly in some:
            if at is not None and at.timestamp is not None:
                self._rows.append(([NUMBERS[kind]], [at.offset], [at.timestamp], [broker], [orderly]))

    def _add_changes(self, changes: PartitionChanges, ends: Any) -> None:
        """Add changes of partitions, at the ends of their deltas: these say whether a shutdown began with them."""
        changes = attrs.evolve(changes, offsets=ends[changes.deltas])
        before, after = event_columns(changes, changes.before), event_columns(changes, changes.after)
        moved = np.flatnonzero(moved_leaders(before, after))
        returned = _returned(before.leader[moved], after.leader[moved], after.hosts.replicas.take(moved))
        stays = np.zeros(len(moved), np.bool_)
        isr = after.isr.take(moved)
        rows = np.repeat(np.arange(len(moved)), isr.lengths)
        stays[rows[isr.members == before.leader[moved][rows]]] = True
        self._add_rows("lost_leaderships", changes, moved, before.leader[moved], returned & stays)
        unclean = np.flatnonzero(changes.unclean > 0)
        self._add_rows("unclean_elections", changes, unclean, after.leader[unclean])
        for kind, lists in (
            ("isr_shrinks", replicas_that_left(before, after)),
            ("isr_expands", after.isr.without(before.isr)),
        ):
            self._add_rows(kind, changes, np.repeat(np.arange(len(lists)), lists.lengths), lists.members)

    def _add_rows(self, kind: str, changes: PartitionChanges, rows: Any, brokers: Any, orderly: Any = None) -> None:
        if len(rows):
            known = np.zeros(len(rows), np.bool_) if orderly is None else orderly
            kinds = np.full(len(rows), NUMBERS[kind])
            self._rows.append((kinds, changes.offsets[rows], changes.times[rows], brokers, known))

    def _explained(self, found: Happened) -> Any:
        """Whether each change of a partition is of a broker in controlled shutdown, or back from one (bool[n])."""
        explained = np.zeros(len(found.kinds), np.bool_)
        leaves = np.isin(found.kinds, [NUMBERS["lost_leaderships"], NUMBERS["isr_shrinks"]])
        joins = found.kinds == NUMBERS["isr_expands"]
        for broker, states in self._registrations.brokers.items():
            stops = [
                (
                    -1 if one.since is None else one.since.offset,
                    one.state is not None and one.state.in_controlled_shutdown,
                )
                for one in states
            ]
            losses = [(loss.at.offset, loss.orderly) for loss in self._registrations.losses(broker)]
            for kind, known in ((leaves, stops), (joins, losses)):
                rows = np.flatnonzero(kind & (found.brokers == broker))
                offsets = np.array([offset for offset, _ in known], np.int64)
                orderly = np.array([False, *(orderly for _, orderly in known)])
                explained[rows] = orderly[np.searchsorted(offsets, found.offsets[rows], side="right")]
        return explained


def _returned(before: Any, after: Any, replicas: Any) -> Any:
    """Whether a leadership went from a broker that is not the preferred replica to that one (bool[n])."""
    if not len(replicas.members):
        return np.zeros(len(before), np.bool_)
    preferred = replicas.members[np.minimum(replicas.bounds[:-1], len(replicas.members) - 1)]
    return (after == preferred) & (before != preferred)
