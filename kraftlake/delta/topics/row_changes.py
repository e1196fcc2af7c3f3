"""A few changes of partitions, without an object for a topic."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from kraftlake.delta.topics.changed_partition import ChangedPartition, local_changes_of
from kraftlake.delta.topics.local_replica_changes import LocalReplicaChanges
from kraftlake.image.topics.packed_partitions import PackedPartitions
from kraftlake.image.topics.partition_registration import PartitionRegistration
from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.records.metadata_records import PartitionChangeRecord
from kraftlake.records.uuid import Uuid
from kraftlake.runtime.errors import ReplayError

FEW: Final = 16

_Place: TypeAlias = int | tuple[Uuid, int]
"""The row of a partition in the base, or topic and id of one in the overlay."""
_States: TypeAlias = tuple[PartitionRegistration, PartitionRegistration, PartitionChangeRecord, bool]
"""The state before, the current state, the last record, whether a record wrote directories."""


class RowChanges:
    """The effect of at most FEW records on partitions that are there; equal to that of `BulkChange`."""

    __slots__ = ("_changes", "_image", "record_count")

    def __init__(self, image: TopicsImage) -> None:
        self._image = image
        self._changes: dict[_Place, _States] = {}
        self.record_count = 0
        """The number of records replayed."""

    def add(self, record: Any) -> bool:
        """Replay a record; False, without effect, for any but a valid PartitionChangeRecord."""
        if type(record) is not PartitionChangeRecord or self.record_count == FEW:
            return False
        row = self._image.row_of(record.topic_id, record.partition_id)
        place = row if row >= 0 else (record.topic_id, record.partition_id)
        known = self._changes.get(place)
        written = record.directories is not None
        try:
            if known is not None:
                self._changes[place] = (known[0], known[1].merge(record), record, written or known[3])
            else:
                before = self._image.registration_at(row) if row >= 0 else self._overlaid(record)
                if before is None:
                    return False
                self._changes[place] = (before, before.merge(record), record, written)
        except ReplayError:
            return False
        self.record_count += 1
        return True

    def _overlaid(self, record: PartitionChangeRecord) -> PartitionRegistration | None:
        topic = self._image.overlaid_topic(record.topic_id)
        if topic is None or not isinstance(topic.partitions, PackedPartitions):
            return None
        return topic.partitions.get(record.partition_id)  # type: ignore[no-any-return]

    def apply(self) -> TopicsImage:
        """The image after the changes; every change increments an epoch, so none is without effect."""
        rows: dict[int, PartitionRegistration] = {}
        others: dict[Uuid, dict[int, PartitionRegistration]] = {}
        for place, (_, state, _, _) in self._changes.items():
            if isinstance(place, int):
                rows[place] = state
            else:
                others.setdefault(place[0], {})[place[1]] = state
        return self._image.with_states(rows, others)

    def local_changes(self, broker: int) -> LocalReplicaChanges:
        """See `TopicsDelta.local_changes`."""
        name_of = self._image.name_of
        return local_changes_of(broker, [
            ChangedPartition(name_of(record.topic_id), record.topic_id, record.partition_id, before, now, written)
            for before, now, record, written in self._changes.values()
        ])  # fmt: skip
