"""The changes of topics as objects, made from the rows of a change when somebody looks."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from kraftlake.delta.topics.bulk_change import BulkChange
from kraftlake.delta.topics.changed_partition import ChangedPartition
from kraftlake.delta.topics.topic_delta import TopicDelta
from kraftlake.image.topics.topic_image import TopicImage
from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.records.uuid import Uuid


@attrs.frozen(kw_only=True)
class TopicDeltas:
    """`changed` has the changes by topic id, `created` the ids of the topics among them that a TopicRecord created.

    `deleted` has the ids of the deleted topics of the image that the records change.
    """

    changed: dict[Uuid, TopicDelta]
    deleted: set[Uuid]
    created: frozenset[Uuid]

    @classmethod
    def none(cls) -> TopicDeltas:
        """No changes."""
        return cls(changed={}, deleted=set(), created=frozenset())

    @classmethod
    def of(cls, change: BulkChange, image: TopicsImage) -> TopicDeltas:
        """The effect of a change on an image."""
        begun, gone = change.begun_and_deleted()
        images = [TopicImage(name=change.topic_name(topic), id=change.topic_id(topic)) for topic in begun]
        changed = {topic.id: TopicDelta(topic) for topic in images}
        heap, directories = change.heap(), change.directory_ids()
        for place in change.changed_places():
            topic, partition = change.partition_at(place)
            topic_id = change.topic_id(topic)
            delta = changed.get(topic_id)
            if delta is None:
                before = image.get_topic_by_id(topic_id)
                assert before is not None, "the image has the topic"
                delta = changed[topic_id] = TopicDelta(before)
            delta.take_over(partition, change.state_at(place, heap, directories), *change.info_at(place))
        return cls(
            changed=changed, deleted=set(map(change.topic_id, gone)), created=frozenset(topic.id for topic in images)
        )

    def changed_partitions(self, image: TopicsImage) -> Iterator[ChangedPartition]:
        """The partitions that changed, and those of deleted topics of the image."""
        for delta in self.changed.values():
            yield from delta.changed_partitions()
        for topic in filter(None, map(image.get_topic_by_id, self.deleted)):
            for partition_id, state in topic.partitions.items():
                yield ChangedPartition(topic.name, topic.id, partition_id, state, None, False)
