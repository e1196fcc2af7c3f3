"""Batches with other headers or other records than they should have, and the right checksum."""

from __future__ import annotations

from kraftlake.records.batch_header import COMPRESSIONS, CRC_FROM, HEADER, LENGTH_FROM
from kraftlake.records.compression import compress
from kraftlake.records.crc32c import crc32c
from kraftlake.records.varint import varint

_NAMES = (
    "base", "length", "epoch", "magic", "crc", "attributes", "last_delta", "first_time", "max_time", "producer",
    "producer_epoch", "sequence", "count",
)  # fmt: skip


def changed(data: bytes, **fields: int) -> bytes:
    """A batch with other fields in its header."""
    header = dict(zip(_NAMES, HEADER.unpack_from(data), strict=True)) | fields
    body = data[HEADER.size :]
    whole = HEADER.pack(*header.values()) + body
    return HEADER.pack(*(header | {"crc": crc32c(whole[CRC_FROM:])}).values()) + body


def packed(data: bytes, codec: str) -> bytes:
    """A batch whose records are compressed."""
    body = compress(codec, data[HEADER.size :])
    length = HEADER.size - LENGTH_FROM + len(body)
    return changed(data[: HEADER.size] + body, length=length, attributes=COMPRESSIONS.index(codec))


def with_records(data: bytes, *records: bytes, whole: bytes | None = None, count: int | None = None) -> bytes:
    """A batch with other records, each without the length before it; `whole` has the lengths, too."""
    body = b"".join(varint(len(one)) + one for one in records) if whole is None else whole
    number = len(records) if count is None else count
    length = HEADER.size - LENGTH_FROM + len(body)
    return changed(data[: HEADER.size] + body, length=length, count=number, last_delta=number - 1)
