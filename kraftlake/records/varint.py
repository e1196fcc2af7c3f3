"""Kafka's variable-length integers: 7 bits per byte, the least significant first; zigzag if signed.

Source: org.apache.kafka.common.utils.ByteUtils.
"""

from __future__ import annotations


class MalformedError(Exception):
    """Reports bytes that violate the format; callers convert it to a CorruptDataError with the place."""


def read_uvarint(data: bytes | memoryview, position: int) -> tuple[int, int]:
    """Read the unsigned 32-bit number at `position`; returns it and the position after it.

    Raises MalformedError for more than 5 bytes or a number above 2³²-1, IndexError if the bytes end.
    """
    value = data[position]
    position += 1
    if value < 0x80:
        return value, position
    value &= 0x7F
    for shift in (7, 14, 21, 28):
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > 0xFFFFFFFF:
                break
            return value, position
    raise MalformedError("a variable-length number is longer than 32 bits")


def read_varint(data: bytes | memoryview, position: int) -> tuple[int, int]:
    """Read the signed (zigzag) 32-bit number at `position`; returns it and the position after it.

    Raises as `read_uvarint`.
    """
    value, position = read_uvarint(data, position)
    return (value >> 1) ^ -(value & 1), position


def read_varlong(data: bytes | memoryview, position: int) -> tuple[int, int]:
    """Read the signed (zigzag) 64-bit number at `position`; returns it and the position after it.

    Raises MalformedError for more than 10 bytes or 64 bits, IndexError if the bytes end.
    """
    value = 0
    for shift in range(0, 70, 7):
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > 0xFFFFFFFFFFFFFFFF:
                break
            return (value >> 1) ^ -(value & 1), position
    raise MalformedError("a variable-length number is longer than 64 bits")


def uvarint(value: int) -> bytes:
    """Encode an unsigned number; raises ValueError for a negative one."""
    if 0 <= value < 0x80:
        return _ONE_BYTE[value]
    if value < 0:
        raise ValueError(f"{value} is negative")
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def varint(value: int) -> bytes:
    """Encode a signed number, 32 or 64 bits."""
    return uvarint((value << 1) ^ (value >> 63))


_ONE_BYTE = tuple(bytes((value,)) for value in range(0x80))
