"""The change of topics by records as objects, one by one: the plain reference for the change of rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from operator import itemgetter
from typing import Any

import attrs
import pytest
from rpds import HashTrieMap

from kraftlake.delta import metadata_delta
from kraftlake.delta.faults import place_of, taken_name
from kraftlake.delta.topics import widening_change
from kraftlake.delta.topics.changed_partition import ChangedPartition, local_changes_of
from kraftlake.delta.topics.local_replica_changes import LocalReplicaChanges
from kraftlake.delta.topics.topic_delta import TopicDelta
from kraftlake.delta.topics.topics_delta import TopicsDelta
from kraftlake.delta.with_changes import with_changes
from kraftlake.image.topics.partition_registration import LeaderRecoveryState, PartitionRegistration, epoch_after
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
from kraftlake.runtime.errors import ReplayError


class ObjectTopicDelta(TopicDelta):
    """The change of one topic by records."""

    def __init__(self, image: TopicImage) -> None:
        super().__init__(image)
        self._directories_rewritten: set[int] = set()
        """The partitions whose directories a record has written since the base image, even if with the same ids."""

    def changed_partitions(self) -> Iterator[ChangedPartition]:
        """The partitions that records have changed."""
        for number, state in self.partition_changes.items():
            rewritten = number in self._directories_rewritten
            yield self.name, self.id, number, self.image.partitions.get(number), state, rewritten

    def replay_partition(self, record: PartitionRecord) -> None:
        """Set the whole state; ReplayError if the record contradicts itself."""
        registration = PartitionRegistration.from_record(record)
        previous = self.partition(record.partition_id)
        if previous is not None:
            self._count_elections(record.partition_id, previous, record.leader, record.leader_recovery_state)
        self.partition_changes[record.partition_id] = registration
        self._directories_rewritten.add(record.partition_id)

    def replay_partition_change(self, record: PartitionChangeRecord) -> None:
        """Change a partition; ReplayError if it does not exist or the change contradicts it."""
        previous = self.partition(record.partition_id)
        if previous is None:
            raise ReplayError(f"topic {self.name!r} has no partition {record.partition_id}.")
        registration = previous.merge(record)
        self._count_elections(record.partition_id, previous, record.leader, record.leader_recovery_state)
        self.partition_changes[record.partition_id] = registration
        if record.directories is not None:
            self._directories_rewritten.add(record.partition_id)

    def clear_elr(self) -> None:
        """Clear the eligible leader replicas of all partitions that have some: one change each."""
        for partition_id, partition in sorted(self._current(), key=itemgetter(0)):
            if partition.elr or partition.last_known_elr:
                self.partition_changes[partition_id] = attrs.evolve(
                    partition, elr=(), last_known_elr=(), partition_epoch=epoch_after(partition.partition_epoch)
                )

    def has_elr(self) -> bool:
        """Whether `clear_elr` would change a partition."""
        return any(partition.elr or partition.last_known_elr for _, partition in self._current())

    def apply(self) -> TopicImage:
        """The topic after the changes; the same object if there are none."""
        before = self.image.partitions
        if not isinstance(before, HashTrieMap):
            before = HashTrieMap({**before})
        partitions = with_changes(before, self.partition_changes)
        if partitions is before:
            return self.image
        return TopicImage(name=self.name, id=self.id, partitions=partitions)

    def _current(self) -> list[tuple[int, PartitionRegistration]]:
        untouched = [(id_, p) for id_, p in self.image.partitions.items() if id_ not in self.partition_changes]
        return [*self.partition_changes.items(), *untouched]

    def _count_elections(
        self, partition_id: int, previous: PartitionRegistration, leader: int, recovery_state: int
    ) -> None:
        if recovery_state == LeaderRecoveryState.RECOVERING:
            self.unclean_elections[partition_id] = self.unclean_elections.get(partition_id, 0) + 1
        if leader in previous.elr:
            self.elr_elections[partition_id] = self.elr_elections.get(partition_id, 0) + 1


class ObjectChange:
    """The effect of records on `image`: `changed` has a ObjectTopicDelta by id, `deleted` the ids of deleted topics.

    `created` has the ids of new topics by name. A record that raises has no effect. `of_log`: see `TopicsDelta`.
    """

    def __init__(self, image: TopicsImage) -> None:
        self.image = image
        self.of_log = False
        self.changed: dict[Uuid, ObjectTopicDelta] = {}
        self.deleted: set[Uuid] = set()
        self.created: dict[str, Uuid] = {}
        self._taken_names: dict[str, Uuid] = {}
        """The ids of existing topics whose names a TopicRecord gave to a new id: valid in a snapshot."""

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
        self.changed[record.topic_id] = ObjectTopicDelta(TopicImage(name=record.name, id=record.topic_id))
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
        for topic_id, delta in self.changed.items():
            changed[topic_id] = self._unless_equal(delta.apply())
        return self.image.changed({topic_id: by_id[topic_id] for topic_id in self.deleted}, changed)

    def local_changes(self, broker_id: int) -> LocalReplicaChanges:
        """See `TopicsDelta.local_changes`."""
        return local_changes_of(broker_id, self._changed_partitions())

    def _changed_partitions(self) -> Iterator[ChangedPartition]:
        for delta in self.changed.values():
            yield from delta.changed_partitions()
        for topic in map(self.image.topics_by_id().__getitem__, self.deleted):
            for partition_id, state in topic.partitions.items():
                yield topic.name, topic.id, partition_id, state, None, False

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

    def _delta(self, topic_id: Uuid) -> ObjectTopicDelta:
        """The topic's delta, a new one (not yet stored) if there is none; ReplayError if the topic does not exist."""
        delta = self.changed.get(topic_id)
        if delta is not None:
            return delta
        topic = self._topic(topic_id)
        if topic is None:
            raise ReplayError(f"the topic with id {topic_id} does not exist.")
        return ObjectTopicDelta(topic)

    def _refuse_taken_names(self) -> None:
        for name, topic_id in self._taken_names.items():
            if topic_id not in self.deleted:
                raise taken_name(name, topic_id)

    def _unless_equal(self, topic: TopicImage) -> TopicImage:
        """The object of the base image if a snapshot has an equal topic."""
        old = self.image.get_topic_by_id(topic.id)
        return old if old is not None and old == topic else topic


