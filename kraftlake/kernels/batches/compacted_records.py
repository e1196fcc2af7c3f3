"""The records of a batch as compaction takes them: the latest offset of each key, and the records that stay."""

from __future__ import annotations

import cython

from kraftlake.kernels.batches.put_bytes import put_uvarint, uvarint_size, zigzag
from kraftlake.kernels.batches.record_values import zigzag_number
from kraftlake.kernels.language import Bool, Bytes, BytesOut, Hashes, HashesOut, Int64, UInt64, compiled, inlined

_LARGEST = 2**31 - 1
_SLOT = 3
"""The numbers of a slot of a table: two of the key's hash, and its latest offset + 1; 0 in an empty slot."""


@inlined
def _length(data: Bytes, p: Int64, stop: Int64) -> tuple[Int64, Int64]:
    """The length at `p`, −1 for null, and the position after it; −1 for a length beyond `stop`."""
    length, p = zigzag_number(data, p, stop)
    return length, p if p >= 0 and -1 <= length <= stop - p else -1


@inlined
def _word(data: Bytes, p: Int64, count: Int64) -> UInt64:
    """The number of up to eight bytes at `p`, little-endian."""
    word: UInt64 = 0
    for i in range(count):
        word |= cython.cast(UInt64, data[p + i]) << (8 * i)
    return word


@inlined
def _rotated(x: UInt64, bits: Int64) -> UInt64:
    return (x << bits) | (x >> (64 - bits))


@inlined
def _rounds(
    count: Int64, v0: UInt64, v1: UInt64, v2: UInt64, v3: UInt64
) -> tuple[UInt64, UInt64, UInt64, UInt64]:  # fmt: skip
    for _ in range(count):
        v0 += v1
        v2 += v3
        v1 = _rotated(v1, 13) ^ v0
        v3 = _rotated(v3, 16) ^ v2
        v0 = _rotated(v0, 32)
        v2 += v1
        v0 += v3
        v1 = _rotated(v1, 17) ^ v2
        v3 = _rotated(v3, 21) ^ v0
        v2 = _rotated(v2, 32)
    return v0, v1, v2, v3


@inlined
def _hash(data: Bytes, start: Int64, stop: Int64, k0: UInt64, k1: UInt64) -> tuple[UInt64, UInt64]:
    """SipHash-2-4 with 128 bits of data[start:stop) under the secret (k0, k1)."""
    v0: UInt64 = k0 ^ 0x736F6D6570736575
    v1: UInt64 = k1 ^ 0x646F72616E646F6D ^ 0xEE
    v2: UInt64 = k0 ^ 0x6C7967656E657261
    v3: UInt64 = k1 ^ 0x7465646279746573
    p = start
    while stop - p >= 8:
        word = _word(data, p, 8)
        v0, v1, v2, v3 = _rounds(2, v0, v1, v2, v3 ^ word)
        v0 ^= word
        p += 8
    word = _word(data, p, stop - p) | cython.cast(UInt64, stop - start) << 56
    v0, v1, v2, v3 = _rounds(2, v0, v1, v2, v3 ^ word)
    v0, v1, v2, v3 = _rounds(4, v0 ^ word, v1, v2 ^ 0xEE, v3)
    first: UInt64 = v0 ^ v1 ^ v2 ^ v3
    v0, v1, v2, v3 = _rounds(4, v0, v1 ^ 0xDD, v2, v3)
    second: UInt64 = v0 ^ v1 ^ v2 ^ v3
    return first, second


@inlined
def _slot(table: Hashes, first: UInt64, second: UInt64) -> Int64:
    """The slot of a hash: its own, or the empty one in which it belongs. A table always has empty slots."""
    slots: Int64 = len(table) // _SLOT
    at: Int64 = cython.cast(Int64, first % cython.cast(UInt64, slots))
    while table[_SLOT * at + 2] != 0 and (table[_SLOT * at] != first or table[_SLOT * at + 1] != second):
        at += 1
        if at == slots:
            at = 0
    return at


@inlined
def _head(data: Bytes, p: Int64, end: Int64) -> tuple[Int64, Int64, Int64, Int64]:
    """A record's end, time delta, offset delta, and the position of its key's length; an end of −1 for no record."""
    size, p = zigzag_number(data, p, end)
    if p < 0 or size < 6 or size > end - p:
        return -1, 0, 0, 0
    stop = p + size
    time, p = zigzag_number(data, p + 1, stop)
    offset, p = zigzag_number(data, p, stop)
    return stop if p >= 0 and 0 <= offset <= _LARGEST else -1, time, offset, p


