"""Changes of topics and their partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kraftlake.delta.faults import place_of
from kraftlake.delta.topics.widening_change import WideningChange
from kraftlake.image.short_repr import counted
from kraftlake.image.topics.topics_image import PACK_FROM, TopicsImage
from kraftlake.kernels.record_types import TOPIC
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
    from kraftlake.delta.topics import changed_partition, row_changes
    from kraftlake.delta.topics.bulk_change import BulkChange
    from kraftlake.delta.topics.local_replica_changes import LocalReplicaChanges
    from kraftlake.delta.topics.row_changes import RowChanges
    from kraftlake.delta.topics.topic_delta import TopicDelta
else:  # an image from columns needs none of them
    changed_partition = LazyModule("kraftlake.delta.topics.changed_partition")
    row_changes = LazyModule("kraftlake.delta.topics.row_changes")

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

    __slots__ = ("_change", "_kept", "_rows", "image", "of_log")

    def __init__(self, image: TopicsImage, *, of_log: bool = False) -> None:
        self.image = image
        self.of_log = of_log
        self._kept: list[tuple[Any, int | None]] = []
        """Records that are not merged yet, with their offsets if known."""
        self._rows: RowChanges | None = None
        """The effect of the records in `_kept`, if they are few and simple and nothing was merged before."""
        self._change: WideningChange | None = None
        """The effect of the records that were merged."""

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
        if not topics.is_empty():
            self._change = WideningChange(self.image, topics)

    def replay_remove_topic(self, record: RemoveTopicRecord) -> str:
        """Returns the name of the topic, to delete its configs; raises ReplayError at once if it does not exist."""
        self._merge()
        _, error, removed = self._merged().replay([record])
        if error is not None:
            raise error
        ((_, name),) = removed
        assert name is not None, "it is a RemoveTopicRecord"
        return name

    @property
    def is_untouched(self) -> bool:
        """Whether no record was replayed."""
        return not self._kept and (self._change is None or self._change.is_empty)

    def replay_bulk(
        self, data: Any, starts: Any, stops: Any, first: int, last: int, *, following: int = 0
    ) -> tuple[int, list[tuple[int, str | None]]]:
        """Replay many values at once: see `BulkChange.replay`."""
        self._merge()
        return self._merged().of_all().replay(data, starts, stops, first, last, following=following)

    def replay_value(self, value: bytes) -> bool:
        """Replay the value of one of TOPIC_RECORDS; False, with no effect, if a record has to be replayed.

        That is so if it contradicts the state, or may name a topic that the change does not have yet.
        """
        if self._kept or (self._change is None and value[1] != TOPIC and not self.image.is_empty()):
            return False
        return self._merged().replay_value(value)

    def merge(self) -> None:
        """Merge the kept records; ReplayError: see the class."""
        if self._kept and self._few() is None:
            self._merge()

    def _few(self) -> RowChanges | None:
        """The kept records as changes of rows, if they are few and all of them fit; else None."""
        rows = self._rows
        if rows is None:
            if not self._kept or self._change is not None:
                return None
            rows = self._rows = row_changes.RowChanges(self.image)
        return rows if rows.replay(self._kept) else None

    def _merge(self) -> None:
        """Merge the kept records."""
        kept, self._kept, self._rows = self._kept, [], None
        if kept:
            done, error, _ = self._merged().replay([record for record, _ in kept])
            if error is not None:
                self._kept = kept[done + 1 :]
                record, offset = kept[done]
                raise ReplayError(f"{place_of(record, offset)}{error}", offset=offset) from error

    def _merged(self) -> WideningChange:
        """The effect of the merged records, for others to follow."""
        change = self._change
        if change is None:
            change = self._change = WideningChange(self.image)
        change.of_log = self.of_log
        return change

    @property
    def change(self) -> BulkChange | None:
        """The change of rows by all records, of some topics or of all; None if there are none."""
        self._merge()
        return None if self._change is None else self._change.begun

    @property
    def changed_topics(self) -> dict[Uuid, TopicDelta]:
        """The changes by topic id."""
        change = self.change
        return {} if change is None else change.changed_rows().topic_deltas(self.image)

    @property
    def deleted_topic_ids(self) -> set[Uuid]:
        """The deleted topics of the base image."""
        change = self.change
        return set() if change is None else set(map(change.topic_id, change.deleted()))

    @property
    def created_topic_ids(self) -> frozenset[Uuid]:
        """The topics that a TopicRecord of this delta created and that still exist."""
        change = self.change
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
            self._merged().of_all().finish_snapshot()

    def apply(self) -> TopicsImage:
        """The image after the changes; the same object if there are none.

        ReplayError if two topics share a name, or for a record: see the class.
        """
        rows = self._few()
        if rows is not None:
            return rows.apply()
        self._merge()
        return self.image if self._change is None else self._change.apply()

    def local_changes(self, broker_id: int) -> LocalReplicaChanges:
        """The local changes of a broker; equal to Kafka's `TopicsDelta.localChanges` in every case.

        Only the base image and the end of the delta count; of records in between, only that they wrote directories (see
        `TopicDelta`). Replicas of deleted topics are deletes, even if a topic of the same name was created again.
        """
        rows = self._few()
        if rows is not None:
            return rows.local_changes(broker_id)
        change = self.change
        if change is None:
            return changed_partition.local_changes_of(broker_id, ())
        if max(change.place_count, change.packed.partition_count) < PACK_FROM:
            return changed_partition.local_changes_of(broker_id, change.changed_rows().partitions())
        from kraftlake.delta.topics.bulk_local_changes import bulk_local_changes

        return bulk_local_changes(change, broker_id)
