"""Decodes the answers to Fetch requests; the records' bytes stay as the leader sent them.

The decoding is written by hand, because kio's reader allocates memory for any length that an array claims, which ends
the process if the memory is not available. Source: FetchResponse.json of Apache Kafka.
"""

from __future__ import annotations

import struct

import attrs

from kraftlake.protocol.address import Address
from kraftlake.protocol.message_scan import MessageScan
from kraftlake.records.uuid import Uuid
from kraftlake.records.varint import MalformedError, read_uvarint

_HEAD = struct.Struct(">ihi")
"""Throttle time, error, session id."""
_PARTITION = struct.Struct(">ihqqq")
"""Index, error, high watermark, last stable offset, log start offset."""
_ABORTED_BYTES = 16
_INT32 = struct.Struct(">i")
_EPOCH_AND_OFFSET = struct.Struct(">iq")
_OFFSET_AND_EPOCH = struct.Struct(">qi")
_LEADER = struct.Struct(">ii")
_UUID_BYTES = 16


@attrs.frozen(kw_only=True, weakref_slot=False)
class PartitionData:
    """The answer for one partition.

    `error` is Kafka's code, offsets and epochs are −1 if the leader does not know them. `diverging` has the epoch and
    its end offset after which the logs differ, `snapshot` the end offset and epoch of the snapshot to load instead of
    the log; None if absent. `leader` has the id and epoch.
    """

    topic_id: Uuid
    index: int
    error: int
    high_watermark: int
    log_start_offset: int
    diverging: tuple[int, int] | None = None
    leader: tuple[int, int] = (-1, -1)
    snapshot: tuple[int, int] | None = None
    records: bytes = attrs.field(default=b"", repr=False)


@attrs.frozen(kw_only=True)
class FetchResponseData:
    """An answer to a Fetch; with an error for the whole request it has no partitions.

    `endpoints` are the addresses of leaders by their ids (version 16 and later).
    """

    error: int
    session_id: int
    partitions: tuple[PartitionData, ...]
    endpoints: dict[int, Address] = attrs.field(factory=dict)


def decode_fetch(data: bytes, position: int) -> FetchResponseData:
    """Decode the answer (version 13 and later) from `position` to the end of `data`.

    Raises MalformedError, IndexError, struct.error or UnicodeDecodeError for bytes that are not such an answer.
    """
    _, error, session_id = _HEAD.unpack_from(data, position)
    scan = MessageScan()
    topics, position = _elements(data, position + _HEAD.size, scan)
    partitions: list[PartitionData] = []
    for _ in range(topics):
        topic_id = Uuid(data[position : position + _UUID_BYTES])
        count, position = _elements(data, position + _UUID_BYTES, scan)
        for _ in range(count):
            partition, position = _decode_partition(topic_id, data, position, scan)
            partitions.append(partition)
        _, position = _tagged_fields(data, position, scan)
    tags, position = _tagged_fields(data, position, scan)
    if position != len(data):
        raise MalformedError(f"{len(data) - position} bytes follow the answer")
    endpoints = _decode_endpoints(data, tags[0], scan) if 0 in tags else {}
    return FetchResponseData(error=error, session_id=session_id, partitions=tuple(partitions), endpoints=endpoints)


def _decode_partition(topic_id: Uuid, data: bytes, position: int, scan: MessageScan) -> tuple[PartitionData, int]:
    index, error, high_watermark, _, log_start_offset = _PARTITION.unpack_from(data, position)
    aborted, position = _elements(data, position + _PARTITION.size, scan)
    for _ in range(aborted):
        _, position = _tagged_fields(data, position + _ABORTED_BYTES, scan)
    size, start = _length(data, position + _INT32.size)  # after the preferred read replica
    end = start + size
    if end > len(data):
        raise MalformedError(f"{size} bytes of records do not fit into the answer")
    tags, position = _tagged_fields(data, end, scan)
    diverging = _EPOCH_AND_OFFSET.unpack_from(data, tags[0]) if 0 in tags else None
    snapshot = _OFFSET_AND_EPOCH.unpack_from(data, tags[2]) if 2 in tags else None
    partition = PartitionData(
        topic_id=topic_id,
        index=index,
        error=error,
        high_watermark=high_watermark,
        log_start_offset=log_start_offset,
        diverging=None if diverging is None or min(diverging) < 0 else diverging,
        leader=_LEADER.unpack_from(data, tags[1]) if 1 in tags else (-1, -1),
        snapshot=None if snapshot is None or min(snapshot) < 0 else snapshot,
        records=data[start:end],
    )
    return partition, position


def _decode_endpoints(data: bytes, position: int, scan: MessageScan) -> dict[int, Address]:
    endpoints: dict[int, Address] = {}
    count, position = _elements(data, position, scan)
    for _ in range(count):
        (node_id,) = _INT32.unpack_from(data, position)
        size, start = _length(data, position + _INT32.size)
        (port,) = _INT32.unpack_from(data, start + size)
        endpoints[node_id] = Address(data[start : start + size].decode(), port)
        size, start = _length(data, start + size + _INT32.size)  # the rack
        _, position = _tagged_fields(data, start + size, scan)
    return endpoints


def _elements(data: bytes, position: int, scan: MessageScan) -> tuple[int, int]:
    """Return the length of a compact array, counted against the limit, and the position of its first element."""
    count, position = _length(data, position)
    scan.add(count, len(data) - position)
    return count, position


def _length(data: bytes, position: int) -> tuple[int, int]:
    """Return the length of a compact array or string, 0 for a null one, and the position after it."""
    length, position = read_uvarint(data, position)
    return (length - 1 if length else 0), position


def _tagged_fields(data: bytes, position: int, scan: MessageScan) -> tuple[dict[int, int], int]:
    """Return the positions of tagged fields by tag, and the position after all of them."""
    count, position = scan.tagged_fields(data, position)
    fields: dict[int, int] = {}
    for _ in range(count):
        tag, position = read_uvarint(data, position)
        size, fields[tag] = read_uvarint(data, position)
        position = fields[tag] + size
        if position > len(data):
            raise MalformedError(f"{size} bytes of a tagged field do not fit into the answer")
    return fields, position
