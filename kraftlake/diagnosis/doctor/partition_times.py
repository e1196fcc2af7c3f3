"""The partitions in trouble, and the change of the log at which the trouble of each began. Imports numpy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraftlake.diagnosis.doctor.group import Affected, LogPosition, earliest
from kraftlake.diagnosis.image_columns import ImageColumns
from kraftlake.diagnosis.partition_conditions import CONDITIONS
from kraftlake.image.broker_partitions import min_insync_replicas
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.topics.partition_registration import NO_LEADER
from kraftlake.replay.log.partition_changes import HAD, HAS, PartitionChanges
from kraftlake.tables.events.distinct_changes import event_columns
from kraftlake.tables.events.partition_events import PartitionColumns

PartitionKey = tuple[str, int]
"""A topic's id in Kafka's base64, and a partition's number."""


@attrs.frozen(kw_only=True)
class AffectedPartition:
    """A partition that meets a condition at the end; `led_by` led it before the condition began, -1 for no broker."""

    topic: str
    topic_id: str
    partition: int
    since: LogPosition | None = None
    led_by: int = NO_LEADER

    @property
    def name(self) -> str:
        """`foo-3`."""
        return f"{self.topic}-{self.partition}"


def group_of(reason: str, ones: Sequence[AffectedPartition]) -> Affected:
    """The group of some partitions, since the first of them."""
    return Affected(reason=reason, things=tuple(one.name for one in ones), since=earliest(one.since for one in ones))


@attrs.frozen(kw_only=True)
class UncleanElection:
    """An election of a leader that may lack records."""

    at: LogPosition
    partition: str
    leader: int


def concerned_in(image: MetadataImage) -> dict[str, dict[PartitionKey, AffectedPartition]]:
    """The partitions of an image that meet each condition, by its name."""
    every = ImageColumns.of(image)
    found: dict[str, dict[PartitionKey, AffectedPartition]] = {}
    for name, condition in CONDITIONS.items():
        rows = np.flatnonzero(condition(every.states, every.min_isr))
        concerned = [
            AffectedPartition(topic=topic, topic_id=id_, partition=number) for topic, id_, number in every.at(rows)
        ]
        concerned.sort(key=lambda one: (one.topic, one.partition))
        found[name] = {(one.topic_id, one.partition): one for one in concerned}
    return found


class PartitionTimes:
    """The changes at which partitions began to meet conditions that they meet at the end, and unclean elections."""

    def __init__(self, image: MetadataImage, now: Mapping[str, dict[PartitionKey, AffectedPartition]]) -> None:
        self.found = {name: dict(found) for name, found in now.items()}
        self.unclean: list[UncleanElection] = []
        self._min_isr = {
            one.topic_id: min_insync_replicas(image, one.topic) for found in now.values() for one in found.values()
        }
        self._ids = pa.array([*self._min_isr], pa.string())

    def take(self, changes: PartitionChanges) -> None:
        """Add the changes that follow the earlier ones."""
        if len(changes):
            self._note_unclean(changes)
        if not len(self._ids) or not len(changes):
            return
        of_interest = pc.is_in(changes.names.ids, self._ids).to_numpy(zero_copy_only=False)
        some = np.flatnonzero((changes.flags & HAS != 0) & changes.altered & of_interest[changes.topics])
        if not len(some):
            return
        changes = changes.take(some)
        min_isr = self._min_isr_of(changes)
        had = changes.flags & HAD != 0
        before = event_columns(changes, changes.before)
        after = event_columns(changes, changes.after)
        for name, condition in CONDITIONS.items():
            if self.found[name]:
                self._note(name, changes, before, condition(after, min_isr) & ~(had & condition(before, min_isr)))

    def _note(self, name: str, changes: PartitionChanges, before: PartitionColumns, begins: Any) -> None:
        """Record the start of a condition; a later change of the same partition replaces an earlier one."""
        rows = np.flatnonzero(begins)[::-1]
        _, last = np.unique(changes.places[rows], return_index=True)
        rows = rows[last]
        ids = changes.names.ids.take(pa.array(changes.topics[rows])).to_pylist()
        found = self.found[name]
        for row, id_, number in zip(rows.tolist(), ids, changes.partitions[rows].tolist(), strict=True):
            one = found.get((id_, number))
            if one is not None:
                at = LogPosition.of(int(changes.offsets[row]), int(changes.times[row]))
                led_by = int(before.leader[row]) if changes.flags[row] & HAD else NO_LEADER
                found[id_, number] = attrs.evolve(one, since=at, led_by=led_by)

    def _min_isr_of(self, changes: PartitionChanges) -> Any:
        known, which = np.unique(changes.topics, return_inverse=True)
        ids = changes.names.ids.take(pa.array(known)).to_pylist()
        return np.array([self._min_isr[id_] for id_ in ids], np.int32)[which]

    def _note_unclean(self, changes: PartitionChanges) -> None:
        """Record the elections that are unclean as Kafka's metric counts them: the leader has to recover."""
        some = np.flatnonzero(changes.unclean > 0)
        if not len(some):
            return
        changes = changes.take(some)
        names = changes.names.topics.take(pa.array(changes.topics)).to_pylist()
        leaders = event_columns(changes, changes.after).leader
        for row, name in enumerate(names):
            self.unclean.append(
                UncleanElection(
                    at=LogPosition.of(int(changes.offsets[row]), int(changes.times[row])),
                    partition=f"{name}-{changes.partitions[row]}",
                    leader=int(leaders[row]),
                )
            )
