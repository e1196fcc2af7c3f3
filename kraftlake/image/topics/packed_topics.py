"""The packed topics of an image: a row of numbers for each partition."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from struct import iter_unpack
from typing import Any, Final, TypeAlias

import attrs

from kraftlake.image.topics.buffers import flat, grown, of_bytes, zeros
from kraftlake.image.topics.partition_registration import PartitionRegistration
from kraftlake.image.topics.partition_rows import ROW, ROW_BYTES, RowWriter, registration_of
from kraftlake.image.topics.topic_table import TopicTable, table_of
from kraftlake.kernels import compiled
from kraftlake.kernels.partition_row import COLUMNS
from kraftlake.records.uuid import Uuid

PATCHES_BELOW: Final = 8
"""Changes of at most one in this many partitions become patches of a base instead of a copy."""

TopicStates: TypeAlias = tuple[str, Uuid, Mapping[int, PartitionRegistration]]
"""A topic as objects: name, id, partitions by id."""


def _fixed(numbers: Any) -> Any:
    return numbers if isinstance(numbers, memoryview) and numbers.readonly else memoryview(numbers).toreadonly()


@attrs.frozen(kw_only=True, eq=False)
class PackedTopics:
    """The partitions of all topics in `table`, as rows (see `partition_rows`). Immutable: memory that is read only.

    `cells` (given as `rows`) is int32[N, 14]. For the row numbers in `patched` (int32[n], sorted), `patches` (int32[n,
    14]) replaces the rows, so that a change of a few partitions does not copy the others. `heap` is int32: see
    `partition_rows`. `rows` and `merged_rows` are numpy's views.
    """

    table: TopicTable
    cells: Any = attrs.field(alias="rows", converter=_fixed)
    heap: Any = attrs.field(converter=_fixed)
    directories: tuple[Uuid, ...]
    patched: Any = attrs.field(default=zeros("i", 0), converter=_fixed)
    patches: Any = attrs.field(default=zeros("i", 0, COLUMNS), converter=_fixed)
    _buffer: Any = attrs.field(init=False)
    patch_bytes: Any = attrs.field(init=False)
    """The memory of `patches`."""

    def __attrs_post_init__(self) -> None:
        assert self.cells.format == self.heap.format == "i", "numbers of 32 bits"
        assert self.cells.shape == (self.table.bounds[-1], COLUMNS), "a row for each partition"
        object.__setattr__(self, "_buffer", flat(self.cells))
        object.__setattr__(self, "patch_bytes", flat(self.patches))

    @property
    def partition_count(self) -> int:
        """The number of partitions of all topics."""
        return len(self.cells)

    def registration(self, row: int) -> PartitionRegistration:
        """The state of the partition at a row."""
        if self.patch_bytes:
            at = bisect_left(self.patched, row)
            if at < len(self.patched) and self.patched[at] == row:
                return registration_of(ROW.unpack_from(self.patch_bytes, at * ROW_BYTES), self.heap, self.directories)
        return registration_of(ROW.unpack_from(self._buffer, row * ROW_BYTES), self.heap, self.directories)

    def registrations(self, start: int, stop: int) -> list[PartitionRegistration]:
        """The states of the partitions at rows [start, stop)."""
        if self.patch_bytes and bisect_left(self.patched, start) < bisect_left(self.patched, stop):
            return [self.registration(row) for row in range(start, stop)]
        rows = ROW.iter_unpack(self._buffer[start * ROW_BYTES : stop * ROW_BYTES])
        return [registration_of(row, self.heap, self.directories) for row in rows]

    @property
    def rows(self) -> Any:
        """The rows, without patches. Imports numpy."""
        import numpy as np

        return np.asarray(self.cells)

    def merged_rows(self) -> Any:
        """All rows, patches applied: `rows` itself if there are none. Imports numpy."""
        return self.merged().rows

    def merged(self) -> PackedTopics:
        """The same without patches."""
        return self if not self.patch_bytes else self._with_rows(self.copied_rows())

    def _with_rows(self, rows: Any) -> PackedTopics:
        return PackedTopics(table=self.table, rows=rows, heap=self.heap, directories=self.directories)

    def copied_rows(self) -> Any:
        """All rows, patches applied, in memory of their own."""
        rows = grown(self.cells, len(self.cells))
        compiled.put_rows(self.patches, self.patched, len(self.patched), rows)
        return rows

    def row_bytes(self, start: int, stop: int) -> bytearray:
        """The memory of the rows [start, stop), patches applied, as a copy."""
        data = bytearray(self._buffer[start * ROW_BYTES : stop * ROW_BYTES])
        if self.patch_bytes:
            for at in range(bisect_left(self.patched, start), bisect_left(self.patched, stop)):
                place = (self.patched[at] - start) * ROW_BYTES
                data[place : place + ROW_BYTES] = self.patch_bytes[at * ROW_BYTES : (at + 1) * ROW_BYTES]
        return data

    def rows_of(self, number: int) -> Any:
        """The rows of a topic, without patches."""
        return self.cells[self.table.bounds[number] : self.table.bounds[number + 1]]


EMPTY: Final = PackedTopics(
    table=table_of(()), rows=zeros("i", 0, COLUMNS), heap=zeros("i", 0), directories=(Uuid.ZERO,)
)
"""No topics."""


def pack(base: PackedTopics, left_out: Iterable[int], changed: Mapping[int, PartitionRegistration],
         topics: Sequence[TopicStates]) -> PackedTopics:  # fmt: skip
    """`base` without the topics numbered `left_out`, with the rows in `changed` replaced and `topics` appended."""
    writer, gone = RowWriter(base.directories, len(base.heap)), set(left_out)
    written = {row: ROW.pack(*writer.row(state)) for row, state in changed.items()}
    if gone or topics or (len(base.patched) + len(changed)) * PATCHES_BELOW > base.partition_count:
        rows = base.copied_rows() if changed else base.merged().cells
        for row, value in written.items():
            flat(rows)[row * ROW_BYTES : row * ROW_BYTES + ROW_BYTES] = value
        table, rows = _rearranged(base.table, rows, gone, topics, writer)
        some: dict[str, Any] = {"table": table, "rows": rows}
    else:
        values = iter_unpack(f"{ROW_BYTES}s", base.patch_bytes)
        patches = sorted(({row: value for row, (value,) in zip(base.patched, values, strict=True)} | written).items())
        some = {
            "table": base.table,
            "rows": base.cells,
            "patched": array("i", [row for row, _ in patches]),
            "patches": of_bytes("i", b"".join([value for _, value in patches]), COLUMNS),
        }
    return PackedTopics(**some, heap=writer.after(base.heap), directories=writer.known(base.directories))


def _rearranged(
    table: TopicTable, rows: Any, gone: set[int], topics: Sequence[TopicStates], writer: RowWriter
) -> tuple[TopicTable, Any]:
    """The table and rows without the topics numbered `gone`, and with more topics."""
    if not gone and not topics:
        return table, rows
    data, bounds = flat(rows), table.bounds
    kept = [number for number in range(table.topic_count) if number not in gone]
    parts = [data[bounds[number] * ROW_BYTES : bounds[number + 1] * ROW_BYTES] for number in kept]
    known = [(table.names[number], table.id_of(number), table.partitions_of(number)) for number in kept]
    added = [(name, topic_id, sorted(partitions)) for name, topic_id, partitions in topics]
    for (_, _, partitions), (_, _, ids) in zip(topics, added, strict=True):
        parts += [ROW.pack(*writer.row(partitions[partition])) for partition in ids]
    return table_of([*known, *added]), of_bytes("i", b"".join(parts), COLUMNS)


def differing_topics(one: PackedTopics, two: PackedTopics) -> Iterator[str]:
    """The names of the topics that may differ between two bases; all others are equal."""
    few, many = sorted((one.directories, two.directories), key=len)
    table = one.table
    if few != many[: len(few)]:
        yield from {*table.names, *two.table.names}
    elif table is not two.table:
        yield from _differing_names(one.merged(), two.merged())
    elif one.cells is two.cells:
        topics = {bisect_right(table.bounds, row) - 1 for row in chain(one.patched, two.patched)}
        yield from map(table.name_of, topics)
    else:
        found = zeros("B", table.topic_count)
        rows = (one.merged().cells, two.merged().cells)
        compiled.differing_topics(*rows, table.bounds, one.heap is two.heap, found)
        yield from (table.name_of(number) for number, differs in enumerate(found) if differs)


def _differing_names(a: PackedTopics, b: PackedTopics) -> Iterator[str]:
    others = b.table.by_name
    for name, number in a.table.by_name.items():
        other = others.get(name)
        if (
            other is None
            or a.table.id_of(number) != b.table.id_of(other)
            or a.table.partitions_of(number) != b.table.partitions_of(other)
            or not _are_equal(a.rows_of(number), b.rows_of(other))
        ):
            yield name
    yield from (name for name in others if name not in a.table.by_name)


def _are_equal(rows: Any, others: Any) -> bool:
    """Whether rows of two images are certainly equal: none has its lists in a heap."""
    found = zeros("B", 1)
    if len(rows) == len(others):
        compiled.differing_topics(rows, others, array("i", [0, len(rows)]), False, found)
    return len(rows) == len(others) and not found[0]
