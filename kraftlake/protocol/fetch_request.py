"""Encodes Fetch requests, for observers of the quorum and for followers of partitions.

The encoding is written by hand, because kio takes more than ten times as long for the 1,000 partitions of a full
request. Source: FetchRequest.json of Apache Kafka; KIP-227 (sessions), KIP-516 (topic ids), KIP-903 (the broker's
epoch), KIP-1166 (the high watermark).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Final

import attrs

from kraftlake.records.varint import uvarint

FETCH: Final = 1
"""The key of the API."""
FETCH_VERSIONS: Final = range(13, 19)
"""The versions with topic ids (KIP-516); all of them have tagged fields."""
_PARTITION = struct.Struct(">iiqiqi")
_HIGH_WATERMARK = struct.Struct(">BBBq")
_LIMITS = struct.Struct(">iiibii")
_REPLICA = struct.Struct(">iq")
_INT32 = struct.Struct(">i")
_NO_TAGS = b"\0"


@attrs.frozen(kw_only=True)
class FetchHeader:
    """The fields of a Fetch that apply to all its partitions; sizes in bytes.

    The leader waits up to `max_wait_ms` until `min_bytes` can be sent. `replica_id` and `replica_epoch` are −1 for an
    observer. `isolation_level` 1 requests only committed transactions. `session_epoch` −1 requests no session.
    """

    cluster_id: str | None = None
    replica_id: int = -1
    replica_epoch: int = -1
    max_wait_ms: int
    min_bytes: int = 1
    max_bytes: int
    isolation_level: int = 0
    session_id: int = 0
    session_epoch: int = -1
    rack: str = ""


def encode_partition(
    version: int,
    *,
    index: int,
    current_leader_epoch: int,
    fetch_offset: int,
    last_fetched_epoch: int,
    log_start_offset: int,
    max_bytes: int,
    high_watermark: int | None = None,
) -> bytes:
    """Encode one partition of a Fetch; −1 for unknown epochs and offsets.

    `high_watermark` is the one known to the replica: from version 18 on, the leader answers at once if it is lower than
    the leader's.
    """
    fields = (index, current_leader_epoch, fetch_offset, last_fetched_epoch, log_start_offset, max_bytes)
    known = version >= 18 and high_watermark is not None
    return _PARTITION.pack(*fields) + (_HIGH_WATERMARK.pack(1, 1, 8, high_watermark) if known else _NO_TAGS)


def encode_fetch(
    version: int,
    header: FetchHeader,
    topics: Iterable[tuple[bytes, Sequence[bytes]]],
    forgotten: Iterable[tuple[bytes, Sequence[int]]] = (),
) -> bytes:
    """Encode the body of a Fetch from topic ids with encoded partitions, and the ids of forgotten partitions."""
    parts = [] if version >= 15 else [_INT32.pack(header.replica_id)]
    parts.append(
        _LIMITS.pack(
            header.max_wait_ms, header.min_bytes, header.max_bytes, header.isolation_level, header.session_id,
            header.session_epoch,
        )
    )  # fmt: skip
    fetched = list(topics)
    parts.append(uvarint(len(fetched) + 1))
    for topic_id, partitions in fetched:
        parts += (topic_id, uvarint(len(partitions) + 1), *partitions, _NO_TAGS)
    dropped = list(forgotten)
    parts.append(uvarint(len(dropped) + 1))
    for topic_id, indexes in dropped:
        parts += (topic_id, uvarint(len(indexes) + 1), *map(_INT32.pack, indexes), _NO_TAGS)
    parts += (_string(header.rack), _tags(version, header))
    return b"".join(parts)


def _tags(version: int, header: FetchHeader) -> bytes:
    fields: list[tuple[int, bytes]] = []
    if header.cluster_id is not None:
        fields.append((0, _string(header.cluster_id)))
    if version >= 15 and (header.replica_id, header.replica_epoch) != (-1, -1):
        fields.append((1, _REPLICA.pack(header.replica_id, header.replica_epoch) + _NO_TAGS))
    return uvarint(len(fields)) + b"".join(uvarint(tag) + uvarint(len(data)) + data for tag, data in fields)


def _string(text: str) -> bytes:
    data = text.encode()
    return uvarint(len(data) + 1) + data
