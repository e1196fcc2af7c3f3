"""All topics and their partitions."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import ItemsView, Iterable, Iterator, Mapping
from operator import attrgetter, itemgetter
from typing import Any, ClassVar, Final, TypeAlias

import attrs
from rpds import HashTrieMap

from kraftlake.image.short_repr import short_repr
from kraftlake.image.topics.layered_map import LayeredMap
from kraftlake.image.topics.packed_partitions import PackedPartitions
from kraftlake.image.topics.packed_topics import EMPTY as NO_TOPICS
from kraftlake.image.topics.packed_topics import PackedTopics, differing_topics, pack
from kraftlake.image.topics.partition_registration import PartitionRegistration
from kraftlake.image.topics.topic_image import TopicImage
from kraftlake.image.topics.topic_maps import TopicMap
from kraftlake.image.writer_options import ImageWriterOptions
from kraftlake.records.encoded_values import EncodedValues
from kraftlake.records.fast_construct import mutable_class
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.records.uuid import Uuid

_Rows: TypeAlias = LayeredMap[PartitionRegistration]
Place: TypeAlias = int | tuple[Uuid, int]
"""The row of a partition in the base, or topic and id of one in the overlay."""
PACK_FROM: Final = 20_000
"""Number of partitions in the overlay from which on it is packed with the base; of partitions that numpy pays for."""

_new: Any = object.__new__


@attrs.frozen(eq=False, weakref_slot=False)
class TopicsImage:
    """All topics, by name and by id. Immutable.

    The storage is private. Other modules read and set packed rows by `rows` and `with_rows` only, and single ones by
    `find_partition`, `name_of` and `with_states` only. Names and ids of topics are unique.

    An image holds a packed `base` and an overlay of later changes: states of partitions by row, and topics, packed by
    the change that made them (None for a deleted topic of the base). Successive images share base, indexes and maps.
    Source: org.apache.kafka.image.TopicsImage.
    """

    EMPTY: ClassVar[TopicsImage]

    _by_id: HashTrieMap[Uuid, TopicImage | None] = HashTrieMap()
    _by_name: HashTrieMap[str, TopicImage | None] = HashTrieMap()
    _base: PackedTopics = NO_TOPICS
    _rows: _Rows = LayeredMap.EMPTY
    _overlaid_partitions: int = 0
    """The number of partitions of the topics in `_by_id`."""
    _overlaid: bool = attrs.field(init=False)
    _made: dict[int, TopicImage] = attrs.field(init=False, repr=False, factory=dict)
    """A cache of topics of the base, by number."""

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "_overlaid", len(self._by_id) > 0)

    @classmethod
    def with_rows(cls, rows: PackedTopics) -> TopicsImage:
        """The image of packed rows: the inverse of `rows`."""
        return cls(HashTrieMap(), HashTrieMap(), rows) if rows.table.topic_count else cls.EMPTY

    def __repr__(self) -> str:
        return short_repr(self, topics=self.topic_count, partitions=self.partition_count)

    def is_empty(self) -> bool:
        """Whether there is no topic."""
        return (self.topic_count if self._overlaid else self._base.table.topic_count) == 0

    def get_topic(self, name: str) -> TopicImage | None:
        """The topic of that name."""
        if self._overlaid and name in self._by_name:
            return self._by_name[name]
        number = self._base.table.number_of_name(name)
        return None if number is None else self._made.get(number) or self._make(number)

    def get_topic_by_id(self, topic_id: Uuid) -> TopicImage | None:
        """The topic with that id."""
        if self._overlaid and topic_id in self._by_id:
            return self._by_id[topic_id]
        number = self._base.table.number_of_id(topic_id)
        return None if number is None else self._made.get(number) or self._make(number)

    def _make(self, number: int) -> TopicImage:
        base = self._base
        partitions = PackedPartitions(base, number, self._rows)
        topic = TopicImage(name=base.table.name_of(number), id=base.table.id_of(number), partitions=partitions)
        self._made[number] = topic
        return topic

    def get_partition(self, topic_id: Uuid, partition: int) -> PartitionRegistration | None:
        """A partition's state; None when the topic or the partition does not exist."""
        topic = self.get_topic_by_id(topic_id)
        return None if topic is None else topic.partitions.get(partition)

    def topics_by_id(self) -> Mapping[Uuid, TopicImage]:
        """The topics by id, unordered."""
        table = self._base.table
        numbers = range(table.topic_count)
        return TopicMap(self.get_topic_by_id, lambda: map(table.id_of, numbers), attrgetter("id"), table, self._by_id)

    def topics_by_name(self) -> Mapping[str, TopicImage]:
        """The topics by name, unordered."""
        table = self._base.table
        return TopicMap(self.get_topic, lambda: table.names, attrgetter("name"), table, self._by_id)

    @property
    def topic_count(self) -> int:
        """The number of topics."""
        return len(self.topics_by_id())

    @property
    def partition_count(self) -> int:
        """The number of partitions of all topics."""
        count, table = self.rows_held, self._base.table
        if self._overlaid:
            numbers = [table.by_id[topic_id] for topic_id in self._by_id if topic_id in table.by_id]
            count -= sum(table.bounds[number + 1] - table.bounds[number] for number in numbers)
        return count

    @property
    def rows_held(self) -> int:
        """The number of rows of base and overlay: that of partitions, and of those that the overlay replaces."""
        return self._overlaid_partitions + self._base.partition_count

    @property
    def is_large(self) -> bool:
        """Whether queries over all partitions should use columns instead of objects."""
        return self.partition_count >= PACK_FROM

    def changed(self, deleted: Mapping[Uuid, TopicImage], changed: Mapping[Uuid, TopicImage]) -> TopicsImage:
        """The image without `deleted`, then with `changed` (both by id); the same object if nothing differs."""
        by_id, by_name, overlaid, table = self._by_id, self._by_name, self._overlaid_partitions, self._base.table
        for topic_id, topic in deleted.items():
            if changed.get(topic_id) is topic:
                continue
            old = by_id.get(topic_id)
            if old is not None:
                overlaid -= len(old.partitions)
            by_id = _removed(by_id, topic_id, topic_id in table.by_id)
            by_name = _removed(by_name, topic.name, topic.name in table.by_name)
        for topic_id, topic in changed.items():
            if self.get_topic_by_id(topic_id) is topic:
                continue
            old = by_id.get(topic_id)
            overlaid += len(topic.partitions) - (0 if old is None else len(old.partitions))
            by_id = by_id.insert(topic_id, topic)
            by_name = by_name.insert(topic.name, topic)
        assert len(by_id) == len(by_name) or table.topic_count, "topics have different names"
        return self if by_id is self._by_id else self._with(by_id, by_name, overlaid, self._rows)

    def find_partition(self, topic_id: Uuid, partition: int) -> tuple[Place, PartitionRegistration] | None:
        """The place and the state of a partition; None if it does not exist, or its topic is sparse in the base."""
        if self._overlaid and topic_id in self._by_id:
            topic = self._by_id[topic_id]
            if topic is None or not isinstance(topic.partitions, PackedPartitions):
                return None
            state = topic.partitions.get(partition)
            return None if state is None else ((topic_id, partition), state)
        base = self._base
        table = base.table
        number = table.number_of_id(topic_id)
        if number is None or partition < 0 or number in table.sparse:
            return None
        row = table.bounds[number] + partition
        if row >= table.bounds[number + 1]:
            return None
        state = self._rows.get(row)
        return row, base.registration(row) if state is None else state

    def name_of(self, topic_id: Uuid) -> str:
        """The name of a topic that exists."""
        topic = self._by_id.get(topic_id) if self._overlaid else None
        if topic is not None:
            return topic.name
        table = self._base.table
        number = table.number_of_id(topic_id)
        assert number is not None, "the overlay or the base has the topic"
        return table.name_of(number)

    def with_states(self, states: Mapping[Place, PartitionRegistration]) -> TopicsImage:
        """The image with new states of partitions that `find_partition` has found."""
        if not self._overlaid:
            return self._with(self._by_id, self._by_name, 0, self._rows.changed(states))  # type: ignore[arg-type]
        by_id, by_name, rows = self._by_id, self._by_name, dict[int, PartitionRegistration]()
        for place, state in states.items():
            if isinstance(place, int):
                rows[place] = state
                continue
            topic = by_id[place[0]]
            assert topic is not None, "the overlay has the topic"
            topic = topic.with_state(place[1], state)
            by_id, by_name = by_id.insert(topic.id, topic), by_name.insert(topic.name, topic)
        return self._with(by_id, by_name, self._overlaid_partitions, self._rows.changed(rows) if rows else self._rows)

    def _with(self, by_id: Any, by_name: Any, overlaid: int, rows: _Rows) -> TopicsImage:
        """An image of the same base, packed again if the overlay is large. Built fast, since every change makes one."""
        made = _new(_MutableImage)
        made._by_id = by_id
        made._by_name = by_name
        made._base = self._base
        made._rows = rows
        made._overlaid_partitions = overlaid
        made._overlaid = self._overlaid if by_id is self._by_id else len(by_id) > 0
        made._made = {}
        made.__class__ = TopicsImage
        image: TopicsImage = made
        if overlaid + rows.most <= PACK_FROM + len(made._base.cells) // 8:
            return image
        return TopicsImage.with_rows(image.rows())

    def rows(self) -> PackedTopics:
        """The whole image as packed rows, possibly with patches (see `PackedTopics.merged`)."""
        if not self._overlaid and self._rows is LayeredMap.EMPTY:
            return self._base
        numbers = self._base.table.by_id
        left_out = [numbers[topic_id] for topic_id in self._by_id if topic_id in numbers]
        topics = [(t.name, t.id, t.partitions) for t in self._by_id.values() if t is not None]
        topics.sort(key=itemgetter(0))  # rpds orders a map by hashes that are other ones in each process
        return pack(self._base, left_out, self._rows.entries(), topics)

    def may_differ(self, other: TopicsImage) -> Iterable[str]:
        """A superset of the names of the topics that differ; topics that both images share are not compared."""
        if self is other:
            return ()
        names: set[str] = set()
        if self._by_name is not other._by_name:
            for one, two in ((self, other), (other, self)):
                names.update(name for name, topic in one._by_name.items() if _get(two._by_name, name) is not topic)
        if self._base is other._base:
            if self._rows is not other._rows:
                names.update(self._names_of(self._rows.unlike(other._rows)))
        else:
            for image in (self, other):
                names.update(image._names_of(image._rows.entries()))
            names.update(differing_topics(self._base, other._base))
        return names

    def _names_of(self, rows: Iterable[int]) -> Iterator[str]:
        table = self._base.table
        for row in rows:
            yield table.name_of(bisect_right(table.bounds, row) - 1)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TopicsImage):
            return NotImplemented
        return self is other or all(self.get_topic(name) == other.get_topic(name) for name in self.may_differ(other))

    def __hash__(self) -> int:
        return hash((self.topic_count, self.partition_count))

    def write(self, options: ImageWriterOptions) -> Iterator[ApiMessageAndVersion]:
        """The records of the topics, by name."""
        topics: ItemsView[str, TopicImage] = self.topics_by_name().items()
        for _, topic in sorted(topics, key=lambda item: item[0]):
            yield from topic.write(options)

    def write_bulk(self, options: ImageWriterOptions) -> Iterator[ApiMessageAndVersion | EncodedValues]:
        """The records of `write`, encoded in bulk if the image is large."""
        if not self.is_large:
            yield from self.write(options)
            return
        from kraftlake.image.topics.topic_values import values_by_name

        yield from values_by_name(self.rows(), options)


_MISSING: Final = object()


def _get(topics: HashTrieMap[str, TopicImage | None], name: str) -> object:
    return topics[name] if name in topics else _MISSING  # noqa: SIM401 - rpds types get(key) only


def _removed(
    topics: HashTrieMap[Any, TopicImage | None], key: Any, in_base: bool
) -> HashTrieMap[Any, TopicImage | None]:
    return topics.insert(key, None) if in_base else topics.remove(key)


_MutableImage: Any = mutable_class(TopicsImage)
TopicsImage.EMPTY = TopicsImage()
