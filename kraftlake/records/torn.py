"""Distinguishes the remains of an interrupted write at the end of a file from corruption in its middle."""

from __future__ import annotations

from kraftlake.records.batch_header import batch_starts, parse_header

_SCANNED_BYTES = 16 * 1024 * 1024
_SUMMED_BYTES = 256 * 1024 * 1024


def zeros_from(view: memoryview, start: int) -> int:
    """Return the start of the zeros at the end of `view`, not before `start`.

    Returns the end of `view` if it does not end in zeros.
    """
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

    Looks at the first 16 MiB, and gives up after a bounded number of bytes summed.
    """
    budget = _SUMMED_BYTES
    for place in batch_starts(view[start : start + _SCANNED_BYTES]):
        at = start + place
        header = parse_header(view, at)
        if header is None or header.fault() is not None or header.size > len(view) - at:
            continue
        budget -= header.size
        if budget < 0:
            return None
        if header.crc_is_good(view[at : at + header.size]):
            return at
    return None
