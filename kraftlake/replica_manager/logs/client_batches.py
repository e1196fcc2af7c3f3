"""A leader's validation and changes of a client's batch before its append.

Source: org.apache.kafka.storage.internals.log.UnifiedLog.analyzeAndValidateRecords and LogValidator.
"""

from __future__ import annotations

from typing import Final

import attrs

from kraftlake.records.batch_header import (
    APPEND_TIME_BIT,
    COMPRESSION_BITS,
    COMPRESSIONS,
    CONTROL_BIT,
    CRC_FROM,
    DELETE_HORIZON_BIT,
    HEADER_SIZE,
    TRANSACTIONAL_BIT,
    BatchHeader,
    parse_header,
)
from kraftlake.records.crc32c import crc32c
from kraftlake.replica_manager.errors import (
    CorruptRecordError,
    InvalidRecordError,
    InvalidTimestampError,
    RecordBatchTooLargeError,
    RecordError,
    RecordTooLargeError,
)
from kraftlake.replica_manager.logs.client_records import (
    MOST_ERRORS,
    RecordRules,
    check_records,
    check_sizes,
    rewritten,
)
from kraftlake.replica_manager.logs.log_batch import headers, unpacked_records
from kraftlake.replica_manager.logs.log_config import COMPACT, LogConfig
from kraftlake.runtime.errors import CorruptDataError

LOG_APPEND_TIME: Final = "LogAppendTime"
_PRODUCERS_OWN: Final = "producer"
_UNCOMPRESSED: Final = "uncompressed"
_NO_PRODUCER: Final = -1
_NO_TIME: Final = -1


def prepared_batches(data: bytes, config: LogConfig, now_ms: int) -> tuple[bytes, int | None]:
    """Return the batches as the leader appends them, and the leader's timestamp in epoch ms, None without one.

    Batches are compressed by the topic's compression.type, and get the time of the append for
    message.timestamp.type=LogAppendTime. Raises InvalidRecordError or InvalidTimestampError for a batch that its topic
    refuses, RecordTooLargeError or RecordBatchTooLargeError for a large one, CorruptRecordError for bytes that are not
    a batch.
    """
    first = parse_header(data)
    if first is not None and first.last_offset_delta < 0:
        raise InvalidRecordError("A batch ends before it begins.")
    append_time = now_ms if config.message_timestamp_type == LOG_APPEND_TIME else None
    parts = [_prepared(data[start:end], header, config, now_ms, append_time) for start, end, header in headers(data)]
    return parts[0] if len(parts) == 1 else b"".join(parts), append_time


def _prepared(data: bytes, header: BatchHeader, config: LogConfig, now_ms: int, append_time: int | None) -> bytes:
    _check_batch(data, header, config)
    _check_header(header)
    codec = _codec(header)
    wanted = codec if config.compression_type == _PRODUCERS_OWN else _codec_of(config.compression_type)
    is_stamped = bool(header.attributes & APPEND_TIME_BIT)
    rules = RecordRules(needs_key=COMPACT in config.cleanup_policy)
    of_times = rules
    if append_time is None:
        before, after = config.message_timestamp_before_max_ms, config.message_timestamp_after_max_ms
        of_times = attrs.evolve(rules, earliest=now_ms - before, latest=now_ms + after)
    records: bytes | memoryview
    records, start = (data, HEADER_SIZE) if codec == COMPRESSIONS[0] else (_unpacked(data, header), 0)
    if codec != COMPRESSIONS[0]:
        check_sizes(records, config.max_decompressed_message_bytes)
    found = check_records(records, start, header.record_count, header.base_timestamp, rules if is_stamped else of_times)
    if is_stamped:
        _check_stamp(header, of_times, is_allowed=append_time is None)
    largest = header.max_timestamp if is_stamped else found.largest_time
    kind = header.attributes & TRANSACTIONAL_BIT | COMPRESSIONS.index(wanted)
    if append_time is not None:
        kind, largest = kind | APPEND_TIME_BIT, append_time
    if wanted == codec and (found.is_usual or codec == COMPRESSIONS[0]):
        if largest == header.max_timestamp and (header.attributes ^ kind) & APPEND_TIME_BIT == 0:
            return data
        kind |= header.attributes & DELETE_HORIZON_BIT
        return header._replace(attributes=kind, max_timestamp=largest).framed(data[HEADER_SIZE:])
    return _repacked(header, records, start, wanted, config, is_usual=found.is_usual, kind=kind, largest=largest)


