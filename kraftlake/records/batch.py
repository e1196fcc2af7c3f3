"""Record batches of a metadata log, read and written in batch format v2.

Source: org.apache.kafka.common.record.DefaultRecordBatch and DefaultRecord. A metadata log uses a part of the format:
no producers, no headers, keys on control records only, offsets without holes. All other batches are refused, so that
every batch that was read can be written again byte for byte.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence

import attrs

from kraftlake.records.batch_format import join_records, split_records
from kraftlake.records.batch_header import (
    CHECKED_HEADER,
    COMPRESSION_BITS,
    COMPRESSIONS,
    CONTROL_BIT,
    CRC_FROM,
    HEADER,
    HEADER_SIZE,
    LENGTH_FROM,
    MAGIC,
    MIN_LENGTH,
    NO_PRODUCER,
    OFFSET_AND_LENGTH,
)
from kraftlake.records.batch_header import framed as frame
from kraftlake.records.crc32c import crc32c
from kraftlake.records.fast_construct import mutable_class
from kraftlake.records.schema import Message
from kraftlake.records.serde import (
    AnyMessage,
    ApiMessageAndVersion,
    decode_control,
    decode_value,
    encode_control,
    encode_value,
)
from kraftlake.records.torn import whole_batch_behind, zeros_from
from kraftlake.records.varint import MalformedError
from kraftlake.runtime.errors import CorruptDataError, UnwritableMetadataError

_LARGEST_LONG = 0x7FFF_FFFF_FFFF_FFFF
_ZEROS_OF_A_TORN_WRITE = 8  # a shorter run of zeros at the end is as likely to be data
NO_TIMESTAMP = -1
LATEST_TIMESTAMP = 253_402_300_799_999  # the end of the year 9999, where timestamps of other formats end


class TornBatchError(CorruptDataError):
    """Reports bytes that end inside a batch, or are followed only by zeros: the remains of an interrupted write.

    `position` is the batch's place in `file`, `base_offset` its first offset if that can still be read. All bytes
    before the position are whole batches.
    """

    def __init__(self, file: str, position: int, base_offset: int | None, reason: str) -> None:
        self.file = file
        self.position = position
        self.base_offset = base_offset
        self.reason = reason
        offset = "" if base_offset is None else f" (offset {base_offset})"
        super().__init__(f"{file}: the batch at position {position}{offset} is torn: {reason}.")


@attrs.frozen(kw_only=True)
class BatchLimits:
    """The limits of a batch, in bytes and records; a larger batch is refused. Kafka's own batches stay below 8 MiB."""

    batch_bytes: int = 32 * 1024 * 1024
    decompressed_bytes: int = 32 * 1024 * 1024
    records: int = 1_000_000


DEFAULT = BatchLimits()


@attrs.frozen(kw_only=True, weakref_slot=False)
class RecordBatch:
    """Records that were appended together: the log holds all of them or none.

    `base_offset` is the first record's offset, `epoch` the partition leader epoch, `timestamp` the largest of
    `timestamps` (epoch ms, one per record, -1 for none). `values` are the records' values as Kafka writes them; a
    control batch has a control type for each in `control_types`. `size_in_bytes` on disk and `position` in the file are
    not compared.
    """

    base_offset: int
    epoch: int
    timestamp: int
    control: bool = False
    values: tuple[bytes, ...] = attrs.field(repr=False)
    control_types: tuple[int, ...] = ()
    timestamps: tuple[int, ...] = attrs.field(repr=False)
    size_in_bytes: int = attrs.field(default=0, eq=False)
    position: int = attrs.field(default=-1, eq=False)

    def __attrs_post_init__(self) -> None:
        assert len(self.values) == len(self.timestamps) > 0, "one timestamp a record, and at least one record"
        assert len(self.control_types) == (len(self.values) if self.control else 0), "one type a control record"

    @property
    def last_offset(self) -> int:
        """The offset of the last record."""
        return self.base_offset + len(self.values) - 1

    @property
    def record_count(self) -> int:
        """The number of records, at least 1."""
        return len(self.values)

    @property
    def payload_bytes(self) -> int:
        """The size of all values in bytes."""
        return sum(map(len, self.values))

    def messages(
        self, decode: Callable[[bytes], ApiMessageAndVersion] = decode_value
    ) -> tuple[ApiMessageAndVersion, ...]:
        """Decode the records; raises CorruptDataError with the offset of the first broken one.

        `decode` is `decode_value`, or a function with the same results.
        """
        index = 0
        try:
            messages = []
            for index, value in enumerate(self.values):
                messages.append(decode_control(self.control_types[index], value) if self.control else decode(value))
        except CorruptDataError as fault:
            raise CorruptDataError(f"Offset {self.base_offset + index}: {fault}") from None
        return tuple(messages)

    @classmethod
    def of(cls, base_offset: int, epoch: int, timestamp: int, messages: Sequence[ApiMessageAndVersion]) -> RecordBatch:
        """Return a batch of metadata records, all with the same time.

        Raises UnwritableMetadataError as `encode_value`.
        """
        values = tuple([encode_value(message.message, message.version) for message in messages])
        return cls(
            base_offset=base_offset, epoch=epoch, timestamp=timestamp, values=values,
            timestamps=(timestamp,) * len(values),
        )  # fmt: skip

    @classmethod
    def control_of(cls, base_offset: int, epoch: int, timestamp: int, messages: Sequence[AnyMessage]) -> RecordBatch:
        """Return a batch of control records, all with the same time, each written at its own `version`."""
        values = tuple([encode_control(message)[1] for message in messages])
        types = tuple([m.API_KEY if isinstance(m, Message) else m.api_key for m in messages])
        return cls(
            base_offset=base_offset, epoch=epoch, timestamp=timestamp, control=True, values=values,
            control_types=types, timestamps=(timestamp,) * len(values),
        )  # fmt: skip


