"""Changes of topics and their partitions."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from kraftlake.delta.faults import place_of
from kraftlake.image.short_repr import counted
from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.records.metadata_records import (
    ClearElrRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from kraftlake.records.uuid import Uuid
from kraftlake.runtime import ReplayError, UnwritableMetadataError
from kraftlake.runtime.lazy_module import LazyModule

if TYPE_CHECKING:
    from kraftlake.delta.topics import local_replica_changes, object_change, row_changes
    from kraftlake.delta.topics.bulk_change import BulkChange
    from kraftlake.delta.topics.local_replica_changes import LocalReplicaChanges
    from kraftlake.delta.topics.object_change import ObjectChange
    from kraftlake.delta.topics.row_changes import RowChanges
    from kraftlake.delta.topics.topic_delta import TopicDelta
else:  # loading an image changes no topics one by one
    local_replica_changes = LazyModule("kraftlake.delta.topics.local_replica_changes")
    object_change = LazyModule("kraftlake.delta.topics.object_change")
    row_changes = LazyModule("kraftlake.delta.topics.row_changes")

MERGE_FROM: Final = 1000
"""Number of records from which on they are merged in bulk, if numpy is loaded already."""
MERGE_COLD_FROM: Final = 20_000
"""The same if numpy is not loaded: that takes 90 ms, and a record 1 µs in bulk, 4 as an object."""

TOPIC_RECORDS: Final = frozenset((TopicRecord, PartitionRecord, PartitionChangeRecord, ClearElrRecord))
"""The record types that `keep` accepts."""


class TopicsDelta:
    """`changed_topics` has a TopicDelta by id, `deleted_topic_ids` the deleted topics of the base image.

    Records are kept until the first access, and then merged in one pass: many in bulk, few as objects. A record that
    contradicts the state so far raises ReplayError, with its offset, when it is merged: by `merge`, `apply`,
    `local_changes` or another access. That record is dropped, and the next access goes on with the following one, so
    that the result of the others is that of replaying them one by one.

    A topic that is created and deleted within the delta leaves no trace. `of_log`: the records are those of a log,
    where a topic with the name of an existing one is a contradiction at once; a snapshot may remove the existing one at
    its end.
    Source: org.apache.kafka.image.TopicsDelta.
    """

    __slots__ = ("_bulk", "_kept", "_objects", "_offsets", "_rows", "_whole", "image", "of_log")

    def __init__(self, image: TopicsImage, *, of_log: bool = False) -> None:
        self.image = image
        self.of_log = of_log
        self._kept: list[Any] = []
        self._offsets: dict[int, int] = {}
        """The known offsets of the records in `_kept`, by index."""
        self._rows: RowChanges | None = None
        """The effect of the records in `_kept`, if they are few and simple and nothing was merged before."""
        self._bulk: BulkChange | None = None
        self._objects: ObjectChange | None = None
        self._whole: TopicsImage | None = None
        """The whole image, if the change is from the empty one. At most one of `_bulk`, `_objects`, `_whole` is set."""

    def __repr__(self) -> str:  # does not merge the records, which may raise
        kept = f", {counted(records=len(self._kept))} not merged yet" if self._kept else ""
        return f"<TopicsDelta of {self.image!r}{kept}>"

    def keep(
        self, record: TopicRecord | PartitionRecord | PartitionChangeRecord | ClearElrRecord, offset: int | None = None
    ) -> None:
        """Replay one of TOPIC_RECORDS; its error will have `offset`.

        A TopicRecord creates a topic without partitions, also if a snapshot has a topic of the base image; a
        ClearElrRecord clears the eligible leader replicas of a topic, or with an empty name of all topics.

        Contradictions are: a topic or partition that does not exist; an id with another name; a name that another topic
        has (if that other topic is in the base image and the records are not `of_log`, `apply` raises, since
        `finish_snapshot` may remove it); a partition's state that contradicts itself.
        """
        if offset is not None:
            self._offsets[len(self._kept)] = offset
        self._kept.append(record)

    def take_all_of(self, topics: TopicsImage) -> None:
        """Change the empty image to `topics`; nothing else was replayed. Objects are made on access."""
        assert self.image.is_empty(), "only the empty image can become another one at once"
        assert self.is_untouched
        self._whole = None if topics.is_empty() else topics

    def replay_remove_topic(self, record: RemoveTopicRecord) -> str:
        """Returns the name of the topic, to delete its configs; raises ReplayError at once if it does not exist."""
        self._merge()
        if self._bulk is None:
            return self._as_objects().remove_topic(record)
        from kraftlake.delta.topics.record_fault import fault_of
        from kraftlake.delta.topics.record_values import replay_records

        done, removed = replay_records(self._in_bulk(), [record])
        if not done:
            raise fault_of(self._bulk, record)
        (_, name), *_ = removed
        assert name is not None, "it is a RemoveTopicRecord"
        return name

    @property
    def takes_bulk(self) -> bool:
        """Whether `replay_bulk` can be called: nothing was merged as objects."""
        self._merge()
        return self._whole is None and (self._objects is None or self._objects.is_empty)

    @property
    def is_untouched(self) -> bool:
        """Whether no record was replayed."""
        if self._kept or self._whole is not None:
            return False
        if self._bulk is not None:
            return self._bulk.is_empty
        return self._objects is None or self._objects.is_empty

    def replay_bulk(
        self, data: Any, starts: Any, stops: Any, first: int, last: int, *, following: int = 0
    ) -> tuple[int, list[tuple[int, str | None]]]:
        """Replay many values at once: see `BulkChange.replay`. Requires `takes_bulk`."""
        assert self.takes_bulk, "what was replayed record by record can't go on in bulk"
        bulk = self._in_bulk()
        return bulk.replay(data, starts, stops, first, last, following=following)

    def merge(self) -> None:
        """Merge the kept records; ReplayError: see the class."""
        if self._kept and self._few() is None:
            self._merge()

    def _few(self) -> RowChanges | None:
        """The kept records as changes of rows, if they are few and all of them fit; else None."""
        rows, kept = self._rows, self._kept
        if rows is not None and rows.record_count == len(kept):
            return rows
        if (
            not kept
            or len(kept) > row_changes.FEW
            or self._objects is not None
            or self._bulk is not None
            or self._whole is not None
        ):
            return None
        if rows is None:
            rows = self._rows = row_changes.RowChanges(self.image)
        while rows.record_count < len(kept):
            if not rows.add(kept[rows.record_count]):
                return None
        return rows

    def _merge(self) -> None:
        """Merge the kept records, in bulk or as objects."""
        kept, offsets = self._kept, self._offsets
        if not kept:
            return
        self._kept, self._offsets, self._rows = [], {}, None
        if self._bulk is not None or self._pays_in_bulk(len(kept)):
            done, error = self._merge_in_bulk(kept)
        else:
            done, error = self._merge_as_objects(kept)
        if error is not None:
            rest = done + 1
            self._kept = kept[rest:]
            self._offsets = {place - rest: offset for place, offset in offsets.items() if place >= rest}
            offset = offsets.get(done)
            raise ReplayError(f"{place_of(kept[done], offset)}{error}", offset=offset) from error

    def _merge_as_objects(self, records: list[Any]) -> tuple[int, ReplayError | None]:
        """Replay records as objects; how many, and the error of the next one."""
        change = self._as_objects()
        change.of_log = self.of_log
        done, replay = 0, change.replay
        try:
            for record in records:
                replay(record)
                done += 1
        except ReplayError as error:
            return done, error
        return done, None

    def _merge_in_bulk(self, records: list[Any]) -> tuple[int, ReplayError | None]:
        """Replay records in bulk; as `_merge_as_objects`, which does it where Kafka could not write one of them."""
        from kraftlake.delta.topics.record_fault import fault_of
        from kraftlake.delta.topics.record_values import replay_records

        try:
            done, _ = replay_records(self._in_bulk(), records)
        except UnwritableMetadataError:
            return self._merge_as_objects(records)
        return done, None if done == len(records) else fault_of(self._in_bulk(), records[done])

    def _pays_in_bulk(self, count: int) -> bool:
        enough = MERGE_FROM if "numpy" in sys.modules else MERGE_COLD_FROM
        if count < enough or self._whole is not None or not (self._objects is None or self._objects.is_empty):
            return False
        return count >= self.image.held_as_objects // 4

    def _in_bulk(self) -> BulkChange:
        if self._bulk is None:
            from kraftlake.delta.topics.bulk_change import BulkChange

            self._bulk, self._objects = BulkChange(self.image.rows()), None
        self._bulk.of_log = self.of_log
        return self._bulk

    def _as_objects(self) -> ObjectChange:
        """Continue with objects: convert a bulk change or a whole image to topic deltas."""
        if self._whole is not None:
            self._objects, self._whole = object_change.ObjectChange.of_whole(self._whole, self.image), None
        if self._objects is None:
            bulk, self._bulk = self._bulk, None
            made = object_change.ObjectChange
            self._objects = made(self.image) if bulk is None else made.of_bulk(bulk, self.image)
        return self._objects

    def _merged_objects(self) -> ObjectChange:
        self._merge()
        return self._as_objects()

    @property
    def changed_topics(self) -> dict[Uuid, TopicDelta]:
        """The changes by topic id."""
        return self._merged_objects().changed

    @property
    def deleted_topic_ids(self) -> set[Uuid]:
        """The deleted topics of the base image."""
        return self._merged_objects().deleted

    @property
    def created_topic_ids(self) -> frozenset[Uuid]:
        """The topics that a TopicRecord of this delta created and that still exist."""
        return frozenset(self._merged_objects().created.values())

    def changed_topic(self, topic_id: Uuid) -> TopicDelta | None:
        """The changes of one topic."""
        return self._merged_objects().changed.get(topic_id)

    def holds_topic(self, name: str) -> bool:
        """Whether a topic has the name after the records so far."""
        self._merge()
        if self._bulk is not None:
            return self._bulk.topic_number(name) >= 0
        if self._whole is not None:
            return self._whole.get_topic(name) is not None
        if self._objects is not None:
            return self._objects.holds_topic(name)
        return self.image.get_topic(name) is not None

    def topic_was_deleted(self, name: str) -> bool:
        """Whether the topic that had the name in the base image was deleted."""
        topic = self.image.get_topic(name)
        return topic is not None and topic.id in self._merged_objects().deleted

    def finish_snapshot(self) -> None:
        """Delete the topics that the snapshot lacks."""
        if self.image.is_empty():
            return
        self._merge()
        if self._bulk is not None:
            self._bulk.finish_snapshot()
        else:
            self._as_objects().finish_snapshot()

    def apply(self) -> TopicsImage:
        """The image after the changes; the same object if there are none.

        ReplayError if two topics share a name, or for a record: see the class.
        """
        rows = self._few()
        if rows is not None:
            return rows.apply()
        self._merge()
        if self._bulk is not None:
            packed = self._bulk.apply()
            return self.image if packed is self._bulk.packed else TopicsImage.with_rows(packed)
        if self._whole is not None:
            return self._whole
        return self.image if self._objects is None else self._objects.apply()

    def as_bulk(self) -> BulkChange | None:
        """The merged change, if it was merged in bulk."""
        self._merge()
        return self._bulk

    def local_changes(self, broker_id: int) -> LocalReplicaChanges:
        """The local changes of a broker; equal to Kafka's `TopicsDelta.localChanges` in every case.

        Only the base image and the end of the delta count; of records in between, only that they wrote directories (see
        `TopicDelta`). Replicas of deleted topics are deletes, even if a topic of the same name was created again.
        """
        rows = self._few()
        if rows is not None:
            return rows.local_changes(broker_id)
        self._merge()
        if self._bulk is not None:
            from kraftlake.delta.topics.bulk_local_changes import bulk_local_changes

            return bulk_local_changes(self._bulk, broker_id)
        if self._whole is not None:
            return object_change.ObjectChange.of_whole(self._whole, self.image, broker_id).local_changes(broker_id)
        return (
            local_replica_changes.LocalReplicaChanges()
            if self._objects is None
            else self._objects.local_changes(broker_id)
        )
