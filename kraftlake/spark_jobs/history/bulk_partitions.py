"""The states of all partitions as arrays, and what records make of them: nothing is done a record in Python.

Imports numpy and numba.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import attrs
import numpy as np
import pyarrow as pa

from kraftlake.delta.noting_change import Notes, NotingChange
from kraftlake.image.packed_topics import PackedTopics
from kraftlake.image.partition_registration import PartitionRegistration
from kraftlake.image.partition_rows import (
    COLUMNS,
    LEADER,
    LEADER_EPOCH,
    PARTITION_EPOCH,
    RECOVERY,
    registration_of,
)
from kraftlake.image.topics_image import TopicsImage
from kraftlake.kernels.partition_intervals import NOT_OPEN, end_intervals
from kraftlake.kernels.partition_journal import heap_size, move_lists
from kraftlake.records.metadata_records import PartitionRecord
from kraftlake.records.uuid import Uuid
from kraftlake.spark_jobs.history.columns import ENCODED_STATES, ROW_GROUP_ROWS, STILL_SO, times_of
from kraftlake.spark_jobs.history.effective_records import EffectiveRecords
from kraftlake.spark_jobs.later_rows import LaterRows
from kraftlake.spark_jobs.places import PlaceStrings, grown, is_worn
from kraftlake.spark_jobs.row_lists import LISTS, RowLists


class _States(NamedTuple):
    """States by place, with their rows and the offsets and times (int64) at which they begin and end."""

    places: Any
    rows: Any
    begins: Any
    begin_times: Any
    ends: Any
    end_times: Any

    @classmethod
    def room(cls, size: int) -> _States:
        """Room for so many."""
        return cls(np.empty(size, np.int64), np.empty((size, COLUMNS), np.int32), *np.empty((4, size), np.int64))

    def at(self, chosen: Any) -> _States:
        """Those at places that an array of indices, or a slice, names."""
        return _States(*(array[chosen] for array in self))

    @staticmethod
    def joined(parts: Sequence[_States]) -> _States:
        """All of some, one after the other; one of them at least."""
        return parts[0] if len(parts) == 1 else _States(*map(np.concatenate, zip(*parts, strict=True)))


class _Notes(NamedTuple):
    """What compiled code takes of `Notes`."""

    places: Any
    rows: Any
    removed: Any


class _Now(NamedTuple):
    """What is open, by place."""

    rows: Any
    begins: Any
    begin_times: Any


@attrs.frozen(kw_only=True, eq=False)
class _InColumns:
    """Makes rows of states, on any thread: places and lists of former states stay what they are while others follow."""

    change: NotingChange
    heaps: tuple[Any, Any]
    names: pa.Array
    ids: pa.Array
    directories: pa.Array

    def tables(self, states: _States) -> Iterator[pa.Table]:
        """States sorted by where they begin, as rows: each table one row group of a file, with dictionaries of its own.

        Whoever looks for what was so at an offset passes over all row groups that begin behind it.
        """
        order = np.argsort(states.begins, kind="stable")
        for start in range(0, len(order), ROW_GROUP_ROWS):
            yield self._table(states.at(order[start : start + ROW_GROUP_ROWS]))

    def _table(self, states: _States) -> pa.Table:
        rows = states.rows
        topics = self.change.topics_at(states.places)
        used = np.zeros(len(self.names), np.bool_)
        used[topics] = True
        number_of = np.cumsum(used, dtype=np.int32) - np.int32(1)
        numbers, topic = pa.array(np.flatnonzero(used)), pa.array(number_of[topics])
        columns = {
            "topic": pa.DictionaryArray.from_arrays(topic, self.names.take(numbers)),
            "topic_id": pa.DictionaryArray.from_arrays(topic, self.ids.take(numbers)),
            "partition": pa.array(self.change.partitions_at(states.places), pa.int32()),
            "leader": pa.array(rows[:, LEADER]),
            "leader_epoch": pa.array(rows[:, LEADER_EPOCH]),
            "partition_epoch": pa.array(rows[:, PARTITION_EPOCH]),
            "leader_recovery_state": pa.array(rows[:, RECOVERY]),
            **self._lists(rows),
            "valid_from_offset": pa.array(states.begins),
            "valid_to_offset": pa.array(states.ends, mask=states.ends == STILL_SO),
            "valid_from": times_of(states.begin_times),
            "valid_to": times_of(states.end_times),
        }
        return pa.table([columns[name] for name in ENCODED_STATES.names], schema=ENCODED_STATES)

    def _lists(self, rows: Any) -> dict[str, pa.Array]:
        lists, columns = RowLists(rows, *self.heaps), {}
        for name in LISTS:
            bounds, members = lists.flat(name)
            values = pa.array(members)
            if name == "directories":
                values = pa.DictionaryArray.from_arrays(values, self.directories)
            columns[name] = pa.ListArray.from_arrays(pa.array(bounds), values)
        return columns


class BulkPartitions:
    """The open state of each partition: `since` (int64) has the offset and `since_times` the time of its begin.

    All arrays are by place: see `NotingChange`. A place that is not open has the offset -1.
    """

    def __init__(self, topics: TopicsImage, since: Any, since_times: Any) -> None:
        """Begin with the partitions of an image, open since some offsets, in the order of the image's rows."""
        packed = topics.rows().merged()
        self._change = NotingChange(packed)
        self._rows = packed.rows.copy()
        self._since = np.array(since, np.int64)
        self._since_times = np.array(since_times, np.int64)
        assert len(self._since) == len(self._since_times) == len(self._rows), "an offset and a time for each partition"
        self._ended: list[_States] = []
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
        stop, notes = self._change.note(records.data, records.starts, records.stops)
        self._make_room()
        self._end_intervals(notes, records)
        return stop

    def ended(self) -> LaterRows:
        """The states that ended since the last call, sorted by where they began: ENCODED_STATES."""
        parts, self._ended = self._ended, []
        tables = self._in_columns().tables
        return LaterRows(
            lambda: pa.concat_tables([ENCODED_STATES.empty_table(), *(tables(_States.joined(parts)) if parts else ())]),
            sum(len(part.places) for part in parts),
        )

    def open_tables(self) -> Iterator[pa.Table]:
        """The open states, sorted by where they began, in tables of ROW_GROUP_ROWS at most: ENCODED_STATES."""
        places = np.flatnonzero(self._since != NOT_OPEN)
        still = np.full(len(places), STILL_SO, np.int64)
        return self._in_columns().tables(
            _States(places, self._rows[places], self._since[places], self._since_times[places], still, still)
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

    def _end_intervals(self, notes: Notes, records: EffectiveRecords) -> None:
        """End the states that the notes change, and begin what they change them to."""
        numbers = notes.records
        told = _Notes(notes.places, notes.rows, notes.removed)
        if (np.diff(records.effective[numbers]) <= 0).any():
            last = _last_of_each(notes.places, records.effective[numbers])
            numbers, told = numbers[last], _Notes(*(array[last] for array in told))
        told = _Notes(told.places, np.ascontiguousarray(told.rows), told.removed.view(np.uint8))
        change, ended = self._change, _States.room(len(numbers))
        count = end_intervals(
            told,
            records.effective[numbers],
            records.times[numbers],
            (records.kinds[numbers] == PartitionRecord.API_KEY).view(np.uint8),
            change.base.heap,
            change.state.heap,
            _Now(self._rows, self._since, self._since_times),
            ended,
        )
        if count:
            self._ended.append(ended.at(np.s_[:count]))

    def _in_columns(self) -> _InColumns:
        """What makes rows of the states up to here."""
        strings, change = self._strings, self._change
        strings.learn()
        return _InColumns(
            change=change,
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