class ObjectTopicsDelta(ObjectChange):
    """An ObjectChange with the face of a TopicsDelta; each record is replayed at once."""

    def __init__(self, image: TopicsImage, *, of_log: bool = False) -> None:
        super().__init__(image)
        self.of_log = of_log

    def keep(self, record: Any, offset: int | None = None) -> None:
        """Replay a record; the error names its offset."""
        try:
            self.replay(record)
        except ReplayError as error:
            raise ReplayError(f"{place_of(record, offset)}{error}", offset=offset) from error

    def replay_value(self, value: bytes) -> bool:
        """Records are replayed, not values."""
        return False

    def merge(self) -> None:
        """Nothing is left to merge."""

    replay_remove_topic = ObjectChange.remove_topic

    @property
    def changed_topics(self) -> dict[Uuid, ObjectTopicDelta]:
        """The changes by topic id."""
        return self.changed

    @property
    def deleted_topic_ids(self) -> set[Uuid]:
        """The deleted topics of the base image."""
        return self.deleted

    @property
    def created_topic_ids(self) -> frozenset[Uuid]:
        """The topics that a TopicRecord created and that still exist."""
        return frozenset(self.created.values())


@contextmanager
def as_objects() -> Iterator[None]:
    """Have deltas change topics as objects."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(metadata_delta.DELTAS, "topics", ObjectTopicsDelta)
        yield


@contextmanager
def topics_are_changed_alone(*, alone: bool = True) -> Iterator[None]:
    """Have deltas change the topics that records name, however small the image is; or never."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(widening_change, "ALONE_BELOW", 0 if alone else 10**9)
        yield


def is_of_all(delta: TopicsDelta) -> bool:
    """Whether records were merged, on the rows of the whole image."""
    return delta.change is not None and delta._change.alone is None
