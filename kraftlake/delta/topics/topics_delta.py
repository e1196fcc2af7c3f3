"""Changes of topics and their partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kraftlake.delta.faults import place_of
from kraftlake.image.short_repr import counted
from kraftlake.image.topics.packed_partitions import PackedPartitions
from kraftlake.image.topics.some_topics import packed_alone
from kraftlake.image.topics.topic_image import TopicImage
from kraftlake.image.topics.topics_image import PACK_FROM, TopicsImage
from kraftlake.kernels.record_types import CHANGE, PARTITION
from kraftlake.records.metadata_records import (
    ClearElrRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from kraftlake.records.uuid import Uuid
from kraftlake.runtime.errors import KraftlakeError, ReplayError
from kraftlake.runtime.lazy_module import LazyModule

if TYPE_CHECKING:
    from kraftlake.delta.topics import (
        bulk_change,
        changed_partition,
        record_fault,
        record_values,
        row_changes,
    )
    from kraftlake.delta.topics.bulk_change import BulkChange
    from kraftlake.delta.topics.local_replica_changes import LocalReplicaChanges
    from kraftlake.delta.topics.row_changes import RowChanges
    from kraftlake.delta.topics.topic_delta import TopicDelta
    from kraftlake.image.topics.packed_topics import PackedTopics
else:  # an image from columns needs none of them
    bulk_change = LazyModule("kraftlake.delta.topics.bulk_change")
    changed_partition = LazyModule("kraftlake.delta.topics.changed_partition")
    record_fault = LazyModule("kraftlake.delta.topics.record_fault")
    record_values = LazyModule("kraftlake.delta.topics.record_values")
    row_changes = LazyModule("kraftlake.delta.topics.row_changes")

ALONE_BELOW: Final = 8
"""Topics of at most one in this many rows of an image are changed alone; else the whole image is."""
_WIDENED: Final = 3
"""The number of times that topics join a change before the whole image does."""

TOPIC_RECORDS: Final = frozenset((TopicRecord, PartitionRecord, PartitionChangeRecord, ClearElrRecord))
"""The record types that `keep` accepts."""


class TopicsDelta:
    """`changed_topics` has a TopicDelta by id, `deleted_topic_ids` the deleted topics of the base image.

    Records are kept until the first access, and then merged in one pass, on the rows of the topics that they name or of
    the whole image. A record that contradicts the state so far raises ReplayError, with its offset, when it is merged:
    by `merge`, `apply`, `local_changes` or another access. That record is dropped, and the next access goes on with the
    following one, so that the result of the others is that of replaying them one by one.

    A topic that is created and deleted within the delta leaves no trace. `of_log`: the records are those of a log,
    where a topic with the name of an existing one is a contradiction at once; a snapshot may remove the existing one at
    its end.
    Source: org.apache.kafka.image.TopicsDelta.
    """

    __slots__ = ("_alone", "_change", "_kept", "_over", "_rows", "_taken", "_widened", "image", "of_log")

    def __init__(self, image: TopicsImage, *, of_log: bool = False) -> None:
        self.image = image
        self.of_log = of_log
        self._kept: list[tuple[Any, int | None]] = []
        """Records that are not merged yet, with their offsets if known."""
        self._rows: RowChanges | None = None
        """The effect of the records in `_kept`, if they are few and simple and nothing was merged before."""
        self._over = image
        """The image whose rows `_change` begins with: another one than `image` if all its topics are created."""
        self._change: BulkChange | None = None
        self._alone: dict[Uuid, TopicImage] | None = {}
        """The topics that `_change` is of; None if it is of all."""
        self._taken: list[bytes] = []
        """The values that `_change` has replayed, unless it is of all topics."""
        self._widened = 0

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
        self._kept.append((record, offset))

    def take_all_of(self, topics: TopicsImage) -> None:
        """Change the empty image to `topics`; nothing else was replayed. Objects are made on access."""
        assert self.image.is_empty(), "only the empty image can become another one at once"
        assert self.is_untouched
        self._over, self._alone = (self.image, {}) if topics.is_empty() else (topics, None)

    def replay_remove_topic(self, record: RemoveTopicRecord) -> str:
        """Returns the name of the topic, to delete its configs; raises ReplayError at once if it does not exist."""
        self._merge()
        _, error, removed = self._replayed([record])
        if error is not None:
            raise error
        ((_, name),) = removed
        assert name is not None, "it is a RemoveTopicRecord"
        return name

    @property
    def is_untouched(self) -> bool:
        """Whether no record was replayed."""
        return not self._kept and self._over is self.image and (self._change is None or self._change.is_empty)

    def replay_bulk(
        self, data: Any, starts: Any, stops: Any, first: int, last: int, *, following: int = 0
    ) -> tuple[int, list[tuple[int, str | None]]]:
        """Replay many values at once: see `BulkChange.replay`."""
        self._merge()
        return self._of_all().replay(data, starts, stops, first, last, following=following)

    def replay_value(self, value: bytes) -> bool:
        """Replay the value of one of TOPIC_RECORDS; False, with no effect, if a record has to be replayed.

        That is so if it contradicts the state, or may name a topic that the change does not have yet.
        """
        if self._kept or not (self._alone is None or self._is_of_known_topic(value) or self.image.is_empty()):
            return False
        if self._alone is None or self._change is None:
            return self._of_all().replay_value(value)
        if not self._change.replay_value(value):
            return False
        self._taken.append(value)
        return True

    def _is_of_known_topic(self, value: bytes) -> bool:
        """Whether a value is of a partition whose topic the change has, or is new."""
        if self._change is None or self._alone is None or value[1] not in (PARTITION, CHANGE):
            return False
        topic_id = Uuid(value[7:23])
        return topic_id in self._alone or self.image.get_topic_by_id(topic_id) is None

    def merge(self) -> None:
        """Merge the kept records; ReplayError: see the class."""
        if self._kept and self._few() is None:
            self._merge()

    def _few(self) -> RowChanges | None:
        """The kept records as changes of rows, if they are few and all of them fit; else None."""
        rows, kept = self._rows, self._kept
        if rows is not None and rows.record_count == len(kept):
            return rows
        if not kept or len(kept) > row_changes.FEW or self._change is not None or self._over is not self.image:
            return None
        if rows is None:
            rows = self._rows = row_changes.RowChanges(self.image)
        while rows.record_count < len(kept):
            if not rows.add(kept[rows.record_count][0]):
                return None
        return rows

    def _merge(self) -> None:
        """Merge the kept records."""
        kept, self._kept, self._rows = self._kept, [], None
        if kept:
            done, error, _ = self._replayed([record for record, _ in kept])
            if error is not None:
                self._kept = kept[done + 1 :]
                record, offset = kept[done]
                raise ReplayError(f"{place_of(record, offset)}{error}", offset=offset) from error

    def _replayed(self, records: list[Any]) -> tuple[int, KraftlakeError | None, list[tuple[int, str | None]]]:
        """Replay records: how many, the error of the next one; and what `BulkChange.replay` passes on."""
        change = self._change_of(records)
        values, error = record_values.values_of(records)
        done, others = change.replay_values(values)
        if self._alone is not None:
            self._taken += values[:done]
        return done, record_fault.fault_of(change, records[done]) if done < len(values) else error, others

    def _change_of(self, records: list[Any]) -> BulkChange:
        """The change that takes records: of the topics that they name, and of those before, or of all."""
        if self._alone is None or (named := self._named_by(records)) is None:
            return self._of_all()
        if self._change is None or not named.keys() <= self._alone.keys():
            self._alone |= named
            self._widened += 1
            rows = sum(len(topic.partitions) for topic in self._alone.values()) + len(records)
            if self._widened > _WIDENED or rows * ALONE_BELOW > self.image.rows_held:
                return self._of_all()
            self._begin(bulk_change.BulkChange(packed_alone(self._alone.values())))
        assert self._change is not None, "it has begun"
        self._change.of_log = self.of_log
        return self._change

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

    def _of_all(self) -> BulkChange:
        """The change, made one of all topics."""
        if self._change is None or self._alone is not None:
            change = bulk_change.BulkChange(self._over.rows())
            if self._over is not self.image:
                change.begin_all_anew()
            self._begin(change)
            self._alone, self._taken = None, []
        assert self._change is not None, "it has begun"
        self._change.of_log = self.of_log
        return self._change

    def _begin(self, change: BulkChange) -> None:
        """Replay on more topics what was replayed on fewer."""
        if self._taken:
            done, _ = change.replay_values(self._taken)
            assert done == len(self._taken), "nothing of other topics contradicts them"
        self._change = change

    def _merged(self) -> BulkChange | None:
        """The change by all records; None if there are none."""
        self._merge()
        return self._of_all() if self._over is not self.image else self._change

    @property
    def changed_topics(self) -> dict[Uuid, TopicDelta]:
        """The changes by topic id."""
        change = self._merged()
        return {} if change is None else change.changed_rows().topic_deltas(self.image)

    @property
    def deleted_topic_ids(self) -> set[Uuid]:
        """The deleted topics of the base image."""
        change = self._merged()
        return set() if change is None else set(map(change.topic_id, change.deleted()))

    @property
    def created_topic_ids(self) -> frozenset[Uuid]:
        """The topics that a TopicRecord of this delta created and that still exist."""
        change = self._merged()
        return frozenset() if change is None else frozenset(map(change.topic_id, change.created()))

    def changed_topic(self, topic_id: Uuid) -> TopicDelta | None:
        """The changes of one topic."""
        return self.changed_topics.get(topic_id)

    def topic_was_deleted(self, name: str) -> bool:
        """Whether the topic that had the name in the base image was deleted."""
        topic = self.image.get_topic(name)
        return topic is not None and topic.id in self.deleted_topic_ids

    def finish_snapshot(self) -> None:
        """Delete the topics that the snapshot lacks."""
        self._merge()
        if not self.image.is_empty():
            self._of_all().finish_snapshot()

    def apply(self) -> TopicsImage:
        """The image after the changes; the same object if there are none.

        ReplayError if two topics share a name, or for a record: see the class.
        """
        rows = self._few()
        if rows is not None:
            return rows.apply()
        self._merge()
        change = self._change
        packed = None if change is None else change.apply()
        if change is None or packed is None or packed is change.packed:
            return self._over
        return TopicsImage.with_rows(packed) if self._alone is None else self._overlaid(packed)

    def _overlaid(self, packed: PackedTopics) -> TopicsImage:
        """The image with the topics that changed, of some that were changed alone."""
        change, alone = self._change, self._alone
        assert change is not None, "there is a change"
        assert alone is not None, "it is of some topics"
        changed = {}
        for number in range(packed.table.topic_count):
            partitions = PackedPartitions(packed, number, None)
            made = TopicImage(name=packed.table.name_of(number), id=packed.table.id_of(number), partitions=partitions)
            old = alone.get(made.id)
            changed[made.id] = old if old is not None and old == made else made
        deleted = map(change.topic_id, change.deleted())
        return self.image.changed({topic_id: alone[topic_id] for topic_id in deleted}, changed)

    def as_bulk(self) -> BulkChange | None:
        """The merged change, if it is of all topics."""
        change = self._merged()
        return change if self._alone is None else None

    def local_changes(self, broker_id: int) -> LocalReplicaChanges:
        """The local changes of a broker; equal to Kafka's `TopicsDelta.localChanges` in every case.

        Only the base image and the end of the delta count; of records in between, only that they wrote directories (see
        `TopicDelta`). Replicas of deleted topics are deletes, even if a topic of the same name was created again.
        """
        rows = self._few()
        if rows is not None:
            return rows.local_changes(broker_id)
        change = self._merged()
        if change is None:
            return changed_partition.local_changes_of(broker_id, ())
        if self._alone is not None or max(change.place_count, change.packed.partition_count) < PACK_FROM:
            return changed_partition.local_changes_of(broker_id, change.changed_rows().partitions())
        from kraftlake.delta.topics.bulk_local_changes import bulk_local_changes

        return bulk_local_changes(change, broker_id)
