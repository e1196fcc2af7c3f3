"""The records of a client's batch, with the leader's checks."""

from __future__ import annotations

from kraftlake.kernels.batches.record_values import varlong, zigzag_number
from kraftlake.kernels.language import Bool, Bytes, Int64, compiled, inlined

_NO_TIME = -1
_LONGEST = 5
"""The bytes of a number of 32 bits."""
_LARGEST = 2**31 - 1


@inlined
def _varint(data: Bytes, p: Int64, stop: Int64) -> tuple[Int64, Int64]:
    """The 32-bit number at `p` and the position after it; −1 in place of the position for no such number."""
    value, behind = zigzag_number(data, p, stop)
    is_short: Bool = behind - p <= _LONGEST and -_LARGEST - 1 <= value <= _LARGEST
    return value, behind if is_short else -1


@inlined
def _behind(data: Bytes, p: Int64, stop: Int64) -> tuple[Int64, Int64]:
    """The length at `p` and the position after its bytes; −1 in place of the position where they don't fit."""
    length, p = _varint(data, p, stop)
    if p >= 0 and length > 0:
        p += length
    return length, p if p <= stop else -1


@compiled
def walk_records(
    data: Bytes,
    start: Int64,
    end: Int64,
    count: Int64,
    base_time: Int64,
    earliest: Int64,
    latest: Int64,
    needs_key: Bool,
) -> tuple[Int64, Int64]:  # fmt: skip
    """Check that data[start:end) has `count` sound records; returns the verdict and their largest time.

    The verdict is 2 for records as a producer writes them (no attributes, offsets one after another, the first at the
    base time), 1 for records that are sound otherwise, 0 where one is wrong, or not decided here. Times outside of
    [earliest, latest] are wrong unless they are −1.
    """
    p = start
    largest: Int64 = -(1 << 62)
    is_usual: Bool = True
    for i in range(count):
        size, p = _varint(data, p, end)
        stop = p + size
        if p < 0 or size < 6 or stop > end:
            return 0, largest
        is_usual = is_usual and data[p] == 0
        time, p = varlong(data, p + 1, stop)
        if p < 0:
            return 0, largest
        is_usual = is_usual and (i > 0 or time == 0)
        time += base_time
        offset, p = _varint(data, p, stop)
        if p < 0 or (time != _NO_TIME and (time < earliest or time > latest)):
            return 0, largest
        is_usual = is_usual and offset == i
        key, p = _behind(data, p, stop)
        if p < 0 or (key < 0 and needs_key):
            return 0, largest
        _, p = _behind(data, p, stop)
        if p < 0:
            return 0, largest
        headers, p = _varint(data, p, stop)
        if p < 0 or headers < 0 or headers > stop - p:
            return 0, largest
        for _ in range(headers):
            name, p = _behind(data, p, stop)
            if p < 0 or name < 0:
                return 0, largest
            _, p = _behind(data, p, stop)
            if p < 0:
                return 0, largest
        if p != stop:
            return 0, largest
        largest = max(largest, time)
    if p != end:
        return 0, largest
    return 2 if is_usual else 1, largest
