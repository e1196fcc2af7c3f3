"""Columns of topic, partition and partition change records, written as the values that a batch holds.

For records that are objects in memory: `topic_records` replays their bytes.
"""

from __future__ import annotations

import cython

from kraftlake.kernels.batches.put_bytes import put_int, put_uvarint, uvarint_size
from kraftlake.kernels.batches.record_columns import VERSION, Columns
from kraftlake.kernels.language import (
    Bytes,
    BytesOut,
    Int64,
    Longs,
    LongsOut,
    UInt8,
    compiled,
    inlined,
)
from kraftlake.kernels.record_types import CHANGE, CLEAR_ELR, PARTITION, TOPIC


@inlined
def _copy(data: BytesOut, p: Int64, source: Bytes, at: Int64, count: Int64) -> Int64:
    for k in range(count):
        data[p + k] = source[at + k]
    return p + count


@inlined
def _put_list(data: BytesOut, p: Int64, columns: Columns, which: Int64, i: Int64) -> Int64:
    """A list (null too) and its length; `columns.firsts` moves on."""
    count: Int64 = columns.lengths[which, i]
    p = put_uvarint(data, p, count + 1)
    if count <= 0:
        return p
    first = columns.firsts[which]
    columns.firsts[which] += count
    if which == 2:
        return _copy(data, p, columns.directories, 16 * first, 16 * count)
    for k in range(count):
        p = put_int(data, p, columns.values[first + k])
    return p


@inlined
def _put_tagged_list(data: BytesOut, p: Int64, tag: Int64, columns: Columns, which: Int64, i: Int64) -> Int64:
    """A tagged list; nothing for null."""
    count: Int64 = columns.lengths[which, i]
    if count < 0:
        return p
    data[p] = tag
    p = put_uvarint(data, p + 1, uvarint_size(count + 1) + count * (16 if which == 2 else 4))
    return _put_list(data, p, columns, which, i)


@inlined
def _put_head(data: BytesOut, p: Int64, key: Int64, columns: Columns, i: Int64) -> Int64:
    data[p] = 1
    data[p + 1] = key
    data[p + 2] = VERSION
    p = put_int(data, p + 3, columns.partitions[i])
    return _copy(data, p, columns.ids, 16 * i, 16)


@inlined
def _put_partition(data: BytesOut, p: Int64, columns: Columns, i: Int64) -> Int64:
    p = _put_head(data, p, PARTITION, columns, i)
    p = _put_list(data, p, columns, 0, i)
    p = _put_list(data, p, columns, 1, i)
    p = _put_list(data, p, columns, 4, i)
    p = _put_list(data, p, columns, 3, i)
    p = put_int(data, p, columns.leaders[i])
    p = put_int(data, p, columns.leader_epochs[i])
    p = put_int(data, p, columns.partition_epochs[i])
    p = _put_list(data, p, columns, 2, i)
    at = p
    data[at] = 0
    p += 1
    if columns.recovery[i] != 0:
        data[at] += 1
        data[p] = 0
        data[p + 1] = 1
        data[p + 2] = cython.cast(UInt8, columns.recovery[i])
        p += 3
    for which in range(5, 7):
        if columns.lengths[which, i] >= 0:
            data[at] += 1
            p = _put_tagged_list(data, p, which - 4, columns, which, i)
    return p


@inlined
def _put_change(data: BytesOut, p: Int64, columns: Columns, i: Int64) -> Int64:
    p = _put_head(data, p, CHANGE, columns, i)
    at = p
    data[at] = 0
    p += 1
    for which in range(7):
        data[at] += columns.lengths[which, i] >= 0
    p = _put_tagged_list(data, p, 0, columns, 1, i)
    if columns.leaders[i] != -2:
        data[at] += 1
        data[p] = 1
        data[p + 1] = 4
        p = put_int(data, p + 2, columns.leaders[i])
    p = _put_tagged_list(data, p, 2, columns, 0, i)
    p = _put_tagged_list(data, p, 3, columns, 4, i)
    p = _put_tagged_list(data, p, 4, columns, 3, i)
    if columns.recovery[i] != -1:
        data[at] += 1
        data[p] = 5
        data[p + 1] = 1
        data[p + 2] = cython.cast(UInt8, columns.recovery[i])
        p += 3
    p = _put_tagged_list(data, p, 6, columns, 5, i)
    p = _put_tagged_list(data, p, 7, columns, 6, i)
    return _put_tagged_list(data, p, 8, columns, 2, i)


@compiled
def write_values(
    kinds: Bytes, partitions: Columns, changes: Columns, topic_ids: Bytes, name_lengths: Longs, names: Bytes,
    data: BytesOut, starts: LongsOut, stops: LongsOut,
) -> None:  # fmt: skip
    """Write a record of type `kinds[i]` to data[starts[i]:stops[i]] for each i; those of a type follow each other.

    `topic_ids` (uint8), `name_lengths` and `names` (UTF-8) are those of TopicRecords. Records of other types become
    values that `topic_records.replay` stops at.
    """
    p: Int64 = 0
    partition: Int64 = 0
    change: Int64 = 0
    topic: Int64 = 0
    name: Int64 = 0
    for i in range(len(kinds)):
        starts[i] = p
        if kinds[i] == PARTITION:
            p = _put_partition(data, p, partitions, partition)
            partition += 1
        elif kinds[i] == CHANGE:
            p = _put_change(data, p, changes, change)
            change += 1
        elif kinds[i] == TOPIC:
            data[p] = 1
            data[p + 1] = TOPIC
            data[p + 2] = 0
            length = name_lengths[topic]
            p = put_uvarint(data, p + 3, length + 1)
            p = _copy(data, p, names, name, length)
            p = _copy(data, p, topic_ids, 16 * topic, 16)
            data[p] = 0
            p += 1
            name += length
            topic += 1
        else:
            data[p] = 1
            data[p + 1] = CLEAR_ELR
            data[p + 2] = 0
            p += 3
        stops[i] = p
