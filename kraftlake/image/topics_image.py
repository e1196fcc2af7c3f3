"""All topics and their partitions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

import attrs
from rpds import HashTrieMap

from kraftlake.image.partition_registration import PartitionRegistration
from kraftlake.image.writer_options import ImageWriterOptions
from kraftlake.records.metadata_records import TopicRecord
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.records.uuid import Uuid


@attrs.frozen(kw_only=True)
class TopicImage:
    """One topic. `partitions` is by partition id. Source: org.apache.kafka.image.TopicImage."""

    name: str
    id: Uuid
    partitions: HashTrieMap[int, PartitionRegistration] = HashTrieMap()

    def write(self, options: ImageWriterOptions) -> Iterator[ApiMessageAndVersion]:
        """The topic, then its partitions by id."""
        yield ApiMessageAndVersion(TopicRecord(name=self.name, topic_id=self.id), 0)
        for partition_id, partition in sorted(self.partitions.items()):
            yield partition.to_record(self.id, partition_id, options)


@attrs.frozen
class TopicsImage:
    """Every topic, found by name or id.

    Only `delta` knows how it is held; all others ask through the methods. Every topic has one name and one id, and
    no two share either. Source: org.apache.kafka.image.TopicsImage.
    """

    EMPTY: ClassVar[TopicsImage]

    _by_id: HashTrieMap[Uuid, TopicImage] = HashTrieMap()
    _by_name: HashTrieMap[str, TopicImage] = HashTrieMap()

    def is_empty(self) -> bool:
        """Whether there is no topic."""
        return not self._by_id

    def get_topic(self, name: str) -> TopicImage | None:
        """The topic of that name."""
        return self._by_name.get(name)

    def get_topic_by_id(self, topic_id: Uuid) -> TopicImage | None:
        """The topic with that id."""
        return self._by_id.get(topic_id)

    def get_partition(self, topic_id: Uuid, partition: int) -> PartitionRegistration | None:
        """A partition's state; None when the topic or the partition does not exist."""
        topic = self._by_id.get(topic_id)
        return None if topic is None else topic.partitions.get(partition)

    def topics_by_id(self) -> Mapping[Uuid, TopicImage]:
        """The topics by id, in no order."""
        return self._by_id

    def topics_by_name(self) -> Mapping[str, TopicImage]:
        """The topics by name, in no order."""
        return self._by_name

    @property
    def partition_count(self) -> int:
        """How many partitions all topics have together."""
        return sum(len(topic.partitions) for topic in self._by_id.values())

    def changed(self, deleted: Mapping[Uuid, TopicImage], changed: Mapping[Uuid, TopicImage]) -> TopicsImage:
        """The image without `deleted` and then with `changed` (both by id); itself when nothing differs."""
        by_id, by_name = self._by_id, self._by_name
        for topic_id, topic in deleted.items():
            by_id = by_id.remove(topic_id)
            by_name = by_name.remove(topic.name)
        for topic_id, topic in changed.items():
            if by_id.get(topic_id) is not topic:
                by_id = by_id.insert(topic_id, topic)
                by_name = by_name.insert(topic.name, topic)
        assert len(by_id) == len(by_name), "every topic has a name of its own"
        return self if by_id is self._by_id else TopicsImage(by_id, by_name)

    def write(self, options: ImageWriterOptions) -> Iterator[ApiMessageAndVersion]:
        """The topics by name."""
        for _, topic in sorted(self._by_name.items()):
            yield from topic.write(options)


TopicsImage.EMPTY = TopicsImage()
