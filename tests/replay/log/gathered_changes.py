"""Changes of partitions, collected one by one, as columns."""

from __future__ import annotations

from typing import TypeAlias

import attrs
import numpy as np

from kraftlake.image.topics.partition_registration import PartitionRegistration
from kraftlake.image.topics.partition_rows import RowWriter
from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.kernels.partition_row import COLUMNS
from kraftlake.records.uuid import Uuid
from kraftlake.replay.log.partition_changes import HAD, HAS, WRITTEN, Heaps, Names, PartitionChanges

Key: TypeAlias = tuple[Uuid, int]
"""A topic's id and a partition's number."""


_NO_ROW = (0,) * COLUMNS


@attrs.define
class Touched:
    """A partition that records have named: what it was before, and what else they did."""

    topic: str
    before: PartitionRegistration | None
    written: bool = False
    unclean: int = 0
    eligible: int = 0


class GatheredChanges:
    """Changes of partitions, collected one by one; `changes` gives them as columns."""

    def __init__(self) -> None:
        self.created: list[tuple[int, int]] = []
        """Deltas and topics, by number."""
        self.removed: list[tuple[int, int, int]] = []
        """Deltas, topics and records, by number."""
        self._writer = RowWriter((Uuid.ZERO,), 0)
        self._before: list[tuple[int, ...]] = []
        self._after: list[tuple[int, ...]] = []
        self._numbers: list[tuple[int, ...]] = []
        self._places: dict[Key, int] = {}
        self._topics: dict[Uuid, tuple[int, str]] = {}

    def mark(self) -> tuple[int, int, int]:
        """How much there is now, for `go_back`."""
        return len(self._numbers), len(self.created), len(self.removed)

    def go_back(self, mark: tuple[int, int, int]) -> None:
        """Drop what was added since."""
        changes, created, removed = mark
        for of_changes in (self._numbers, self._before, self._after):
            del of_changes[changes:]
        del self.created[created:], self.removed[removed:]

    def topic(self, topic_id: Uuid, name: str) -> int:
        """The number of a topic."""
        return self._topics.setdefault(topic_id, (len(self._topics), name))[0]

    def add(self, key: Key, touched: Touched, after: PartitionRegistration | None, at: tuple[int, ...]) -> None:
        """Add a change; `at` are its offset, time and delta, and since which offset and time the state before was."""
        before = touched.before
        self._before.append(_NO_ROW if before is None else self._writer.row(before))
        self._after.append(_NO_ROW if after is None else self._writer.row(after))
        flags = (before is not None) * HAD | (after is not None) * HAS | touched.written * WRITTEN
        altered = before is None or after is None or before != after
        place = self._places.setdefault(key, len(self._places))
        of = (place, self.topic(key[0], touched.topic), key[1])
        self._numbers.append((*at, *of, flags, altered, touched.unclean, touched.eligible))

    def changes(self, topics: TopicsImage) -> PartitionChanges:
        """All of them; `topics` is the image after the last."""
        numbers = np.array(self._numbers, np.int64).reshape(-1, 12).T.copy()
        offsets, times, deltas, since, since_times, places, of_topics, partitions, flags, altered, unclean, eligible = (
            numbers
        )
        images = [topics.get_topic_by_id(topic_id) for topic_id in self._topics]
        names = [name for _, name in self._topics.values()]
        writer = self._writer
        return PartitionChanges(
            offsets=offsets,
            times=times,
            deltas=deltas,
            partitions=partitions.astype(np.int32),
            topics=of_topics.astype(np.int32),
            places=places,
            before=np.array(self._before, np.int32).reshape(-1, COLUMNS),
            after=np.array(self._after, np.int32).reshape(-1, COLUMNS),
            flags=flags.astype(np.uint8),
            altered=altered.astype(np.bool_),
            since=since,
            since_times=since_times,
            unclean=unclean,
            eligible=eligible,
            created=np.array(self.created, np.int64).reshape(-1, 2),
            removed=np.array(self.removed, np.int64).reshape(-1, 3),
            sizes=np.array([0 if topic is None else len(topic.partitions) for topic in images], np.int64),
            names=Names.of(names, [str(topic_id) for topic_id in self._topics], writer.directories),
            heaps=Heaps(np.array(writer.heap, np.int32), np.empty(0, np.int32)),
            repeated=len(numbers[0]) > 0,
        )
