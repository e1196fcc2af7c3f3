"""Numbers written as a batch's values hold them, for kernels that make such values."""

from __future__ import annotations

from typing import Any

import numpy as np

from kraftlake.kernels.aot.compiled import inlined


@inlined
def put_int(data: Any, p: Any, number: Any) -> Any:
    """Write a 32-bit number, big-endian, at `p`; gives the position behind it."""
    value = np.uint32(number)
    data[p] = value >> np.uint32(24)
    data[p + 1] = value >> np.uint32(16) & np.uint32(0xFF)
    data[p + 2] = value >> np.uint32(8) & np.uint32(0xFF)
    data[p + 3] = value & np.uint32(0xFF)
    return p + 4


@inlined
def put_uvarint(data: Any, p: Any, number: Any) -> Any:
    """Write a number of 0 or more, seven bits a byte, at `p`; gives the position behind it."""
    value = np.uint64(number)
    while value >= np.uint64(0x80):
        data[p] = value & np.uint64(0x7F) | np.uint64(0x80)
        value >>= np.uint64(7)
        p += 1
    data[p] = value
    return p + 1


@inlined
def uvarint_size(number: Any) -> Any:
    """The bytes that `put_uvarint` writes."""
    value = np.uint64(number)
    size = np.int64(1)
    while value >= np.uint64(0x80):
        value >>= np.uint64(7)
        size += 1
    return size


@inlined
def zigzag(number: Any) -> Any:
    """The unsigned number that encodes a signed one in a varint: 0, -1, 1, -2, … become 0, 1, 2, 3, …"""
    value = np.int64(number)
    return np.uint64((value << np.int64(1)) ^ (value >> np.int64(63)))
