"""The moves of replicas to another log directory of their broker. Imports numpy."""

from __future__ import annotations

from typing import Any, Final

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraftlake.diagnosis.doctor.group import LogPosition
from kraftlake.image.topics.directory_id import LOST, MIGRATING, UNASSIGNED
from kraftlake.image.topics.partition_registration import NO_LEADER
from kraftlake.records.uuid import Uuid
from kraftlake.replay.log.partition_changes import HAD, HAS, WRITTEN, PartitionChanges
from kraftlake.tables.events.distinct_changes import event_columns

_RESERVED: Final = pa.array([str(one) for one in (LOST, MIGRATING, UNASSIGNED)])


@attrs.frozen(kw_only=True)
class DirectoryMove:
    """A move of a replica to another directory; `others` are the other brokers that led or might lead then."""

    at: LogPosition
    topic_id: str
    partition: int
    broker: int
    before: Uuid
    after: Uuid
    others: frozenset[int]


class DirectoryMoves:
    """The moves of a log, in its order; the first directory of a replica is not a move."""

    def __init__(self) -> None:
        self.found: list[DirectoryMove] = []

    def take(self, changes: PartitionChanges) -> None:
        """Add the changes that follow the earlier ones."""
        whole = HAD | HAS | WRITTEN
        some = np.flatnonzero((changes.flags & whole == whole) & changes.altered)
        if not len(some):
            return
        changes = changes.take(some)
        before, after = event_columns(changes, changes.before), event_columns(changes, changes.after)
        same = np.flatnonzero(~before.hosts.replicas.differ_from(after.hosts.replicas))
        if not len(same):
            return
        changes = changes.take(same)
        bounds, was = changes.lists(changes.before).flat("directories")
        _, now = changes.lists(changes.after).flat("directories")
        is_known = ~np.isin(was, self._reserved(changes))
        replicas = after.hosts.replicas.take(same).members
        rows = np.repeat(np.arange(len(same)), np.diff(bounds))
        for place in np.flatnonzero((was != now) & is_known).tolist():
            row = int(rows[place])
            self.found.append(self._move(changes, row, int(replicas[place]), int(was[place]), int(now[place])))

    @staticmethod
    def _reserved(changes: PartitionChanges) -> Any:
        """The numbers of the reserved ids (int32)."""
        places = pc.is_in(changes.names.directories, _RESERVED)
        return np.flatnonzero(places.to_numpy(zero_copy_only=False))

    @staticmethod
    def _move(changes: PartitionChanges, row: int, broker: int, was: int, now: int) -> DirectoryMove:
        state = event_columns(changes.take(slice(row, row + 1)), changes.after[row : row + 1])
        ids = changes.names.directories
        return DirectoryMove(
            at=LogPosition.of(int(changes.offsets[row]), int(changes.times[row])),
            topic_id=changes.names.ids[int(changes.topics[row])].as_py(),
            partition=int(changes.partitions[row]),
            broker=broker,
            before=Uuid.from_string(ids[was].as_py()),
            after=Uuid.from_string(ids[now].as_py()),
            others=frozenset({*state.leader, *state.isr.members, *state.elr.members} - {broker, NO_LEADER}),
        )
