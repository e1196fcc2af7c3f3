"""The state of all partitions as arrays that records move on, by places that never change. Imports numpy and numba."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from kraftlake.delta.noting_change import NotingChange
from kraftlake.image.packed_topics import PackedTopics
from kraftlake.image.partition_rows import ROW_BYTES
from kraftlake.image.topic_table import TopicTable
from kraftlake.image.topics_image import TopicsImage
from kraftlake.kernels.partition_journal import heap_size, move_lists

_WORN_BYTES = 1 << 26


class PartitionPlaces:
    """`rows` (int32[places, 14]) has the partition at each place of `change`, where `there` (bool) says that it is.

    `names`, `ids` and `directories` are the strings of topics and directories by number, once `learn` was called.
    """

    def __init__(self, topics: TopicsImage) -> None:
        """Begin with the partitions of an image, whose places are the image's rows."""
        packed = topics.rows().merged()
        self.change = NotingChange(packed)
        self.rows = packed.rows.copy()
        self.there = np.ones(len(self.rows), np.bool_)
        self.names: list[str] = []
        self.ids: list[str] = []
        self.directories = pa.array([], pa.string())

    @property
    def is_worn(self) -> bool:
        """Whether much of the memory is taken by what is gone: lists of former states, places of removed partitions."""
        lists = self.change.state.heap.nbytes > max(_WORN_BYTES, self.change.base.heap.nbytes)
        there = int(np.count_nonzero(self.there))
        return lists or self.change.place_count * ROW_BYTES > _WORN_BYTES + 2 * there * ROW_BYTES

    def make_room(self) -> None:
        """Room for the places that have come."""
        places = self.change.place_count
        if places > len(self.there):
            size = places + places // 2
            self.rows, self.there = _grown(self.rows, size), _grown(self.there, size)

    def learn(self) -> None:
        """Bring the strings of topics and directories up to date."""
        change, known = self.change, len(self.names)
        if known < change.topic_total:
            self.names = [*change.packed.table.names, *change.new_names]
            self.ids += [str(change.topic_id(number)) for number in range(known, len(self.names))]
        if len(self.directories) < change.directory_total:
            self.directories = pa.array(map(str, change.directory_ids()), pa.string())

    def topics(self, topics: Any) -> TopicsImage:
        """The topics with these numbers (ascending), with the partitions that are there, as an image of its own."""
        change = self.change
        places = np.flatnonzero(self.there)
        topic_of = np.searchsorted(topics, change.topics_at(places)).astype(np.int64)
        partitions = change.partitions_at(places)
        order = np.lexsort((partitions, topic_of))
        places, topic_of, partitions = places[order], topic_of[order], partitions[order]
        starts = np.zeros(len(topics) + 1, np.int32)
        np.cumsum(np.bincount(topic_of, minlength=len(topics)), out=starts[1:])
        odd = np.unique(topic_of[partitions != np.arange(len(partitions)) - starts[topic_of]])
        sparse = {topic: tuple(partitions[starts[topic] : starts[topic + 1]].tolist()) for topic in odd.tolist()}
        rows, lists = np.ascontiguousarray(self.rows[places]), change.heap()
        heap = np.empty(heap_size(rows, lists), np.int32)
        move_lists(rows, lists, heap)
        known = [*change.packed.table.names, *change.new_names]
        ids = np.frombuffer(b"".join(map(change.topic_id, topics.tolist())), np.uint8).reshape(-1, 16).copy()
        table = TopicTable([known[topic] for topic in topics.tolist()], ids, starts, sparse)
        return TopicsImage.with_rows(
            PackedTopics(table=table, rows=rows, heap=heap, directories=change.directory_ids())
        )


def _grown(array: Any, size: int) -> Any:
    grown = np.zeros((size, *array.shape[1:]), array.dtype)
    grown[: len(array)] = array
    return grown
