"""One topic and its partitions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs
from rpds import HashTrieMap

from kraftlake.image.short_repr import counted
from kraftlake.image.topics.packed_partitions import PackedPartitions
from kraftlake.image.topics.partition_registration import PartitionRegistration
from kraftlake.image.writer_options import ImageWriterOptions
from kraftlake.records.metadata_records import TopicRecord
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.records.uuid import Uuid


@attrs.frozen(kw_only=True, eq=False, weakref_slot=False)
class TopicImage:
    """One topic. `partitions` is by partition id. Source: org.apache.kafka.image.TopicImage."""

    name: str
    id: Uuid
    partitions: Mapping[int, PartitionRegistration] = HashTrieMap()

    def __repr__(self) -> str:
        return f"<TopicImage {self.name!r}: {counted(partitions=len(self.partitions))}>"

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, TopicImage):
            return NotImplemented
        mine, theirs = self.partitions, other.partitions
        if self.name != other.name or self.id != other.id or len(mine) != len(theirs):
            return False
        return mine is theirs or all(theirs.get(key) == value for key, value in mine.items())

    def __hash__(self) -> int:
        return hash((self.name, self.id))

    def with_state(self, partition_id: int, state: PartitionRegistration) -> TopicImage:
        """The topic with another state of one of its partitions."""
        assert isinstance(self.partitions, PackedPartitions), "the partitions of an overlay are rows"
        return TopicImage(name=self.name, id=self.id, partitions=self.partitions.with_state(partition_id, state))

    def write(self, options: ImageWriterOptions) -> Iterator[ApiMessageAndVersion]:
        """The record of the topic, then those of its partitions by id."""
        yield ApiMessageAndVersion(TopicRecord(name=self.name, topic_id=self.id), 0)
        for partition_id, partition in sorted(self.partitions.items()):
            yield partition.to_record(self.id, partition_id, options)
