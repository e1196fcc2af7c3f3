"""The CRC32C of a byte string whose parts several processes read or write."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Final

_POLYNOMIAL: Final = 0x82F63B78


def joined(parts: Iterable[tuple[int, int]]) -> int:
    """The checksum of the concatenation of byte strings, from the checksum and the length of each."""
    total = 0
    for checksum, length in parts:
        total = _after_zeros(total, length) ^ checksum
    return total


def _after_zeros(checksum: int, length: int) -> int:
    """`checksum` after appending `length` zeros."""
    power = 0
    while length:
        if length & 1:
            checksum = _times(_zeros(power), checksum)
        length >>= 1
        power += 1
    return checksum


@cache
def _zeros(power: int) -> tuple[int, ...]:
    """The matrix over GF(2) that appends 2**power zero bytes, one column (an integer) for each bit of a checksum."""
    if power:
        half = _zeros(power - 1)
        return tuple(_times(half, column) for column in half)
    matrix = (_POLYNOMIAL, *(1 << bit for bit in range(31)))  # one zero bit
    for _ in range(3):
        matrix = tuple(_times(matrix, column) for column in matrix)
    return matrix


def _times(matrix: tuple[int, ...], vector: int) -> int:
    product = 0
    for column in matrix:
        if not vector:
            break
        if vector & 1:
            product ^= column
        vector >>= 1
    return product
