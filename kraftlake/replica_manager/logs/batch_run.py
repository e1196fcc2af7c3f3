"""Whole batches that follow each other in one buffer, as a log appends them, without an object a batch."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, Final, NamedTuple

import attrs

from kraftlake import kernels
from kraftlake.kernels.batches import log_columns as column
from kraftlake.records.batch_format import CRC_FROM, HEADER
from kraftlake.records.crc32c import crc32c
from kraftlake.replica_manager.errors import CorruptRecordError, ReplicationError, UnexpectedAppendOffsetError
from kraftlake.replica_manager.logs.log_batch import LogBatch, batch_at, headers, joined, size_said
from kraftlake.runtime.lazy_module import LazyModule

np: Any = LazyModule("numpy")
log_rows: Any = LazyModule("kraftlake.kernels.batches.log_rows")

_LARGEST_INT: Final = (1 << 31) - 1
_LARGEST_LONG: Final = (1 << 63) - 1
_COMPILED_FROM: Final = 16
"""How many batches compiled code pays for."""
_NO_RESULTS: Final = (0,) * (column.COLUMNS - column.CHOSEN)


class IndexEntries(NamedTuple):
    """Entries of a segment's offset and time index, two numbers each, and what is known behind them.

    Those are the bytes since the last entry of the offset index, and the largest timestamp with the last offset of its
    batch.
    """

    offsets: list[int]
    times: list[int]
    unindexed: int
    largest_timestamp: int
    offset_of_largest: int


@attrs.frozen(eq=False, weakref_slot=False)
class BatchRun:
    """Batches in `data`, each with a row of numbers: lists, or for compiled code an array of int64."""

    data: bytes = attrs.field(repr=False)
    rows: Any = attrs.field(repr=False)
    max_timestamp: int
    """The largest timestamp, in epoch ms."""
    _chosen: int | None = None
    """How many rows the column CHOSEN names; None for all rows."""

    @classmethod
    def of(cls, batches: list[LogBatch]) -> BatchRun:
        """The run of some batches."""
        rows: list[list[int]] = []
        start = 0
        for batch in batches:
            kind = batch.transactional * column.TRANSACTIONAL | batch.control * column.CONTROL
            stop = start + batch.size
            rows.append([
                batch.base_offset, batch.last_offset, batch.leader_epoch, batch.max_timestamp, batch.producer_id,
                batch.producer_epoch, kind, start, stop, *_NO_RESULTS,
            ])  # fmt: skip
            start = stop
        return cls(joined(batches), rows, max((batch.max_timestamp for batch in batches), default=-1))

    def __len__(self) -> int:
        """How many batches there are."""
        return len(self.rows)

    @property
    def size(self) -> int:
        """Their size in bytes."""
        return int(self.rows[-1][column.STOP] - self.rows[0][column.START])

    @property
    def content(self) -> memoryview:
        """Their bytes."""
        return memoryview(self.data)[self.rows[0][column.START] : self.rows[-1][column.STOP]]

    @property
    def first_offset(self) -> int:
        """The base offset of the first batch."""
        return int(self.rows[0][column.BASE])

    @property
    def last_offset(self) -> int:
        """The last offset of the last batch."""
        return int(self.rows[-1][column.LAST])

    @property
    def last_leader_epoch(self) -> int:
        """The leader epoch of the last batch."""
        return int(self.rows[-1][column.EPOCH])

    @property
    def epochs(self) -> list[tuple[int, int, int]]:
        """The leader epochs in order, each with the first and the last offset of its batches."""
        rows = self.rows
        places = range(len(rows)) if self._chosen is None else self._columns(self._chosen, column.CHOSEN, column.CHOSEN)
        starts = [place for place in places if not place or rows[place][column.EPOCH] != rows[place - 1][column.EPOCH]]
        return [
            (int(rows[start][column.EPOCH]), int(rows[start][column.BASE]), int(rows[end - 1][column.LAST]))
            for start, end in pairwise([*starts, len(rows)])
        ]

    def part(self, start: int, stop: int) -> BatchRun:
        """The batches of some places."""
        rows = self.rows[start:stop]
        return BatchRun(self.data, rows, max(int(row[column.TIME]) for row in rows))

    def divided_at(self, offset: int) -> tuple[BatchRun | None, BatchRun | None]:
        """The batches that end below an offset, and the others; None where there are none."""
        place = bisect_left(self.rows, offset, key=lambda row: int(row[column.LAST]))
        if 0 < place < len(self):
            return self.part(0, place), self.part(place, len(self))
        return (self, None) if place else (None, self)

    @property
    def batches(self) -> list[LogBatch]:
        """All batches."""
        return self._batches_at(self.data, range(len(self.rows)))

    @property
    def telling(self) -> list[LogBatch]:
        """The batches that matter to what a log knows of leader epochs, producers and transactions.

        What the others change, a later one of the same producer changes again. Their data are not copied.
        """
        if self._chosen is None:
            return self.batches
        return self._batches_at(memoryview(self.data), self._columns(self._chosen, column.CHOSEN, column.CHOSEN))

    def _batches_at(self, data: bytes | memoryview, places: Iterable[int]) -> list[LogBatch]:
        rows = self.rows
        return [batch_at(data, rows[place][column.START], rows[place][column.STOP]) for place in places]

    def index(
        self, base_offset: int, position: int, interval: int, *, unindexed: int, largest_timestamp: int,
        offset_of_largest: int, indexed_timestamp: int,
    ) -> IndexEntries:  # fmt: skip
        """The entries for the batches at `position` of a segment, one after each `interval` bytes.

        `unindexed` bytes before them are behind the last entry. `largest_timestamp` and the last offset of its batch
        are those before them, `indexed_timestamp` is that of the last entry of the time index; −1 without one.
        """
        index = log_rows.index.function if isinstance(self.rows, list) else log_rows.index
        in_offsets, in_times, unindexed, newest = index(
            self.rows, base_offset, position, interval, unindexed, largest_timestamp, offset_of_largest,
            indexed_timestamp,
        )  # fmt: skip
        if newest >= 0:
            largest = self.rows[newest]
            largest_timestamp, offset_of_largest = int(largest[column.TIME]), int(largest[column.LAST])
        return IndexEntries(
            self._columns(in_offsets, column.OFFSET, column.POSITION),
            self._columns(in_times, column.LARGEST, column.OFFSET_OF_LARGEST),
            unindexed,
            largest_timestamp,
            offset_of_largest,
        )

    def _columns(self, count: int, first: int, last: int) -> list[int]:
        """The numbers in some columns of the first rows, row by row."""
        if isinstance(self.rows, list):
            return [number for row in self.rows[:count] for number in row[first : last + 1]]
        numbers: list[int] = self.rows[:count, first : last + 1].ravel().tolist()
        return numbers


def find_batches(
    data: bytes, *, expected: int = -1, latest_epoch: int = _LARGEST_INT, offsets: tuple[int, int] = (0, _LARGEST_LONG)
) -> tuple[BatchRun, ReplicationError | None]:
    """The whole batches that `data` starts with, and what is wrong with the first bytes that are no such batch.

    Nothing is wrong with a last batch that is cut off, as in a fetch response, nor with one of a leader epoch after
    `latest_epoch`. From `expected` on, unless it is −1, offsets must increase; the last offset of each batch must be in
    the range `offsets`, with its end.
    """
    found, position = None, 0
    if kernels.pays(len(data) // size_said(data), _COMPILED_FROM):
        rows = np.empty((len(data) // HEADER.size, column.COLUMNS), np.int64)
        count, position, newest, chosen = log_rows.find(
            np.frombuffer(data, np.uint8), expected, latest_epoch, *offsets, rows
        )
        if count:
            found = BatchRun(data, rows[:count], newest, chosen)
            if position == len(data):
                return found, None
            expected = found.last_offset + 1 if expected >= 0 else expected
    others: list[list[int]] = []
    problem = None
    try:
        others.extend(_checked_rows(data, position, expected, latest_epoch, offsets))
    except ReplicationError as error:
        problem = error
    if found is not None:
        assert not others, "compiled code has passed over a sound batch"
        return found, problem
    chosen = log_rows.choose.function(others, len(others)) if len(others) > column.KEPT + 1 else None
    return BatchRun(data, others, max((row[column.TIME] for row in others), default=-1), chosen), problem


def _checked_rows(
    data: bytes, position: int, expected: int, latest_epoch: int, offsets: tuple[int, int]
) -> Iterator[list[int]]:
    """The rows of the batches from `position` on; raises what is wrong with one."""
    view = memoryview(data)
    for start, stop, header in headers(data, position):
        base, _, epoch, _, crc, attributes, delta, _, time, producer, producer_epoch, _, _ = header
        last = base + delta
        if epoch > latest_epoch:
            return
        if crc32c(view[start + CRC_FROM : stop]) != crc:
            raise CorruptRecordError(f"The record batch at offset {base} fails its checksum.")
        if base < expected and expected >= 0:
            raise UnexpectedAppendOffsetError(
                f"A batch at offset {base} is no continuation of a log that ends at {expected}.", base, last
            )
        if not offsets[0] <= last <= offsets[1]:
            raise CorruptRecordError(f"The record batch at offset {base} does not belong here.")
        kind = attributes & (column.TRANSACTIONAL | column.CONTROL)
        yield [base, last, epoch, time, producer, producer_epoch, kind, start, stop, *_NO_RESULTS]
        if expected >= 0:
            expected = last + 1
