"""Record batches of data, as a producer sends them, and their records."""

from __future__ import annotations

from collections.abc import Sequence
from struct import pack
from zlib import crc32

from google_crc32c import value as crc32c

from kraftlake.records.batch_header import (
    APPEND_TIME_BIT,
    COMPRESSIONS,
    CONTROL_BIT,
    CRC_FROM,
    DELETE_HORIZON_BIT,
    HEADER,
    LENGTH_FROM,
    TRANSACTIONAL_BIT,
    header_at,
)
from kraftlake.records.compression import compress
from kraftlake.records.varint import read_varint, read_varlong, varint
from kraftlake.replica_manager.logs.cleaning.batch_content import records_of
from kraftlake.replica_manager.logs.log_batch import LogBatch

Record = tuple[int, int, bytes | None, bytes | None]
"""Offset, time, key and value."""


def batch(
    *values: bytes,
    times: tuple[int, ...] = (),
    producer: int = -1,
    transactional: bool = False,
    epoch: int = 0,
    sequence: int | None = None,
    key: bytes | None = None,
) -> bytes:
    """One batch; `times` are the records' timestamps, `epoch` and `sequence` an idempotent producer's, `key` of all."""
    times = times or (1000,) * len(values)
    first = sequence if sequence is not None else -1 if producer < 0 else 0
    records = [(key, value) for value in values]
    return _batch(records, times, (producer, epoch, first), TRANSACTIONAL_BIT if transactional else 0)


def keyed(
    *records: tuple[bytes | None, bytes | None],
    times: tuple[int, ...] = (),
    producer: int = -1,
    transactional: bool = False,
    epoch: int = 0,
    sequence: int = -1,
    codec: str = "none",
    append_time: bool = False,
) -> bytes:
    """One batch of keys and values, either of which may be None; `codec` is its compression."""
    times = times or (1000,) * len(records)
    attributes = COMPRESSIONS.index(codec) | APPEND_TIME_BIT * append_time | TRANSACTIONAL_BIT * transactional
    return _batch(records, times, (producer, epoch, sequence), attributes, codec=codec)


def marker(
    producer: int, *, commit: bool, epoch: int = 0, coordinator_epoch: int = 0, horizon: int | None = None
) -> bytes:
    """The control batch that ends a transaction; `horizon` (epoch ms) is until when a compacting leader has it."""
    key = bytes((0, 0, 0, int(commit)))
    value = bytes(2) + coordinator_epoch.to_bytes(4, "big")
    attributes = TRANSACTIONAL_BIT | CONTROL_BIT | (0 if horizon is None else DELETE_HORIZON_BIT)
    return _batch([(key, value)], (1000,), (producer, epoch, -1), attributes, base_time=horizon)


def old_message(value: bytes, *, offset: int = 0, magic: int = 1) -> bytes:
    """A message of format 0 or 1 without a key, as Kafka wrote it before 0.11."""
    time = pack(">q", 1000) if magic == 1 else b""
    covered = pack(">bb", magic, 0) + time + pack(">ii", -1, len(value)) + value
    return pack(">qiI", offset, 4 + len(covered), crc32(covered)) + covered


def emptied(data: bytes) -> bytes:
    """A batch as a compacting leader leaves it, without its records."""
    base, _, leader_epoch, magic, _, *rest, _ = HEADER.unpack_from(data)
    length = HEADER.size - LENGTH_FROM
    whole = HEADER.pack(base, length, leader_epoch, magic, 0, *rest, 0)
    return HEADER.pack(base, length, leader_epoch, magic, crc32c(whole[CRC_FROM:]), *rest, 0)


def records_in(batch: LogBatch) -> list[Record]:
    """The records of a batch, decoded without the cleaner's loops."""
    header = header_at(batch.data)
    data, at = records_of(batch.data, header)
    found: list[Record] = []
    for _ in range(batch.count):
        size, at = read_varint(data, at)
        end = at + size
        time, at = read_varlong(data, at + 1)
        offset, at = read_varint(data, at)
        key, at = _read_bytes(data, at)
        value, _ = _read_bytes(data, at)
        found.append((batch.base_offset + offset, header.base_timestamp + time, key, value))
        at = end
    return found


def _read_bytes(data: bytes | memoryview, at: int) -> tuple[bytes | None, int]:
    size, at = read_varint(data, at)
    return (None if size < 0 else bytes(data[at : at + size])), at + max(size, 0)


def _batch(
    of: Sequence[tuple[bytes | None, bytes | None]],
    times: tuple[int, ...],
    producer: tuple[int, int, int],
    attributes: int,
    *,
    base_time: int | None = None,
    codec: str = COMPRESSIONS[0],
) -> bytes:
    first_time = times[0] if base_time is None else base_time
    records = b""
    for delta, ((key, value), time) in enumerate(zip(of, times, strict=True)):
        body = b"\0" + varint(time - first_time) + varint(delta) + _bytes(key) + _bytes(value) + varint(0)
        records += varint(len(body)) + body
    if codec != COMPRESSIONS[0]:
        records = compress(codec, records)
    id_, epoch, sequence = producer
    fields = (
        attributes, len(of) - 1, first_time, max(times), id_, epoch if id_ >= 0 else -1, sequence, len(of),
    )  # fmt: skip
    length = HEADER.size - LENGTH_FROM + len(records)
    whole = HEADER.pack(0, length, -1, 2, 0, *fields) + records
    return HEADER.pack(0, length, -1, 2, crc32c(whole[CRC_FROM:]), *fields) + records


def _bytes(content: bytes | None) -> bytes:
    return varint(-1) if content is None else varint(len(content)) + content
