"""The arrays of a bulk replay: initial sizes, growth, and the change from sparse to dense. Imports numpy."""

from __future__ import annotations

from typing import Any

import numpy as np

from kraftlake.image.topics.packed_topics import PATCHES_BELOW, PackedTopics
from kraftlake.image.topics.partition_rows import COLUMNS
from kraftlake.image.topics.topic_table import TopicTable
from kraftlake.kernels import compiled, record_types
from kraftlake.kernels.replay import change_state

_SAMPLES = 1024
"""Number of records sampled to estimate the memory that all need."""
_FOLLOWING = 2_000_000
"""Largest number of following records for which memory is reserved."""


class BulkState:
    """`base` and `state`, the arguments of the compiled loops; see `kraftlake.kernels.replay.change_state`."""

    def __init__(self, base: PackedTopics) -> None:
        self.packed = base
        self.fresh_rows_are_shared = False
        self.dense_rows_are_shared = False
        self._foreseen = 0
        """Number of following records for which memory is reserved."""
        self._gathered: change_state.State | None = None
        self._buffers: tuple[compiled.Base, compiled.State] | None = None
        topics, patches = base.table.topic_count, len(base.patched)
        ids, index = _id_index(base.table)
        sparse = np.zeros(topics, np.uint8)
        sparse[list(base.table.sparse)] = 1
        self._sparse_partitions = 0
        """How many partitions of the base have topics whose partition ids are not 0, 1, 2, …."""
        self.base = change_state.Base(
            rows=base.rows, starts=base.table.starts, heap=base.heap, ids=ids, index=index, sparse=sparse
        )
        directories = np.frombuffer(b"".join(base.directories), ">u8").reshape(-1, 2).astype(np.uint64)
        self.state = change_state.State(
            counts=np.zeros(change_state.COUNTS, np.int64),
            slots=np.empty(0, np.int32),
            touched=base.patched.copy(),
            touched_rows=base.patches.copy(),
            touched_info=np.zeros((patches, 3), np.int32),
            dense_rows=np.empty((0, COLUMNS), np.int32),
            dense_flags=np.empty(0, np.uint8),
            dense_elections=np.empty((0, 2), np.int32),
            fresh_rows=np.empty((0, COLUMNS), np.int32),
            fresh_topics=np.empty(0, np.int32),
            fresh_partitions=np.empty(0, np.int32),
            fresh_info=np.empty((0, 3), np.int32),
            odd=np.empty((0, 3), np.int32),
            odd_index=np.zeros(2, np.int32),
            alive=np.ones(topics, np.uint8),
            sizes=base.table.starts[1:] - base.table.starts[:-1],
            ids=np.empty((0, 2), np.uint64),
            index=np.zeros(2, np.int32),
            firsts=np.empty(0, np.int32),
            begins=np.zeros(topics, np.int32),
            names=np.empty(0, np.uint8),
            name_ends=np.empty(0, np.int64),
            name_hashes=np.zeros(0, np.uint64),
            name_topics=np.zeros(0, np.int32),
            heap=np.empty(16 * change_state.LONGEST, np.int32),
            directories=np.empty((0, 2), np.uint64),
            directory_index=np.zeros(2, np.int32),
            lists=np.empty((7, change_state.LONGEST), np.int32),
            lengths=np.empty(7, np.int64),
            before=np.empty((7, change_state.LONGEST), np.int32),
            before_lengths=np.empty(7, np.int64),
            numbers=np.empty(4, np.int32),
            hints=np.empty((3, change_state.BLOCK), np.int32),
            homes=np.zeros(change_state.HOMES, np.int32),
            row=np.empty((2, COLUMNS), np.int32),
        )
        self.state.counts[change_state.N_TOUCHED] = patches
        self.state.counts[change_state.N_DIRECTORIES] = len(directories)
        self.replace(directories=directories)
        self._grow_directories()
        if base.table.sparse:
            self._find_sparse()

    def unshare(self) -> None:
        """Copy the rows that are shared with an immutable image, before they change."""
        self._gathered = None
        if self.fresh_rows_are_shared:
            self.replace(fresh_rows=self.state.fresh_rows.copy())
            self.fresh_rows_are_shared = False
        if self.dense_rows_are_shared:
            self.replace(dense_rows=self.state.dense_rows.copy())
            self.dense_rows_are_shared = False

    def count(self, which: int) -> int:
        """One of the counts of `change_state`."""
        return int(self.state.counts[which])

    def heap(self) -> Any:
        """The heap of the base and its additions: int32."""
        used = self.state.counts[change_state.N_HEAP]
        return np.concatenate((self.base.heap, self.state.heap[:used])) if used else self.base.heap

    def replace(self, **arrays: Any) -> None:
        """Replace arrays of the state."""
        self.state = self.state._replace(**arrays)
        self._buffers = None

    @property
    def buffers(self) -> tuple[compiled.Base, compiled.State]:
        """`base` and `state` as compiled code takes them."""
        if self._buffers is None:
            self._buffers = compiled.Base(*self.base), compiled.State(*self.state)
        return self._buffers

    def make_room(self, data: Any, starts: Any, stops: Any, first: int, last: int, *, following: int = 0) -> None:
        """Reserve memory for the records and for `following` more, by an estimate; `grow` adds more if needed."""
        state, rows, count = self.state, self.packed.partition_count, last - first
        if count <= self._foreseen:
            self._foreseen -= count
            return
        types = np.zeros(record_types.TYPES + 1, np.int64)
        step = max(1, count // _SAMPLES)
        compiled.count_types(data, starts, stops, first, last, step, types)
        self._foreseen = min(following, _FOLLOWING)
        types = types * step * (count + self._foreseen) // max(1, count)
        count += self._foreseen
        if rows and not len(state.dense_flags):
            if PATCHES_BELOW * types[record_types.CHANGE] > rows:
                self._become_dense()
            else:
                if not len(state.slots):
                    self._begin_sparse()
                touched = int(state.counts[change_state.N_TOUCHED] + types[record_types.CHANGE])
                self._make_room_for_touched(min(rows, touched))
        guess = int(types[record_types.PARTITION])
        if guess:
            self._make_room_for_fresh(self.count(change_state.N_FRESH) + min(count, guess + guess // 4))
        guess = int(types[record_types.TOPIC])
        if guess:
            self._make_room_for_topics(self.count(change_state.N_TOPICS) + min(count, guess + guess // 4))
            self._make_room_for_names(self.count(change_state.N_NAMES) + int(types[record_types.TYPES]))

    def grow(self, api_key: int, size: int) -> None:
        """Enlarge every array that has no room for a record of this type whose value has `size` bytes."""
        state, counts = self.state, self.state.counts
        self._make_room_for_lists(self.count(change_state.LONGEST_LIST))
        self._grow_heap()
        self._grow_directories()
        if api_key == record_types.PARTITION and counts[change_state.N_FRESH] >= len(state.fresh_topics):
            self._make_room_for_fresh(int(counts[change_state.N_FRESH]) + 64)
        if api_key == record_types.PARTITION and counts[change_state.N_ODD] >= len(state.odd):
            self._make_room_for_odd(int(counts[change_state.N_ODD]) + 64)
        if api_key in (record_types.TOPIC, record_types.CLEAR_ELR):
            self._make_room_for_topics(int(counts[change_state.N_TOPICS]) + 1)
            self._make_room_for_names(self.count(change_state.N_NAMES) + size)
        needed = int(max(counts[change_state.ROWS_NEEDED], counts[change_state.N_TOUCHED] + 1))
        if self.packed.partition_count and needed > len(state.touched) and not len(state.dense_flags):
            if PATCHES_BELOW * needed > self.packed.partition_count:
                self._become_dense()
            else:
                self._make_room_for_touched(needed + 64)

    def _find_sparse(self) -> None:
        """Note the partitions of the base whose ids are not 0, 1, 2, …."""
        table = self.packed.table
        numbers = table.topic_numbers()
        places = np.flatnonzero(self.base.sparse[numbers])
        self._enlarge(len(places), "odd")
        self.state.odd[:] = np.stack((numbers[places], table.partition_ids()[places], places), axis=1)
        self._sparse_partitions = self.state.counts[change_state.N_ODD] = len(places)
        self._make_room_for_odd(len(places))

    def _make_room_for_lists(self, longest: int) -> None:
        if longest > self.state.lists.shape[1]:
            self.replace(lists=np.empty((7, longest), np.int32), before=np.empty((7, longest), np.int32))

    def _begin_sparse(self) -> None:
        slots = np.zeros(self.packed.partition_count, np.int32)
        slots[self.packed.patched] = np.arange(1, len(self.packed.patched) + 1, dtype=np.int32)
        self.replace(slots=slots)

    def _make_room_for_touched(self, rows: int) -> None:
        state = self.state
        if rows > len(state.touched):
            rows = min(len(state.slots), max(rows, 2 * len(state.touched)))
            self._enlarge(rows, "touched", "touched_rows", "touched_info")

    def _become_dense(self) -> None:
        """Switch to changing a copy of all rows in place."""
        state = self.state
        count = self.count(change_state.N_TOUCHED)
        touched, info = state.touched[:count], state.touched_info[:count]
        rows = self.packed.rows.copy()
        if count:
            rows[touched] = state.touched_rows[:count]
        flags, elections = np.zeros(len(rows), np.uint8), np.zeros((len(rows), 2), np.int32)
        flags[touched] = info[:, 0]
        elections[touched] = info[:, 1:]
        none = np.empty(0, np.int32)
        state.counts[change_state.N_TOUCHED] = 0
        self.replace(slots=none, touched=none, touched_rows=none.reshape(0, COLUMNS), touched_info=none.reshape(0, 3))
        self.replace(dense_rows=rows, dense_flags=flags, dense_elections=elections)

    def gathered(self) -> change_state.State:
        """The state with changed rows in sparse form, the patches of the base first. Read-only."""
        state = self.state
        if not len(state.dense_flags):
            return state
        if self._gathered is None:
            patched = self.packed.patched
            named = state.dense_flags != 0
            named[patched] = False
            touched = np.concatenate((patched, np.flatnonzero(named).astype(np.int32)))
            info = np.empty((len(touched), 3), np.int32)
            info[:, 0] = state.dense_flags[touched]
            info[:, 1:] = state.dense_elections[touched]
            counts = state.counts.copy()
            counts[change_state.N_TOUCHED] = len(touched)
            self._gathered = state._replace(
                counts=counts, touched=touched, touched_rows=state.dense_rows[touched], touched_info=info
            )
        return self._gathered

    def _make_room_for_fresh(self, fresh: int) -> None:
        state = self.state
        if fresh <= len(state.fresh_topics):
            return
        self._enlarge(
            max(fresh, 2 * len(state.fresh_topics)), "fresh_rows", "fresh_topics", "fresh_partitions", "fresh_info"
        )

    def _make_room_for_odd(self, count: int) -> None:
        """Enlarge the index of partitions whose ids are not consecutive: few logs have any."""
        self._enlarge(max(count, 2 * len(self.state.odd)), "odd")
        index = np.zeros(_power_of_two(2 * len(self.state.odd)), np.int32)
        compiled.index_odd(self.state.odd, self.count(change_state.N_ODD), index)
        self.replace(odd_index=index)

    def _make_room_for_topics(self, topics: int) -> None:
        state = self.state
        if topics <= len(state.firsts) and len(state.name_hashes):
            return
        topics = max(topics, 2 * len(state.firsts))
        known = self.packed.table.topic_count
        index = np.zeros(_power_of_two(2 * topics), np.int32)
        compiled.index_ids(state.ids, self.count(change_state.N_TOPICS), index)
        size = _power_of_two(2 * (known + topics))
        hashes, owners = np.zeros(size, np.uint64), np.zeros(size, np.int32)
        if len(state.name_hashes):
            compiled.move_names(state.name_hashes, state.name_topics, hashes, owners)
        elif known:
            names, ends = _names_of(self.packed.table)
            compiled.index_names(names, ends, hashes, owners)
            self.replace(names=names, name_ends=ends)
            state.counts[change_state.N_NAMES] = len(names)
        self._enlarge(topics, "ids", "firsts")
        self._enlarge(known + topics, "alive", "sizes", "begins", "name_ends")
        self.replace(index=index, name_hashes=hashes, name_topics=owners)

    def _make_room_for_names(self, size: int) -> None:
        if size > len(self.state.names):
            self._enlarge(max(size, len(self.state.names) * 2 + 4096), "names")

    def _grow_heap(self) -> None:
        needed = self.count(change_state.N_HEAP) + 8 * self.state.lists.shape[1]
        if needed > len(self.state.heap):
            self._enlarge(max(needed, 2 * len(self.state.heap)), "heap")

    def _grow_directories(self) -> None:
        state, longest = self.state, self.state.lists.shape[1]
        used = self.count(change_state.N_DIRECTORIES)
        if used + longest > len(state.directories):
            size = 2 * used + 2 * longest
            index = np.zeros(_power_of_two(2 * size), np.int32)
            compiled.index_ids(state.directories, used, index)
            self._enlarge(size, "directories")
            self.replace(directory_index=index)

    def _enlarge(self, size: int, *names: str) -> None:
        """Give arrays of the state at least `size` elements; what they hold stays."""
        for name in names:
            array = getattr(self.state, name)
            if size > len(array):
                larger = np.empty((size, *array.shape[1:]), array.dtype)
                larger[: len(array)] = array
                self.replace(**{name: larger})


def _id_index(table: TopicTable) -> tuple[Any, Any]:
    known = table.lookup.get("ids")
    if known is None:
        ids = table.ids.view(">u8").astype(np.uint64).reshape(-1, 2)
        index = np.zeros(_power_of_two(2 * len(ids)), np.int32)
        compiled.index_ids(ids, len(ids), index)
        known = table.lookup["ids"] = (ids, index)
    ids_and_index: tuple[Any, Any] = known
    return ids_and_index


def _names_of(table: TopicTable) -> tuple[Any, Any]:
    """The names of all topics with a newline behind each (uint8), and where each ends (int64)."""
    text = np.frombuffer("\n".join([*table.names, ""]).encode(), np.uint8)
    ends = np.flatnonzero(text == ord("\n"))
    if len(ends) != table.topic_count:
        ends = np.cumsum([len(name.encode()) + 1 for name in table.names], dtype=np.int64) - 1
    return text.copy(), ends


def _power_of_two(least: int) -> int:
    return 1 << max(1, (least - 1).bit_length())
