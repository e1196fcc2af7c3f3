"""A few changes of a packed image's partitions, without an object for a topic."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from kraftlake.delta.topics.changed_partition import ChangedPartition, local_changes_of
from kraftlake.delta.topics.local_replica_changes import LocalReplicaChanges
from kraftlake.image.topics.partition_registration import PartitionRegistration
from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.records.metadata_records import PartitionChangeRecord
from kraftlake.runtime import ReplayError

FEW: Final = 16

_Rows: TypeAlias = dict[int, tuple[PartitionRegistration, PartitionRegistration, PartitionChangeRecord, bool]]
"""By row: the state before, the current state, the last record, whether a record wrote directories."""


class RowChanges:
    """The effect of at most FEW records on partitions of the packed base; equal to that of `ObjectChange`."""

    __slots__ = ("_image", "_rows", "record_count")

    def __init__(self, image: TopicsImage) -> None:
        self._image = image
        self._rows: _Rows = {}
        self.record_count = 0
        """The number of records replayed."""

    def add(self, record: Any) -> bool:
        """Replay a record; False, without effect, if objects have to replay it.

        These are records other than changes of partitions, topics outside the packed base, and invalid records.
        """
        if type(record) is not PartitionChangeRecord or self.record_count == FEW:
            return False
        row = self._image.row_of(record.topic_id, record.partition_id)
        if row < 0:
            return False
        known = self._rows.get(row)
        written = record.directories is not None
        try:
            if known is None:
                before = self._image.registration_at(row)
                self._rows[row] = (before, before.merge(record), record, written)
            else:
                self._rows[row] = (known[0], known[1].merge(record), record, written or known[3])
        except ReplayError:
            return False
        self.record_count += 1
        return True

    def apply(self) -> TopicsImage:
        """The image after the changes; every change increments an epoch, so none is without effect."""
        return self._image.with_states({row: found[1] for row, found in self._rows.items()})

    def local_changes(self, broker: int) -> LocalReplicaChanges:
        """See `TopicsDelta.local_changes`."""
        name_of = self._image.name_of
        return local_changes_of(broker, [
            ChangedPartition(name_of(record.topic_id), record.topic_id, record.partition_id, before, now, written)
            for before, now, record, written in self._rows.values()
        ])  # fmt: skip
