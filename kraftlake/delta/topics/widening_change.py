"""The change of topics by records, on the rows of the topics that they name or of the whole image."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kraftlake.image.topics.packed_partitions import PackedPartitions
from kraftlake.image.topics.some_topics import packed_alone
from kraftlake.image.topics.topic_image import TopicImage
from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.kernels.record_types import CHANGE, PARTITION, TOPIC
from kraftlake.records.metadata_records import ClearElrRecord, TopicRecord
from kraftlake.records.serde import decode_value
from kraftlake.records.uuid import Uuid
from kraftlake.runtime.errors import CorruptDataError, KraftlakeError
from kraftlake.runtime.lazy_module import LazyModule

if TYPE_CHECKING:
    from kraftlake.delta.topics import bulk_change, record_fault, record_values
    from kraftlake.delta.topics.bulk_change import BulkChange
    from kraftlake.image.topics.packed_topics import PackedTopics
else:  # an image from columns needs none of them
    bulk_change = LazyModule("kraftlake.delta.topics.bulk_change")
    record_fault = LazyModule("kraftlake.delta.topics.record_fault")
    record_values = LazyModule("kraftlake.delta.topics.record_values")

ALONE_BELOW: Final = 8
"""Topics of at most one in this many rows of an image are changed alone; else the whole image is."""
_MOST_ALONE: Final = 4096
"""The largest number of these rows: each topic that is changed alone takes 45 µs, its image and the overlay's maps."""
_WIDENED: Final = 3
"""The number of times that topics join a change before the whole image does."""


class WideningChange:
    """The effect of records on an image, as a BulkChange of some topics, `alone`, or of all (`alone` is None).

    `over` is the image whose rows it begins with, another one than `image` if all its topics are created. `of_log`: see
    TopicsDelta.
    """

    def __init__(self, image: TopicsImage, over: TopicsImage | None = None) -> None:
        self.image = image
        self.over = image if over is None else over
        self.of_log = False
        self.alone: dict[Uuid, TopicImage] | None = {} if over is None else None
        self.bulk: BulkChange | None = None
        """None until something is replayed."""
        self._taken: list[bytes] = []
        """The values that `bulk` has replayed, unless it is of all topics."""
        self._widened = 0

    @property
    def is_empty(self) -> bool:
        """Whether nothing was replayed and no topic is created."""
        return self.over is self.image and (self.bulk is None or self.bulk.is_empty)

    @property
    def begun(self) -> BulkChange | None:
        """The change of rows; None if there is none."""
        return self.bulk if self.over is self.image else self.of_all()

    def of_all(self) -> BulkChange:
        """The change of rows, made one of all topics."""
        if self.bulk is None or self.alone is not None:
            change = bulk_change.BulkChange(self.over.rows())
            if self.over is not self.image:
                change.begin_all_anew()
            self._begin(change)
            self.alone, self._taken = None, []
        return self._current()

    def replay(self, records: list[Any]) -> tuple[int, KraftlakeError | None, list[tuple[int, str | None]]]:
        """Replay records: how many, the error of the next one; and what `BulkChange.replay` passes on."""
        change = self._of(records)
        values, error = record_values.values_of(records)
        done, others = change.replay_values(values)
        if self.alone is not None:
            self._taken += values[:done]
        return done, record_fault.fault_of(change, records[done]) if done < len(values) else error, others

    def replay_value(self, value: bytes) -> bool:
        """See `TopicsDelta.replay_value`."""
        if self.alone is None or self.image.is_empty():
            return self.of_all().replay_value(value)
        if not self._is_of_known_topic(value):
            return False
        if self.bulk is None:
            self._begin(bulk_change.BulkChange(packed_alone(())))
        if not self._current().replay_value(value):
            return False
        self._taken.append(value)
        return True

    def _is_of_known_topic(self, value: bytes) -> bool:
        """Whether a value is of a topic that the change has, or that the image has not."""
        assert self.alone is not None, "it is of some topics"
        if value[1] in (PARTITION, CHANGE):
            topic_id = Uuid(value[7:23])
            is_new = self.bulk is not None and self.image.get_topic_by_id(topic_id) is None
            return is_new or topic_id in self.alone
        try:
            named = self._named_by([decode_value(value).message]) if value[1] == TOPIC else None
        except CorruptDataError:
            return False
        return named is not None and named.keys() <= self.alone.keys()

    def _of(self, records: list[Any]) -> BulkChange:
        """The change that takes records: of the topics that they name, and of those before, or of all."""
        if self.alone is None or (named := self._named_by(records)) is None:
            return self.of_all()
        if self.bulk is None or not named.keys() <= self.alone.keys():
            self.alone |= named
            self._widened += 1
            rows = sum(len(topic.partitions) for topic in self.alone.values()) + len(records)
            if self._widened > _WIDENED or rows > _MOST_ALONE or rows * ALONE_BELOW > self.image.rows_held:
                return self.of_all()
            self._begin(bulk_change.BulkChange(packed_alone(self.alone.values())))
        return self._current()

    def _named_by(self, records: list[Any]) -> dict[Uuid, TopicImage] | None:
        """The topics of the image that records name; None if one names them all."""
        ids, names = dict[Uuid, None](), dict[str, None]()  # in the order of the records
        for record in records:
            if type(record) is ClearElrRecord:
                if not record.topic_name:
                    return None
                names[record.topic_name] = None
            else:
                ids[record.topic_id] = None
                if type(record) is TopicRecord:
                    names[record.name] = None
        named = [*map(self.image.get_topic_by_id, ids), *map(self.image.get_topic, names)]
        return {topic.id: topic for topic in named if topic is not None}

    def _begin(self, change: BulkChange) -> None:
        """Replay on more topics what was replayed on fewer."""
        if self._taken:
            done, _ = change.replay_values(self._taken)
            assert done == len(self._taken), "nothing of other topics contradicts them"
        self.bulk = change

    def _current(self) -> BulkChange:
        assert self.bulk is not None, "it has begun"
        self.bulk.of_log = self.of_log
        return self.bulk

    def apply(self) -> TopicsImage:
        """The image after the changes; the same object if there are none."""
        packed = None if self.bulk is None else self.bulk.apply()
        if self.bulk is None or packed is None or packed is self.bulk.packed:
            return self.over
        return TopicsImage.with_rows(packed) if self.alone is None else self._overlaid(self.bulk, packed, self.alone)

    def _overlaid(self, change: BulkChange, packed: PackedTopics, alone: dict[Uuid, TopicImage]) -> TopicsImage:
        """The image with the topics that changed, of some that were changed alone."""
        changed = {}
        for number in range(packed.table.topic_count):
            partitions = PackedPartitions(packed, number)
            made = TopicImage(name=packed.table.name_of(number), id=packed.table.id_of(number), partitions=partitions)
            old = alone.get(made.id)
            changed[made.id] = old if old is not None and old == made else made
        deleted = map(change.topic_id, change.deleted())
        return self.image.changed({topic_id: alone[topic_id] for topic_id in deleted}, changed)
