"""Finds the offset of a timestamp in the batches and records of a log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from kraftlake.records.batch import DEFAULT
from kraftlake.records.batch_format import COMPRESSION_BITS, COMPRESSIONS, HEADER
from kraftlake.records.varint import read_varint, read_varlong
from kraftlake.replica_manager.logs.log_batch import LogBatch
from kraftlake.replica_manager.logs.partition_log import TimestampAndOffset

LATEST_TIMESTAMP: Final = -1
EARLIEST_TIMESTAMP: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL_TIMESTAMP: Final = -4
LATEST_TIERED_TIMESTAMP: Final = -5
EARLIEST_PENDING_UPLOAD_TIMESTAMP: Final = -6
NO_TIMESTAMP: Final = -1
_LOG_APPEND_TIME_BIT = 0x08


def record_times(batch: LogBatch) -> Iterator[tuple[int, int]]:
    """Offset and timestamp (epoch ms) of each record of a batch."""
    _, _, _, _, _, attributes, _, base_timestamp, max_timestamp, *_ = HEADER.unpack_from(batch.data)
    data = batch.data[HEADER.size :]
    if attributes & COMPRESSION_BITS:
        from kraftlake.records.compression import decompress

        data = decompress(COMPRESSIONS[attributes & COMPRESSION_BITS], data, DEFAULT.decompressed_bytes)
    position = 0
    for _ in range(batch.count):
        length, position = read_varint(data, position)
        delta, place = read_varlong(data, position + 1)
        offset_delta, _ = read_varint(data, place)
        timestamp = max_timestamp if attributes & _LOG_APPEND_TIME_BIT else base_timestamp + delta
        yield batch.base_offset + offset_delta, timestamp
        position += length


def find_offset(batches: Sequence[LogBatch], log_start: int, timestamp: int) -> TimestampAndOffset | None:
    """The first record at or after `timestamp` (epoch ms, or a negative one of ListOffsets); None without one."""
    if timestamp in (EARLIEST_TIMESTAMP, EARLIEST_LOCAL_TIMESTAMP):
        epoch = batches[0].leader_epoch if batches else None
        return TimestampAndOffset(NO_TIMESTAMP, log_start, epoch)
    if timestamp in (LATEST_TIERED_TIMESTAMP, EARLIEST_PENDING_UPLOAD_TIMESTAMP):
        return TimestampAndOffset(NO_TIMESTAMP, -1, -1)  # there is no tiered storage
    if timestamp == MAX_TIMESTAMP:
        latest = max(batches, key=lambda batch: batch.max_timestamp, default=None)
        if latest is None:
            return None
        return _first_at(latest, latest.max_timestamp, log_start)
    for batch in batches:
        if batch.max_timestamp >= timestamp:
            found = _first_at(batch, timestamp, log_start)
            if found is not None:
                return found
    return None


def _first_at(batch: LogBatch, timestamp: int, log_start: int) -> TimestampAndOffset | None:
    for offset, time in record_times(batch):
        if time >= timestamp and offset >= log_start:
            return TimestampAndOffset(time, offset, batch.leader_epoch)
    return None
