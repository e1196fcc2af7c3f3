"""The states of all partitions as arrays, and what records make of them: nothing is done a record in Python.

Imports numpy and numba.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from kraftlake.delta.noting_change import Notes, NotingChange
from kraftlake.image.packed_topics import PackedTopics
from kraftlake.image.partition_registration import PartitionRegistration
from kraftlake.image.partition_rows import (
    LEADER,
    LEADER_EPOCH,
    PARTITION_EPOCH,
    RECOVERY,
    ROW_BYTES,
    registration_of,
)
from kraftlake.image.topics_image import TopicsImage
from kraftlake.kernels.partition_journal import heap_size, list_lengths, list_values, move_lists, same_states
from kraftlake.records.metadata_records import PartitionRecord
from kraftlake.records.uuid import Uuid
from kraftlake.spark_jobs.history.columns import PARTITION_SCHEMA, STILL_SO, times_of
from kraftlake.spark_jobs.history.effective_records import EffectiveRecords

_NOT_OPEN = -1
_WORN_BYTES = 1 << 26
_LISTS = {
    "replicas": 0,
    "isr": 1,
    "directories": 2,
    "adding_replicas": 3,
    "removing_replicas": 4,
    "elr": 5,
    "last_known_elr": 6,
}
"""The number of each list among those of a row: see `kraftlake.image.partition_rows`."""


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
        self._names: list[str] = []
        self._ids: list[str] = []
        self._directories = pa.array([], pa.string())

    @property
    def open_count(self) -> int:
        """How many partitions there are."""
        return int(np.count_nonzero(self._since != _NOT_OPEN))

    @property
    def is_worn(self) -> bool:
        """Whether much of the memory is taken by what is gone: lists of ended states, places of removed partitions."""
        lists = self._change.state.heap.nbytes > max(_WORN_BYTES, self._change.base.heap.nbytes)
        return lists or self._change.place_count * ROW_BYTES > _WORN_BYTES + 2 * self.open_count * ROW_BYTES

    def renewed(self) -> BulkPartitions:
        """The same, without what is gone; this one takes nothing any more."""
        places = np.flatnonzero(self._since != _NOT_OPEN)
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

    def take(self, records: EffectiveRecords) -> tuple[int, pa.Table]:
        """Replay records of topics, as far as that goes.

        Gives the first that was not replayed, which is for objects to do, and the states that ended.
        """
        stop, notes = self._change.note(records.data, records.starts, records.stops)
        self._make_room()
        self._learn()
        return stop, self._intervals(notes, records)

    def open_table(self) -> pa.Table:
        """The open states as rows of `partition_history/`."""
        self._learn()
        places = np.flatnonzero(self._since != _NOT_OPEN)
        open_ = np.full(len(places), STILL_SO, np.int64)
        return self._table(places, self._rows[places], (self._since[places], self._since_times[places]), (open_, open_))

    def topics(self) -> TopicsImage:
        """The topics as an image; nothing may be taken after that."""
        return TopicsImage.with_rows(self._change.apply())

    def open_states(self) -> dict[tuple[Uuid, int], tuple[str, PartitionRegistration, int, int]]:
        """The open states as objects: by topic id and partition the topic's name, the state, offset and time."""
        self._learn()
        heap, directories = self._change.heap(), self._change.directory_ids()
        places = np.flatnonzero(self._since != _NOT_OPEN)
        topics, partitions = self._change.topics_at(places), self._change.partitions_at(places)
        found = {}
        for place, topic, partition in zip(places.tolist(), topics.tolist(), partitions.tolist(), strict=True):
            state = registration_of(tuple(self._rows[place].tolist()), heap, directories)
            key = (self._change.topic_id(topic), partition)
            since, time = int(self._since[place]), int(self._since_times[place])
            found[key] = (self._names[topic], state, since, time)
        return found

    def _make_room(self) -> None:
        places = self._change.place_count
        if places > len(self._since):
            size = places + places // 2
            self._rows = _grown(self._rows, size, 0)
            self._since = _grown(self._since, size, _NOT_OPEN)
            self._since_times = _grown(self._since_times, size, _NOT_OPEN)

    def _learn(self) -> None:
        """Bring the strings of topics and directories up to date."""
        change, known = self._change, len(self._names)
        if known < change.topic_total:
            self._names = [*change.packed.table.names, *change.new_names]
            self._ids += [str(change.topic_id(number)) for number in range(known, len(self._names))]
        if len(self._directories) < change.directory_total:
            self._directories = pa.array(map(str, change.directory_ids()), pa.string())

    def _intervals(self, notes: Notes, records: EffectiveRecords) -> pa.Table:
        """End the states that the notes change, and begin what they change them to; gives those that ended."""
        order = np.argsort(notes.places, kind="stable")
        places = notes.places[order]
        since, times = records.effective[notes.records[order]], records.times[notes.records[order]]
        # States of one partition at one offset: the last of them is what is so from there on.
        last = np.ones(len(order), np.bool_)
        last[:-1] = (places[1:] != places[:-1]) | (since[1:] != since[:-1])
        order, places, since, times = order[last], places[last], since[last], times[last]
        rows, removed = notes.rows[order], notes.removed[order]
        repeats = records.kinds[notes.records[order]] == PartitionRecord.API_KEY
        order_kept = ~self._unchanged(places, rows, repeats & ~removed)
        places, since, times, rows, removed = (array[order_kept] for array in (places, since, times, rows, removed))
        first = np.ones(len(places), np.bool_)
        first[1:] = places[1:] != places[:-1]
        begins = np.flatnonzero(first)
        began = self._since[places[begins]]
        ended_before = begins[(began != _NOT_OPEN) & (began != since[begins])]
        followed = np.flatnonzero(~first[1:] & ~removed[:-1])
        before = places[ended_before]
        closed = self._table(
            np.concatenate((before, places[followed])),
            np.concatenate((self._rows[before], rows[followed])),
            (
                np.concatenate((self._since[before], since[followed])),
                np.concatenate((self._since_times[before], times[followed])),
            ),
            (
                np.concatenate((since[ended_before], since[followed + 1])),
                np.concatenate((times[ended_before], times[followed + 1])),
            ),
        )
        ends = np.append(begins[1:], len(places)) - 1 if len(begins) else begins
        self._rows[places[ends]] = rows[ends]
        self._since[places[ends]] = np.where(removed[ends], _NOT_OPEN, since[ends])
        self._since_times[places[ends]] = times[ends]
        return closed

    def _unchanged(self, places: Any, rows: Any, repeats: Any) -> Any:
        """Which of the notes, sorted by place, repeat the state that the partition has; only `repeats` may."""
        unchanged = np.zeros(len(places), np.bool_)
        candidates = np.flatnonzero(repeats)
        if not len(candidates):
            return unchanged
        of_same = np.zeros(len(candidates), np.bool_)
        of_same[candidates > 0] = places[candidates[candidates > 0]] == places[candidates[candidates > 0] - 1]
        there = of_same | (self._since[places[candidates]] != _NOT_OPEN)
        candidates, of_same = candidates[there], of_same[there]
        before = self._rows[places[candidates]]
        before[of_same] = rows[candidates[of_same] - 1]
        same = np.empty(len(candidates), np.uint8)
        state = self._change.state
        same_states(np.ascontiguousarray(rows[candidates]), before, self._change.base.heap, state.heap, same)
        unchanged[candidates] = same != 0
        return unchanged

    def _table(self, places: Any, rows: Any, begin: tuple[Any, Any], end: tuple[Any, Any]) -> pa.Table:
        """Rows of `partition_history/` for states in `rows`, with the offsets and times at which they begin and end."""
        change = self._change
        numbers, which = np.unique(change.topics_at(places), return_inverse=True)
        names = pa.array([self._names[number] for number in numbers.tolist()], pa.string())
        ids = pa.array([self._ids[number] for number in numbers.tolist()], pa.string())
        topics = pa.array(which.reshape(-1))
        columns = {
            "topic": names.take(topics),
            "topic_id": ids.take(topics),
            "partition": pa.array(change.partitions_at(places), pa.int32()),
            "leader": pa.array(rows[:, LEADER]),
            "leader_epoch": pa.array(rows[:, LEADER_EPOCH]),
            "partition_epoch": pa.array(rows[:, PARTITION_EPOCH]),
            "leader_recovery_state": pa.array(rows[:, RECOVERY]),
            **self._lists(np.ascontiguousarray(rows)),
            "valid_from_offset": pa.array(begin[0]),
            "valid_to_offset": pa.array(end[0], mask=end[0] == STILL_SO),
            "valid_from": times_of(begin[1]),
            "valid_to": times_of(end[1]),
        }
        return pa.table([columns[name] for name in PARTITION_SCHEMA.names], schema=PARTITION_SCHEMA)

    def _lists(self, rows: Any) -> dict[str, pa.Array]:
        base_heap, heap = self._change.base.heap, self._change.state.heap
        lengths = np.empty((len(_LISTS), len(rows)), np.int32)
        list_lengths(rows, base_heap, heap, lengths)
        columns = {}
        for name, which in _LISTS.items():
            bounds = np.zeros(len(rows) + 1, np.int64)
            np.cumsum(lengths[which], out=bounds[1:])
            members = np.empty(int(bounds[-1]), np.int32)
            list_values(rows, base_heap, heap, lengths, which, members)
            values = pa.array(members)
            if name == "directories":
                values = self._directories.take(values)
            columns[name] = pa.ListArray.from_arrays(pa.array(bounds.astype(np.int32)), values)
        return columns


def _grown(array: Any, size: int, fill: int) -> Any:
    grown = np.full((size, *array.shape[1:]), fill, array.dtype)
    grown[: len(array)] = array
    return grown