def _check_batch(data: bytes, header: BatchHeader, config: LogConfig) -> None:
    """Check the requirements of every log that do not depend on a batch's records."""
    if header.base_offset != 0:
        raise InvalidRecordError(f"A client's batch has the base offset {header.base_offset}, not 0.")
    _check_size(len(data), config)
    if crc32c(data[CRC_FROM:]) != header.crc:
        raise CorruptRecordError("A batch has a wrong checksum.")


def _check_size(size: int, config: LogConfig) -> None:
    if size > config.max_message_bytes:
        raise RecordTooLargeError(
            f"A batch of {size} bytes is larger than max.message.bytes allows, which is {config.max_message_bytes}."
        )
    if size > config.segment_bytes:
        raise RecordBatchTooLargeError(
            f"A batch of {size} bytes is larger than a segment: segment.bytes is {config.segment_bytes}."
        )


def _check_header(header: BatchHeader) -> None:
    if header.record_count <= 0 or header.last_offset_delta != header.record_count - 1:
        raise InvalidRecordError(
            f"A batch says that it has {header.record_count} records, and {header.last_offset_delta + 1} offsets."
        )
    if header.attributes & CONTROL_BIT:
        raise InvalidRecordError("A client can't append a control batch.")
    if header.producer_id > _NO_PRODUCER and header.base_sequence < 0:
        raise InvalidRecordError(f"A batch of producer {header.producer_id} has no sequence number.")


def _check_stamp(header: BatchHeader, rules: RecordRules, *, is_allowed: bool) -> None:
    """Check a batch that claims log append time, which then applies to all its records."""
    if not is_allowed:
        message = "A producer can't say that its records have the time of their append."
    elif header.max_timestamp != _NO_TIME and not rules.earliest <= header.max_timestamp <= rules.latest:
        message = f"The time {header.max_timestamp} is not between {rules.earliest} and {rules.latest}."
    else:
        return
    errors = tuple(
        RecordError(place, message, is_of_time=True) for place in range(min(header.record_count, MOST_ERRORS))
    )
    raise InvalidTimestampError(message, errors)


def _repacked(
    header: BatchHeader,
    records: bytes | memoryview,
    start: int,
    codec: str,
    config: LogConfig,
    *,
    is_usual: bool,
    kind: int,
    largest: int,
) -> bytes:
    """Return a batch of the same records with another compression, or in the form that producers write."""
    body, first_time = records[start:], header.base_timestamp
    if not is_usual:
        body, first_time = rewritten(records, start, header.record_count, header.base_timestamp)
    if first_time < _NO_TIME:
        raise InvalidRecordError(f"The records of a batch have times before 1970: {first_time}.")
    if header.producer_id != _NO_PRODUCER and min(header.producer_id, header.producer_epoch) < 0:
        raise InvalidRecordError(f"A batch of producer {header.producer_id} has epoch {header.producer_epoch}.")
    packed = _packed(body, codec, _level_of(config))
    _check_size(HEADER_SIZE + len(packed), config)
    return header._replace(attributes=kind, base_timestamp=first_time, max_timestamp=largest).framed(packed)


def _codec(header: BatchHeader) -> str:
    """The compression. Raises InvalidRecordError for an unknown one."""
    kind = header.attributes & COMPRESSION_BITS
    if kind >= len(COMPRESSIONS):
        raise InvalidRecordError(f"A batch has an unknown kind of compression: {kind}.")
    return COMPRESSIONS[kind]


def _codec_of(compression_type: str) -> str:
    return COMPRESSIONS[0] if compression_type == _UNCOMPRESSED else compression_type


def _level_of(config: LogConfig) -> int | None:
    """Return the topic's compression level.

    None if the topic leaves the codec to producers, or the codec has no levels.
    """
    return {
        "gzip": config.compression_gzip_level, "lz4": config.compression_lz4_level,
        "zstd": config.compression_zstd_level,
    }.get(config.compression_type)  # fmt: skip


def _unpacked(data: bytes, header: BatchHeader) -> memoryview:
    try:
        return unpacked_records(data[HEADER_SIZE:], header.attributes & COMPRESSION_BITS)
    except CorruptDataError as fault:
        raise InvalidRecordError(f"A batch can't be decompressed: {fault}") from None


def _packed(records: bytes | memoryview, codec: str, level: int | None) -> bytes | memoryview:
    if codec == COMPRESSIONS[0]:
        return records
    from kraftlake.records.compression import compress

    return compress(codec, records, level)
