"""The partitions that a change has changed, as rows before and after it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

from kraftlake.delta.topics.bulk_topics import BulkTopics
from kraftlake.delta.topics.changed_partition import ChangedPartition
from kraftlake.delta.topics.topic_delta import TopicDelta
from kraftlake.image.topics.buffers import flat, room
from kraftlake.image.topics.partition_registration import PartitionRegistration
from kraftlake.image.topics.partition_rows import ROW, ROW_BYTES, registration_of
from kraftlake.image.topics.topic_image import TopicImage
from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.kernels import compiled
from kraftlake.kernels.columns import change_buffers
from kraftlake.kernels.columns.change_buffers import HAD, HAS, WRITTEN
from kraftlake.kernels.partition_row import COLUMNS
from kraftlake.records.uuid import Uuid


class ChangedRows:
    """The partitions that records have changed and that are there, then those of removed topics.

    `columns` has their topics' numbers, their ids, rows and flags: see the kernel.
    """

    def __init__(self, change: BulkTopics) -> None:
        self._change = change
        self._deltas: dict[Uuid, TopicDelta] | None = None
        most, packed = compiled.most_changed(*change.buffers), change.packed
        rows = [room("i", most, COLUMNS), room("i", most, COLUMNS)]
        columns = (room("i", most), room("i", most), *rows, room("B", most), room("i", most, 2))
        found = compiled.ChangedRows(*columns)
        count = compiled.changed_rows(*change.buffers, packed.patched, packed.patches, found)
        self.columns = change_buffers.ChangedRows._make(column[:count] for column in columns)

    def __len__(self) -> int:
        return len(self.columns.flags)

    @cached_property
    def _lists(self) -> tuple[Any, tuple[Uuid, ...]]:
        return self._change.heap(), self._change.directory_ids()

    def before(self, at: int) -> PartitionRegistration | None:
        """The state of a partition in the base; None if it is new."""
        return self._state(self.columns.before, at) if self.columns.flags[at] & HAD else None

    def after(self, at: int) -> PartitionRegistration | None:
        """The current state of a partition; None if its topic was removed."""
        return self._state(self.columns.after, at) if self.columns.flags[at] & HAS else None

    def _state(self, rows: Any, at: int) -> PartitionRegistration:
        return registration_of(ROW.unpack_from(flat(rows), at * ROW_BYTES), *self._lists)

    def partitions(self) -> Iterator[ChangedPartition]:
        """The partitions as objects: those of created topics first, those of removed ones last."""
        topics, partitions, _, _, flags, _ = self.columns
        created = set(self._change.created())
        for at in sorted(range(len(self)), key=lambda at: (not flags[at] & HAS, topics[at] not in created)):
            name, topic_id = self._change.topic_name(topics[at]), self._change.topic_id(topics[at])
            written = bool(flags[at] & WRITTEN)
            yield name, topic_id, partitions[at], self.before(at), self.after(at), written

    def topic_deltas(self, image: TopicsImage) -> dict[Uuid, TopicDelta]:
        """The changes of an image's topics by id, created topics first; made once."""
        if self._deltas is None:
            change = self._change
            created = [TopicImage(name=change.topic_name(one), id=change.topic_id(one)) for one in change.created()]
            self._deltas = {topic.id: TopicDelta(topic) for topic in created}
            self._add_to(self._deltas, image)
        return self._deltas

    def _add_to(self, deltas: dict[Uuid, TopicDelta], image: TopicsImage) -> None:
        """Add the partitions that are there to the changes of their topics."""
        topics, partitions, _, _, _, elections = self.columns
        for at in range(len(self)):
            state = self.after(at)
            if state is None:
                continue
            topic_id = self._change.topic_id(topics[at])
            if topic_id not in deltas:
                before = image.get_topic_by_id(topic_id)
                assert before is not None, "the image has the topic"
                deltas[topic_id] = TopicDelta(before)
            delta, partition = deltas[topic_id], partitions[at]
            delta.partition_changes[partition] = state
            for counts, count in ((delta.unclean_elections, elections[at, 0]), (delta.elr_elections, elections[at, 1])):
                if count:
                    counts[partition] = count
