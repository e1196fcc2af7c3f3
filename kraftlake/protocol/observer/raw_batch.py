"""Record batches as they came over the network: their bytes, and what their headers say."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from kraftlake.records.batch_format import CRC_FROM, HEADER, LENGTH_FROM, MAGIC, OFFSET_AND_LENGTH
from kraftlake.records.crc32c import crc32c
from kraftlake.runtime.errors import CorruptDataError


@attrs.frozen(kw_only=True)
class RawBatch:
    """A whole record batch whose CRC is right; `data` are its bytes as the leader stores them."""

    base_offset: int
    last_offset: int
    epoch: int
    timestamp: int
    data: bytes = attrs.field(repr=False)


def split_batches(data: bytes) -> Iterator[RawBatch]:
    """The whole batches of a Fetch answer; an answer may end inside a batch, whose beginning is left out.

    Raises CorruptDataError where the bytes are no batches.
    """
    view = memoryview(data)
    start = 0
    while start + HEADER.size <= len(view):
        base_offset, length = OFFSET_AND_LENGTH.unpack_from(view, start)
        if length < HEADER.size - LENGTH_FROM or base_offset < 0:
            raise CorruptDataError(f"the batch at byte {start} has the length {length} and the offset {base_offset}")
        end = start + LENGTH_FROM + length
        if end > len(view):
            return
        (_, _, epoch, magic, crc, _, last_delta, _, timestamp, *_) = HEADER.unpack_from(view, start)
        if magic != MAGIC or last_delta < 0 or crc != crc32c(view[start + CRC_FROM : end]):
            raise CorruptDataError(f"the batch at offset {base_offset} is damaged: its CRC is wrong")
        yield RawBatch(
            base_offset=base_offset, last_offset=base_offset + last_delta, epoch=epoch, timestamp=timestamp,
            data=bytes(view[start:end]),
        )  # fmt: skip
        start = end
