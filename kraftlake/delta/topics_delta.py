"""Changes of topics and their partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kraftlake.delta.local_replica_changes import GatheredChanges, LocalReplicaChanges, TopicPartition
from kraftlake.delta.topic_delta import TopicDelta
from kraftlake.image.packed_partitions import PackedPartitions
from kraftlake.image.partition_registration import PartitionRegistration
from kraftlake.image.topics_image import TopicImage, TopicsImage
from kraftlake.records.metadata_records import (
    ClearElrRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from kraftlake.records.uuid import Uuid
from kraftlake.runtime.errors import ReplayError

if TYPE_CHECKING:
    from kraftlake.delta.bulk_change import BulkChange


class TopicsDelta:
    """`changed_topics` holds a TopicDelta by id, `deleted_topic_ids` the topics of the base image that are gone.

    A topic that is created and deleted within the delta leaves no trace. Source: org.apache.kafka.image.TopicsDelta.
    """

    def __init__(self, image: TopicsImage) -> None:
        self.image = image
        self._bulk: BulkChange | None = None
        """All that was replayed, where it was replayed in bulk; what is below is empty then."""
        self._everything: TopicsImage | None = None
        """All that changed, where it is a whole image at once; what is below is empty then."""
        self._changed: dict[Uuid, TopicDelta] = {}
        self._deleted: set[Uuid] = set()
        self._created: dict[str, Uuid] = {}
        self._taken_names: dict[str, Uuid] = {}
        """Names that a TopicRecord gave to a new id while the id here, still alive, had them: fine in a snapshot."""

    @property
    def changed_topics(self) -> dict[Uuid, TopicDelta]:
        """What changed, by topic id."""
        self._as_objects()
        return self._changed

    @property
    def deleted_topic_ids(self) -> set[Uuid]:
        """The topics of the base image that are gone."""
        self._as_objects()
        return self._deleted

    @property
    def takes_bulk(self) -> bool:
        """Whether `replay_bulk` will do: nothing was replayed record by record."""
        if self._everything is not None:
            return False
        return self._bulk is not None or not (self._changed or self._deleted or self._taken_names)

    @property
    def is_untouched(self) -> bool:
        """Whether no record was replayed."""
        if self._everything is not None:
            return self._everything.is_empty()
        return not (self._changed or self._deleted) if self._bulk is None else self._bulk.is_empty

    def replay_bulk(
        self, data: Any, starts: Any, stops: Any, first: int, last: int
    ) -> tuple[int, list[tuple[int, str]]]:
        """Replay many values at once (numba): see `BulkChange.replay`; only where `takes_bulk` says so."""
        from kraftlake.delta.bulk_change import BulkChange

        assert self.takes_bulk, "what was replayed record by record can't go on in bulk"
        if self._bulk is None:
            self._bulk = BulkChange(self.image.packed())
        return self._bulk.replay(data, starts, stops, first, last)

    def _as_objects(self) -> None:
        """Go on with objects: what was replayed in bulk, or taken over whole, becomes topic deltas."""
        everything, self._everything = self._everything, None
        if everything is not None:
            for topic_id, topic in everything.topics_by_id().items():
                delta = self._changed[topic_id] = TopicDelta(TopicImage(name=topic.name, id=topic_id))
                delta.partition_changes.update(topic.partitions.items())
                self._created[topic.name] = topic_id
        bulk, self._bulk = self._bulk, None
        if bulk is not None:
            self._changed, self._deleted, self._created = bulk_as_objects(bulk, self.image)

    @property
    def created_topic_ids(self) -> frozenset[Uuid]:
        """The topics that a TopicRecord of this delta has brought and that are still there."""
        self._as_objects()
        return frozenset(self._created.values())

    def changed_topic(self, topic_id: Uuid) -> TopicDelta | None:
        """What changed in a topic."""
        self._as_objects()
        return self._changed.get(topic_id)

    def topic_was_deleted(self, name: str) -> bool:
        """Whether the topic that had the name in the base image is gone."""
        self._as_objects()
        topic = self.image.get_topic(name)
        return topic is not None and topic.id in self._deleted

    def replay_topic(self, record: TopicRecord) -> None:
        """A topic begins, without partitions: also when a snapshot names one that the base image has.

        ReplayError when the id has another name. A name that another topic has is refused too, unless
        `finish_snapshot` takes that other one away.
        """
        self._as_objects()
        known = self._topic(record.topic_id)
        if known is not None and known.name != record.name:
            raise ReplayError(f"topic {record.name!r} gets the id {record.topic_id}, which {known.name!r} has.")
        holder = self._id_of(record.name)
        if holder is not None and holder != record.topic_id:
            self._taken_names[record.name] = holder
        self._changed[record.topic_id] = TopicDelta(TopicImage(name=record.name, id=record.topic_id))
        self._created[record.name] = record.topic_id

    def replay_partition(self, record: PartitionRecord) -> None:
        """ReplayError when the topic does not exist or the record contradicts itself."""
        self._as_objects()
        delta = self._delta(record.topic_id)
        delta.replay_partition(record)
        self._changed[record.topic_id] = delta

    def replay_partition_change(self, record: PartitionChangeRecord) -> None:
        """ReplayError when the topic or the partition does not exist, or the change does not fit it."""
        self._as_objects()
        delta = self._delta(record.topic_id)
        delta.replay_partition_change(record)
        self._changed[record.topic_id] = delta

    def replay_clear_elr(self, record: ClearElrRecord) -> None:
        """The topic's eligible leader replicas, or with an empty name those of all topics, are cleared.

        ReplayError when the named topic does not exist.
        """
        self._as_objects()
        if record.topic_name:
            topic_id = self._id_of(record.topic_name)
            if topic_id is None:
                raise ReplayError(f"topic {record.topic_name!r} does not exist.")
            topic_ids = {topic_id}
        else:
            topic_ids = {*self.image.topics_by_id()} - self._deleted | {*self._changed}
        for topic_id in topic_ids:
            delta = self._delta(topic_id)
            if delta.has_elr():
                delta.clear_elr()
                self._changed[topic_id] = delta

    def replay_remove_topic(self, record: RemoveTopicRecord) -> str:
        """Returns the name of the topic, whose configs go with it; ReplayError when it does not exist."""
        self._as_objects()
        topic = self._topic(record.topic_id)
        if topic is None:
            raise ReplayError(f"the topic with id {record.topic_id} does not exist.")
        self._refuse_taken_names()
        self._changed.pop(record.topic_id, None)
        if self._created.get(topic.name) == record.topic_id:
            del self._created[topic.name]
        if self.image.get_topic_by_id(record.topic_id) is not None:
            self._deleted.add(record.topic_id)
        return topic.name

    def take_all_of(self, topics: TopicsImage) -> None:
        """Change the empty image into `topics`; nothing else was replayed. Objects are made when somebody looks."""
        assert self.image.is_empty()
        assert self.is_untouched
        self._everything = topics

    def finish_snapshot(self) -> None:
        """Delete the topics that the snapshot lacks."""
        if self.image.is_empty():
            return
        self._as_objects()
        for topic_id in self.image.topics_by_id():
            if topic_id not in self._changed:
                self._deleted.add(topic_id)

    def apply(self) -> TopicsImage:
        """The image after the changes; the old object when there are none. ReplayError when two topics share a name."""
        if self._everything is not None:
            return self.image if self._everything.is_empty() else self._everything
        if self._bulk is not None:
            packed = self._bulk.apply()
            return self.image if packed is self._bulk.packed else TopicsImage.of_packed(packed)
        self._refuse_taken_names()
        by_id = self.image.topics_by_id()
        changed: dict[Uuid, TopicImage] = {}
        rows: dict[int, PartitionRegistration] = {}
        for topic_id, delta in self._changed.items():
            partitions = delta.image.partitions
            if isinstance(partitions, PackedPartitions):
                changes = partitions.rows_changed(delta.partition_changes)
                if changes is not None:
                    rows.update(changes)
                    continue
            changed[topic_id] = self._unless_equal(delta.apply())
        return self.image.changed({topic_id: by_id[topic_id] for topic_id in self._deleted}, changed, rows)

    def local_changes(self, broker_id: int) -> LocalReplicaChanges:
        """What this delta means to a broker; exactly Kafka's `TopicsDelta.localChanges`, oddities included.

        Only the base image and the end of the delta count, and of records in between only that they have written
        directories (see `TopicDelta`). Replicas of deleted topics are deletes, even where a topic of the same name
        was created again.
        """
        if self._bulk is not None:
            from kraftlake.delta.bulk_local_changes import bulk_local_changes

            return bulk_local_changes(self._bulk, broker_id)
        changes = GatheredChanges()
        if self._everything is not None:
            for hosted in _hosted(self._everything, broker_id).values():
                hosted.add_local_changes(broker_id, changes)
            return changes.done()
        for delta in self._changed.values():
            delta.add_local_changes(broker_id, changes)
        for topic_id in self._deleted:
            topic = self.image.topics_by_id()[topic_id]
            for partition_id, partition in topic.partitions.items():
                if broker_id in partition.replicas:
                    changes.deletes.add(TopicPartition(topic.name, partition_id))
        return changes.done()

    def local_changes_all(self) -> dict[int, LocalReplicaChanges]:
        """`local_changes` of each broker, by id, that hosts or hosted a partition that the delta touches.

        To all others it means nothing.
        """
        return {broker: self.local_changes(broker) for broker in sorted(self._brokers())}

    def _brokers(self) -> set[int]:
        if self._bulk is not None:
            from kraftlake.delta.bulk_local_changes import brokers_of

            return brokers_of(self._bulk)
        self._as_objects()
        brokers: set[int] = set()
        for topic in self._changed.values():
            for number, partition in topic.partition_changes.items():
                brokers.update(partition.replicas)
                previous = topic.image.partitions.get(number)
                if previous is not None:
                    brokers.update(previous.replicas)
        by_id = self.image.topics_by_id()
        for topic_id in self._deleted:
            for partition in by_id[topic_id].partitions.values():
                brokers.update(partition.replicas)
        return brokers

    def _topic(self, topic_id: Uuid) -> TopicImage | None:
        """The topic's image before its changes, if the topic is there now."""
        delta = self._changed.get(topic_id)
        if delta is not None:
            return delta.image
        return None if topic_id in self._deleted else self.image.get_topic_by_id(topic_id)

    def _id_of(self, name: str) -> Uuid | None:
        created = self._created.get(name)
        if created is not None:
            return created
        topic = self.image.get_topic(name)
        return None if topic is None or topic.id in self._deleted else topic.id

    def _delta(self, topic_id: Uuid) -> TopicDelta:
        """The topic's delta, a new one (not yet noted) where there is none; ReplayError without the topic."""
        delta = self._changed.get(topic_id)
        if delta is not None:
            return delta
        topic = self._topic(topic_id)
        if topic is None:
            raise ReplayError(f"the topic with id {topic_id} does not exist.")
        return TopicDelta(topic)

    def _refuse_taken_names(self) -> None:
        for name, topic_id in self._taken_names.items():
            if topic_id not in self._deleted:
                raise ReplayError(f"topic {name!r} was created while the topic with id {topic_id} had that name.")

    def _unless_equal(self, topic: TopicImage) -> TopicImage:
        """The topic of the base image where a snapshot has brought the very same."""
        old = self.image.get_topic_by_id(topic.id)
        return old if old is not None and old == topic else topic


