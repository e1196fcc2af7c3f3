"""Numbers written in the form of a batch's values, for kernels that make such values."""

from __future__ import annotations

import cython

from kraftlake.kernels.language import BytesOut, Int64, UInt32, UInt64, inlined


@inlined
def put_int(data: BytesOut, p: Int64, number: Int64) -> Int64:
    """Write a 32-bit number, big-endian, at `p`; returns the position after it."""
    value = cython.cast(UInt32, number)
    data[p] = value >> 24
    data[p + 1] = value >> 16 & 0xFF
    data[p + 2] = value >> 8 & 0xFF
    data[p + 3] = value & 0xFF
    return p + 4


@inlined
def put_uvarint(data: BytesOut, p: Int64, number: UInt64) -> Int64:
    """Write a number of 0 or more, seven bits a byte, at `p`; returns the position after it."""
    while number >= 0x80:
        data[p] = number & 0x7F | 0x80
        number >>= 7
        p += 1
    data[p] = number
    return p + 1


@inlined
def uvarint_size(number: UInt64) -> Int64:
    """The bytes that `put_uvarint` writes."""
    size: Int64 = 1
    while number >= 0x80:
        number >>= 7
        size += 1
    return size


@inlined
def zigzag(number: Int64) -> UInt64:
    """The unsigned number that encodes a signed one in a varint: 0, -1, 1, -2, … become 0, 1, 2, 3, …"""
    return (cython.cast(UInt64, number) << 1) ^ cython.cast(UInt64, number >> 63)
