"""Tells what an interrupted write leaves at the end of a file from corruption in the middle of it."""

from __future__ import annotations

import re
from itertools import islice

from kraftlake.records.batch_format import CRC_FROM, HEADER, LENGTH_FROM, OFFSET_AND_LENGTH
from kraftlake.records.crc32c import crc32c

_SCANNED_BYTES = 16 * 1024 * 1024
_SUMMED_BYTES = 256 * 1024 * 1024
_CANDIDATES = 1_000_000
# an offset that is not negative, a length below 32 MiB, an epoch, and the magic
_BATCH_CANDIDATE = re.compile(rb"(?s)(?=[\x00-\x7f].{7}[\x00\x01].{7}\x02)")


def zeros_from(view: memoryview, start: int) -> int:
    """Where the zeros begin that `view` ends with, not before `start`; the end if it ends in something else."""
    end = len(view)
    while end > start:
        chunk = bytes(view[max(start, end - 65536) : end])
        rest = len(chunk.rstrip(b"\0"))
        end -= len(chunk) - rest
        if rest:
            break
    return end


def whole_batch_behind(view: memoryview, start: int) -> int | None:
    """The position of a batch with a good CRC at or behind `start`: then what is before it is no torn tail.

    Looks at the first 16 MiB, and gives up after a bounded number of candidates and of bytes summed.
    """
    budget = _SUMMED_BYTES
    for match in islice(_BATCH_CANDIDATE.finditer(view[start : start + _SCANNED_BYTES]), _CANDIDATES):
        at = start + match.start()
        _, length = OFFSET_AND_LENGTH.unpack_from(view, at)
        if length < HEADER.size - LENGTH_FROM or at + LENGTH_FROM + length > len(view):
            continue
        budget -= length
        if budget < 0:
            return None
        crc = int.from_bytes(view[at + 17 : at + CRC_FROM], "big")
        if crc == crc32c(view[at + CRC_FROM : at + LENGTH_FROM + length]):
            return at
    return None
