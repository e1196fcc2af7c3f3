"""What happened to the nodes of a cluster, and when: the events that its stability is counted by. Imports numpy."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from kraftlake.diagnosis.doctor.activity import altered_partitions, moved_leaders, replicas_that_left
from kraftlake.diagnosis.doctor.registration_history import RegistrationHistory
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.topics.partition_registration import NO_LEADER
from kraftlake.records.control_records import LeaderChangeMessage
from kraftlake.replay.log.broker_lists import BrokerLists
from kraftlake.replay.log.delta_chunk import DeltaChunk
from kraftlake.replay.log.partition_changes import PartitionChanges
from kraftlake.tables.events.partition_events import PartitionColumns

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


class Happenings:
    """Gathers the events of a log; `first_time` and `last_time` (epoch ms) are those of its batches, -1 for none."""

    def __init__(self, image: MetadataImage) -> None:
        """Initialize with the image before the first delta."""
        self._registrations = RegistrationHistory(image)
        self._rows: list[Any] = []
        self.first_time = self.last_time = -1

    def take(self, chunk: DeltaChunk) -> None:
        """Add the deltas that follow the earlier ones."""
        timed = chunk.boundaries.times[chunk.boundaries.times >= 0]
        if len(timed):
            self.first_time = int(timed.min() if self.first_time < 0 else min(self.first_time, timed.min()))
            self.last_time = max(self.last_time, int(timed.max()))
        self._registrations.take(chunk.others)
        for one in chunk.quorum:
            if isinstance(one.message, LeaderChangeMessage):
                self._add("controller_changes", one.offset, one.time, NO_BROKER)
        for changes, before, after in altered_partitions(chunk.partitions):
            self._take_partitions(changes, before, after, chunk.boundaries.offsets[changes.deltas])

    def happened(self) -> Any:
        """All events that have a time, by offset; to be called at the end, once.

        A record array: the number of each one's kind in KINDS, its offset, time (epoch ms), broker, and `orderly`: a
        controlled shutdown explains it, or the return of a leadership to the preferred replica.
        """
        for broker in self._registrations.brokers:
            of_broker = {"fencings": self._registrations.losses(broker), "starts": self._registrations.starts(broker)}
            for kind, turns in of_broker.items():
                for turn in turns:
                    time = -1 if turn.at.timestamp is None else turn.at.timestamp
                    self._add(kind, turn.at.offset, time, broker, turn.orderly)
        rows = np.concatenate([np.empty((5, 0), np.int64), *self._rows], axis=1)
        rows = rows[:, rows[2] >= 0]
        columns = [*rows[:, np.argsort(rows[1], kind="stable")]]
        found = np.rec.fromarrays(columns, names="kinds,offsets,times,brokers,orderly", formats="i8,i8,i8,i8,?")
        self._explain(found)
        return found

    def _take_partitions(
        self, changes: PartitionChanges, before: PartitionColumns, after: PartitionColumns, ends: Any
    ) -> None:
        """Add changes of partitions, at the ends of their deltas: these say whether a shutdown began with them."""

        def add(kind: str, rows: Any, brokers: Any, orderly: Any = False) -> None:
            self._add(kind, ends[rows], changes.times[rows], brokers, orderly)

        moved = np.flatnonzero(moved_leaders(before, after))
        leaders = BrokerLists(np.arange(len(moved) + 1, dtype=np.int32), before.leader[moved])
        stays = ~leaders.without(after.isr.take(moved)).any
        replicas = after.hosts.replicas.take(moved)
        preferred = np.append(replicas.members, NO_LEADER)[replicas.bounds[:-1]]
        add("lost_leaderships", moved, leaders.members, stays & (after.leader[moved] == preferred))
        unclean = np.flatnonzero(changes.unclean > 0)
        add("unclean_elections", unclean, after.leader[unclean])
        joined = after.isr.without(before.isr)
        for kind, lists in ("isr_shrinks", replicas_that_left(before, after)), ("isr_expands", joined):
            add(kind, np.repeat(np.arange(len(lists)), lists.lengths), lists.members)

    def _add(self, kind: str, offsets: Any, times: Any, brokers: Any, orderly: Any = False) -> None:
        """Add events of a kind: one, or arrays of many."""
        self._rows.append(np.stack(np.broadcast_arrays(NUMBERS[kind], offsets, times, brokers, orderly)).reshape(5, -1))

    def _explain(self, found: Any) -> None:
        """Make the changes of partitions orderly whose broker is in controlled shutdown, or back from one."""
        leaves = np.isin(found.kinds, [NUMBERS["lost_leaderships"], NUMBERS["isr_shrinks"]])
        joins = found.kinds == NUMBERS["isr_expands"]
        for broker, states in self._registrations.brokers.items():
            stops = [(one.offset, one.state is not None and one.state.in_controlled_shutdown) for one in states]
            losses = [(loss.at.offset, loss.orderly) for loss in self._registrations.losses(broker)]
            for kind, known in ((leaves, stops), (joins, losses)):
                rows = np.flatnonzero(kind & (found.brokers == broker))
                orderly = np.array([False, *(orderly for _, orderly in known)])
                places = np.searchsorted([offset for offset, _ in known], found.offsets[rows], side="right")
                found.orderly[rows] |= orderly[places]
