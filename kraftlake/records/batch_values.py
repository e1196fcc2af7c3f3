"""Many record batches at once: the positions of their values, without an object per record. Imports numpy."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any, Final

import attrs
import numpy as np

from kraftlake.kernels.batches.batch_columns import (
    BASE,
    COUNT,
    EPOCH,
    FIRST,
    HEADER_SIZE,
    MAX_TIME,
    SMALLEST_BATCH,
    STOP,
)
from kraftlake.kernels.compiled import split_plain, walk_plain
from kraftlake.records.batch import DEFAULT, LATEST_TIMESTAMP, BatchLimits, RecordBatch, read_batches
from kraftlake.records.batch_header import LENGTH_FROM
from kraftlake.runtime.errors import CorruptDataError


@attrs.frozen(kw_only=True)
class BatchEnd:
    """The fields of a batch that apply to all its records."""

    last_offset: int
    epoch: int
    timestamp: int
    size_in_bytes: int


@attrs.frozen(kw_only=True, eq=False)
class BatchValues:
    """The values of consecutive data batches without a gap.

    Record `base_offset + i` has the value data[starts[i]:stops[i]] and the time times[i] (epoch ms, -1 for none). The
    batches, in order, have `last_offsets`, `epochs`, `timestamps` (the largest of their records') and `sizes` in bytes.
    `data` is uint8, all other arrays are int64. About `following` more records follow in the same run of batches, so
    that memory for all of them can be reserved at once.
    """

    base_offset: int
    data: Any = attrs.field(repr=False)
    starts: Any = attrs.field(repr=False)
    stops: Any = attrs.field(repr=False)
    times: Any = attrs.field(repr=False)
    last_offsets: Any = attrs.field(repr=False)
    epochs: Any = attrs.field(repr=False)
    timestamps: Any = attrs.field(repr=False)
    sizes: Any = attrs.field(repr=False)
    following: int = 0

    @property
    def last_offset(self) -> int:
        """The offset of the last record."""
        return int(self.last_offsets[-1])

    @property
    def base_offsets(self) -> Any:
        """The first offset of each batch (int64)."""
        return np.append(self.base_offset, self.last_offsets[:-1] + 1)

    @property
    def epoch(self) -> int:
        """The epoch of the first batch."""
        return int(self.epochs[0])

    @property
    def last_epoch(self) -> int:
        """The epoch of the last batch."""
        return int(self.epochs[-1])

    @property
    def record_count(self) -> int:
        """The number of records."""
        return len(self.starts)

    @property
    def batch_count(self) -> int:
        """The number of batches."""
        return len(self.last_offsets)

    @property
    def payload_bytes(self) -> int:
        """The size of all values in bytes."""
        return int((self.stops - self.starts).sum())

    @property
    def size_in_bytes(self) -> int:
        """The size of all batches in bytes."""
        return int(self.sizes.sum())

    def end_at(self, offset: int) -> BatchEnd:
        """The end of the batch that holds an offset."""
        index = int(np.searchsorted(self.last_offsets, offset))
        return BatchEnd(
            last_offset=int(self.last_offsets[index]),
            epoch=int(self.epochs[index]),
            timestamp=int(self.timestamps[index]),
            size_in_bytes=int(self.sizes[index]),
        )

    def ended_within(self, from_offset: int, to_offset: int) -> tuple[int, int]:
        """The number of batches that end at an offset in [from_offset, to_offset), and their bytes."""
        first, last = np.searchsorted(self.last_offsets, [from_offset, to_offset])
        return int(last - first), int(self.sizes[first:last].sum())

    def batches(self, from_offset: int) -> Iterator[RecordBatch]:
        """The batches that hold `from_offset` or come after it."""
        first = int(np.searchsorted(self.last_offsets, from_offset))
        base = self.base_offset if first == 0 else int(self.last_offsets[first - 1]) + 1
        ends = (self.last_offsets, self.epochs, self.timestamps, self.sizes)
        for last_offset, epoch, timestamp, size in zip(*(array[first:].tolist() for array in ends), strict=True):
            places = range(base - self.base_offset, last_offset + 1 - self.base_offset)
            yield RecordBatch(
                base_offset=base, epoch=epoch, timestamp=timestamp, values=tuple([self.value(i) for i in places]),
                timestamps=tuple(self.times[places.start : places.stop].tolist()), size_in_bytes=size,
            )  # fmt: skip
            base = last_offset + 1

    def value(self, index: int) -> bytes:
        """The value of one record."""
        return self.data[self.starts[index] : self.stops[index]].tobytes()  # type: ignore[no-any-return]

    def count_of(self, value: bytes) -> int:
        """The number of records with this value."""
        starts = self.starts[self.stops - self.starts == len(value)]
        same = np.ones(len(starts), np.bool_)
        for place, byte in enumerate(value):
            same &= self.data[starts + place] == byte
        return int(np.count_nonzero(same))

    def has_same_batches(self, other: BatchValues, first: int, stop: int) -> bool:
        """Whether both have the same batches at [first, stop), where a batch begins at `first` in both of them."""
        one, two = (each._of_offsets(first, stop) for each in (self, other))
        return all(np.array_equal(mine, theirs) for mine, theirs in zip(one, two, strict=True)) and np.array_equal(
            self._packed(first, stop), other._packed(first, stop)
        )

    def _of_offsets(self, first: int, stop: int) -> tuple[Any, ...]:
        """Return the ends and epochs of the batches at [first, stop), and the times and lengths of their records."""
        begin, end = np.searchsorted(self.last_offsets, [first, stop - 1])
        batches = slice(begin, end + 1)
        records = slice(first - self.base_offset, stop - self.base_offset)
        lengths = self.stops[records] - self.starts[records]
        return self.last_offsets[batches], self.epochs[batches], self.times[records], lengths

    def _packed(self, first: int, stop: int) -> Any:
        """Return the values at [first, stop) without the bytes between them."""
        records = slice(first - self.base_offset, stop - self.base_offset)
        starts, stops = self.starts[records], self.stops[records]
        lengths = stops - starts
        ends = np.cumsum(lengths)
        return self.data[np.repeat(starts - ends + lengths, lengths) + np.arange(ends[-1])]


LARGEST_PART: Final = 8 << 20
"""The approximate maximum size in bytes of a part of the values: a part fits the processor's caches."""
_FIRST_PART = 1 << 19
_WHOLE_BELOW: Final = 1 << 22
"""The size in bytes below which a run of batches is one part."""


def read_values(
    data: memoryview, *, file: str, position: int, limits: BatchLimits = DEFAULT
) -> Iterator[BatchValues | RecordBatch]:
    """Yield the batches in `data`: runs of plain data batches, in parts, and other batches one by one.

    The function stops silently before the first invalid batch: `read_batches` reports the reason.
    """
    start, size = 0, len(data)
    array = np.frombuffer(data, np.uint8)
    while start < size:
        stop = yield from _batch_run(array, start, limits)
        if stop >= size:
            return
        length = int.from_bytes(data[stop + 8 : stop + LENGTH_FROM], "big") + LENGTH_FROM
        try:
            (batch,) = read_batches(data[stop : stop + length], file=file, position=position + stop, limits=limits)
        except (CorruptDataError, ValueError):
            return
        yield batch
        start = stop + length


def _batch_run(array: Any, start: int, limits: BatchLimits) -> Generator[BatchValues, None, int]:
    """Yield the plain data batches from `start` on; returns their end."""
    found = np.empty(((len(array) - start) // SMALLEST_BATCH + 1, 7), np.int64)
    walked, following, position = walk_plain(array, start, LATEST_TIMESTAMP, limits.batch_bytes, limits.records, found)
    first, part = 0, _FIRST_PART if position - start >= _WHOLE_BELOW else _WHOLE_BELOW
    while first < walked:
        end = int(found[first, FIRST]) - HEADER_SIZE + part
        last = max(first + 1, int(np.searchsorted(found[:walked, STOP], end, side="right")))
        batches = found[first:last]
        records = int(batches[:, COUNT].sum())
        following -= records
        values = _split(array, batches, records, following)
        if values is not None:
            yield values
        if values is None or values.batch_count < len(batches):
            bad = first + (0 if values is None else values.batch_count)
            return int(found[bad, FIRST]) - HEADER_SIZE
        first, part = last, min(2 * part, LARGEST_PART)
    return int(position)


def _split(array: Any, found: Any, total: int, following: int) -> BatchValues | None:
    """Return the values of batches, `total` records, up to the first invalid batch; None if that is the first one."""
    starts, stops, times = np.empty(total, np.int64), np.empty(total, np.int64), np.empty(total, np.int64)
    sound, records = split_plain(array, found, len(found), starts, stops, times)
    if not sound:
        return None
    found = found[:sound]
    return BatchValues(
        base_offset=int(found[0, BASE]),
        data=array,
        starts=starts[:records],
        stops=stops[:records],
        times=times[:records],
        last_offsets=found[:, BASE] + found[:, COUNT] - 1,
        epochs=found[:, EPOCH].copy(),
        timestamps=found[:, MAX_TIME].copy(),
        sizes=found[:, STOP] - found[:, FIRST] + HEADER_SIZE,
        following=following,
    )
