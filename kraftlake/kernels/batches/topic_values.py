"""Columns of topic, partition and partition change records, written as the values that a batch holds.

For records that are objects in memory: `topic_records` replays their bytes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from kraftlake.kernels.aot.compiled import compiled, inlined
from kraftlake.kernels.batches.put_bytes import put_int, put_uvarint, uvarint_size
from kraftlake.kernels.record_types import CHANGE, CLEAR_ELR, PARTITION, TOPIC

VERSION = 2
"""Of the partition and partition change records: it holds every field."""
PARTITION_BYTES, CHANGE_BYTES, TOPIC_BYTES = 96, 144, 32
"""The largest size of a value in bytes, without the elements of its lists or its name."""


class Columns(NamedTuple):
    """The fields of n partition or partition change records.

    `lengths` (int32[7, n]) has the lengths of replicas, ISR, directories, adding, removing, ELR and last known ELR,
    -1 for null. Their elements lie in `values` (int32), those of each list behind `firsts[list]` one record after the
    other, and directories in `directories` (uint8, 16 each). `ids` (uint8[16 n]) are the topics'.
    """

    ids: Any
    partitions: Any
    leaders: Any
    leader_epochs: Any
    partition_epochs: Any
    recovery: Any
    lengths: Any
    firsts: Any
    values: Any
    directories: Any


@inlined
def _copy(data: Any, p: int, source: Any, at: int, count: Any) -> Any:
    for k in range(count):
        data[p + k] = source[at + k]
    return p + count


@inlined
def _put_list(data: Any, p: int, columns: Any, which: int, i: int, firsts: Any) -> Any:
    """A list (null too) and its length; `firsts` moves on."""
    count = np.int64(columns.lengths[which, i])
    p = put_uvarint(data, p, count + 1)
    if count <= 0:
        return p
    first = firsts[which]
    firsts[which] += count
    if which == 2:
        return _copy(data, p, columns.directories, 16 * first, 16 * count)
    for k in range(count):
        p = put_int(data, p, columns.values[first + k])
    return p


@inlined
def _put_tagged_list(data: Any, p: int, tag: int, columns: Any, which: int, i: int, firsts: Any) -> Any:
    """A tagged list; nothing for null."""
    count = np.int64(columns.lengths[which, i])
    if count < 0:
        return p
    data[p] = tag
    p = put_uvarint(data, p + 1, uvarint_size(count + 1) + count * (16 if which == 2 else 4))
    return _put_list(data, p, columns, which, i, firsts)


@inlined
def _put_head(data: Any, p: int, key: int, columns: Any, i: int) -> Any:
    data[p] = 1
    data[p + 1] = key
    data[p + 2] = VERSION
    p = put_int(data, p + 3, columns.partitions[i])
    return _copy(data, p, columns.ids, 16 * i, 16)


@inlined
def _put_partition(data: Any, p: int, columns: Any, i: int, firsts: Any) -> Any:
    p = _put_head(data, p, PARTITION, columns, i)
    p = _put_list(data, p, columns, 0, i, firsts)
    p = _put_list(data, p, columns, 1, i, firsts)
    p = _put_list(data, p, columns, 4, i, firsts)
    p = _put_list(data, p, columns, 3, i, firsts)
    p = put_int(data, p, columns.leaders[i])
    p = put_int(data, p, columns.leader_epochs[i])
    p = put_int(data, p, columns.partition_epochs[i])
    p = _put_list(data, p, columns, 2, i, firsts)
    at = p
    data[at] = 0
    p += 1
    if columns.recovery[i] != 0:
        data[at] += 1
        data[p] = 0
        data[p + 1] = 1
        data[p + 2] = np.uint8(columns.recovery[i])
        p += 3
    for which in range(5, 7):
        if columns.lengths[which, i] >= 0:
            data[at] += 1
            p = _put_tagged_list(data, p, which - 4, columns, which, i, firsts)
    return p


@inlined
def _put_change(data: Any, p: int, columns: Any, i: int, firsts: Any) -> Any:
    p = _put_head(data, p, CHANGE, columns, i)
    at = p
    data[at] = 0
    p += 1
    for which in range(7):
        data[at] += columns.lengths[which, i] >= 0
    p = _put_tagged_list(data, p, 0, columns, 1, i, firsts)
    if columns.leaders[i] != -2:
        data[at] += 1
        data[p] = 1
        data[p + 1] = 4
        p = put_int(data, p + 2, columns.leaders[i])
    p = _put_tagged_list(data, p, 2, columns, 0, i, firsts)
    p = _put_tagged_list(data, p, 3, columns, 4, i, firsts)
    p = _put_tagged_list(data, p, 4, columns, 3, i, firsts)
    if columns.recovery[i] != -1:
        data[at] += 1
        data[p] = 5
        data[p + 1] = 1
        data[p + 2] = np.uint8(columns.recovery[i])
        p += 3
    p = _put_tagged_list(data, p, 6, columns, 5, i, firsts)
    p = _put_tagged_list(data, p, 7, columns, 6, i, firsts)
    return _put_tagged_list(data, p, 8, columns, 2, i, firsts)


@compiled
def write_values(kinds: Any, partitions: Any, changes: Any, topic_ids: Any, name_lengths: Any, names: Any, data: Any,
                 starts: Any, stops: Any) -> None:  # fmt: skip
    """Write a record of type `kinds[i]` to data[starts[i]:stops[i]] for each i; those of a type follow each other.

    `topic_ids` (uint8), `name_lengths` and `names` (UTF-8) are those of TopicRecords. Records of other types become
    values that `topic_records.replay` stops at.
    """
    p = 0
    partition = change = topic = name = 0
    for i in range(len(kinds)):
        starts[i] = p
        if kinds[i] == PARTITION:
            p = _put_partition(data, p, partitions, partition, partitions.firsts)
            partition += 1
        elif kinds[i] == CHANGE:
            p = _put_change(data, p, changes, change, changes.firsts)
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
