"""Where the values lie in the records section of a batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from kraftlake.kernels.aot.compiled import compiled, inlined


@inlined
def varlong(data: Any, p: Any, end: int) -> Any:
    """A zigzag number of at most 56 bits and the position behind it; -1 instead where there is none."""
    if p >= end:
        return np.int64(0), np.int64(-1)
    byte = np.int64(data[np.uint64(p)])
    p += 1
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), p
    value = byte & 0x7F
    shift = 7
    while p < end and shift < 56:
        byte = np.int64(data[np.uint64(p)])
        p += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), p
        shift += 7
    return value, np.int64(-1)


@compiled
def split_values(data: Any, start: int, end: int, count: int, base_time: int, max_time: int, starts: Any, stops: Any,
                 times: Any, first: int) -> bool:  # fmt: skip
    """Find the `count` values of a data batch in data[start:end), into `starts`, `stops` and `times` from `first` on.

    False when something is not as a metadata log has it: `kraftlake.records.batch` says what.
    """
    p = np.int64(start)
    latest = np.int64(-(2**62))
    earliest = np.int64(2**62)
    for i in range(count):
        size, p = varlong(data, p, end)
        stop = p + size
        if p < 0 or size < 6 or stop > end or data[np.uint64(p)] != 0:
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
        place = np.uint64(first + i)
        starts[place] = p
        stops[place] = p + length
        times[place] = base_time + time
        p = stop
    return bool(p == end and base_time + latest == max_time and base_time + earliest >= -1)
