"""Many record batches at once: where the values lie, without an object a record. Imports numpy and numba."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Any

import attrs
import numpy as np
from crc32c import crc32c

from kraftlake.kernels.record_values import split_values
from kraftlake.records.batch import LATEST_TIMESTAMP, NO_TIMESTAMP, RecordBatch, read_batches
from kraftlake.records.batch_format import CRC_FROM, HEADER, LARGEST_LONG, LENGTH_FROM, MAGIC, NO_PRODUCER
from kraftlake.runtime.errors import CorruptDataError


@attrs.frozen(kw_only=True)
class BatchEnd:
    """What a batch says of all its records."""

    last_offset: int
    epoch: int
    timestamp: int
    size_in_bytes: int


@attrs.frozen(kw_only=True, eq=False)
class BatchValues:
    """The values of data batches that follow each other without a gap.

    Record `base_offset + i` has the value data[starts[i]:stops[i]]; `data` is uint8, the others int64. `ends` are the
    batches in their order.
    """

    base_offset: int
    data: Any = attrs.field(repr=False)
    starts: Any = attrs.field(repr=False)
    stops: Any = attrs.field(repr=False)
    ends: tuple[BatchEnd, ...]

    @property
    def last_offset(self) -> int:
        """The last record's offset."""
        return self.ends[-1].last_offset

    @property
    def epoch(self) -> int:
        """The epoch of the first batch."""
        return self.ends[0].epoch

    @property
    def size_in_bytes(self) -> int:
        """The bytes of all batches."""
        return sum(end.size_in_bytes for end in self.ends)

    def end_at(self, offset: int) -> BatchEnd:
        """The batch that holds an offset."""
        return self.ends[bisect_left(self.ends, offset, key=lambda end: end.last_offset)]

    def batches(self, from_offset: int) -> Iterator[RecordBatch]:
        """The batches that hold `from_offset` or come after it; their records all have the batch's time."""
        base = self.base_offset
        for end in self.ends:
            count = end.last_offset + 1 - base
            if end.last_offset >= from_offset:
                first = base - self.base_offset
                values = tuple([self.value(index) for index in range(first, first + count)])
                yield RecordBatch(
                    base_offset=base, epoch=end.epoch, timestamp=end.timestamp, values=values,
                    timestamps=(end.timestamp,) * count, size_in_bytes=end.size_in_bytes,
                )  # fmt: skip
            base = end.last_offset + 1

    def value(self, index: int) -> bytes:
        """One record's value."""
        return self.data[self.starts[index] : self.stops[index]].tobytes()  # type: ignore[no-any-return]


def read_values(data: memoryview, *, file: str, position: int) -> Iterator[BatchValues | RecordBatch]:
    """The batches that `data` holds: stretches of plain data batches, and others one by one.

    It ends in front of the first batch that is not as it should be, without a word: `read_batches` says what is wrong.
    """
    start, size = 0, len(data)
    array = np.frombuffer(data, np.uint8)
    while start < size:
        values, stop = _stretch(data, array, start)
        if values is not None:
            yield values
        if stop >= size:
            return
        length = int.from_bytes(data[stop + 8 : stop + LENGTH_FROM], "big") + LENGTH_FROM
        try:
            (batch,) = read_batches(data[stop : stop + length], file=file, position=position + stop)
        except (CorruptDataError, ValueError):
            return
        yield batch
        start = stop + length


def _stretch(data: memoryview, array: Any, start: int) -> tuple[BatchValues | None, int]:
    """The plain data batches that begin at `start`, and where they end."""
    ends: list[BatchEnd] = []
    places: list[tuple[int, int, int, int, int]] = []
    size, first, position, offset, epoch, total = len(data), start, start, -1, -1, 0
    while position + HEADER.size <= size:
        (base, length, of_epoch, magic, crc, attributes, last, time, max_time, producer, producer_epoch, sequence,
         count) = HEADER.unpack_from(data, position)  # fmt: skip
        stop = position + LENGTH_FROM + length
        if (
            magic != MAGIC or attributes or length < HEADER.size - LENGTH_FROM or stop > size or base < 0
            or count < 1 or last != count - 1 or count * 7 > length or base + count > LARGEST_LONG
            or (producer, producer_epoch, sequence) != NO_PRODUCER or not NO_TIMESTAMP <= max_time <= LATEST_TIMESTAMP
            or not NO_TIMESTAMP <= time <= LATEST_TIMESTAMP
            or (ends and (base != offset or of_epoch < epoch)) or of_epoch < -1
            or crc32c(data[position + CRC_FROM : stop]) != crc
        ):  # fmt: skip
            break
        places.append((position + HEADER.size, stop, count, time, max_time))
        ends.append(BatchEnd(last_offset=base + count - 1, epoch=of_epoch, timestamp=max_time,
                             size_in_bytes=stop - position))  # fmt: skip
        offset, epoch, total, position = base + count, of_epoch, total + count, stop
    starts, stops = np.empty(total, np.int64), np.empty(total, np.int64)
    at = 0
    for index, (begin, stop, count, time, max_time) in enumerate(places):
        if not split_values(array, begin, stop, count, time, max_time, starts, stops, at):
            del ends[index:]
            position = begin - HEADER.size
            break
        at += count
    if not ends:
        return None, position
    base = ends[-1].last_offset + 1 - at
    assert position > first, "what was split takes bytes"
    return BatchValues(base_offset=base, data=array, starts=starts[:at], stops=stops[:at], ends=tuple(ends)), position
