"""Consecutive whole batches in one buffer, as a log appends them, without an object per batch."""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Iterable
from itertools import pairwise
from typing import Final, NamedTuple

import attrs

from kraftlake.kernels import compiled
from kraftlake.kernels.batches import log_columns as column
from kraftlake.replica_manager.errors import CorruptRecordError, ReplicationError, UnexpectedAppendOffsetError
from kraftlake.replica_manager.logs.log_batch import LogBatch, batch_at, headers, joined, size_said

_LARGEST_INT: Final = (1 << 31) - 1
_LARGEST_LONG: Final = (1 << 63) - 1
_NUMBER: Final = 8
"""The size of a row's number in bytes."""
_ROW: Final = struct.Struct(f"{column.CHOSEN}q{_NUMBER * (column.COLUMNS - column.CHOSEN)}x")


class IndexEntries(NamedTuple):
    """Entries of a segment's offset and time index, two numbers each, and the state after them.

    The state is the number of bytes since the last entry of the offset index, and the largest timestamp with the last
    offset of its batch.
    """

    offsets: list[int]
    times: list[int]
    unindexed: int
    largest_timestamp: int
    offset_of_largest: int


@attrs.frozen(eq=False, weakref_slot=False)
class BatchRun:
    """Batches in `data`, each with a row of numbers; the rows are contiguous in `rows` (int64)."""

    data: bytes = attrs.field(repr=False)
    rows: memoryview = attrs.field(repr=False)
    max_timestamp: int
    """The largest timestamp, in epoch ms."""
    _chosen: int | None = None
    """The number of rows in the column CHOSEN; None for all rows."""

    @classmethod
    def of(cls, batches: list[LogBatch]) -> BatchRun:
        """Create the run of some batches."""
        rows = _rows(len(batches))
        start = 0
        for place, batch in enumerate(batches):
            kind = batch.transactional * column.TRANSACTIONAL | batch.control * column.CONTROL
            stop = start + batch.size
            _ROW.pack_into(
                rows, place * _ROW.size, batch.base_offset, batch.last_offset, batch.leader_epoch, batch.max_timestamp,
                batch.producer_id, batch.producer_epoch, kind, start, stop,
            )  # fmt: skip
            start = stop
        newest = max((batch.max_timestamp for batch in batches), default=-1)
        return cls(joined(batches), memoryview(rows).cast("q"), newest)

    def __len__(self) -> int:
        """Return the number of batches."""
        return len(self.rows) // column.COLUMNS

    @property
    def size(self) -> int:
        """The size of the batches in bytes."""
        return self._number(-1, column.STOP) - self._number(0, column.START)

    @property
    def content(self) -> memoryview:
        """The bytes of the batches."""
        return memoryview(self.data)[self._number(0, column.START) : self._number(-1, column.STOP)]

    @property
    def first_offset(self) -> int:
        """The base offset of the first batch."""
        return self._number(0, column.BASE)

    @property
    def last_offset(self) -> int:
        """The last offset of the last batch."""
        return self._number(-1, column.LAST)

    @property
    def last_leader_epoch(self) -> int:
        """The leader epoch of the last batch."""
        return self._number(-1, column.EPOCH)

    @property
    def epochs(self) -> list[tuple[int, int, int]]:
        """The leader epochs in order, each with the first and the last offset of its batches."""
        number = self._number
        starts = [
            place
            for place in self._chosen_places()
            if not place or number(place, column.EPOCH) != number(place - 1, column.EPOCH)
        ]
        return [
            (number(start, column.EPOCH), number(start, column.BASE), number(end - 1, column.LAST))
            for start, end in pairwise([*starts, len(self)])
        ]

    def part(self, start: int, stop: int) -> BatchRun:
        """Return the batches from row `start` to row `stop`."""
        rows = self.rows[column.COLUMNS * start : column.COLUMNS * stop]
        return BatchRun(self.data, rows, max(rows[column.TIME :: column.COLUMNS]))

    def divided_at(self, offset: int) -> tuple[BatchRun | None, BatchRun | None]:
        """Return the batches that end below an offset, and the others; None for no batches."""
        place = bisect_left(self.rows[column.LAST :: column.COLUMNS], offset)
        if 0 < place < len(self):
            return self.part(0, place), self.part(place, len(self))
        return (self, None) if place else (None, self)

    @property
    def batches(self) -> list[LogBatch]:
        """All batches."""
        return self._batches_at(self.data, range(len(self)))

    @property
    def effective_batches(self) -> list[LogBatch]:
        """The batches that affect a log's leader epochs, producers and transactions.

        The effect of every other batch is replaced by a later batch of the same producer. The data are not copied.
        """
        return self._batches_at(memoryview(self.data), self._chosen_places())

    def _batches_at(self, data: bytes | memoryview, places: Iterable[int]) -> list[LogBatch]:
        return [batch_at(data, self._number(place, column.START), self._number(place, column.STOP)) for place in places]

    def index(
        self, base_offset: int, position: int, interval: int, *, unindexed: int, largest_timestamp: int,
        offset_of_largest: int, indexed_timestamp: int,
    ) -> IndexEntries:  # fmt: skip
        """Return the entries for the batches at `position` of a segment, one after each `interval` bytes.

        `unindexed` is the number of bytes between the last entry and the batches. `largest_timestamp` and the last
        offset of its batch are the values before the batches, `indexed_timestamp` is the timestamp of the last entry in
        the time index; −1 without one.
        """
        in_offsets, in_times, unindexed, newest = compiled.index(
            _table(self.rows), base_offset, position, interval, unindexed, largest_timestamp, offset_of_largest,
            indexed_timestamp,
        )  # fmt: skip
        if newest >= 0:
            largest_timestamp, offset_of_largest = self._number(newest, column.TIME), self._number(newest, column.LAST)
        return IndexEntries(
            self._columns(in_offsets, column.OFFSET, column.POSITION),
            self._columns(in_times, column.LARGEST, column.OFFSET_OF_LARGEST),
            unindexed,
            largest_timestamp,
            offset_of_largest,
        )

    def _chosen_places(self) -> Iterable[int]:
        return range(len(self)) if self._chosen is None else self._columns(self._chosen, column.CHOSEN)

    def _number(self, place: int, which: int) -> int:
        """Return a number of a row; place -1 is the last row."""
        number: int = self.rows[column.COLUMNS * (place if place >= 0 else len(self) + place) + which]
        return number

    def _columns(self, count: int, *columns: int) -> list[int]:
        """Return the numbers in some columns of the first rows, row by row."""
        numbers = [0] * (count * len(columns))
        for place, which in enumerate(columns):
            numbers[place :: len(columns)] = self.rows[which : count * column.COLUMNS : column.COLUMNS]
        return numbers


