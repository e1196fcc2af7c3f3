"""CRC32C within kernels, see `crc32c.h`: by the processor's instruction where it has one, else by tables."""

from __future__ import annotations

import cython
from cython.cimports.crc32c import kraftlake_crc32c

from kraftlake.kernels.language import Bool, Bytes, Int64, compiled, inlined


@inlined
def crc32c(data: Bytes, start: Int64, end: Int64) -> Int64:
    """The CRC32C of data[start:end), as a batch has it."""
    if start >= end:
        return 0
    return kraftlake_crc32c(cython.address(data[start]), end - start, True)


@compiled
def checksum(data: Bytes, by_instruction: Bool) -> Int64:
    """The CRC32C of all bytes; without `by_instruction` by tables, as on processors without the instruction."""
    if len(data) == 0:
        return 0
    return kraftlake_crc32c(cython.address(data[0]), len(data), by_instruction)