@compiled
def put_keys(
    data: Bytes, start: Int64, count: Int64, base_offset: Int64, first_offset: Int64, table: HashesOut, used: Int64,
    limit: Int64, k0: UInt64, k1: UInt64,
) -> tuple[Int64, Int64, Int64]:  # fmt: skip
    """Put the offsets of the `count` records in data[start:] into a table, by their keys' hashes under (k0, k1).

    Records below `first_offset` and those without a key are left out. Returns the used slots, the offset of the last
    record that was put, −1 for none, and how it ended: 0, 1 if the table has `limit` used slots before the last key, −1
    where bytes are no record.
    """
    p = start
    end: Int64 = len(data)
    latest: Int64 = -1
    for _ in range(count):
        stop, _time, offset, p = _head(data, p, end)
        if stop < 0:
            return used, latest, -1
        length, p = _length(data, p, stop)
        if p < 0:
            return used, latest, -1
        if length >= 0 and base_offset + offset >= first_offset:
            if used >= limit:
                return used, latest, 1
            first, second = _hash(data, p, p + length, k0, k1)
            at = _SLOT * _slot(table, first, second)
            if table[at + 2] == 0:
                used += 1
                table[at] = first
                table[at + 1] = second
            latest = base_offset + offset
            table[at + 2] = cython.cast(UInt64, latest + 1)
        p = stop
    return used, latest, 0


@compiled
def move_keys(table: Hashes, larger: HashesOut) -> None:
    """Put the keys of a table into an empty larger one."""
    for i in range(len(table) // _SLOT):
        if table[_SLOT * i + 2] != 0:
            at = _SLOT * _slot(larger, table[_SLOT * i], table[_SLOT * i + 1])
            for k in range(_SLOT):
                larger[at + k] = table[_SLOT * i + k]


@compiled
def choose_records(
    data: Bytes, start: Int64, count: Int64, base_offset: Int64, latest_offset: Int64, table: Hashes, k0: UInt64,
    k1: UInt64, keeps_tombstones: Bool, chosen: BytesOut,
) -> tuple[Int64, Int64, Int64, Int64]:  # fmt: skip
    """Set chosen[i] to 1 for each record in data[start:] that stays, else to 0.

    A record stays above `latest_offset`, or if it has a key with no later offset in the table, and a value unless
    `keeps_tombstones`. Returns the number of such records, −1 where bytes are no record, of those without a value, and
    the time delta of the first one and the largest one.
    """
    p = start
    end: Int64 = len(data)
    kept: Int64 = 0
    tombstones: Int64 = 0
    first_time: Int64 = 0
    largest: Int64 = 0
    for i in range(count):
        stop, time, offset, p = _head(data, p, end)
        if stop < 0:
            return -1, 0, 0, 0
        length, p = _length(data, p, stop)
        if p < 0:
            return -1, 0, 0, 0
        value, q = _length(data, p + max(length, 0), stop)
        if q < 0:
            return -1, 0, 0, 0
        stays: Bool = base_offset + offset > latest_offset
        if not stays and length >= 0 and (value >= 0 or keeps_tombstones):
            first, second = _hash(data, p, p + length, k0, k1)
            found = table[_SLOT * _slot(table, first, second) + 2]
            stays = cython.cast(UInt64, base_offset + offset + 1) >= found
        chosen[i] = stays
        if stays:
            if kept == 0:
                first_time = time
                largest = time
            kept += 1
            tombstones += value < 0
            largest = max(largest, time)
        p = stop
    return kept, tombstones, first_time, largest


@compiled
def put_chosen(
    data: Bytes, start: Int64, chosen: Bytes, shift: Int64, has_one_time: Bool, records: BytesOut
) -> Int64:  # fmt: skip
    """Write the chosen records in data[start:] without attributes, with `shift` added to their time deltas.

    With `has_one_time`, `shift` is the time delta of each. `choose_records` has found the records sound; `records` has
    room for all of them and 16 bytes for each. Returns the bytes written.
    """
    p = start
    end: Int64 = len(data)
    at: Int64 = 0
    for i in range(len(chosen)):
        stop, time, offset, p = _head(data, p, end)
        if chosen[i] != 0:
            delta = zigzag(shift if has_one_time else time + shift)
            place = zigzag(offset)
            size = 1 + uvarint_size(delta) + uvarint_size(place) + stop - p
            at = put_uvarint(records, at, zigzag(size))
            records[at] = 0
            at = put_uvarint(records, at + 1, delta)
            at = put_uvarint(records, at, place)
            for k in range(p, stop):
                records[at] = data[k]
                at += 1
        p = stop
    return at