def _rows(count: int) -> bytearray:
    return bytearray(count * _ROW.size)


def _table(rows: memoryview) -> memoryview:
    """Return rows, at least one, in the form that kernels take: int64[n, COLUMNS]."""
    return rows.cast("B").cast("q", (len(rows) // column.COLUMNS, column.COLUMNS))


def find_batches(
    data: bytes, *, expected: int = -1, latest_epoch: int = _LARGEST_INT, offsets: tuple[int, int] = (0, _LARGEST_LONG)
) -> tuple[BatchRun, ReplicationError | None]:
    """Return the whole batches at the start of `data`, and the error of the first invalid bytes.

    A truncated last batch, as in a fetch response, and a batch of a leader epoch after `latest_epoch` are not errors.
    From `expected` on, unless it is −1, offsets must increase; the last offset of each batch must be in the range
    `offsets`, with its end.
    """
    most = 1 + len(data) // size_said(data)
    run, position = _sound_batches(data, most, expected, latest_epoch, offsets)
    if len(run) == most and position < len(data):  # the first one is larger than others
        run, position = _sound_batches(data, compiled.count_batches(data), expected, latest_epoch, offsets)
    if position == len(data):
        return run, None
    if len(run) and expected >= 0:
        expected = run.last_offset + 1
    return run, problem_at(data, position, expected, latest_epoch, offsets)


def _sound_batches(
    data: bytes, most: int, expected: int, latest_epoch: int, offsets: tuple[int, int]
) -> tuple[BatchRun, int]:
    """Return the valid batches at the start of `data`, at most `most`, and their end."""
    rows = memoryview(_rows(most)).cast("q")
    count, position, newest, chosen = compiled.find(data, expected, latest_epoch, *offsets, _table(rows))
    return BatchRun(data, rows[: count * column.COLUMNS], newest if count else -1, chosen), position


def problem_at(
    data: bytes, position: int, expected: int, latest_epoch: int, offsets: tuple[int, int]
) -> ReplicationError | None:
    """The error of the batch at a position of `data`, as in `find_batches`; None for a valid batch."""
    try:
        for start, stop, header in headers(data, position):
            base, last = header.base_offset, header.last_offset
            if header.epoch > latest_epoch:
                return None
            if not header.crc_is_good(memoryview(data)[start:stop]):
                return CorruptRecordError(f"The record batch at offset {base} fails its checksum.")
            if base < expected and expected >= 0:
                message = f"A batch at offset {base} is no continuation of a log that ends at {expected}."
                return UnexpectedAppendOffsetError(message, base, last)
            if not offsets[0] <= last <= offsets[1]:
                return CorruptRecordError(f"The record batch at offset {base} does not belong here.")
            break
    except ReplicationError as error:
        return error
    return None
