"""Finds plain data batches by their headers and CRCs, and the values in them, without an object for each batch."""

from __future__ import annotations

import cython

from kraftlake.kernels.batches import batch_columns as column
from kraftlake.kernels.batches.checksum import crc32c
from kraftlake.kernels.batches.record_values import split_values
from kraftlake.kernels.language import Bytes, Int8, Int64, LongRows, LongRowsOut, LongsOut, UInt64, compiled, inlined

_LARGEST_LONG = 2**63 - 1


@inlined
def number(data: Bytes, p: Int64, size: Int64) -> Int64:
    """A signed big-endian number."""
    value = cython.cast(UInt64, cython.cast(Int64, cython.cast(Int8, data[p])))
    for i in range(1, size):
        value = (value << 8) | data[p + i]
    return cython.cast(Int64, value)


@compiled
def walk_plain(
    data: Bytes, start: Int64, latest: Int64, largest: Int64, most: Int64, found: LongRowsOut
) -> tuple[Int64, Int64, Int64]:
    """Parse the headers of the consecutive plain data batches from `start` on, into the rows of `found`.

    A batch is plain when it is not compressed, not a control batch and without a producer, with times between -1 and
    `latest`, and with at most `largest` bytes and `most` records. Returns their number, the number of records in their
    headers (at most as many as their bytes could hold), and their end. `split_plain` checks their CRCs.
    """
    size = len(data)
    p = start
    batches, records = 0, 0
    offset, epoch = -1, -1
    while p + column.HEADER_SIZE <= size and batches < len(found):
        length = number(data, p + 8, 4)
        stop = p + column.LENGTH_FROM + length
        base, of_epoch, count = number(data, p, 8), number(data, p + 12, 4), number(data, p + 57, 4)
        time, max_time = number(data, p + 27, 8), number(data, p + 35, 8)
        if (
            data[p + 16] != column.MAGIC or data[p + 21] != 0 or data[p + 22] != 0
            or length < column.HEADER_SIZE - column.LENGTH_FROM or stop > size or stop - p > largest
            or base < 0 or count < 1 or number(data, p + 23, 4) != count - 1 or count * column.SMALLEST_RECORD > length
            or count > most
            or base > _LARGEST_LONG - count or of_epoch < -1
            or number(data, p + 43, 8) != -1 or number(data, p + 51, 2) != -1 or number(data, p + 53, 4) != -1
            or max_time < -1 or max_time > latest or time < -1 or time > latest
            or (batches > 0 and (base != offset or of_epoch < epoch))
        ):  # fmt: skip
            break
        found[batches, column.FIRST], found[batches, column.STOP] = p + column.HEADER_SIZE, stop
        found[batches, column.BASE], found[batches, column.COUNT] = base, count
        found[batches, column.EPOCH], found[batches, column.TIME], found[batches, column.MAX_TIME] = (
            of_epoch,
            time,
            max_time,
        )
        batches += 1
        records += count
        offset, epoch, p = base + count, of_epoch, stop
    return batches, records, p


@compiled
def split_plain(
    data: Bytes, found: LongRows, batches: Int64, starts: LongsOut, stops: LongsOut, times: LongsOut
) -> tuple[Int64, Int64]:
    """Store the values and times of the first `batches` rows of `found`; returns the numbers of the sound ones.

    A batch whose CRC differs from its header is not sound. Each batch is split right after its CRC is computed, while
    its bytes are in the cache. The numbers are those of batches and of records.
    """
    at: Int64 = 0
    for index in range(batches):
        first, stop, count = found[index, column.FIRST], found[index, column.STOP], found[index, column.COUNT]
        head = first - column.HEADER_SIZE
        if crc32c(data, head + column.CRC_FROM, stop) != number(data, head + column.CRC_AT, 4) & 0xFFFFFFFF:
            return index, at
        time, max_time = found[index, column.TIME], found[index, column.MAX_TIME]
        if not split_values(data, first, stop, count, time, max_time, starts, stops, times, at):
            return index, at
        at += count
    return batches, at


@compiled
def pass_good(data: Bytes) -> tuple[Int64, Int64]:
    """Walk over the whole batches of any kind with good CRCs at the start of `data`: their end, the next offset.

    The next offset is -1 where there is none. The compiled form of `kraftlake.records.batch_header`.
    """
    size = len(data)
    p = 0
    offset = -1
    while p + column.HEADER_SIZE <= size:
        length = number(data, p + 8, 4)
        end = p + column.LENGTH_FROM + length
        base, delta = number(data, p, 8), number(data, p + 23, 4)
        if (
            data[p + 16] != column.MAGIC or length < column.HEADER_SIZE - column.LENGTH_FROM or end > size
            or base < 0 or delta < 0 or number(data, p + 57, 4) < 0
            or crc32c(data, p + column.CRC_FROM, end) != number(data, p + column.CRC_AT, 4) & 0xFFFFFFFF
        ):  # fmt: skip
            break
        p = end
        offset = base + delta + 1
    return p, offset
