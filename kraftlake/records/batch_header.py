"""The header of a record batch v2, the walk over batches by their headers, and where one may begin behind damage.

Source: org.apache.kafka.common.record.DefaultRecordBatch.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from kraftlake.kernels.batches import batch_columns
from kraftlake.records.crc32c import crc32c

MAGIC: Final = batch_columns.MAGIC
HEADER_SIZE: Final = batch_columns.HEADER_SIZE
LENGTH_FROM: Final = batch_columns.LENGTH_FROM
CRC_FROM: Final = batch_columns.CRC_FROM
HEADER: Final = struct.Struct(">qiibIhiqqqhii")
UNCHECKED_HEADER, CHECKED_HEADER = struct.Struct(">qiibI"), struct.Struct(">hiqqqhii")
"""The same in two parts: up to the CRC, and what it covers."""
OFFSET_AND_LENGTH: Final = struct.Struct(">qi")
MIN_LENGTH: Final = HEADER_SIZE - LENGTH_FROM
MAX_BATCH_SIZE: Final = 64 * 1024 * 1024
"""Raft limits a batch to 8 MiB; more than this is a damaged length, not a batch of metadata."""
COMPRESSIONS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
COMPRESSION_BITS: Final = 0x07
APPEND_TIME_BIT: Final = 0x08
TRANSACTIONAL_BIT: Final = 0x10
CONTROL_BIT: Final = 0x20
DELETE_HORIZON_BIT: Final = 0x40
"""The base timestamp is the time from which a batch's tombstones, or its marker, may be removed (KIP-534)."""
NO_PRODUCER: Final = (-1, -1, -1)
"""Producer id, producer epoch and base sequence of a batch without a producer."""
_NO_PRODUCER_BYTES: Final = re.compile(rb"\xff{14,}")
"""The same as bytes; the record count behind them is not negative."""
_NO_PRODUCER_END: Final = 57
_new = tuple.__new__


class BatchHeader(NamedTuple):
    """The fields of a batch's header in their order, not validated yet."""

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
    def producer(self) -> tuple[int, int, int]:
        """The producer's id, its epoch and the base sequence."""
        return self.producer_id, self.producer_epoch, self.base_sequence

    @property
    def is_control(self) -> bool:
        """Whether the records are control records."""
        return bool(self.attributes & CONTROL_BIT)

    @property
    def is_transactional(self) -> bool:
        """Whether the batch is part of a transaction."""
        return bool(self.attributes & TRANSACTIONAL_BIT)

    @property
    def is_possible(self) -> bool:
        """Whether a batch of any log can have this header."""
        return self.magic == MAGIC and self.length >= MIN_LENGTH and self.last_offset_delta >= 0

    def fault(self) -> str | None:
        """The reason why this can't be the header of a batch of metadata, or None."""
        if not MIN_LENGTH <= self.length <= MAX_BATCH_SIZE:
            return f"a batch length of {self.length} bytes"
        if self.magic != MAGIC:
            return f"a batch of format {self.magic}, not {MAGIC}"
        if self.base_offset < 0 or self.last_offset_delta < 0 or self.record_count < 0:
            return f"a batch with base offset {self.base_offset} and {self.record_count} records"
        return None

    def crc_is_good(self, batch: bytes | memoryview) -> bool:
        """Whether the CRC32C of `batch`, which must be all of its bytes, is the one in this header."""
        return len(batch) == self.size and crc32c(batch[CRC_FROM:]) == self.crc

    def framed(self, records: bytes | memoryview) -> bytes:
        """The bytes of a batch of this header and these records, with the length and the CRC of both.

        Raises struct.error for a field that is out of range.
        """
        return framed(records, self.base_offset, self.epoch, CHECKED_HEADER.pack(*self[5:]))


def header_at(data: bytes | memoryview, position: int = 0) -> BatchHeader:
    """The header at a position of `data`, which has all its bytes."""
    return _new(BatchHeader, HEADER.unpack_from(data, position))  # as BatchHeader(*…), in a third of the time


def parse_header(data: bytes | memoryview, position: int = 0) -> BatchHeader | None:
    """The header at a position of `data`; None when there are fewer than 61 bytes."""
    return None if len(data) - position < HEADER_SIZE else header_at(data, position)


def framed(records: bytes | memoryview, base_offset: int, epoch: int, checked: bytes) -> bytes:
    """The bytes of a batch; `checked` is its header from the attributes on. Raises struct.error."""
    crc = crc32c(records, crc32c(checked))
    head = UNCHECKED_HEADER.pack(base_offset, MIN_LENGTH + len(records), epoch, MAGIC, crc)
    return b"".join((head, checked, records))


def batch_headers(data: bytes | memoryview, position: int = 0) -> Iterator[tuple[int, BatchHeader]]:
    """The whole batches of any log from `position` on: their positions and headers.

    It stops silently before the first other bytes, such as the beginning of a batch that is cut off.
    """
    end = len(data)
    while end - position >= HEADER_SIZE:
        header = header_at(data, position)
        stop = position + LENGTH_FROM + header.length
        if stop > end or not header.is_possible:
            return
        yield position, header
        position = stop


def pass_whole(
    data: memoryview, *, check_crc: bool, offset: int | None = None, before: int | None = None
) -> tuple[int, int]:
    """Skip the whole batches at the start of `data`; return the position after them and the next offset.

    With `offset`, only batches that follow each other from there on are skipped; with `before`, only those that end
    below that offset. It stops at the first other byte, without saying why. The next offset is −1 when nothing was
    skipped and `offset` is None.
    """
    position, size = 0, len(data)
    next_offset = -1 if offset is None else offset
    unpack = HEADER.unpack_from  # a BatchHeader for each would take twice the time
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


def size_said(head: bytes | memoryview, largest: int = MAX_BATCH_SIZE) -> int | None:
    """The size of the batch that begins with the incomplete `head`; None when unknown, or no batch's."""
    length = OFFSET_AND_LENGTH.unpack_from(head)[1] if len(head) >= LENGTH_FROM else 0
    return LENGTH_FROM + length if MIN_LENGTH <= length <= largest else None


def batch_starts(data: bytes | memoryview) -> Iterator[int]:
    """The positions in `data` at which batches of metadata may begin: these have no producer."""
    ends = (match.end() for match in _NO_PRODUCER_BYTES.finditer(data))
    return (end - _NO_PRODUCER_END for end in ends if end >= _NO_PRODUCER_END)
