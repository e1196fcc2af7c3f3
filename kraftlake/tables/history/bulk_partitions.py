"""The states of all partitions as arrays, and what records make of them: nothing is done a record in Python.

Imports numpy and numba.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from kraftlake.delta.topics.journaled_change import JournaledChange, RowVersions
from kraftlake.image.topics.packed_topics import PackedTopics
from kraftlake.image.topics.partition_registration import PartitionRegistration
from kraftlake.image.topics.partition_rows import registration_of
from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.kernels.columns.partition_intervals import NOT_OPEN, end_intervals
from kraftlake.kernels.replay.partition_journal import heap_size, move_lists
from kraftlake.records.metadata_records import PartitionRecord
from kraftlake.records.uuid import Uuid
from kraftlake.tables.changes.effective_records import EffectiveRecords
from kraftlake.tables.changes.places import PlaceStrings, grown, is_worn
from kraftlake.tables.history.columns import ENCODED_STATES, STILL_SO
from kraftlake.tables.history.packed_states import GatheredStates, InColumns, States
from kraftlake.tables.lazy_table import LazyTable


class _Notes(NamedTuple):
    """What compiled code takes of `RowVersions`."""

    places: Any
    rows: Any
    removed: Any


class _Now(NamedTuple):
    """What is open, by place."""

    rows: Any
    begins: Any
    begin_times: Any


class BulkPartitions:
    """The open state of each partition: `since` (int64) has the offset and `since_times` the time of its begin.

    All arrays are by place: see `JournaledChange`. A place that is not open has the offset -1.
    """

    def __init__(self, topics: TopicsImage, since: Any, since_times: Any) -> None:
        """Begin with the partitions of an image, open since some offsets, in the order of the image's rows."""
        packed = topics.rows().merged()
        self._change = JournaledChange(packed)
        self._rows = packed.rows.copy()
        self._since = np.array(since, np.int64)
        self._since_times = np.array(since_times, np.int64)
        assert len(self._since) == len(self._since_times) == len(self._rows), "an offset and a time for each partition"
        self._ended = GatheredStates()
        self._strings = PlaceStrings(self._change)

    @property
    def open_count(self) -> int:
        """How many partitions there are."""
        return int(np.count_nonzero(self._since != NOT_OPEN))

    @property
    def is_worn(self) -> bool:
        """Whether much of the memory is taken by what is gone: lists of ended states, places of removed partitions."""
        return is_worn(self._change, self.open_count)

    def renewed(self) -> BulkPartitions:
        """The same, without what is gone; this one takes nothing any more."""
        places = np.flatnonzero(self._since != NOT_OPEN)
        topics, partitions = self._change.topics_at(places), self._change.partitions_at(places)
        numbers, which = np.unique(topics, return_inverse=True)
        ids = [self._change.topic_id(number) for number in numbers.tolist()]
        packed = self._change.apply()
        table = packed.table
        number_of = np.array([table.by_id[topic_id] for topic_id in ids], np.int64)[which.reshape(-1)]
        rows_of = table.starts[number_of] + partitions
        for number, known in table.sparse.items():
            mine = number_of == number
            rows_of[mine] = table.starts[number] + np.searchsorted(np.array(known), partitions[mine])
        assert len(rows_of) == packed.partition_count, "every partition that is there is open"
        rows = packed.merged_rows().copy()
        heap = np.empty(heap_size(rows, packed.heap), np.int32)
        move_lists(rows, packed.heap, heap)
        since, times = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
        since[rows_of], times[rows_of] = self._since[places], self._since_times[places]
        topics_now = PackedTopics(table=table, rows=rows, heap=heap, directories=packed.directories)
        return BulkPartitions(TopicsImage.with_rows(topics_now), since, times)

    def take(self, records: EffectiveRecords) -> int:
        """Replay records of topics, as far as that goes: up to the first that is for objects to do, whose number it is.

        The states that ended are kept for `ended`.
        """
        stop, notes = self._change.replay_journaled(records.data, records.starts, records.stops)
        self._make_room()
        self._end_intervals(notes, records)
        return stop

    def ended(self) -> LazyTable:
        """The states that ended since the last call, sorted by where they began: ENCODED_STATES."""
        states, tables = self._ended.take(), self._in_columns().tables
        return LazyTable.in_parts(lambda: tables(states), ENCODED_STATES, len(states.places))

    def open_tables(self) -> Iterator[pa.Table]:
        """The open states, sorted by where they began, in tables of ROW_GROUP_ROWS at most: ENCODED_STATES."""
        places = np.flatnonzero(self._since != NOT_OPEN)
        still = np.full(len(places), STILL_SO, np.int64)
        return self._in_columns().tables(
            States(places, self._rows[places], self._since[places], self._since_times[places], still, still)
        )

    def topics(self) -> TopicsImage:
        """The topics as an image; nothing may be taken after that."""
        return TopicsImage.with_rows(self._change.apply())

    def open_states(self) -> dict[tuple[Uuid, int], tuple[str, PartitionRegistration, int, int]]:
        """The open states as objects: by topic id and partition the topic's name, the state, offset and time."""
        self._strings.learn()
        names = self._strings.names.to_pylist()
        heap, directories = self._change.heap(), self._change.directory_ids()
        places = np.flatnonzero(self._since != NOT_OPEN)
        topics, partitions = self._change.topics_at(places), self._change.partitions_at(places)
        found = {}
        for place, topic, partition in zip(places.tolist(), topics.tolist(), partitions.tolist(), strict=True):
            state = registration_of(tuple(self._rows[place].tolist()), heap, directories)
            key = (self._change.topic_id(topic), partition)
            since, time = int(self._since[place]), int(self._since_times[place])
            found[key] = (names[topic], state, since, time)
        return found

    def _make_room(self) -> None:
        places = self._change.place_count
        if places > len(self._since):
            size = places + places // 2
            self._rows = grown(self._rows, size, 0)
            self._since = grown(self._since, size, NOT_OPEN)
            self._since_times = grown(self._since_times, size, NOT_OPEN)

    def _end_intervals(self, notes: RowVersions, records: EffectiveRecords) -> None:
        """End the states that the notes change, and begin what they change them to."""
        numbers = notes.records
        told = _Notes(notes.places, notes.rows, notes.removed)
        if (np.diff(records.effective[numbers]) <= 0).any():
            last = _last_of_each(notes.places, records.effective[numbers])
            numbers, told = numbers[last], _Notes(*(array[last] for array in told))
        told = _Notes(told.places, np.ascontiguousarray(told.rows), told.removed.view(np.uint8))
        change = self._change
        count = end_intervals(
            told,
            records.effective[numbers],
            records.times[numbers],
            (records.kinds[numbers] == PartitionRecord.API_KEY).view(np.uint8),
            change.base.heap,
            change.state.heap,
            _Now(self._rows, self._since, self._since_times),
            self._ended.room(len(numbers)),
        )
        self._ended.keep(count)

    def _in_columns(self) -> InColumns:
        """What makes rows of the states up to here."""
        strings, change = self._strings, self._change
        strings.learn()
        return InColumns(
            origins=change.origins,
            heaps=(change.base.heap, change.state.heap),
            names=strings.names,
            ids=strings.ids,
            directories=strings.directories,
        )


def _last_of_each(places: Any, offsets: Any) -> Any:
    """The places, in order, of the last note of each partition at each offset: it says what is so from there on."""
    order = np.argsort(places, kind="stable")
    last = np.ones(len(order), np.bool_)
    last[:-1] = (places[order][1:] != places[order][:-1]) | (offsets[order][1:] != offsets[order][:-1])
    return np.sort(order[last])
