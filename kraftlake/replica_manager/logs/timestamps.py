"""The timestamps of a batch's records, and the negative values of ListOffsets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kraftlake.records.batch_header import (
    APPEND_TIME_BIT,
    COMPRESSION_BITS,
    HEADER,
    header_at,
)
from kraftlake.records.varint import read_varint, read_varlong
from kraftlake.replica_manager.logs.log_batch import LogBatch, unpacked_records
from kraftlake.replica_manager.logs.log_values import TimestampAndOffset

LATEST_TIMESTAMP: Final = -1
EARLIEST_TIMESTAMP: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL_TIMESTAMP: Final = -4
LATEST_TIERED_TIMESTAMP: Final = -5
EARLIEST_PENDING_UPLOAD_TIMESTAMP: Final = -6
NO_TIMESTAMP: Final = -1


def record_times(batch: LogBatch) -> Iterator[tuple[int, int]]:
    """Yield the offset and the timestamp (epoch ms) of each record of a batch."""
    header = header_at(batch.data)
    kind = header.attributes & COMPRESSION_BITS
    data: bytes | memoryview = bytes(batch.data[HEADER.size :])
    if kind:
        data = unpacked_records(bytes(data), kind)
    is_stamped = bool(header.attributes & APPEND_TIME_BIT)
    position = 0
    for _ in range(batch.count):
        length, position = read_varint(data, position)
        delta, place = read_varlong(data, position + 1)
        offset_delta, _ = read_varint(data, place)
        timestamp = header.max_timestamp if is_stamped else header.base_timestamp + delta
        yield batch.base_offset + offset_delta, timestamp
        position += length


def first_at(batch: LogBatch, timestamp: int, log_start: int) -> TimestampAndOffset | None:
    """Return the first record of a batch at or after `timestamp` (epoch ms) and at or after the offset `log_start`."""
    for offset, time in record_times(batch):
        if time >= timestamp and offset >= log_start:
            return TimestampAndOffset(time, offset, batch.leader_epoch)
    return None
