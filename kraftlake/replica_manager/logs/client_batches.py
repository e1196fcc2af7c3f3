"""What a leader checks of a client's batches, and changes in them, before it appends them.

Source: org.apache.kafka.storage.internals.log.LogValidator, which also reads each record: here only those of compacted
topics are read, which need keys.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kraftlake.records.batch_format import COMPRESSION_BITS, COMPRESSIONS, CONTROL_BIT, CRC_FROM, HEADER, LENGTH_FROM
from kraftlake.records.crc32c import crc32c
from kraftlake.records.varint import MalformedError, read_varint, read_varlong
from kraftlake.replica_manager.errors import CorruptRecordError, InvalidRecordError, InvalidTimestampError
from kraftlake.replica_manager.logs.log_batch import headers
from kraftlake.replica_manager.logs.log_config import COMPACT, LogConfig
from kraftlake.runtime.errors import CorruptDataError

LOG_APPEND_TIME: Final = "LogAppendTime"
_PRODUCERS_OWN: Final = "producer"
_UNCOMPRESSED: Final = "uncompressed"
_APPEND_TIME_BIT: Final = 0x08
_LARGEST_DECOMPRESSED: Final = 2_147_483_639
"""max.decompressed.message.bytes."""
_NO_TIME: Final = -1
_NO_PRODUCER: Final = -1


def prepared_batches(data: bytes, config: LogConfig, now_ms: int) -> tuple[bytes, int | None]:
    """The batches as the leader appends them, and the time in epoch ms that it has set, None where it set none.

    Batches are compressed as the topic wants (compression.type), and get the time of the append where it wants that
    (message.timestamp.type). Raises InvalidRecordError or InvalidTimestampError for a batch that its topic can't take,
    CorruptRecordError for what is no batch.
    """
    append_time = now_ms if config.message_timestamp_type == LOG_APPEND_TIME else None
    parts = [_prepared(data[start:end], header, config, now_ms, append_time) for start, end, header in headers(data)]
    return parts[0] if len(parts) == 1 else b"".join(parts), append_time


def _prepared(data: bytes, header: tuple[int, ...], config: LogConfig, now_ms: int, append_time: int | None) -> bytes:
    (_, _, _, _, _, attributes, last_delta, first_time, max_time, producer, _, sequence, count) = header
    if count <= 0 or last_delta != count - 1:
        raise InvalidRecordError(f"A batch says that it has {count} records, and {last_delta + 1} offsets.")
    if attributes & CONTROL_BIT:
        raise InvalidRecordError("A client can't append a control batch.")
    if producer != _NO_PRODUCER and sequence < 0:
        raise InvalidRecordError(f"A batch of producer {producer} has no sequence number.")
    if append_time is None:
        _check_times(first_time, max_time, config, now_ms)
    codec = COMPRESSIONS[attributes & COMPRESSION_BITS] if attributes & COMPRESSION_BITS < len(COMPRESSIONS) else None
    if codec is None:
        raise InvalidRecordError("A batch has an unknown kind of compression.")
    wanted = codec if config.compression_type == _PRODUCERS_OWN else _codec_of(config.compression_type)
    must_have_keys = COMPACT in config.cleanup_policy
    records: bytes | None = None
    if must_have_keys or wanted != codec:
        records = _records(data, codec)
    if must_have_keys and records is not None:
        for has_key in _keys(records, count):
            if not has_key:
                raise InvalidRecordError("A compacted topic can't take a record without a key.")
    if wanted == codec and append_time is None:
        return data
    if crc32c(data[CRC_FROM:]) != header[4]:  # a new checksum must not hide that the old one was wrong
        raise CorruptRecordError("A batch has a wrong checksum.")
    body = data[HEADER.size :] if wanted == codec or records is None else _packed(records, wanted)
    attributes = attributes & ~COMPRESSION_BITS | COMPRESSIONS.index(wanted)
    if append_time is not None:
        attributes, max_time = attributes | _APPEND_TIME_BIT, append_time
    base, _, epoch, magic, _, *_ = header
    made = bytearray(
        HEADER.pack(
            base, HEADER.size - LENGTH_FROM + len(body), epoch, magic, 0, attributes, last_delta, first_time, max_time,
            *header[9:],
        )
        + body
    )  # fmt: skip
    made[CRC_FROM - 4 : CRC_FROM] = crc32c(bytes(made[CRC_FROM:])).to_bytes(4, "big")
    return bytes(made)


def _check_times(first: int, largest: int, config: LogConfig, now_ms: int) -> None:
    for time in (first, largest):
        if time == _NO_TIME:
            continue
        if now_ms - time > config.message_timestamp_before_max_ms:
            raise InvalidTimestampError(
                f"The time {time} of a record is more than message.timestamp.before.max.ms before now ({now_ms})."
            )
        if time - now_ms > config.message_timestamp_after_max_ms:
            raise InvalidTimestampError(
                f"The time {time} of a record is more than message.timestamp.after.max.ms after now ({now_ms})."
            )


def _codec_of(compression_type: str) -> str:
    return COMPRESSIONS[0] if compression_type == _UNCOMPRESSED else compression_type


def _records(data: bytes, codec: str) -> bytes:
    body = data[HEADER.size :]
    if codec == COMPRESSIONS[0]:
        return body
    from kraftlake.records.compression import decompress  # cramjam is imported when it is needed

    try:
        return decompress(codec, body, _LARGEST_DECOMPRESSED)
    except CorruptDataError as fault:
        raise InvalidRecordError(f"A batch can't be decompressed: {fault}") from None


def _packed(records: bytes, codec: str) -> bytes:
    if codec == COMPRESSIONS[0]:
        return records
    from kraftlake.records.compression import compress

    return compress(codec, records)


def _keys(records: bytes, count: int) -> Iterator[bool]:
    """Whether each record has a key."""
    position = 0
    try:
        for _ in range(count):
            size, position = read_varint(records, position)
            stop = position + size
            _, at = read_varlong(records, position + 1)  # behind the attributes
            _, at = read_varint(records, at)
            key_size, _ = read_varint(records, at)
            yield key_size >= 0
            position = stop
    except (MalformedError, IndexError) as fault:
        raise InvalidRecordError(f"A batch has records that can't be read: {fault}") from None
