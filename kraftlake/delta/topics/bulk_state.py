"""The arrays of a bulk replay: initial sizes and growth."""

from __future__ import annotations

from array import array
from itertools import accumulate, chain
from sys import byteorder
from types import SimpleNamespace
from typing import Any, Final

from kraftlake.image.topics.buffers import flat, grown, of_bytes, room, zeros
from kraftlake.image.topics.packed_topics import PATCHES_BELOW, PackedTopics
from kraftlake.image.topics.topic_table import TopicTable
from kraftlake.kernels import compiled, record_types
from kraftlake.kernels.partition_row import COLUMNS
from kraftlake.kernels.replay import change_state

_SAMPLES = 1024
"""Number of records sampled to estimate the memory that all need."""
_FEW = 16
"""Number of records whose memory is reserved when they need it."""
_FOLLOWING = 2_000_000
"""Largest number of following records for which memory is reserved."""


_NOTHING: Final = dict[str, Any].fromkeys(change_state.State._fields) | {
    "touched": zeros("i", 0, 3),
    "touched_flags": zeros("B", 0),
    "touched_rows": zeros("i", 0, COLUMNS),
    "fresh": zeros("i", 0, 4),
    "fresh_flags": zeros("B", 0),
    "fresh_rows": zeros("i", 0, COLUMNS),
    "odd": zeros("i", 0, 3),
    "odd_index": zeros("i", 2),
    "index": zeros("i", 2),
    "ids": zeros("Q", 0, 2),
    "firsts": zeros("i", 0),
    "names": zeros("B", 0),
    "name_ends": zeros("q", 0),
    "name_hashes": zeros("Q", 0),
    "name_topics": zeros("i", 0),
}
"""The arrays, in their order, without which a change begins; nothing is put into the indexes."""
_TOUCHED: Final = ("touched", "touched_flags", "touched_rows")
_FRESH: Final = ("fresh", "fresh_flags", "fresh_rows")