def bulk_as_objects(bulk: BulkChange, image: TopicsImage) -> tuple[dict[Uuid, TopicDelta], set[Uuid], dict[str, Uuid]]:
    """What was replayed in bulk: changed topics and the ids of deleted ones by id, the ids of created ones by name."""
    changed: dict[Uuid, TopicDelta] = {}
    created: dict[str, Uuid] = {}
    known = len(bulk.packed.table.names)
    alive = bulk.state.alive.tolist()
    for place, name in enumerate(bulk.new_names):
        if alive[known + place]:
            topic_id = created[name] = bulk.new_id(place)
            changed[topic_id] = TopicDelta(TopicImage(name=name, id=topic_id))
    heap, directories = bulk.heap(), bulk.directory_ids()
    for place in bulk.changed_places():
        topic, partition = bulk.partition_at(place)
        topic_id = bulk.packed.table.id_of(topic) if topic < known else bulk.new_id(topic - known)
        delta = changed.get(topic_id)
        if delta is None:
            before = image.get_topic_by_id(topic_id)
            assert before is not None, "the base has the topic"
            delta = changed[topic_id] = TopicDelta(before)
        delta.take_over(partition, bulk.state_at(place, heap, directories), *bulk.info_at(place))
    deleted = {bulk.packed.table.id_of(topic) for topic in range(known) if not alive[topic]}
    return changed, deleted, created


def _hosted(topics: TopicsImage, broker_id: int) -> dict[str, TopicDelta]:
    """What a whole image brings to a broker, by topic: its own partitions, and perhaps some of others."""
    from kraftlake.image.broker_partitions import partitions_that_may_be_on

    hosted: dict[str, TopicDelta] = {}
    for name, number, partition in partitions_that_may_be_on(topics, broker_id):
        delta = hosted.get(name)
        if delta is None:
            topic = topics.get_topic(name)
            assert topic is not None
            delta = hosted[name] = TopicDelta(TopicImage(name=name, id=topic.id))
        delta.partition_changes[number] = partition
    return hosted
