"""The records of a batch, and a batch made anew of some of them.

Source: org.apache.kafka.common.record.internal.MemoryRecords (filterTo, buildRetainedRecordsInto), DefaultRecordBatch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from kraftlake.kernels import compiled
from kraftlake.records.batch_header import (
    APPEND_TIME_BIT,
    COMPRESSION_BITS,
    COMPRESSIONS,
    DELETE_HORIZON_BIT,
    HEADER_SIZE,
    BatchHeader,
)
from kraftlake.replica_manager.errors import CorruptRecordError
from kraftlake.replica_manager.logs.log_batch import unpacked_records
from kraftlake.runtime.errors import CorruptDataError

_GROWTH: Final = 16
"""The most bytes by which a record grows when its time delta changes."""
_NO_TIME: Final = -1
_LARGEST_TIME: Final = (1 << 63) - 1


class BatchRecords(NamedTuple):
    """The decompressed records of a batch: they begin at `start` of `data`."""

    data: bytes | memoryview
    start: int


class Choice(NamedTuple):
    """Some records of a batch, by a byte 0 or 1 for each; their number, and the least that the new batch has to know.

    `first_time` and `largest_time` are time deltas of chosen records.
    """

    chosen: bytes | bytearray
    kept: int
    has_tombstones: bool
    first_time: int
    largest_time: int


def delete_horizon(header: BatchHeader) -> int | None:
    """The time (epoch ms) from which a batch's tombstones, or its marker, may be removed; None if none is set."""
    return header.base_timestamp if header.attributes & DELETE_HORIZON_BIT else None


def records_of(data: bytes | memoryview, header: BatchHeader) -> BatchRecords:
    """The records of a whole batch.

    Raises CorruptRecordError for a wrong checksum, and for records that can't be decompressed: a batch that is made of
    them would have a right one.
    """
    if not header.crc_is_good(data):
        raise CorruptRecordError(f"The record batch at offset {header.base_offset} fails its checksum.")
    kind = header.attributes & COMPRESSION_BITS
    if not kind:
        return BatchRecords(data, HEADER_SIZE)
    try:
        return BatchRecords(unpacked_records(bytes(data[HEADER_SIZE:]), kind), 0)
    except CorruptDataError as fault:
        raise CorruptRecordError(
            f"The records of the batch at offset {header.base_offset} can't be decompressed: {fault}"
        ) from None


def unreadable(header: BatchHeader) -> CorruptRecordError:
    """The error of a batch whose records can't be read."""
    return CorruptRecordError(f"The records of the batch at offset {header.base_offset} can't be read.")


def chosen_records(
    records: BatchRecords,
    header: BatchHeader,
    table: Sequence[int],
    *,
    latest_offset: int = -1,
    secret: tuple[int, int] = (0, 0),
    keeps_tombstones: bool = True,
) -> Choice:
    """The records of a batch that stay: the last ones of their keys, and all above the latest offset of a map.

    `table` and `secret` are an OffsetMap's; with a latest offset of −1 all records stay, whatever the table has.
    Raises CorruptRecordError for records that can't be read.
    """
    if not 0 <= header.record_count <= len(records.data) - records.start:  # a record takes several bytes
        raise unreadable(header)
    chosen = bytearray(header.record_count)
    count, tombstones, first, largest = compiled.choose_records(
        *records, header.record_count, header.base_offset, latest_offset, table, *secret, keeps_tombstones, chosen
    )
    if count < 0:
        raise unreadable(header)
    return Choice(chosen, count, tombstones > 0, first, largest)


def rebuilt(header: BatchHeader, records: BatchRecords, choice: Choice, horizon: int | None) -> bytes:
    """A batch of the chosen records, at least one, with the offsets, producer and codec of the given one.

    `horizon` (epoch ms) is the delete horizon that the batch has from now on, None for none. Raises CorruptRecordError
    for times that no batch can have.
    """
    has_append_time = bool(header.attributes & APPEND_TIME_BIT)
    first, largest = (header.base_timestamp + delta for delta in (choice.first_time, choice.largest_time))
    if has_append_time:
        first = largest = header.max_timestamp
    base = first if horizon is None else horizon
    room = bytearray(len(records.data) - records.start + _GROWTH * len(choice.chosen))
    shift = header.max_timestamp - base if has_append_time else header.base_timestamp - base
    if not all(-_LARGEST_TIME <= time <= _LARGEST_TIME for time in (base, largest, shift)):
        raise unreadable(header)
    size = compiled.put_chosen(*records, choice.chosen, shift, has_append_time, room)
    body: bytes | memoryview = memoryview(room)[:size]
    codec = COMPRESSIONS[header.attributes & COMPRESSION_BITS]
    if codec != COMPRESSIONS[0]:
        from kraftlake.records.compression import compress

        body = compress(codec, body)
    kept = header.attributes & ~DELETE_HORIZON_BIT
    return header._replace(
        attributes=kept if horizon is None else kept | DELETE_HORIZON_BIT,
        base_timestamp=base,
        max_timestamp=max(_NO_TIME, largest),
        record_count=choice.kept,
    ).framed(body)


def emptied(header: BatchHeader) -> bytes:
    """The batch without records, which keeps the offsets and the producer's sequence numbers."""
    attributes = header.attributes & ~(DELETE_HORIZON_BIT | COMPRESSION_BITS)
    return header._replace(attributes=attributes, base_timestamp=_NO_TIME, record_count=0).framed(b"")
