"""The 61 bytes at the head of a record batch v2, and whether a batch is whole.

Source: org.apache.kafka.common.record.DefaultRecordBatch.
"""

from __future__ import annotations

import attrs

from kraftlake.records.batch_format import CONTROL_BIT, CRC_FROM, HEADER, LENGTH_FROM, MAGIC
from kraftlake.records.crc32c import crc32c
from kraftlake.runtime.value import Value

HEADER_SIZE = HEADER.size
MIN_LENGTH = HEADER_SIZE - LENGTH_FROM
MAX_BATCH_SIZE = 64 * 1024 * 1024
"""Raft limits a batch to 8 MiB; more than this is a damaged length, not a batch."""


@attrs.frozen(eq=False, repr=False)
class BatchHeader(Value):
    """A batch's header as it is in the file, not validated yet."""

    base_offset: int
    length: int
    epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size(self) -> int:
        """Bytes of the whole batch."""
        return LENGTH_FROM + self.length

    @property
    def last_offset(self) -> int:
        """Offset of the last record."""
        return self.base_offset + self.last_offset_delta

    @property
    def is_control(self) -> bool:
        """Whether the records are control records."""
        return bool(self.attributes & CONTROL_BIT)

    def fault(self) -> str | None:
        """Why this can't be a batch's header, or None."""
        if not MIN_LENGTH <= self.length <= MAX_BATCH_SIZE:
            return f"a batch length of {self.length} bytes"
        if self.magic != MAGIC:
            return f"a batch of format {self.magic}, not {MAGIC}"
        if self.base_offset < 0 or self.last_offset_delta < 0 or self.record_count < 0:
            return f"a batch with base offset {self.base_offset} and {self.record_count} records"
        return None


def parse_header(data: bytes | memoryview) -> BatchHeader | None:
    """The header at the start of `data`; None when there are fewer than 61 bytes."""
    if len(data) < HEADER_SIZE:
        return None
    return BatchHeader(*HEADER.unpack_from(data))


def pass_whole(
    data: memoryview, *, check_crc: bool, offset: int | None = None, before: int | None = None
) -> tuple[int, int]:
    """Skip the whole batches at the start of `data`; return the position after them and the next offset.

    With `offset`, only batches that follow each other from there on are skipped; with `before`, only those that end
    below that offset. It stops at the first other byte, without saying why. The next offset is −1 when nothing was
    skipped and `offset` is None.
    """
    position, size = 0, len(data)
    unpack = HEADER.unpack_from
    next_offset = -1 if offset is None else offset
    while position + HEADER_SIZE <= size:
        base, length, _, magic, crc, _, delta, _, _, _, _, _, count = unpack(data, position)
        end = position + LENGTH_FROM + length
        if magic != MAGIC or length < MIN_LENGTH or end > size or base < 0 or delta < 0 or count < 0:
            break
        if (offset is not None and base != next_offset) or (before is not None and base + delta >= before):
            break
        if check_crc and crc32c(data[position + CRC_FROM : end]) != crc:
            break
        position = end
        next_offset = base + delta + 1
    return position, next_offset


def size_said(head: bytes | memoryview) -> int | None:
    """The size of the batch that begins with the incomplete `head`; None when unknown or invalid."""
    length = int.from_bytes(head[8:LENGTH_FROM], "big", signed=True) if len(head) >= LENGTH_FROM else 0
    return LENGTH_FROM + length if MIN_LENGTH <= length <= MAX_BATCH_SIZE else None


def crc_is_good(header: BatchHeader, batch: bytes | memoryview) -> bool:
    """Whether the CRC32C of `batch`, which must be all of its bytes, is the one in its header."""
    return len(batch) == header.size and crc32c(batch[CRC_FROM:]) == header.crc
