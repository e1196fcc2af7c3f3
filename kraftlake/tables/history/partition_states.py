"""The states that the partitions of a cluster went through: a pure function of records and of what was before them.

Most records go through compiled code, as columns; what is odd about a record makes the rest of its piece go by objects.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from kraftlake import kernels
from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.records.metadata_records import (
    ClearElrRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from kraftlake.tables.changes.effective_records import EffectiveRecords
from kraftlake.tables.history.columns import ENCODED_STATES, PARTITION_SCHEMA
from kraftlake.tables.history.object_partitions import Key, ObjectPartitions, OpenState
from kraftlake.tables.lazy_table import LazyTable

if TYPE_CHECKING:
    from kraftlake.tables.history.bulk_partitions import BulkPartitions

TOPIC_KINDS: Final = tuple(
    cls.API_KEY for cls in (TopicRecord, PartitionRecord, PartitionChangeRecord, RemoveTopicRecord, ClearElrRecord)
)
"""The api keys of the records that make states of partitions."""

BULK_FROM: Final = 1000
"""From how many records, or partitions, on columns are worth it."""


def in_columns(count: int, wanted: bool | None) -> bool:
    """Whether to use compiled code for so many: what is `wanted`, None where nobody says so."""
    return kernels.pays(count, BULK_FROM) if wanted is None else wanted


class PartitionStates:
    """The open states of partitions; `take` moves them on, `ended` gives those that ended. Rows are ENCODED_STATES.

    What comes out depends on the records alone, not on how they are cut into pieces; records that take effect at one
    offset belong into one piece.
    """

    def __init__(self, *, bulk: bool | None = None) -> None:
        """Begin with nothing; `bulk` says whether to use compiled code, None: where there is enough to do for it."""
        self._bulk_wanted = bulk
        self._bulk: BulkPartitions | None = None
        self._objects: ObjectPartitions | None = ObjectPartitions(TopicsImage.EMPTY, {})
        self._ended: list[LazyTable] = []

    def begin(self, topics: TopicsImage, since: Any, since_times: Any) -> None:
        """Begin with the partitions of an image: each is what it is since an offset and a time.

        `since` and `since_times` (epoch ms, -1 for none) are int64 arrays in the order of `topics.rows()`, or one
        number for all of them.
        """
        import numpy as np

        from kraftlake.image.topics.packed_topics import PackedTopics

        packed: PackedTopics = topics.rows().merged()
        since = np.broadcast_to(np.asarray(since, np.int64), (packed.partition_count,))
        since_times = np.broadcast_to(np.asarray(since_times, np.int64), (packed.partition_count,))
        image = TopicsImage.with_rows(packed)
        if in_columns(packed.partition_count, self._bulk_wanted):
            self._bulk, self._objects = _bulk_partitions(image, since, since_times), None
            return
        open_: dict[Key, OpenState] = {}
        for number, name in enumerate(packed.table.names):
            first, topic_id = int(packed.table.starts[number]), packed.table.id_of(number)
            last = int(packed.table.starts[number + 1])
            ids = packed.table.sparse.get(number, range(last - first))
            for row, partition in zip(range(first, last), ids, strict=True):
                state = OpenState(name, packed.registration(row), int(since[row]), int(since_times[row]))
                open_[topic_id, partition] = state
        self._bulk, self._objects = None, ObjectPartitions(image, open_)

    def take(self, records: EffectiveRecords) -> None:
        """Replay records that follow those before.

        Records of other kinds than `TOPIC_KINDS` are left out. Raises ReplayError or CorruptDataError, naming the
        offset, for a record that contradicts what is there.
        """
        records = records.of_kinds(TOPIC_KINDS)
        if self._bulk is not None and self._bulk.is_worn:
            self._ended.append(self._bulk.ended())
            self._bulk = self._bulk.renewed()
        if self._bulk is None and in_columns(len(records), self._bulk_wanted):
            self._become_bulk()
        if self._bulk is None:
            self._take_as_objects(records)
            return
        stop = self._bulk.take(records)
        if stop < len(records):
            import numpy as np

            self._become_objects()
            self._take_as_objects(records.where(np.s_[stop:]))

    def ended(self) -> LazyTable:
        """The states that ended since the last call, as rows of `partition_history/`; other threads may make them."""
        parts, self._ended = self._ended, []
        if self._bulk is not None:
            parts.append(self._bulk.ended())
        if len(parts) == 1:
            return parts[0]
        return LazyTable.in_parts(
            lambda: chain.from_iterable(part.tables() for part in parts),
            ENCODED_STATES,
            sum(part.num_rows for part in parts),
        )

    def open_tables(self) -> Iterator[pa.Table]:
        """The states that go on, as rows of `partition_history/`, a bounded number of them in each table."""
        if self._bulk is not None:
            return self._bulk.open_tables()
        assert self._objects is not None, "one of the two is there"
        return iter([self._objects.open_table().cast(ENCODED_STATES)])

    @property
    def open_count(self) -> int:
        """How many partitions there are."""
        if self._bulk is not None:
            return self._bulk.open_count
        return len(self._objects.open) if self._objects is not None else 0

    def _take_as_objects(self, records: EffectiveRecords) -> None:
        assert self._objects is not None, "one of the two is there"
        ended = self._objects.take(records)
        if ended.num_rows:
            self._ended.append(LazyTable.of(ended.sort_by("valid_from_offset").cast(ENCODED_STATES)))

    def _become_objects(self) -> None:
        bulk = self._bulk
        assert bulk is not None
        self._ended.append(bulk.ended())
        open_ = {key: OpenState(*state) for key, state in bulk.open_states().items()}
        self._bulk, self._objects = None, ObjectPartitions(bulk.topics(), open_)

    def _become_bulk(self) -> None:
        import numpy as np

        assert self._objects is not None
        topics, open_ = self._objects.topics(), self._objects.open
        packed = topics.rows().merged()
        keys = [
            (packed.table.id_of(number), partition)
            for number in range(packed.table.topic_count)
            for partition in packed.table.sparse.get(
                number, range(int(packed.table.starts[number + 1] - packed.table.starts[number]))
            )
        ]
        since = np.array([open_[key].since for key in keys], np.int64)
        since_times = np.array([open_[key].since_time for key in keys], np.int64)
        self._bulk, self._objects = _bulk_partitions(TopicsImage.with_rows(packed), since, since_times), None


def _bulk_partitions(topics: TopicsImage, since: Any, since_times: Any) -> BulkPartitions:
    from kraftlake.tables.history.bulk_partitions import BulkPartitions  # imports numba

    return BulkPartitions(topics, since, since_times)


def partition_states(events: EffectiveRecords, before: PartitionStates | None = None) -> pa.Table:
    """Every state that begins or goes on with `events`: rows of `partition_history/`, ended ones and those that go on.

    `before` is what was before them, nothing where it is None; it is moved on. See `PartitionStates.take`.
    """
    states = before or PartitionStates()
    states.take(events)
    return pa.concat_tables([states.ended().table(), *states.open_tables()]).cast(PARTITION_SCHEMA)
