"""Record batches of partitions, by their headers; the records themselves are opaque."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import attrs

from kraftlake.records.batch_format import CONTROL_BIT, CRC_FROM, HEADER, LENGTH_FROM, MAGIC, OFFSET_AND_LENGTH
from kraftlake.records.crc32c import crc32c
from kraftlake.replica_manager.errors import CorruptRecordError

TRANSACTIONAL_BIT: Final = 0x10
NO_PRODUCER_ID: Final = -1


@attrs.frozen(kw_only=True, weakref_slot=False)
class LogBatch:
    """One batch: `data` has its bytes in format v2, the other fields are those of its header.

    `last_offset` is inclusive, `leader_epoch` is the epoch of the leader that appended the batch, `max_timestamp` is in
    epoch ms.
    """

    data: bytes = attrs.field(repr=False)
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
        """The batch as the leader of `leader_epoch` appends it at `base_offset`; the checksum covers neither field."""
        head = OFFSET_AND_LENGTH.pack(base_offset, len(self.data) - LENGTH_FROM) + leader_epoch.to_bytes(4, "big")
        return attrs.evolve(
            self,
            data=head + self.data[len(head) :],
            base_offset=base_offset,
            last_offset=base_offset + self.last_offset - self.base_offset,
            leader_epoch=leader_epoch,
        )

    def check(self) -> None:
        """Raise CorruptRecordError when the checksum is wrong."""
        if crc32c(memoryview(self.data)[CRC_FROM:]) != HEADER.unpack_from(self.data)[4]:
            raise CorruptRecordError(f"The record batch at offset {self.base_offset} fails its checksum.")

    def control_type(self) -> int:
        """The control type of a control batch's one record: 0 aborts a transaction, 1 commits it."""
        # one record: length, attributes, timestamp delta, offset delta (all single bytes), key length, version, type
        return int.from_bytes(self.data[HEADER.size + 7 : HEADER.size + 9], "big")

    def coordinator_epoch(self) -> int:
        """The coordinator epoch of a control batch that ends a transaction."""
        # after the key: value length, version, epoch
        return int.from_bytes(self.data[HEADER.size + 12 : HEADER.size + 16], "big", signed=True)


def log_batches(data: bytes) -> Iterator[LogBatch]:
    """The whole batches in `data`; a last batch that is cut off, as in a fetch response, is left out.

    Raises CorruptRecordError for bytes that are no batch of format v2.
    """
    position = 0
    while len(data) - position >= HEADER.size:
        (
            base_offset, length, epoch, magic, _, attributes, last_delta, _, max_timestamp,
            producer_id, producer_epoch, base_sequence, count,
        ) = HEADER.unpack_from(data, position)  # fmt: skip
        if magic != MAGIC or length < HEADER.size - LENGTH_FROM or last_delta < 0:
            raise CorruptRecordError(f"At byte {position} there is no record batch of format 2 (offset {base_offset}).")
        end = position + LENGTH_FROM + length
        if end > len(data):
            return
        yield LogBatch(
            data=data[position:end],
            base_offset=base_offset,
            last_offset=base_offset + last_delta,
            leader_epoch=epoch,
            max_timestamp=max_timestamp,
            count=count,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            transactional=bool(attributes & TRANSACTIONAL_BIT),
            control=bool(attributes & CONTROL_BIT),
        )
        position = end


def joined(batches: Iterable[LogBatch]) -> bytes:
    """The bytes of the batches, as in a segment or a fetch response."""
    return b"".join(batch.data for batch in batches)
