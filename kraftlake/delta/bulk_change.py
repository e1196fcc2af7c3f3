"""The change of a packed image by many records at once. Imports numpy and numba."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from kraftlake.image.packed_topics import PackedTopics, TopicTable
from kraftlake.image.partition_registration import PartitionRegistration
from kraftlake.image.partition_rows import COLUMNS, registration_of
from kraftlake.kernels import change_state as columns
from kraftlake.kernels import indexes, row_lists, topic_records
from kraftlake.kernels import local_changes as local
from kraftlake.records.uuid import Uuid

_PATCHES_BELOW = 8
"""Changes of fewer than one in so many partitions become patches of the base, not a copy of it."""


class BulkChange:
    """What records have made of `base`, as rows; the records come as bytes.

    Touched rows are those of the base that were changed, fresh ones all others; a *place* counts the touched rows, then
    the fresh ones. Source of the semantics: `TopicsDelta` and `TopicDelta`, which do the same with objects.
    """

    def __init__(self, base: PackedTopics) -> None:
        self.packed = base
        self._fresh_rows_are_shared = False
        topics, rows, patches = len(base.table.names), base.partition_count, len(base.patched)
        ids, index = _id_index(base.table)
        sparse = np.zeros(topics, np.uint8)
        sparse[list(base.table.sparse)] = 1
        self.base = columns.Base(
            rows=base.rows, starts=base.table.starts, heap=base.heap, ids=ids, index=index, sparse=sparse
        )
        directories = np.frombuffer(b"".join(base.directories), ">u8").reshape(-1, 2).astype(np.uint64)
        self.state = columns.State(
            counts=np.zeros(columns.COUNTS, np.int64),
            slots=np.zeros(rows, np.int32),
            touched=base.patched.copy(),
            touched_rows=base.patches.copy(),
            touched_info=np.zeros((patches, 3), np.int32),
            fresh_rows=np.empty((0, COLUMNS), np.int32),
            fresh_topics=np.empty(0, np.int32),
            fresh_partitions=np.empty(0, np.int32),
            fresh_info=np.empty((0, 3), np.int32),
            fresh_index=np.zeros(2, np.int32),
            alive=np.ones(topics, np.uint8),
            sizes=np.diff(base.table.starts),
            ids=np.empty((0, 2), np.uint64),
            index=np.zeros(2, np.int32),
            firsts=np.empty(0, np.int32),
            names=np.empty(0, np.uint8),
            name_hashes=np.zeros(0, np.uint64),
            name_topics=np.zeros(0, np.int32),
            heap=np.empty(16 * columns.LONGEST, np.int32),
            directories=np.empty((0, 2), np.uint64),
            directory_index=np.zeros(2, np.int32),
            lists=np.empty((7, columns.LONGEST), np.int32),
            lengths=np.empty(7, np.int64),
            before=np.empty((7, columns.LONGEST), np.int32),
            before_lengths=np.empty(7, np.int64),
            numbers=np.empty(4, np.int32),
        )
        self.state.slots[base.patched] = np.arange(1, patches + 1, dtype=np.int32)
        self.state.counts[columns.N_TOUCHED] = patches
        self.state.counts[columns.N_DIRECTORIES] = len(directories)
        self._replace(directories=directories)
        self._grow_directories()

    def replay(self, data: Any, starts: Any, stops: Any, first: int, last: int) -> tuple[int, list[tuple[int, str]]]:
        """Replay the record values data[starts[i]:stops[i]], i in [first, last), as far as that goes.

        Gives the first value that was not replayed (`last` when all were), and the values before it that are not of
        topics: places with "", or with the topic's name for a RemoveTopicRecord.
        """
        if self._fresh_rows_are_shared:  # with an image, which never changes
            self._replace(fresh_rows=self.state.fresh_rows.copy())
            self._fresh_rows_are_shared = False
        self._make_room(data, starts, stops, first, last)
        others = np.empty((last - first, 2), np.int64)
        self.state.counts[columns.N_OTHERS] = 0
        at = first
        while True:
            status, at = topic_records.replay(data, starts, stops, at, last, self.base, self.state, others)
            if status != topic_records.GROW:
                break
            self._grow_heap()
            self._grow_directories()
            self._replace(names=_grown(self.state.names, len(self.state.names) * 2 + 4096))
        seen = others[: self.state.counts[columns.N_OTHERS]].tolist()
        return int(at), [(place, "" if topic < 0 else self.topic_name(topic)) for place, topic in seen]

    @property
    def is_empty(self) -> bool:
        """Whether no record of a topic was replayed."""
        counts = self.state.counts
        return not (
            counts[columns.N_TOUCHED] > len(self.packed.patched)
            or counts[columns.N_FRESH]
            or counts[columns.N_TOPICS]
            or not self.state.alive.all()
            or self.state.touched_info[: counts[columns.N_TOUCHED], 0].any()
        )

    def _replace(self, **arrays: Any) -> None:
        self.state = self.state._replace(**arrays)

    def _make_room(self, data: Any, starts: Any, stops: Any, first: int, last: int) -> None:
        types = np.zeros(30, np.int64)
        topic_records.count_types(data, starts, stops, first, last, types)
        state, counts = self.state, self.state.counts
        rows = int(types[topic_records.PARTITION] + types[topic_records.CHANGE])
        touched = min(len(state.slots), int(counts[columns.N_TOUCHED]) + rows)
        if touched > len(state.touched):
            touched = min(len(state.slots), max(touched, 2 * len(state.touched)))
            self._replace(
                touched=_grown(state.touched, touched),
                touched_rows=_grown(state.touched_rows, touched),
                touched_info=_grown(state.touched_info, touched),
            )
        fresh = int(counts[columns.N_FRESH] + types[topic_records.PARTITION])
        if fresh > len(state.fresh_topics):
            fresh = max(fresh, 2 * len(state.fresh_topics))
            index = np.zeros(_power_of_two(2 * fresh), np.int32)
            if counts[columns.N_ODD]:
                indexes.move_fresh(state.fresh_index, index, state.fresh_topics, state.fresh_partitions)
            self._replace(
                fresh_rows=_grown(state.fresh_rows, fresh),
                fresh_topics=_grown(state.fresh_topics, fresh),
                fresh_partitions=_grown(state.fresh_partitions, fresh),
                fresh_info=_grown(state.fresh_info, fresh),
                fresh_index=index,
            )
        if types[topic_records.TOPIC]:
            self._make_room_for_topics(int(counts[columns.N_TOPICS] + types[topic_records.TOPIC]))

    def _make_room_for_topics(self, topics: int) -> None:
        state = self.state
        if topics <= len(state.firsts):
            return
        topics = max(topics, 2 * len(state.firsts))
        known = len(self.packed.table.names)
        index = np.zeros(_power_of_two(2 * topics), np.int32)
        indexes.index_ids(state.ids, int(state.counts[columns.N_TOPICS]), index)
        size = _power_of_two(2 * (known + topics))
        hashes, owners = np.zeros(size, np.uint64), np.zeros(size, np.int32)
        if len(state.name_hashes):
            indexes.move_names(state.name_hashes, state.name_topics, hashes, owners)
        elif known:
            indexes.index_names(_names_blob(self.packed.table), hashes, owners)
        self._replace(
            ids=_grown(state.ids, topics),
            firsts=_grown(state.firsts, topics),
            alive=_grown(state.alive, known + topics),
            sizes=_grown(state.sizes, known + topics),
            index=index,
            name_hashes=hashes,
            name_topics=owners,
        )

    def _grow_heap(self) -> None:
        state = self.state
        if state.counts[columns.N_HEAP] + 8 * columns.LONGEST > len(state.heap):
            self._replace(heap=_grown(state.heap, 2 * len(state.heap)))

    def _grow_directories(self) -> None:
        state = self.state
        used = int(state.counts[columns.N_DIRECTORIES])
        if used + columns.LONGEST > len(state.directories):
            size = 2 * used + 2 * columns.LONGEST
            index = np.zeros(_power_of_two(2 * size), np.int32)
            indexes.index_ids(state.directories, used, index)
            self._replace(directories=_grown(state.directories, size), directory_index=index)

    # what it says

    @property
    def new_names(self) -> list[str]:
        """The names of the topics that were created, dead ones too."""
        used = int(self.state.counts[columns.N_NAMES])
        text: str = self.state.names[:used].tobytes().decode("ascii")
        return text.split("\n")[:-1]

    def topic_name(self, topic: int) -> str:
        """The name of a topic."""
        known = self.packed.table.names
        return known[topic] if topic < len(known) else self.new_names[topic - len(known)]

    def directory_ids(self) -> tuple[Uuid, ...]:
        """The directory ids by number."""
        known = len(self.packed.directories)
        added = self.state.directories[known : self.state.counts[columns.N_DIRECTORIES]].astype(">u8").tobytes()
        return (*self.packed.directories, *[Uuid(added[i : i + 16]) for i in range(0, len(added), 16)])

    def heap(self) -> Any:
        """The heap of the base and what came behind it."""
        used = self.state.counts[columns.N_HEAP]
        return np.concatenate((self.base.heap, self.state.heap[:used])) if used else self.base.heap

    def new_id(self, place: int) -> Uuid:
        """The id of a created topic."""
        return Uuid(self.state.ids[place].astype(">u8").tobytes())

    def apply(self) -> PackedTopics:
        """The base after the change; itself when nothing differs."""
        counts, state = self.state.counts, self.state
        structural = counts[columns.N_FRESH] or counts[columns.N_TOPICS] or not state.alive.all()
        return self._restructured() if structural else self._rewritten()

    def _rewritten(self) -> PackedTopics:
        base, state = self.packed, self.state
        count = int(state.counts[columns.N_TOUCHED])
        touched, values = state.touched[:count], state.touched_rows[:count]
        if not self._differs(count):
            return base
        common: dict[str, Any] = {"table": base.table, "heap": self.heap(), "directories": self.directory_ids()}
        if count * _PATCHES_BELOW <= base.partition_count:
            order = np.argsort(touched, kind="stable")
            return PackedTopics(rows=base.rows, patched=touched[order], patches=values[order], **common)
        rows = base.rows.copy()
        row_lists.scatter(rows, touched, values, count)
        return PackedTopics(rows=rows, **common)

    def _differs(self, count: int) -> bool:
        patched = len(self.packed.patched)
        state = self.state
        if not np.array_equal(state.touched_rows[:patched], self.packed.patches):
            return True
        step = 65536
        for start in range(patched, count, step):
            stop = min(start + step, count)
            if (self.base.rows[state.touched[start:stop]] != state.touched_rows[start:stop]).any():
                return True
        return False

    def _restructured(self) -> PackedTopics:
        base, state, counts = self.packed, self.state, self.state.counts
        fresh, created = int(counts[columns.N_FRESH]), int(counts[columns.N_TOPICS])
        topics = len(base.table.names) + created
        names = base.table.names + self.new_names
        ids = np.concatenate((base.table.ids, state.ids[:created].astype(">u8").view(np.uint8).reshape(-1, 16)))
        alive = state.alive[:topics].astype(np.bool_)
        topic_of = state.fresh_topics[:fresh]
        common: dict[str, Any] = {"heap": self.heap(), "directories": self.directory_ids()}
        if alive.all() and not counts[columns.N_ODD] and not (topic_of[1:] < topic_of[:-1]).any():
            sizes = state.sizes[:topics]
            starts = np.zeros(topics + 1, np.int32)
            np.cumsum(sizes, out=starts[1:])
            in_order = (state.firsts[:created] == starts[len(base.table.names) : -1] - base.partition_count)[
                sizes[len(base.table.names) :] > 0
            ]
            if in_order.all():
                if base.partition_count:
                    rows = np.concatenate((self._base_rows(), state.fresh_rows[:fresh]))
                else:
                    rows = self._shared_fresh_rows(fresh)
                table = TopicTable(names, ids, starts, base.table.sparse)
                return PackedTopics(table=table, rows=rows, **common)
        return self._sorted_anew(names, ids, alive, common)

    def _shared_fresh_rows(self, count: int) -> Any:
        """The fresh rows without a copy made; what they don't use of their memory is given back."""
        if not self._fresh_rows_are_shared:
            self._replace(
                fresh_topics=self.state.fresh_topics[:count],
                fresh_partitions=self.state.fresh_partitions[:count],
                fresh_info=self.state.fresh_info[:count],
            )
            self.state.fresh_rows.resize((count, COLUMNS), refcheck=False)
            self._fresh_rows_are_shared = True
        return self.state.fresh_rows[:count]

    def _base_rows(self) -> Any:
        count = int(self.state.counts[columns.N_TOUCHED])
        rows = self.packed.rows.copy()
        row_lists.scatter(rows, self.state.touched[:count], self.state.touched_rows[:count], count)
        return rows

    def _sorted_anew(self, names: list[str], ids: Any, alive: Any, common: dict[str, Any]) -> PackedTopics:
        table, state = self.packed.table, self.state
        fresh = int(state.counts[columns.N_FRESH])
        sizes = np.diff(table.starts)
        partitions = np.arange(self.packed.partition_count, dtype=np.int32) - np.repeat(table.starts[:-1], sizes)
        for topic, ids_of_topic in table.sparse.items():
            partitions[table.starts[topic] : table.starts[topic + 1]] = ids_of_topic
        topic_of = np.concatenate((np.repeat(np.arange(len(sizes), dtype=np.int32), sizes), state.fresh_topics[:fresh]))
        partitions = np.concatenate((partitions, state.fresh_partitions[:fresh]))
        kept = alive[topic_of]
        order = np.lexsort((partitions, topic_of))
        order = order[kept[order]]
        rows = np.concatenate((self._base_rows(), state.fresh_rows[:fresh]))[order]
        numbers = np.cumsum(alive, dtype=np.int32) - 1
        topic_of, partitions = numbers[topic_of[order]], partitions[order]
        count = int(alive.sum())
        starts = np.zeros(count + 1, np.int32)
        np.cumsum(np.bincount(topic_of, minlength=count), out=starts[1:])
        odd = np.unique(topic_of[partitions != np.arange(len(partitions)) - starts[topic_of]])
        sparse = {topic: tuple(partitions[starts[topic] : starts[topic + 1]].tolist()) for topic in odd.tolist()}
        names = [name for name, stays in zip(names, alive.tolist(), strict=True) if stays]
        return PackedTopics(table=TopicTable(names, ids[alive], starts, sparse), rows=rows, **common)

    # as objects

    def topic_at(self, place: int) -> int:
        """The number of the topic that a place belongs to."""
        touched = int(self.state.counts[columns.N_TOUCHED])
        if place >= touched:
            return int(self.state.fresh_topics[place - touched])
        return int(np.searchsorted(self.base.starts, self.state.touched[place], side="right")) - 1

    def partition_at(self, place: int) -> tuple[int, int]:
        """The numbers of the topic and the partition at a place."""
        topic = self.topic_at(place)
        touched = int(self.state.counts[columns.N_TOUCHED])
        if place >= touched:
            return topic, int(self.state.fresh_partitions[place - touched])
        return topic, int(self.state.touched[place]) - int(self.base.starts[topic])

    def info_at(self, place: int) -> tuple[int, int, int]:
        """Flags, unclean elections and elections from the ELR."""
        touched = int(self.state.counts[columns.N_TOUCHED])
        info = self.state.touched_info[place] if place < touched else self.state.fresh_info[place - touched]
        flags, unclean, elr = info.tolist()
        return flags, unclean, elr

    def state_at(self, place: int, heap: Any, directories: tuple[Uuid, ...]) -> PartitionRegistration:
        """The state of the partition at a place."""
        touched = int(self.state.counts[columns.N_TOUCHED])
        row = self.state.touched_rows[place] if place < touched else self.state.fresh_rows[place - touched]
        return registration_of(tuple(row.tolist()), heap, directories)

    def changed_places(self) -> list[int]:
        """The places of partitions that a record has named, of topics that are alive."""
        touched = int(self.state.counts[columns.N_TOUCHED])
        named = np.flatnonzero(self.state.touched_info[:touched, 0] & columns.TOUCHED).tolist()
        places = [*named, *range(touched, touched + int(self.state.counts[columns.N_FRESH]))]
        alive = self.state.alive
        return [place for place in places if alive[self.topic_at(place)]]

    def local_places(self, broker: int) -> Mapping[str, Any]:
        """The places of what the change means to a broker, by the names of `LocalReplicaChanges`' fields.

        `deleted_rows` are rows of the base, of topics that are gone.
        """
        places = int(self.state.counts[columns.N_TOUCHED] + self.state.counts[columns.N_FRESH])
        found, counts = np.empty((5, places), np.int32), np.zeros(5, np.int64)
        local.local_changes(self.base, self.state, self.packed.patches, broker, found, counts)
        names = ("deletes", "leaders", "elected_leaders", "followers", "directory_ids")
        result = {name: found[i, : counts[i]].copy() for i, name in enumerate(names)}
        result["deleted_rows"] = self._hosted_by_deleted(broker)
        return result

    def _hosted_by_deleted(self, broker: int) -> Any:
        known = len(self.packed.table.names)
        dead = np.flatnonzero(self.state.alive[:known] == 0).tolist()
        if not dead:
            return np.empty(0, np.int32)
        rows, starts, parts = self.packed.merged_rows(), self.base.starts, []
        for topic in dead:
            first, last = int(starts[topic]), int(starts[topic + 1])
            found = np.empty(last - first, np.int32)
            state = self.state
            count = local.hosted_rows(
                rows, first, last, self.base.heap, state.heap, broker, state.lists, state.lengths, found
            )
            parts.append(found[:count])
        return np.concatenate(parts)


def _id_index(table: TopicTable) -> tuple[Any, Any]:
    known = table.lookup.get("ids")
    if known is None:
        ids = table.ids.view(">u8").astype(np.uint64).reshape(-1, 2)
        index = np.zeros(_power_of_two(2 * len(ids)), np.int32)
        indexes.index_ids(ids, len(ids), index)
        known = table.lookup["ids"] = (ids, index)
    ids_and_index: tuple[Any, Any] = known
    return ids_and_index


def _names_blob(table: TopicTable) -> Any:
    text = "\n".join([*table.names, ""]).encode()
    return np.frombuffer(text, np.uint8)


def _power_of_two(least: int) -> int:
    return 1 << max(1, (least - 1).bit_length())


def _grown(array: Any, size: int) -> Any:
    if size <= len(array):
        return array
    grown = np.empty((size, *array.shape[1:]), array.dtype)
    grown[: len(array)] = array
    return grown