class BulkState:
    """`base` and `state`, the arguments of the compiled loops; see `kraftlake.kernels.replay.change_state`."""

    def __init__(self, base: PackedTopics) -> None:
        self.packed = base
        self.fresh_rows_are_shared = False
        self.touched_rows_are_shared = False
        self._foreseen = 0
        """Number of following records for which memory is reserved."""
        self._changed: Any = None
        self._buffers: tuple[compiled.Base, compiled.State] | None = None
        table, patches, directories = base.table, len(base.patched), len(base.directories)
        topics, longest = table.topic_count, change_state.LONGEST
        self._sparse_partitions = 0
        """The number of partitions of the base in topics whose partition ids are not 0, 1, 2, …."""
        self.base = change_state.Base(base.cells, table.bounds, base.heap, *_lookup(table))
        self.state: Any = SimpleNamespace(**_NOTHING | {
            "counts": zeros("q", change_state.COUNTS),
            "slots": zeros("i", base.partition_count),
            "alive": of_bytes("B", bytearray([change_state.ALIVE]) * topics),
            "sizes": room("i", topics),
            "begins": zeros("i", topics),
            "heap": room("i", 16 * longest),
            "directories": grown(_native(b"".join(base.directories)), directories + longest),
            "lists": room("i", 7, longest),
            "lengths": room("q", 7),
            "before": room("i", 7, longest),
            "before_lengths": room("q", 7),
            "numbers": room("i", 4),
            "hints": room("i", 3, change_state.BLOCK),
            "homes": zeros("i", change_state.HOMES),
            "row": room("i", 1, COLUMNS),
        })  # fmt: skip
        self.state.counts[change_state.N_DIRECTORIES] = directories
        self._index_directories()
        if topics:
            compiled.sizes_of(table.bounds, self.state.sizes)
        if patches:
            self.replace(touched=room("i", patches, 3), touched_flags=zeros("B", patches))
            self.replace(touched_rows=grown(base.patches, patches))
            compiled.touch(base.patched, self.state.slots, self.state.touched)
            self.state.counts[change_state.N_TOUCHED] = patches
        if table.sparse:
            self._find_sparse()

    def unshare(self) -> None:
        """Copy the rows that are shared with an immutable image, before they change."""
        self._changed = None
        if self.fresh_rows_are_shared:
            self.replace(fresh_rows=grown(self.state.fresh_rows, len(self.state.fresh_rows)))
            self.fresh_rows_are_shared = False
        if self.touched_rows_are_shared:
            self.replace(touched_rows=grown(self.state.touched_rows, len(self.state.touched_rows)))
            self.touched_rows_are_shared = False

    def count(self, which: int) -> int:
        """One of the counts of `change_state`."""
        return self.state.counts[which]  # type: ignore[no-any-return]

    def heap(self) -> Any:
        """The heap of the base and its additions: int32."""
        used = self.state.counts[change_state.N_HEAP]
        return of_bytes("i", b"".join((flat(self.base.heap), flat(self.state.heap[:used])))) if used else self.base.heap

    def replace(self, **arrays: Any) -> None:
        """Replace arrays of the state."""
        vars(self.state).update(arrays)
        self._buffers = None

    @property
    def buffers(self) -> tuple[compiled.Base, compiled.State]:
        """`base` and `state` as compiled code takes them."""
        if self._buffers is None:
            self._buffers = (
                compiled.Base(*self.base),
                compiled.State(*vars(self.state).values()),
            )
        return self._buffers

    def make_room(self, data: Any, starts: Any, stops: Any, first: int, last: int, *, following: int = 0) -> None:
        """Reserve memory for the records and for `following` more, by an estimate; `grow` adds more if needed."""
        state, rows, count = self.state, self.packed.partition_count, last - first
        if count <= max(self._foreseen, _FEW):
            self._foreseen = max(0, self._foreseen - count)
            if self._buffers is None and not self._foreseen:
                self._make_room_for_few([data[starts[at] + 1] for at in range(first, last)], len(data))
            return
        sampled = zeros("q", record_types.TYPES + 1)
        step = max(1, count // _SAMPLES)
        compiled.count_types(data, starts, stops, first, last, step, sampled)
        self._foreseen = min(following, _FOLLOWING)
        types = [number * step * (count + self._foreseen) // max(1, count) for number in sampled]
        count += self._foreseen
        if len(state.touched) < rows:
            if PATCHES_BELOW * types[record_types.CHANGE] > rows:
                self._touch_all()
            else:
                touched = state.counts[change_state.N_TOUCHED] + types[record_types.CHANGE]
                self._reserve(min(rows, touched), *_TOUCHED)
        guess = types[record_types.PARTITION]
        if guess:
            self._reserve(self.count(change_state.N_FRESH) + min(count, guess + guess // 4), *_FRESH)
        guess = types[record_types.TOPIC]
        if guess:
            self._make_room_for_topics(self.count(change_state.N_TOPICS) + min(count, guess + guess // 4))
            self._reserve(self.count(change_state.N_NAMES) + types[record_types.TYPES], "names")

    def _make_room_for_few(self, api_keys: list[int], size: int) -> None:
        """Reserve the memory that a few records of some types need, `size` bytes in all."""
        if partitions := api_keys.count(record_types.PARTITION):
            self._reserve(self.count(change_state.N_FRESH) + partitions, *_FRESH)
        if topics := api_keys.count(record_types.TOPIC):
            self._make_room_for_topics(self.count(change_state.N_TOPICS) + topics)
            self._reserve(self.count(change_state.N_NAMES) + size, "names")

    def grow(self, api_key: int, size: int) -> None:
        """Enlarge every array that has no room for a record of this type whose value has `size` bytes."""
        state, counts = self.state, self.state.counts
        self._make_room_for_lists(self.count(change_state.LONGEST_LIST))
        longest = state.lists.shape[1]
        self._reserve(counts[change_state.N_HEAP] + 8 * longest, "heap")
        if self._reserve(counts[change_state.N_DIRECTORIES] + longest, "directories"):
            self._index_directories()
        if api_key == record_types.PARTITION and counts[change_state.N_FRESH] >= len(state.fresh):
            self._reserve(counts[change_state.N_FRESH] + 64, *_FRESH)
        if api_key == record_types.PARTITION and counts[change_state.N_ODD] >= len(state.odd):
            self._make_room_for_odd(counts[change_state.N_ODD] + 64)
        if api_key in (record_types.TOPIC, record_types.CLEAR_ELR):
            self._make_room_for_topics(counts[change_state.N_TOPICS] + 1)
            self._reserve(self.count(change_state.N_NAMES) + size, "names")
        needed = max(counts[change_state.ROWS_NEEDED], counts[change_state.N_TOUCHED] + 1)
        if len(state.touched) < min(needed, self.packed.partition_count):
            if PATCHES_BELOW * needed > self.packed.partition_count:
                self._touch_all()
            else:
                self._reserve(needed + 64, *_TOUCHED)

    def _find_sparse(self) -> None:
        """Note the partitions of the base whose ids are not 0, 1, 2, …."""
        sparse = self.packed.table.sparse
        partitions = array("i", chain.from_iterable(sparse[topic] for topic in sorted(sparse)))
        self._reserve(len(partitions), "odd")
        compiled.note_odd(compiled.Base(*self.base), partitions, self.state.odd)
        self._sparse_partitions = self.state.counts[change_state.N_ODD] = len(partitions)
        self._make_room_for_odd(len(partitions))

    def _make_room_for_lists(self, longest: int) -> None:
        if longest > self.state.lists.shape[1]:
            longest *= 2
            self.replace(lists=zeros("i", 7, longest), before=zeros("i", 7, longest))

    def _touch_all(self) -> None:
        """Switch to changing a copy of all rows in place."""
        count = self.packed.partition_count
        rows, touched, flags = grown(self.packed.cells, count), zeros("i", count, 3), zeros("B", count)
        compiled.spread(self.buffers[1], rows)
        compiled.touch_all(self.buffers[1], touched, flags)
        self.state.counts[change_state.N_TOUCHED] = count
        self.replace(touched_rows=rows, touched=touched, touched_flags=flags, slots=zeros("i", 0))

    def _make_room_for_odd(self, count: int) -> None:
        """Enlarge the index of partitions whose ids are not consecutive: few logs have any."""
        self._reserve(count, "odd")
        index = zeros("i", _power_of_two(2 * len(self.state.odd)))
        compiled.index_odd(self.state.odd, self.count(change_state.N_ODD), index)
        self.replace(odd_index=index)

    def _make_room_for_topics(self, topics: int) -> None:
        state = self.state
        if topics <= len(state.firsts) and len(state.name_hashes):
            return
        topics = max(topics, 2 * len(state.firsts))
        known = self.packed.table.topic_count
        index = zeros("i", _power_of_two(2 * topics))
        compiled.index_ids(state.ids, self.count(change_state.N_TOPICS), index)
        size = _power_of_two(2 * (known + topics))
        hashes, owners = zeros("Q", size), zeros("i", size)
        if len(state.name_hashes):
            compiled.move_names(state.name_hashes, state.name_topics, hashes, owners)
        elif known:
            names, ends = _names_of(self.packed.table)
            compiled.index_names(names, ends, hashes, owners)
            self.replace(names=names, name_ends=ends)
            state.counts[change_state.N_NAMES] = len(names)
        self._reserve(topics, "ids", "firsts")
        self._reserve(known + topics, "name_ends")
        self._reserve(known + topics, "alive", "sizes", "begins")
        self.replace(index=index, name_hashes=hashes, name_topics=owners)

    def _index_directories(self) -> None:
        index = zeros("i", _power_of_two(2 * len(self.state.directories)))
        compiled.index_ids(self.state.directories, self.count(change_state.N_DIRECTORIES), index)
        self.replace(directory_index=index)

    def _reserve(self, needed: int, *names: str) -> bool:
        """Give arrays of the state room for as many elements as needed, or for twice theirs; whether they lacked it."""
        arrays, size = vars(self.state), len(getattr(self.state, names[0]))
        if needed <= size:
            return False
        self.replace(**{name: grown(arrays[name], max(needed, 2 * size)) for name in names})
        return True


def _lookup(table: TopicTable) -> tuple[Any, Any, Any]:
    """The ids of the topics, an index of them, and which topics are sparse."""
    known = table.lookup.get("ids")
    if known is None:
        count = table.topic_count
        ids, index, sparse = _native(table.id_bytes), zeros("i", _power_of_two(2 * count)), zeros("B", count)
        compiled.index_ids(ids, count, index)
        for topic in table.sparse:
            sparse[topic] = 1
        known = table.lookup["ids"] = (ids, index, sparse)
    found: tuple[Any, Any, Any] = known
    return found


def _native(ids: bytes) -> Any:
    """Ids of 16 bytes each as rows of two numbers."""
    halves = array("Q", ids)
    if byteorder == "little":
        halves.byteswap()
    return of_bytes("Q", memoryview(halves).cast("B"), 2)


def _names_of(table: TopicTable) -> tuple[Any, Any]:
    """The names of all topics with a newline behind each (uint8), and where each ends (int64)."""
    names = [name.encode() for name in table.names]
    ends = array("q", accumulate(len(name) + 1 for name in names))
    for topic, end in enumerate(ends):
        ends[topic] = end - 1
    return memoryview(bytearray(b"\n".join([*names, b""]))), memoryview(ends)


def _power_of_two(least: int) -> int:
    return 1 << max(1, (least - 1).bit_length())
