"""The CRC32C of bytes that were read, or written, in pieces by several processes."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Final

_POLYNOMIAL: Final = 0x82F63B78


def joined(parts: Iterable[tuple[int, int]]) -> int:
    """The checksum of byte strings one behind the other, of which each has a checksum and a length."""
    total = 0
    for checksum, length in parts:
        total = _after_zeros(total, length) ^ checksum
    return total


def _after_zeros(checksum: int, length: int) -> int:
    """What `checksum` becomes by so many bytes that say nothing."""
    power = 0
    while length:
        if length & 1:
            checksum = _times(_zeros(power), checksum)
        length >>= 1
        power += 1
    return checksum


@cache
def _zeros(power: int) -> tuple[int, ...]:
    """The matrix over GF(2) of 2**power zero bytes, a number for each bit of what it is applied to."""
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
