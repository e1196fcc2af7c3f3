"""Changes of topics and their partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kraftlake import kernels
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
from kraftlake.runtime.errors import ReplayError
from kraftlake.runtime.lazy_module import LazyModule

if TYPE_CHECKING:
    from kraftlake.delta.topics import local_replica_changes, object_change, row_changes
    from kraftlake.delta.topics.bulk_change import BulkChange
    from kraftlake.delta.topics.local_replica_changes import LocalReplicaChanges
    from kraftlake.delta.topics.object_change import ObjectChange
    from kraftlake.delta.topics.row_changes import RowChanges
    from kraftlake.delta.topics.topic_delta import TopicDelta
else:  # whoever loads an image has no topic changed one by one
    local_replica_changes = LazyModule("kraftlake.delta.topics.local_replica_changes")
    object_change = LazyModule("kraftlake.delta.topics.object_change")
    row_changes = LazyModule("kraftlake.delta.topics.row_changes")

MERGE_FROM: Final = 1000
"""From how many records on they are merged in bulk, where the compiled code is in use already."""
MERGE_COLD_FROM: Final = 20_000
"""The same where it would have to be loaded first."""

TOPIC_RECORDS: Final = frozenset((TopicRecord, PartitionRecord, PartitionChangeRecord, ClearElrRecord))
"""What `keep` takes."""


class TopicsDelta:
    """`changed_topics` holds a TopicDelta by id, `deleted_topic_ids` the topics of the base image that are gone.

    Records are kept until somebody asks what they make, and then merged in one pass: many in bulk, few as objects. A
    record that contradicts what is there raises ReplayError where they are merged, so by `merge`, `apply`,
    `local_changes` or any other look; the error has its offset. That record is dropped: the next look goes on with the
    one after it, so that what comes of the others is what replaying them one by one makes of them.

    A topic that is created and deleted within the delta leaves no trace. `of_log`: the records are a log's, where a
    topic that gets the name of another is a contradiction at once; a snapshot may take that other one away at its end.
    Source: org.apache.kafka.image.TopicsDelta.
    """

    __slots__ = ("_bulk", "_kept", "_objects", "_offsets", "_rows", "_whole", "image", "of_log")

    def __init__(self, image: TopicsImage, *, of_log: bool = False) -> None:
        self.image = image
        self.of_log = of_log
        self._kept: list[Any] = []
        self._offsets: dict[int, int] = {}
        """The offsets, where known, of the records in `_kept`, by place."""
        self._rows: RowChanges | None = None
        """What the records in `_kept` make, where they are few and simple and nothing was merged before them."""
        self._bulk: BulkChange | None = None
        self._objects: ObjectChange | None = None
        self._whole: TopicsImage | None = None
        """A whole image, where the change is all of it. What was merged: one of the three at most is there."""

    def __repr__(self) -> str:  # looks at nothing: a look merges the records, and may raise
        kept = f", {counted(records=len(self._kept))} not merged yet" if self._kept else ""
        return f"<TopicsDelta of {self.image!r}{kept}>"

    def replay_topic(self, record: TopicRecord) -> None:
        """A topic begins, without partitions: also when a snapshot names one that the base image has.

        A contradiction: the id has another name, or another topic has the name. Where that one is of the base image and
        the records are not `of_log`, `apply` tells, since `finish_snapshot` may take it away.
        """
        self._kept.append(record)

    def replay_partition(self, record: PartitionRecord) -> None:
        """A contradiction: the topic does not exist, or the record contradicts itself."""
        self._kept.append(record)

    def replay_partition_change(self, record: PartitionChangeRecord) -> None:
        """A contradiction: the topic or the partition does not exist, or the change does not fit it."""
        self._kept.append(record)

    def replay_clear_elr(self, record: ClearElrRecord) -> None:
        """The topic's eligible leader replicas, or with an empty name those of all topics, are cleared.

        A contradiction: the named topic does not exist.
        """
        self._kept.append(record)

    def keep(
        self, record: TopicRecord | PartitionRecord | PartitionChangeRecord | ClearElrRecord, offset: int | None = None
    ) -> None:
        """Replay one of TOPIC_RECORDS; its fault will name `offset`."""
        if offset is not None:
            self._offsets[len(self._kept)] = offset
        self._kept.append(record)

    def take_all_of(self, topics: TopicsImage) -> None:
        """Change the empty image into `topics`; nothing else was replayed. Objects are made when somebody looks."""
        assert self.image.is_empty(), "only the empty image can become another one at once"
        assert self.is_untouched
        self._whole = None if topics.is_empty() else topics

    def replay_remove_topic(self, record: RemoveTopicRecord) -> str:
        """Returns the name of the topic, whose configs go with it; ReplayError, at once, when it does not exist."""
        self._merge()
        if self._bulk is not None:
            from kraftlake.delta.topics.record_columns import remove_topic

            name = remove_topic(self._bulk, record)
            if name is not None:
                return name
        return self._as_objects().remove_topic(record)

    @property
    def takes_bulk(self) -> bool:
        """Whether `replay_bulk` will do: nothing was merged as objects."""
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
    ) -> tuple[int, list[tuple[int, str]]]:
        """Replay many values at once (numba): see `BulkChange.replay`; only where `takes_bulk` says so."""
        assert self.takes_bulk, "what was replayed record by record can't go on in bulk"
        bulk = self._in_bulk()
        return bulk.replay(data, starts, stops, first, last, following=following)

    def merge(self) -> None:
        """Make what the records that were kept say, so that no fault is left in them; ReplayError: see above."""
        if self._kept and self._few() is None:
            self._merge()

    def _few(self) -> RowChanges | None:
        """What was kept, where it is few changes of rows; all of them were added then."""
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
        """Merge what was kept, in bulk or as objects."""
        kept, offsets = self._kept, self._offsets
        if not kept:
            return
        self._kept, self._offsets, self._rows = [], {}, None
        done = 0
        if self._bulk is not None or self._pays_in_bulk(len(kept)):
            done = self._replayed_in_bulk(kept)
            if done == len(kept):
                return
        change = self._as_objects()
        change.of_log = self.of_log
        replay = change.replay
        try:
            for record in kept[done:] if done else kept:
                replay(record)
                done += 1
        except ReplayError as error:
            rest = done + 1
            self._kept = kept[rest:]
            self._offsets = {place - rest: offset for place, offset in offsets.items() if place >= rest}
            offset = offsets.get(done)
            raise ReplayError(f"{place_of(kept[done], offset)}{error}", offset=offset) from error

    def _pays_in_bulk(self, count: int) -> bool:
        if count < MERGE_FROM or self._whole is not None or not (self._objects is None or self._objects.is_empty):
            return False
        enough = MERGE_FROM if kernels.loaded() else MERGE_COLD_FROM
        return kernels.pays(count, max(enough, self.image.held_as_objects // 4))

    def _replayed_in_bulk(self, records: list[Any]) -> int:
        """How many of the records were replayed in bulk, from the first on."""
        from kraftlake.delta.topics.record_columns import replay_records

        bulk = self._in_bulk()
        return replay_records(bulk, records)

    def _in_bulk(self) -> BulkChange:
        if self._bulk is None:
            from kraftlake.delta.topics.bulk_change import BulkChange

            self._bulk, self._objects = BulkChange(self.image.rows()), None
        return self._bulk

    def _as_objects(self) -> ObjectChange:
        """Go on with objects: what was merged in bulk, or taken over whole, becomes topic deltas."""
        if self._whole is not None:
            self._objects, self._whole = object_change.ObjectChange.of_whole(self._whole, self.image), None
        if self._objects is None:
            bulk, self._bulk = self._bulk, None
            made = object_change.ObjectChange
            self._objects = made(self.image) if bulk is None else made.of_bulk(bulk, self.image)
        return self._objects

    def _seen(self) -> ObjectChange:
        self._merge()
        return self._as_objects()

    @property
    def changed_topics(self) -> dict[Uuid, TopicDelta]:
        """What changed, by topic id."""
        return self._seen().changed

    @property
    def deleted_topic_ids(self) -> set[Uuid]:
        """The topics of the base image that are gone."""
        return self._seen().deleted

    @property
    def created_topic_ids(self) -> frozenset[Uuid]:
        """The topics that a TopicRecord of this delta has brought and that are still there."""
        return frozenset(self._seen().created.values())

    def changed_topic(self, topic_id: Uuid) -> TopicDelta | None:
        """What changed in a topic."""
        return self._seen().changed.get(topic_id)

    def holds_topic(self, name: str) -> bool:
        """Whether a topic has the name after what was replayed so far."""
        self._merge()
        if self._bulk is not None:
            return self._bulk.topic_number(name) >= 0
        if self._whole is not None:
            return self._whole.get_topic(name) is not None
        if self._objects is not None:
            return self._objects.holds_topic(name)
        return self.image.get_topic(name) is not None

    def topic_was_deleted(self, name: str) -> bool:
        """Whether the topic that had the name in the base image is gone."""
        topic = self.image.get_topic(name)
        return topic is not None and topic.id in self._seen().deleted

    def finish_snapshot(self) -> None:
        """Delete the topics that the snapshot lacks."""
        if not self.image.is_empty():
            self._seen().finish_snapshot()

    def apply(self) -> TopicsImage:
        """The image after the changes; the old object when there are none.

        ReplayError when two topics share a name, or for a record: see above.
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
        """What was merged, where that was done in bulk."""
        self._merge()
        return self._bulk

    def local_changes(self, broker_id: int) -> LocalReplicaChanges:
        """What this delta means to a broker; exactly Kafka's `TopicsDelta.localChanges`, oddities included.

        Only the base image and the end of the delta count, and of records in between only that they have written
        directories (see `TopicDelta`). Replicas of deleted topics are deletes, even where a topic of the same name
        was created again.
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

    def local_changes_all(self) -> dict[int, LocalReplicaChanges]:
        """`local_changes` of each broker, by id, that hosts or hosted a partition that the delta touches.

        To all others it means nothing.
        """
        self._merge()
        if self._bulk is not None:
            from kraftlake.delta.topics.bulk_local_changes import brokers_of

            return {broker: self.local_changes(broker) for broker in sorted(brokers_of(self._bulk))}
        if self._whole is not None:
            return self._as_objects().local_changes_all()
        return {} if self._objects is None else self._objects.local_changes_all()
