"""The checksum of record batches, CRC32C (polynomial 0x1EDC6F41, reflected), in a compiled loop.

The processor's own instruction takes eight bytes at a time; tables do where it has none. A log of small batches has
a million of them in a day, and a call of the package `crc32c` from Python takes longer than the whole of such a batch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kraftlake.kernels.aot.compiled import Instruction, compiled, inlined
from kraftlake.kernels.batches.unaligned import load_unaligned

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


_BY_BYTE = _tables_by_byte()


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


@compiled
def crc32c(data: Any, start: int, end: int) -> Any:
    """The CRC32C of data[start:end), as a batch has it."""
    crc = np.uint64(0xFFFFFFFF)
    eight = np.uint64(8)
    p, stop = np.uint64(start), np.uint64(end)
    while p + eight <= stop:
        crc = _after_eight(crc, load_unaligned(data, p))
        p += eight
    while p < stop:
        crc = _BY_BYTE[0, (crc ^ np.uint64(data[p])) & np.uint64(0xFF)] ^ (crc >> eight)
        p += np.uint64(1)
    return np.int64(crc ^ np.uint64(0xFFFFFFFF))
