"""Record batches of partitions, decoded by their headers; the records themselves are opaque."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from struct import Struct
from typing import Final
from zlib import crc32

import attrs

from kraftlake.records import batch_header
from kraftlake.records.batch_header import (
    COMPRESSIONS,
    HEADER_SIZE,
    LENGTH_FROM,
    OFFSET_AND_LENGTH,
    BatchHeader,
    batch_headers,
    header_at,
    parse_header,
)
from kraftlake.records.varint import MalformedError, read_varlong
from kraftlake.replica_manager.errors import CorruptRecordError, UnsupportedForMessageFormatError
from kraftlake.runtime.errors import CorruptDataError

NO_PRODUCER_ID: Final = -1
_LARGEST_LENGTH: Final = (1 << 31) - 1
OLD_HEADER: Final = Struct(">qiIb")
"""Offset, length, CRC and magic number of a message of format 0 or 1; the CRC covers all bytes after itself."""
_SMALLEST_OLD: Final = 14
"""The length of a message of format 0 without a key and a value."""

LARGEST_RECORDS: Final = 128 * 1024 * 1024
"""The maximum decompressed size of one batch. A compressed batch of a hundred kilobytes may hold gigabytes, and a
broker reads one batch at a time in each request thread: eight batches of this size still fit into its memory."""


@attrs.frozen(kw_only=True, weakref_slot=False)
class LogBatch:
    """One batch: `data` has its bytes in format v2, the other fields come from its header.

    `last_offset` is inclusive, `leader_epoch` is the epoch of the leader that appended the batch, `max_timestamp` is in
    epoch ms.
    """

    data: bytes | memoryview = attrs.field(repr=False)
    base_offset: int
    last_offset: int
    leader_epoch: int
    max_timestamp: int
    count: int
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = -1
    base_sequence: int = -1
    transactional: bool = False
    control: bool = False

    @property
    def last_sequence(self) -> int:
        """The sequence number of the last record, which wraps to 0 after the largest; −1 without sequence numbers."""
        if self.base_sequence < 0:
            return -1
        return (self.base_sequence + self.last_offset - self.base_offset) & 0x7FFF_FFFF

    @property
    def size(self) -> int:
        """The size of the batch in bytes."""
        return len(self.data)

    def placed(self, base_offset: int, leader_epoch: int) -> LogBatch:
        """Return the batch as the leader of `leader_epoch` appends it at `base_offset`.

        The checksum covers neither field.
        """
        head = OFFSET_AND_LENGTH.pack(base_offset, len(self.data) - LENGTH_FROM) + leader_epoch.to_bytes(4, "big")
        return attrs.evolve(
            self,
            data=b"".join((head, self.data[len(head) :])),
            base_offset=base_offset,
            last_offset=base_offset + self.last_offset - self.base_offset,
            leader_epoch=leader_epoch,
        )

    def control_type(self) -> int:
        """The control type of a control batch's only record: 0 aborts a transaction, 1 commits it.

        Raises CorruptRecordError where there is no such record.
        """
        return int.from_bytes(self._control_bytes(2, 4), "big")

    def coordinator_epoch(self) -> int:
        """The coordinator epoch of a control batch that ends a transaction; raises as `control_type`."""
        # after the key: value length (a single byte), version, epoch
        return int.from_bytes(self._control_bytes(7, 11), "big", signed=True)

    def _control_bytes(self, first: int, last: int) -> bytes | memoryview:
        """Bytes of the batch's only record, from its key (a version and the type) on."""
        start = HEADER_SIZE + 2  # behind length and attributes, a single byte each
        # a compacting leader measures the record's time from a day or more later: this delta takes several bytes
        try:
            _, size = read_varlong(bytes(self.data[start : start + 10]), 0)
        except (MalformedError, IndexError):
            size = len(self.data)
        key = start + size + 2  # behind offset delta and the length of the key, a single byte each
        if key + last > len(self.data):
            raise CorruptRecordError(f"The control record at offset {self.base_offset} can't be read.")
        return self.data[key + first : key + last]


def batch_at(data: bytes | memoryview, start: int, stop: int) -> LogBatch:
    """Return the batch in data[start:stop]."""
    return _batch_of(data[start:stop], header_at(data, start))


def _batch_of(data: bytes | memoryview, header: BatchHeader) -> LogBatch:
    return LogBatch(
        data=data,
        base_offset=header.base_offset,
        last_offset=header.last_offset,
        leader_epoch=header.epoch,
        max_timestamp=header.max_timestamp,
        count=header.record_count,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        transactional=header.is_transactional,
        control=header.is_control,
    )


def headers(data: bytes, position: int = 0) -> Iterator[tuple[int, int, BatchHeader]]:
    """The begins, ends and headers of the whole batches from `position` on.

    A last batch that is cut off, as in a fetch response, is left out. Raises CorruptRecordError for bytes that are no
    batch of format v2, UnsupportedForMessageFormatError where they are a whole message of an older one.
    """
    end = position
    for start, header in batch_headers(data, position):
        end = start + header.size
        yield start, end, header
    refuse_old_format(data, end)  # which may be smaller than the header of a batch
    rest = parse_header(data, end)
    if rest is not None and not rest.is_possible:
        raise CorruptRecordError(f"At byte {end} there is no record batch of format 2 (offset {rest.base_offset}).")


def log_batches(data: bytes) -> Iterator[LogBatch]:
    """Yield the whole batches in `data`, as `headers` finds them."""
    return (_batch_of(data[start:end], header) for start, end, header in headers(data))


def old_size(head: bytes) -> int:
    """The stated size of the message of format 0 or 1 that begins with `head`; 0 if `head` does not look like one."""
    if len(head) < OLD_HEADER.size:
        return 0
    _, length, _, magic = OLD_HEADER.unpack_from(head)
    return LENGTH_FROM + int(length) if magic in (0, 1) and length >= _SMALLEST_OLD else 0


def refuse_old_format(data: bytes, position: int = 0) -> None:
    """Raise UnsupportedForMessageFormatError at a whole message of format 0 or 1, verified by its checksum."""
    size = old_size(data[position : position + OLD_HEADER.size])
    if not 0 < size <= len(data) - position:
        return
    offset, _, crc, magic = OLD_HEADER.unpack_from(data, position)
    if crc32(memoryview(data)[position + OLD_HEADER.size - 1 : position + size]) == crc:
        raise UnsupportedForMessageFormatError(
            f"The records at offset {offset} have format {magic}, which Kafka wrote before 0.11 and which is not read "
            f"here: copy the topic's records to a new topic while Kafka serves them, and delete this one."
        )


def size_said(head: bytes) -> int:
    """The stated size of the batch that begins with `head`, or the minimum size of a header if `head` is too short."""
    return batch_header.size_said(head, largest=_LARGEST_LENGTH) or HEADER_SIZE


def joined(batches: Iterable[LogBatch]) -> bytes:
    """The concatenated bytes of the batches, as in a segment or a fetch response."""
    return b"".join(batch.data for batch in batches)


def unpacked_records(records: bytes, kind: int) -> memoryview:
    """Return the decompressed records of a batch whose attributes say that they are compressed.

    Raises CorruptDataError for an unknown kind of compression, data of another one, and too large records.
    """
    if kind >= len(COMPRESSIONS):
        raise CorruptDataError(f"their kind of compression is unknown: {kind}")
    from kraftlake.records.compression import decompressed  # cramjam is imported when it is needed

    return decompressed(COMPRESSIONS[kind], records, LARGEST_RECORDS)