def encode_batch(batch: RecordBatch, compression: str = "none") -> bytes:
    """Encode the batch in format v2, byte for byte like Kafka's controllers if it is not compressed.

    Raises UnwritableMetadataError if an offset or time does not fit, ValueError for an unknown compression.
    """
    records = join_records(batch.values, batch.timestamps, batch.control_types)
    return framed(
        records, base_offset=batch.base_offset, epoch=batch.epoch, count=batch.record_count, control=batch.control,
        first_timestamp=batch.timestamps[0], timestamp=batch.timestamp, compression=compression,
    )  # fmt: skip


def framed(
    records: bytes, *, base_offset: int, epoch: int, count: int, first_timestamp: int, timestamp: int,
    control: bool = False, compression: str = "none",
) -> bytes:  # fmt: skip
    """Encode a batch whose records section is `records`, optionally compressed, with its header.

    Raises as `encode_batch`.
    """
    if compression not in COMPRESSIONS:
        raise ValueError(f"{compression!r} is not a compression of Kafka's: {', '.join(COMPRESSIONS)}")
    attributes = COMPRESSIONS.index(compression) | (CONTROL_BIT if control else 0)
    if attributes & COMPRESSION_BITS:
        from kraftlake.records.compression import compress

        records = compress(compression, records)
    try:
        checked = CHECKED_HEADER.pack(attributes, count - 1, first_timestamp, timestamp, *NO_PRODUCER, count)
        return frame(records, base_offset, epoch, checked)
    except struct.error as fault:
        raise UnwritableMetadataError(f"The batch at offset {base_offset} can't be written: {fault}.") from None


def gathered(batches: Iterable[RecordBatch], records: int) -> Iterator[list[RecordBatch]]:
    """Group the batches into lists of at least `records` records each, except the last list."""
    held: list[RecordBatch] = []
    count = 0
    for batch in batches:
        held.append(batch)
        count += batch.record_count
        if count >= records:
            yield held
            held, count = [], 0
    if held:
        yield held


def read_batches(
    data: bytes | memoryview, *, file: str, position: int = 0, limits: BatchLimits = DEFAULT
) -> Iterator[RecordBatch]:
    """Yield the batches in `data`, in order, without checks across batches.

    `position` is the start of `data` in `file`; both are for messages and `RecordBatch.position`. Raises TornBatchError
    if the bytes end inside a batch, or if only zeros follow and no whole batch after them, CorruptDataError for other
    bytes that are not a batch of a metadata log. The batches before the fault have been yielded by then.
    """
    reader = _Reader(memoryview(data), file, position, limits)
    start = 0
    while start < len(data):
        size = reader.size_at(start)
        yield reader.batch_at(start, size)
        start += size


_Mutable = mutable_class(RecordBatch)
_new = object.__new__


