"""The records behind the header of a batch of a metadata log, taken apart and put together.

Source: org.apache.kafka.common.record.DefaultRecord.
"""

from __future__ import annotations

from collections.abc import Sequence

from kraftlake.records.serde import control_key, control_type_of
from kraftlake.records.varint import MalformedError, read_varint, read_varlong, varint

SMALLEST_RECORD = 7  # bytes: length, attributes, timestamp, offset, no key, no value, no headers

_DATA_PREFIXES = tuple(b"\0\0" + varint(delta) + b"\x01" for delta in range(2048))


def join_records(values: Sequence[bytes], timestamps: Sequence[int], control_types: Sequence[int]) -> bytes:
    """Encode the records section of a batch; `control_types` is empty for a data batch, else as long as `values`."""
    parts: list[bytes] = []
    base_timestamp = timestamps[0]
    for delta, value in enumerate(values):
        if not control_types and timestamps[delta] == base_timestamp and delta < len(_DATA_PREFIXES):
            head = _DATA_PREFIXES[delta]
        else:
            key = control_key(control_types[delta]) if control_types else None
            key_part = b"\x01" if key is None else varint(len(key)) + key
            head = b"\0" + varint(timestamps[delta] - base_timestamp) + varint(delta) + key_part
        size = varint(len(value))
        parts += (varint(len(head) + len(size) + len(value) + 1), head, size, value, b"\0")
    return b"".join(parts)


def split_records(data: bytes, count: int, base_timestamp: int, control: bool) -> tuple[
    tuple[bytes, ...], tuple[int, ...], tuple[int, ...]
]:  # fmt: skip
    """Decode the values, timestamps and control types of the `count` records in `data`.

    Raises MalformedError or IndexError for bytes that are not records of a metadata log.
    """
    if count * SMALLEST_RECORD > len(data):
        raise MalformedError(f"{count} records don't fit into {len(data)} bytes")
    values: list[bytes] = []
    timestamps: list[int] = []
    control_types: list[int] = []
    position = 0
    end = len(data)
    prefixes = len(_DATA_PREFIXES) if not control else 0
    for delta in range(count):
        size = data[position]
        position += 1
        if size > 127:
            size, position = read_varint(data, position - 1)
        else:
            size = (size >> 1) ^ -(size & 1)
        stop = position + size
        if size < 0 or stop > end:
            raise MalformedError("a record is longer than its batch")
        if delta < prefixes and data.startswith(_DATA_PREFIXES[delta], position):
            position += len(_DATA_PREFIXES[delta])
            timestamps.append(base_timestamp)
        else:
            timestamp, key, position = _record_head(data, position, delta)
            timestamps.append(base_timestamp + timestamp)
            if control != (key is not None):
                raise MalformedError("a record of a metadata log has a key" if key is not None else "a key is missing")
            if key is not None:
                control_types.append(control_type_of(key))
        size = data[position]
        position += 1
        if size > 127:
            size, position = read_varint(data, position - 1)
        else:
            size = (size >> 1) ^ -(size & 1)
        start = position
        position += size
        if size < 0 or position + 1 != stop or data[position] != 0:
            raise MalformedError("a record has no value, or headers, or another length than it says")
        values.append(data[start:position])
        position = stop
    if position != end:
        raise MalformedError(f"{end - position} bytes are left behind the last record")
    return tuple(values), tuple(timestamps), tuple(control_types)


def _record_head(data: bytes, position: int, delta: int) -> tuple[int, bytes | None, int]:
    """Decode the timestamp delta and the key of the record whose attributes are at `position`.

    Also returns the position of its value.
    """
    if data[position] != 0:
        raise MalformedError(f"a record has the attributes {data[position]}")
    timestamp, position = read_varlong(data, position + 1)
    offset, position = read_varint(data, position)
    if offset != delta:
        raise MalformedError(f"record {delta} of the batch has the offset {offset} in it: offsets have holes")
    size, position = read_varint(data, position)
    if size < 0:
        return timestamp, None, position
    if size > len(data) - position:
        raise MalformedError("a key is longer than its batch")
    return timestamp, data[position : position + size], position + size
