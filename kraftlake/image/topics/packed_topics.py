"""The packed base of a topics image: a row of numbers for each partition. Imports numpy."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import attrs
import numpy as np

from kraftlake.image.topics.partition_registration import PartitionRegistration
from kraftlake.image.topics.partition_rows import COLUMNS, RARE, ROW, ROW_BYTES, SHAPE, RowWriter, registration_of
from kraftlake.image.topics.topic_table import TopicTable
from kraftlake.records.uuid import Uuid

if TYPE_CHECKING:
    import numpy.typing as npt

    Int32s: TypeAlias = npt.NDArray[np.int32]

PATCHES_BELOW: Final = 8
"""Changes of at most one in this many partitions become patches of a base instead of a copy."""

TopicStates: TypeAlias = tuple[str, Uuid, Mapping[int, PartitionRegistration]]
"""A topic as objects: name, id, partitions by id."""


@attrs.frozen(kw_only=True, eq=False)
class PackedTopics:
    """The partitions of all topics in `table`, as rows (see `partition_rows`). Immutable; arrays are read-only.

    `rows` is int32[N, 14]. For the row numbers in `patched` (int32[n], sorted), `patches` (int32[n, 14]) replaces the
    rows, so that a change of a few partitions does not copy the others. `heap` is int32: see `partition_rows`.
    """

    table: TopicTable
    rows: Int32s
    heap: Int32s
    directories: tuple[Uuid, ...]
    patched: Int32s = attrs.field(factory=lambda: np.empty(0, np.int32))
    patches: Int32s = attrs.field(factory=lambda: np.empty((0, COLUMNS), np.int32))
    _buffer: memoryview = attrs.field(init=False)
    _patched: memoryview = attrs.field(init=False)
    _has_patches: bool = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        assert self.rows.dtype == self.heap.dtype == np.int32 and self.rows.flags.c_contiguous  # noqa: PT018
        for array in (self.rows, self.heap, self.patched, self.patches):
            _frozen(array)
        assert self.rows.shape == (int(self.table.starts[-1]), COLUMNS), "a row for each partition"
        object.__setattr__(self, "_buffer", self.rows.reshape(-1).view(np.uint8).data)
        object.__setattr__(self, "_patched", self.patched.data)
        object.__setattr__(self, "_has_patches", len(self.patched) > 0)

    @property
    def partition_count(self) -> int:
        """The number of partitions of all topics."""
        return len(self.rows)

    def registration(self, row: int) -> PartitionRegistration:
        """The state of the partition at a row."""
        if self._has_patches:
            at = bisect_left(self._patched, row)
            if at < len(self._patched) and self._patched[at] == row:
                return registration_of(tuple(self.patches[at].tolist()), self.heap, self.directories)
        return registration_of(ROW.unpack_from(self._buffer, row * ROW_BYTES), self.heap, self.directories)

    def registrations(self, start: int, stop: int) -> list[PartitionRegistration]:
        """The states of the partitions at rows [start, stop)."""
        if self._has_patches and bisect_left(self._patched, start) < bisect_left(self._patched, stop):
            return [self.registration(row) for row in range(start, stop)]
        rows = ROW.iter_unpack(self._buffer[start * ROW_BYTES : stop * ROW_BYTES])
        return [registration_of(row, self.heap, self.directories) for row in rows]

    def merged_rows(self) -> Int32s:
        """All rows, patches applied: `rows` itself if there are none."""
        if not self._has_patches:
            return self.rows
        rows = self.rows.copy()
        rows[self.patched] = self.patches
        return rows

    def merged(self) -> PackedTopics:
        """The same without patches."""
        if not self._has_patches:
            return self
        return PackedTopics(table=self.table, rows=self.merged_rows(), heap=self.heap, directories=self.directories)

    def same_rows(self, other: PackedTopics) -> npt.NDArray[np.bool_] | None:
        """bool[N]: the rows that are certainly equal in two images of one table; None if their directories differ.

        Rows with lists in the heap count as different unless both have the same heap.
        """
        few, many = sorted((self.directories, other.directories), key=len)
        if few != many[: len(few)]:
            return None
        if self.rows is other.rows:
            same = np.ones(len(self.rows), np.bool_)
            same[self.patched] = same[other.patched] = False
            return same
        mine, theirs = self.merged_rows(), other.merged_rows()
        same = np.asarray((mine == theirs).all(axis=1))
        if self.heap is not other.heap:
            same &= mine[:, SHAPE] != RARE
        return same


def pack(base: PackedTopics | None, left_out: Iterable[int], changed: Mapping[int, PartitionRegistration],
         topics: Sequence[TopicStates]) -> PackedTopics:  # fmt: skip
    """`base` without the topics numbered `left_out`, with the rows in `changed` replaced and `topics` appended."""
    if base is None:
        empty = TopicTable([], np.empty((0, 16), np.uint8), np.zeros(1, np.int32), {})
        base = PackedTopics(
            table=empty, rows=np.empty((0, COLUMNS), np.int32), heap=np.empty(0, np.int32), directories=(Uuid.ZERO,)
        )
    writer = RowWriter(base.directories, len(base.heap))
    left_out = sorted(left_out)
    if changed and not left_out and not topics:
        count = len(base.patched) + len(changed)
        if count * PATCHES_BELOW <= base.partition_count:
            return _with_patches(base, changed, writer)
    rows = base.merged_rows()
    if changed:
        rows = rows.copy() if rows is base.rows else rows
        rows[np.fromiter(changed, np.int64, len(changed))] = [writer.row(state) for state in changed.values()]
    table, rows = _without(base.table, rows, left_out)
    if topics:
        table, rows = _with(table, rows, topics, writer)
    return PackedTopics(table=table, rows=rows, heap=_heap_of(base, writer), directories=tuple(writer.directories))


def _heap_of(base: PackedTopics, writer: RowWriter) -> Int32s:
    return np.concatenate((base.heap, np.array(writer.heap, np.int32))) if writer.heap else base.heap


def _with_patches(base: PackedTopics, changed: Mapping[int, PartitionRegistration], writer: RowWriter) -> PackedTopics:
    """`base` with other states at some rows; only its patches are copied."""
    new = np.fromiter(sorted(changed), np.int32, len(changed))
    values = np.array([writer.row(changed[row]) for row in new.tolist()], np.int32)
    patched, patches = merged_patches(base.patched, base.patches, new, values)
    return PackedTopics(
        table=base.table,
        rows=base.rows,
        heap=_heap_of(base, writer),
        directories=tuple(writer.directories),
        patched=patched,
        patches=patches,
    )


def merged_patches(patched: Int32s, patches: Int32s, new: Int32s, values: Int32s) -> tuple[Int32s, Int32s]:
    """Row numbers and rows of both, sorted by number; `values` takes precedence."""
    kept = ~np.isin(patched, new, assume_unique=True)
    rows = np.concatenate((patched[kept], new))
    order = np.argsort(rows, kind="stable")
    return rows[order], np.concatenate((patches[kept], values))[order]


def _without(table: TopicTable, rows: Int32s, left_out: list[int]) -> tuple[TopicTable, Int32s]:
    if not left_out:
        return table, rows
    kept = np.ones(table.topic_count, np.bool_)
    kept[left_out] = False
    return without_topics(table, rows, kept)


def without_topics(table: TopicTable, rows: Int32s, kept: npt.NDArray[np.bool_]) -> tuple[TopicTable, Int32s]:
    """The table and rows of the topics for which `kept` (bool[T]) is true."""
    sizes = np.diff(table.starts)
    numbers = np.cumsum(kept) - 1
    names = [name for name, stays in zip(table.names, kept.tolist(), strict=True) if stays]
    starts = np.concatenate((np.zeros(1, np.int32), np.cumsum(sizes[kept], dtype=np.int32)))
    sparse = {int(numbers[topic]): ids for topic, ids in table.sparse.items() if kept[topic]}
    return TopicTable(names, table.ids[kept], starts, sparse), rows[np.repeat(kept, sizes)]


def _with(
    table: TopicTable, rows: Int32s, topics: Sequence[TopicStates], writer: RowWriter
) -> tuple[TopicTable, Int32s]:
    added: list[tuple[int, ...]] = []
    starts = table.starts.tolist()
    sparse = dict(table.sparse)
    for number, (_, _, partitions) in enumerate(topics, start=table.topic_count):
        ids = sorted(partitions)
        if ids != list(range(len(ids))):
            sparse[number] = tuple(ids)
        added += [writer.row(partitions[id_]) for id_ in ids]
        starts.append(starts[-1] + len(ids))
    names = [*table.names, *[name for name, _, _ in topics]]
    ids_added = np.frombuffer(b"".join([id_ for _, id_, _ in topics]), np.uint8).reshape(-1, 16)
    grown = TopicTable(names, np.concatenate((table.ids, ids_added)), np.array(starts, np.int32), sparse)
    return grown, np.concatenate((rows, np.array(added, np.int32).reshape(-1, COLUMNS)))


def differing_topics(a: PackedTopics, b: PackedTopics) -> Iterator[str]:
    """The names of the topics that may differ between two bases; all others are equal."""
    if a.table is b.table:
        same = a.same_rows(b)
        if same is None:
            yield from a.table.names
            return
        topics = np.unique(np.searchsorted(a.table.starts, np.flatnonzero(~same), side="right") - 1)
        yield from (a.table.names[topic] for topic in topics.tolist())
        return
    yield from _differing_names(a, b)


def _differing_names(a: PackedTopics, b: PackedTopics) -> Iterator[str]:
    few, many = sorted((a.directories, b.directories), key=len)
    comparable = few == many[: len(few)]
    mine, theirs = a.merged_rows(), b.merged_rows()
    others = b.table.by_name
    for name, number in a.table.by_name.items():
        other = others.get(name)
        if other is None or not comparable:
            yield name
            continue
        start, stop = a.table.bounds[number], a.table.bounds[number + 1]
        ours = mine[start:stop]
        their_rows = theirs[b.table.bounds[other] : b.table.bounds[other + 1]]
        if (
            ours.tobytes() != their_rows.tobytes()
            or (ours[:, SHAPE] == RARE).any()
            or a.table.ids[number].tobytes() != b.table.ids[other].tobytes()
            or a.table.sparse.get(number) != b.table.sparse.get(other)
        ):
            yield name
    yield from (name for name in others if name not in a.table.by_name)


def _frozen(array: Any) -> Any:
    array.flags.writeable = False
    return array