@attrs.frozen
class _Reader:
    """The bytes of a file, from `position` on."""

    view: memoryview
    file: str
    position: int
    limits: BatchLimits

    def size_at(self, start: int) -> int:
        """Return the size of the batch at `start`, all of whose bytes are present."""
        view = self.view
        left = len(view) - start
        if left < LENGTH_FROM:
            raise self.torn(start, None, f"only {left} bytes of it are there")
        base_offset, length = OFFSET_AND_LENGTH.unpack_from(view, start)
        if length < MIN_LENGTH or base_offset < 0:
            zeros = zeros_from(view, start) - start
            if zeros < LENGTH_FROM:
                raise self.torn(
                    start, base_offset if zeros >= 8 else None, f"zeros begin {zeros} bytes behind its start"
                )
            raise self.corrupt(start, f"its length of {length} bytes or its offset can't be")
        if left > 16 and view[start + 16] != MAGIC and zeros_from(view, start) > start + 16:
            raise self.corrupt(start, f"its magic is {view[start + 16]}, not {MAGIC}")
        size = int(length) + LENGTH_FROM
        if size > self.limits.batch_bytes:
            raise self.corrupt(start, f"its {size:,} bytes are above the limit of {self.limits.batch_bytes:,}")
        if size > left:
            behind = whole_batch_behind(view, start + 1)
            if behind is not None:
                at = self.position + behind
                raise self.corrupt(start, f"it has {size} bytes by its header, but a whole batch begins at {at}")
            raise self.torn(start, base_offset, f"{left} of its {size} bytes are there")
        return size

    def batch_at(self, start: int, size: int) -> RecordBatch:
        """Read and check the batch at `start`."""
        (base_offset, _, epoch, magic, crc, attributes, last_delta, base_timestamp, timestamp, producer_id,
         producer_epoch, sequence, count) = HEADER.unpack_from(self.view, start)  # fmt: skip
        compression = attributes & COMPRESSION_BITS
        if magic != MAGIC or crc != crc32c(self.view[start + CRC_FROM : start + size]):
            zeros = zeros_from(self.view, start)
            if zeros < start + size and len(self.view) - zeros >= _ZEROS_OF_A_TORN_WRITE:
                raise self.torn(start, base_offset, "it ends in zeros, and its CRC is wrong")
            raise self.corrupt(start, "its CRC is wrong")
        if attributes & ~(COMPRESSION_BITS | CONTROL_BIT) or compression >= len(COMPRESSIONS):
            raise self.corrupt(start, f"its attributes {attributes:#x} are not those of a metadata log")
        if (producer_id, producer_epoch, sequence) != NO_PRODUCER:
            raise self.corrupt(start, "it was written by a producer, which a metadata log has none of")
        if not 0 < count <= self.limits.records or last_delta != count - 1:
            raise self.corrupt(start, f"it has {count} records, and offsets up to {base_offset + last_delta}")
        if epoch < -1 or base_offset + count > _LARGEST_LONG:
            raise self.corrupt(start, f"its epoch {epoch} or its offset can't be")
        control = bool(attributes & CONTROL_BIT)
        try:
            records = self._records(start + HEADER_SIZE, start + size, compression)
            values, timestamps, control_types = split_records(records, count, base_timestamp, control)
        except (MalformedError, CorruptDataError) as fault:
            raise self.corrupt(start, str(fault)) from None
        except IndexError:
            raise self.corrupt(start, "its last record is cut off") from None
        if timestamp != max(timestamps) or not NO_TIMESTAMP <= min(timestamps) <= timestamp <= LATEST_TIMESTAMP:
            raise self.corrupt(start, f"its timestamp {timestamp} is not the largest of its records', or out of range")
        batch = _new(_Mutable)
        batch.base_offset = base_offset
        batch.epoch = epoch
        batch.timestamp = timestamp
        batch.control = control
        batch.values = values
        batch.control_types = control_types
        batch.timestamps = timestamps
        batch.size_in_bytes = size
        batch.position = self.position + start
        batch.__class__ = RecordBatch
        return batch  # type: ignore[no-any-return]

    def _records(self, start: int, stop: int, compression: int) -> bytes:
        section = bytes(self.view[start:stop])
        if not compression:
            return section
        from kraftlake.records.compression import decompress

        return decompress(COMPRESSIONS[compression], section, self.limits.decompressed_bytes)

    def torn(self, start: int, base_offset: int | None, reason: str) -> TornBatchError:
        return TornBatchError(self.file, self.position + start, base_offset, reason)

    def corrupt(self, start: int, reason: str) -> CorruptDataError:
        base_offset = int.from_bytes(self.view[start : start + 8], "big", signed=True)
        at = f"{self.file}: the batch at position {self.position + start} (offset {base_offset})"
        return CorruptDataError(f"{at} is corrupt: {reason}.")
