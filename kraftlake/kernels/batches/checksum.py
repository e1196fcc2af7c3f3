"""The checksum of record batches, CRC32C (polynomial 0x1EDC6F41, reflected), in compiled loops.

By the processor's own instruction where it has one, which takes eight bytes in three cycles and may begin the next
eight in each: so long stretches are gone over in three lanes at once, whose checksums are then put together. By tables
where it has none.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from kraftlake.kernels.aot.compiled import Instruction, compiled, inlined
from kraftlake.kernels.batches.unaligned import load_unaligned

LANE: Final = 256
"""Bytes of each of the three lanes; a multiple of eight."""

_POLYNOMIAL = 0x82F63B78


def _tables_by_byte() -> Any:
    """What eight bytes at a time do to a checksum, byte by byte."""
    tables = np.zeros((8, 256), np.uint64)
    crcs = np.arange(256)
    for _ in range(8):
        crcs = (crcs >> 1) ^ (_POLYNOMIAL * (crcs & 1))
    tables[0] = crcs
    for number in range(1, 8):
        before = tables[number - 1]
        tables[number] = tables[0][before & np.uint64(0xFF)] ^ (before >> np.uint64(8))
    return tables


def _tables_behind(zeros: int) -> Any:
    """What as many zero bytes as that make of a checksum, by each of its four bytes."""
    tables = np.zeros((4, 256), np.uint64)
    of_bits = np.uint64(1) << np.arange(32, dtype=np.uint64)
    for _ in range(zeros):
        of_bits = _BY_BYTE[0][of_bits & np.uint64(0xFF)] ^ (of_bits >> np.uint64(8))
    for bit, crc in enumerate(of_bits):
        tables[bit >> 3, np.arange(256) >> (bit & 7) & 1 == 1] ^= crc
    return tables


_BY_BYTE = _tables_by_byte()
_BEHIND_A_LANE = _tables_behind(LANE)


@inlined
def _by_tables(crc: Any, word: Any) -> Any:
    """The checksum after eight more bytes, the first of them the lowest of `word`."""
    x = crc ^ word
    low = np.uint64(0xFF)
    return (
        _BY_BYTE[7, x & low]
        ^ _BY_BYTE[6, (x >> np.uint64(8)) & low]
        ^ _BY_BYTE[5, (x >> np.uint64(16)) & low]
        ^ _BY_BYTE[4, (x >> np.uint64(24)) & low]
        ^ _BY_BYTE[3, (x >> np.uint64(32)) & low]
        ^ _BY_BYTE[2, (x >> np.uint64(40)) & low]
        ^ _BY_BYTE[1, (x >> np.uint64(48)) & low]
        ^ _BY_BYTE[0, x >> np.uint64(56)]
    )


_after_eight: Any = Instruction("llvm.x86.sse42.crc32.64.64", feature="sse4.2", otherwise=_by_tables)


@inlined
def _behind_a_lane(crc: Any) -> Any:
    """The checksum after a lane of zeros."""
    low = np.uint64(0xFF)
    return (
        _BEHIND_A_LANE[0, crc & low]
        ^ _BEHIND_A_LANE[1, (crc >> np.uint64(8)) & low]
        ^ _BEHIND_A_LANE[2, (crc >> np.uint64(16)) & low]
        ^ _BEHIND_A_LANE[3, (crc >> np.uint64(24)) & low]
    )


@compiled
def crc32c(data: Any, start: Any, end: Any) -> Any:
    """The CRC32C of data[start:end), as a batch has it; it costs no call into another library for each batch."""
    crc = np.uint64(0xFFFFFFFF)
    eight, lane = np.uint64(8), np.uint64(LANE)
    p, stop = np.uint64(start), np.uint64(end)
    while p + np.uint64(3) * lane <= stop:
        second, third = np.uint64(0), np.uint64(0)
        to = p + lane
        while p < to:
            crc = _after_eight(crc, load_unaligned(data, p))
            second = _after_eight(second, load_unaligned(data, p + lane))
            third = _after_eight(third, load_unaligned(data, p + lane + lane))
            p += eight
        crc = _behind_a_lane(_behind_a_lane(crc) ^ second) ^ third
        p += lane + lane
    while p + eight <= stop:
        crc = _after_eight(crc, load_unaligned(data, p))
        p += eight
    while p < stop:
        crc = _BY_BYTE[0, (crc ^ np.uint64(data[p])) & np.uint64(0xFF)] ^ (crc >> eight)
        p += np.uint64(1)
    return np.int64(crc ^ np.uint64(0xFFFFFFFF))
