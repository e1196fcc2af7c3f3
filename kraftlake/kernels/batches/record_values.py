"""The positions of the values in the records section of a batch."""

from __future__ import annotations

import cython

from kraftlake.kernels.language import Bool, Bytes, Int64, LongsOut, UInt64, compiled, inlined

_LONGEST = 8
"""The bytes of a number of 56 bits."""


@inlined
def zigzag_number(data: Bytes, p: Int64, end: Int64) -> tuple[Int64, Int64]:
    """A zigzag number of at most 64 bits and the position after it; -1 in place of the position for no such number."""
    if p < 0 or p >= end:
        return 0, -1
    value = cython.cast(UInt64, data[p])
    p += 1
    if value < 0x80:
        return cython.cast(Int64, value >> 1) ^ -cython.cast(Int64, value & 1), p
    value &= 0x7F
    shift = 7
    while p < end and shift < 70:
        byte = cython.cast(UInt64, data[p])
        p += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return cython.cast(Int64, value >> 1) ^ -cython.cast(Int64, value & 1), p
        shift += 7
    return 0, -1


@inlined
def varlong(data: Bytes, p: Int64, end: Int64) -> tuple[Int64, Int64]:
    """The same of at most 56 bits, to which others can be added."""
    value, behind = zigzag_number(data, p, end)
    return value, behind if behind - p <= _LONGEST else -1


@compiled
def split_values(
    data: Bytes, start: Int64, end: Int64, count: Int64, base_time: Int64, max_time: Int64, starts: LongsOut,
    stops: LongsOut, times: LongsOut, first: Int64,
) -> Bool:  # fmt: skip
    """Find the `count` values of a data batch in data[start:end), into `starts`, `stops` and `times` from `first` on.

    False when something differs from a metadata log's form: `kraftlake.records.batch` reports the fault.
    """
    p = start
    latest: Int64 = -(1 << 62)
    earliest: Int64 = 1 << 62
    for i in range(count):
        size, p = varlong(data, p, end)
        stop = p + size
        if p < 0 or size < 6 or stop > end or data[p] != 0:
            return False
        time, p = varlong(data, p + 1, stop)
        if p < 0:
            return False
        offset, p = varlong(data, p, stop)
        if p < 0 or offset != i:
            return False
        key, p = varlong(data, p, stop)
        if p < 0 or key != -1:
            return False
        length, p = varlong(data, p, stop)
        if p < 0 or length < 0 or p + length + 1 != stop or data[stop - 1] != 0:
            return False
        latest = max(latest, time)
        earliest = min(earliest, time)
        starts[first + i] = p
        stops[first + i] = p + length
        times[first + i] = base_time + time
        p = stop
    return p == end and base_time + latest == max_time and base_time + earliest >= -1
