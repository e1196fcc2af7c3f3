"""Record batches of data, as a producer sends them."""

from __future__ import annotations

from crc32c import crc32c

from kraftlake.records.batch_format import CRC_FROM, HEADER, LENGTH_FROM
from kraftlake.records.varint import varint
from kraftlake.replica_manager.log_batch import CONTROL_BIT, TRANSACTIONAL_BIT


def batch(*values: bytes, times: tuple[int, ...] = (), producer: int = -1, transactional: bool = False) -> bytes:
    """One batch; `times` are the records' timestamps."""
    times = times or (1000,) * len(values)
    return _batch(list(values), times, producer, TRANSACTIONAL_BIT if transactional else 0)


def marker(producer: int, *, commit: bool) -> bytes:
    """The control batch that ends a transaction."""
    return _batch([b""], (1000,), producer, TRANSACTIONAL_BIT | CONTROL_BIT, key=bytes((0, 0, 0, int(commit))))


def _batch(
    values: list[bytes], times: tuple[int, ...], producer: int, attributes: int, key: bytes | None = None
) -> bytes:
    records = b""
    for delta, (value, time) in enumerate(zip(values, times, strict=True)):
        keyed = varint(-1) if key is None else varint(len(key)) + key
        body = b"\0" + varint(time - times[0]) + varint(delta) + keyed + varint(len(value)) + value + varint(0)
        records += varint(len(body)) + body
    fields = (attributes, len(values) - 1, times[0], max(times), producer, 0 if producer >= 0 else -1, -1, len(values))
    length = HEADER.size - LENGTH_FROM + len(records)
    whole = HEADER.pack(0, length, -1, 2, 0, *fields) + records
    return HEADER.pack(0, length, -1, 2, crc32c(whole[CRC_FROM:]), *fields) + records
