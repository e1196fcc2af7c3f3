"""The change of topics by any records, replayed one by one as objects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from kraftlake.delta.topics.changed_partition import ChangedPartition, local_changes_of
from kraftlake.delta.topics.local_replica_changes import LocalReplicaChanges
from kraftlake.delta.topics.topic_delta import TopicDelta
from kraftlake.image.topics.packed_partitions import PackedPartitions
from kraftlake.image.topics.partition_registration import PartitionRegistration
from kraftlake.image.topics.topic_image import TopicImage
from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.records.metadata_records import (
    ClearElrRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from kraftlake.records.uuid import Uuid
from kraftlake.runtime import ReplayError

if TYPE_CHECKING:
    from kraftlake.delta.topics.bulk_change import BulkChange


class ObjectChange:
    """The effect of records on `image`: `changed` has a TopicDelta by id, `deleted` the ids of deleted topics.

    `created` has the ids of new topics by name. A record that raises has no effect. `of_log`: see `TopicsDelta`.
    """

    def __init__(self, image: TopicsImage) -> None:
        self.image = image
        self.of_log = False
        self.changed: dict[Uuid, TopicDelta] = {}
        self.deleted: set[Uuid] = set()
        self.created: dict[str, Uuid] = {}
        self._taken_names: dict[str, Uuid] = {}
        """The ids of existing topics whose names a TopicRecord gave to a new id: valid in a snapshot."""

    @classmethod
    def of_bulk(cls, bulk: BulkChange, image: TopicsImage) -> ObjectChange:
        """The same change as `bulk`."""
        from kraftlake.kernels.replay.change_state import AGAIN, ALIVE, GONE  # few processes make a change in bulk

        change = cls(image)
        lives, known = bulk.lives.tolist(), bulk.packed.table.topic_count
        begun = [topic for topic, life in enumerate(lives) if life and (topic >= known or life != ALIVE)]
        for topic in begun:
            name, topic_id = bulk.topic_name(topic), bulk.topic_id(topic)
            change.created[name] = topic_id
            change.changed[topic_id] = TopicDelta(TopicImage(name=name, id=topic_id))
        heap, directories = bulk.heap(), bulk.directory_ids()
        for place in bulk.changed_places():
            topic, partition = bulk.partition_at(place)
            topic_id = bulk.topic_id(topic)
            delta = change.changed.get(topic_id)
            if delta is None:
                before = image.get_topic_by_id(topic_id)
                assert before is not None, "the base has the topic"
                delta = change.changed[topic_id] = TopicDelta(before)
            delta.take_over(partition, bulk.state_at(place, heap, directories), *bulk.info_at(place))
        change.deleted = {bulk.topic_id(topic) for topic in range(known) if lives[topic] in (GONE, AGAIN)}
        change._taken_names = {name: bulk.topic_id(topic) for name, topic in bulk.taken_names}
        return change

    @classmethod
    def of_some(cls, topics: Sequence[TopicImage], taken_names: dict[str, Uuid]) -> ObjectChange:
        """No change yet of these topics alone; nothing else may have their names but `taken_names`."""
        change = cls(TopicsImage.EMPTY.changed({}, {topic.id: topic for topic in topics}))
        change.of_log, change._taken_names = True, taken_names
        return change

    @classmethod
    def of_whole(cls, topics: TopicsImage, image: TopicsImage, broker_id: int | None = None) -> ObjectChange:
        """The change from the empty `image` to `topics`, or to the partitions that a broker hosts."""
        from kraftlake.image.broker_partitions import hosted_partitions

        change = cls(image)
        if broker_id is None:
            for topic_id, topic in topics.topics_by_id().items():
                delta = change.changed[topic_id] = TopicDelta(TopicImage(name=topic.name, id=topic_id))
                delta.partition_changes.update(topic.partitions.items())
                change.created[topic.name] = topic_id
            return change
        for name, number, partition in hosted_partitions(topics, broker_id):
            if name not in change.created:
                hosted = topics.get_topic(name)
                assert hosted is not None, "the image has the topics of its partitions"
                change.created[name] = hosted.id
                change.changed[hosted.id] = TopicDelta(TopicImage(name=name, id=hosted.id))
            change.changed[change.created[name]].partition_changes[number] = partition
        return change

    @property
    def is_empty(self) -> bool:
        """Whether no record had an effect."""
        return not (self.changed or self.deleted or self._taken_names)

    def holds_topic(self, name: str) -> bool:
        """Whether a topic has the name now."""
        return self._id_of(name) is not None

    def replay(self, record: Any) -> None:
        """Replay a record of a topic, but no RemoveTopicRecord; ReplayError if it contradicts the state so far."""
        kind = type(record)
        if kind is PartitionChangeRecord:
            delta = self._delta(record.topic_id)
            delta.replay_partition_change(record)
            self.changed[record.topic_id] = delta
        elif kind is PartitionRecord:
            delta = self._delta(record.topic_id)
            delta.replay_partition(record)
            self.changed[record.topic_id] = delta
        elif kind is TopicRecord:
            self._replay_topic(record)
        else:
            assert kind is ClearElrRecord, "there is no other record of a topic"
            self._replay_clear_elr(record)

    def _replay_topic(self, record: TopicRecord) -> None:
        known = self._topic(record.topic_id)
        if known is not None and known.name != record.name:
            raise ReplayError(f"topic {record.name!r} gets the id {record.topic_id}, which {known.name!r} has.")
        holder = self._id_of(record.name)
        if holder is not None and holder != record.topic_id:
            if self.of_log or holder in self.changed:
                raise taken_name(record.name, holder)
            self._taken_names[record.name] = holder
        self.changed[record.topic_id] = TopicDelta(TopicImage(name=record.name, id=record.topic_id))
        self.created[record.name] = record.topic_id

    def _replay_clear_elr(self, record: ClearElrRecord) -> None:
        if record.topic_name:
            topic_id = self._id_of(record.topic_name)
            if topic_id is None:
                raise ReplayError(f"topic {record.topic_name!r} does not exist.")
            topic_ids = {topic_id}
        else:
            topic_ids = {*self.image.topics_by_id()} - self.deleted | {*self.changed}
        with_elr = [delta for topic_id in topic_ids if (delta := self._delta(topic_id)).has_elr()]
        for delta in sorted(with_elr, key=lambda delta: delta.name):  # an order independent of hashes
            delta.clear_elr()
            self.changed[delta.id] = delta

    def remove_topic(self, record: RemoveTopicRecord) -> str:
        """Returns the name of the topic; ReplayError if it does not exist."""
        topic = self._topic(record.topic_id)
        if topic is None:
            raise ReplayError(f"the topic with id {record.topic_id} does not exist.")
        self._refuse_taken_names()
        self.changed.pop(record.topic_id, None)
        if self.created.get(topic.name) == record.topic_id:
            del self.created[topic.name]
        if self.image.get_topic_by_id(record.topic_id) is not None:
            self.deleted.add(record.topic_id)
        return topic.name

    def finish_snapshot(self) -> None:
        """Delete the topics that the snapshot lacks."""
        for topic_id in self.image.topics_by_id():
            if topic_id not in self.changed:
                self.deleted.add(topic_id)

    def apply(self) -> TopicsImage:
        """The image after the changes; the same object if there are none. ReplayError if two topics share a name."""
        self._refuse_taken_names()
        by_id = self.image.topics_by_id()
        changed: dict[Uuid, TopicImage] = {}
        rows: dict[int, PartitionRegistration] = {}
        for topic_id, delta in self.changed.items():
            partitions = delta.image.partitions
            if isinstance(partitions, PackedPartitions):
                changes = partitions.rows_changed(delta.partition_changes)
                if changes is not None:
                    rows.update(changes)
                    continue
            changed[topic_id] = self._unless_equal(delta.apply())
        return self.image.changed({topic_id: by_id[topic_id] for topic_id in self.deleted}, changed, rows)

    def local_changes(self, broker_id: int) -> LocalReplicaChanges:
        """See `TopicsDelta.local_changes`."""
        return local_changes_of(broker_id, self._changed_partitions())

    def _changed_partitions(self) -> Iterator[ChangedPartition]:
        for delta in self.changed.values():
            yield from delta.changed_partitions()
        for topic in map(self.image.topics_by_id().__getitem__, self.deleted):
            for partition_id, state in topic.partitions.items():
                yield ChangedPartition(topic.name, topic.id, partition_id, state, None, False)

    def _topic(self, topic_id: Uuid) -> TopicImage | None:
        """The topic's image before its changes, if the topic exists now."""
        delta = self.changed.get(topic_id)
        if delta is not None:
            return delta.image
        return None if topic_id in self.deleted else self.image.get_topic_by_id(topic_id)

    def _id_of(self, name: str) -> Uuid | None:
        created = self.created.get(name)
        if created is not None:
            return created
        topic = self.image.get_topic(name)
        return None if topic is None or topic.id in self.deleted else topic.id

    def _delta(self, topic_id: Uuid) -> TopicDelta:
        """The topic's delta, a new one (not yet stored) if there is none; ReplayError if the topic does not exist."""
        delta = self.changed.get(topic_id)
        if delta is not None:
            return delta
        topic = self._topic(topic_id)
        if topic is None:
            raise ReplayError(f"the topic with id {topic_id} does not exist.")
        return TopicDelta(topic)

    def _refuse_taken_names(self) -> None:
        for name, topic_id in self._taken_names.items():
            if topic_id not in self.deleted:
                raise taken_name(name, topic_id)

    def _unless_equal(self, topic: TopicImage) -> TopicImage:
        """The object of the base image if a snapshot has an equal topic."""
        old = self.image.get_topic_by_id(topic.id)
        return old if old is not None and old == topic else topic


def taken_name(name: str, topic_id: Uuid) -> ReplayError:
    """The error of a name that two topics have."""
    return ReplayError(f"topic {name!r} was created while the topic with id {topic_id} had that name.")
