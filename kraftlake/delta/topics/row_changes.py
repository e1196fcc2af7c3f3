"""A few changes of partitions, without an object for a topic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from kraftlake.delta.topics.changed_partition import local_changes_of
from kraftlake.delta.topics.local_replica_changes import LocalReplicaChanges
from kraftlake.image.topics.partition_registration import PartitionRegistration
from kraftlake.image.topics.topics_image import Place, TopicsImage
from kraftlake.records.metadata_records import PartitionChangeRecord
from kraftlake.runtime.errors import ReplayError

FEW: Final = 16

_Change: TypeAlias = tuple[PartitionRegistration, PartitionChangeRecord, bool]
"""The state before, the last record, whether a record wrote directories."""


class RowChanges:
    """The effect of at most FEW records on partitions that are there; equal to that of `BulkChange`."""

    __slots__ = ("_changes", "_image", "_replayed", "_states")

    def __init__(self, image: TopicsImage) -> None:
        self._image = image
        self._states: dict[Place, PartitionRegistration] = {}
        """The current states."""
        self._changes: dict[Place, _Change] = {}
        self._replayed = 0

    def replay(self, kept: Sequence[tuple[Any, object]]) -> bool:
        """Replay those of the records that are new; False at any but a valid PartitionChangeRecord, or too many."""
        if len(kept) == self._replayed:
            return True
        if len(kept) > FEW:
            return False
        states, changes = self._states, self._changes
        for record, _ in kept[self._replayed :]:
            if type(record) is not PartitionChangeRecord:
                return False
            found = self._image.find_partition(record.topic_id, record.partition_id)
            if found is None:
                return False
            place, before = found
            state, written = before, record.directories is not None
            if place in states:
                state = states[place]
                before, _, was_written = changes[place]
                written = written or was_written
            try:
                states[place] = state.merge(record)
            except ReplayError:
                return False
            changes[place] = before, record, written
            self._replayed += 1
        return True

    def apply(self) -> TopicsImage:
        """The image after the changes; every change increments an epoch, so none is without effect."""
        return self._image.with_states(self._states)

    def local_changes(self, broker: int) -> LocalReplicaChanges:
        """See `TopicsDelta.local_changes`."""
        name_of, states = self._image.name_of, self._states
        return local_changes_of(broker, [
            (name_of(record.topic_id), record.topic_id, record.partition_id, before, states[place], written)
            for place, (before, record, written) in self._changes.items()
        ])  # fmt: skip
