"""A few changes of a packed image's partitions, without an object for a topic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeAlias

from kraftlake.delta.changed_partition import ChangedPartition
from kraftlake.delta.local_replica_changes import GatheredChanges, LocalReplicaChanges
from kraftlake.image.partition_registration import PartitionRegistration
from kraftlake.image.topics_image import TopicsImage
from kraftlake.records.metadata_records import PartitionChangeRecord
from kraftlake.runtime.errors import ReplayError

FEW: Final = 16

_Rows: TypeAlias = dict[int, tuple[PartitionRegistration, PartitionRegistration, PartitionChangeRecord, bool]]
"""By row: the state before, the state now, the last record, and whether one of them has written directories."""


class RowChanges:
    """What at most FEW records have made of partitions of the packed base; the same as `ObjectChange` says."""

    __slots__ = ("_image", "_rows", "record_count")

    def __init__(self, image: TopicsImage, rows: _Rows, record_count: int) -> None:
        self._image = image
        self._rows = rows
        self.record_count = record_count
        """How many records it is made of."""

    @classmethod
    def of(cls, image: TopicsImage, records: Sequence[Any]) -> RowChanges | None:
        """None where something else has to be done: other records, other topics, something wrong."""
        rows: _Rows = {}
        for record in records:
            if type(record) is not PartitionChangeRecord:
                return None
            row = image.row_of(record.topic_id, record.partition_id)
            if row < 0:
                return None
            known = rows.get(row)
            before = image.registration_at(row) if known is None else known[0]
            written = record.directories is not None
            try:
                if known is None:
                    rows[row] = (before, before.merge(record), record, written)
                else:
                    rows[row] = (before, known[1].merge(record), record, written or known[3])
            except ReplayError:
                return None
        return cls(image, rows, len(records))

    def apply(self) -> TopicsImage:
        """The image after the changes: each of them has another epoch, so none leaves a partition as it was."""
        return self._image.with_rows({row: found[1] for row, found in self._rows.items()})

    def local_changes(self, broker: int) -> LocalReplicaChanges:
        """See `TopicsDelta.local_changes`."""
        changes = GatheredChanges()
        for change in self._changes():
            change.add_local_changes(broker, changes)
        return changes.done()

    def _changes(self) -> Iterator[ChangedPartition]:
        for before, now, record, written in self._rows.values():
            topic_id = record.topic_id
            name = self._image.name_of(topic_id)
            yield ChangedPartition(name, topic_id, record.partition_id, before, now, written)
