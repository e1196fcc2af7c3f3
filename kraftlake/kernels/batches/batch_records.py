"""The records section of data batches: each value with the bytes around it in a batch of format v2.

Source: org.apache.kafka.common.record.DefaultRecord.
"""

from __future__ import annotations

from kraftlake.kernels.batches.put_bytes import put_uvarint, uvarint_size, zigzag
from kraftlake.kernels.language import Bytes, BytesOut, Int64, Longs, LongsOut, compiled, inlined

NO_KEY = 1
"""A length of -1, as a varint."""


@inlined
def _body_size(size: Int64, time: Int64, delta: Int64) -> Int64:
    """The bytes of a record after its length: attributes, deltas, no key, the value and its length, no headers."""
    return 3 + uvarint_size(zigzag(time)) + uvarint_size(delta << 1) + uvarint_size(size << 1) + size


@compiled
def measure_sections(starts: Longs, stops: Longs, times: Longs, ends: Longs, sections: LongsOut) -> None:
    """Store the bytes of the records of each batch b, which are those up to ends[b], into `sections` (int64)."""
    first: Int64 = 0
    for b in range(len(ends)):
        total: Int64 = 0
        for i in range(first, ends[b]):
            body = _body_size(stops[i] - starts[i], times[i] - times[first], i - first)
            total += uvarint_size(body << 1) + body
        sections[b] = total
        first = ends[b]


@compiled
def write_sections(data: Bytes, starts: Longs, stops: Longs, times: Longs, ends: Longs, out: BytesOut) -> None:
    """Write the sections that `measure_sections` has measured, one after the other.

    Record i has the value data[starts[i]:stops[i]] and the time times[i], in ms.
    """
    p: Int64 = 0
    first: Int64 = 0
    for b in range(len(ends)):
        for i in range(first, ends[b]):
            size, time, delta = stops[i] - starts[i], times[i] - times[first], i - first
            p = put_uvarint(out, p, _body_size(size, time, delta) << 1)
            out[p] = 0
            p = put_uvarint(out, p + 1, zigzag(time))
            p = put_uvarint(out, p, delta << 1)
            out[p] = NO_KEY
            p = put_uvarint(out, p + 1, size << 1)
            for at in range(starts[i], stops[i]):
                out[p] = data[at]
                p += 1
            out[p] = 0
            p += 1
        first = ends[b]
