"""Hash tables of topic ids, names and partitions in arrays of numbers."""

from __future__ import annotations

import cython

from kraftlake.kernels.language import (
    Bytes,
    Hashes,
    HashesOut,
    Ids,
    Int64,
    IntRows,
    Ints,
    IntsOut,
    Longs,
    LongsOut,
    UInt64,
    compiled,
    inlined,
)


@inlined
def mix(high: UInt64, low: UInt64) -> UInt64:
    """64 well-mixed bits of two numbers."""
    x = high * 0x9E3779B97F4A7C15 ^ low
    x ^= x >> 32
    x *= 0xD6E8FEB86659FD93
    return x ^ (x >> 32)


@compiled
def deal_ids(ids: Ids, shards: Int64, found: LongsOut) -> None:
    """The shard of each topic id, a number below `shards`, into `found`."""
    for i in range(len(ids)):
        found[i] = mix(ids[i, 0], ids[i, 1]) % cython.cast(UInt64, shards)


@inlined
def free_place(index: Ints, x: UInt64) -> Int64:
    """The first free place for a hash: in a table whose length is a power of two, where 0 means free."""
    mask: Int64 = len(index) - 1
    at: Int64 = x & mask
    while index[at] != 0:
        at = (at + 1) & mask
    return at


@compiled
def index_ids(ids: Ids, count: Int64, index: IntsOut) -> None:
    """Fill `index` (int32, a power of two, zeros) so that `find_id` finds the places of `ids`."""
    for place in range(count):
        put_id(ids, index, ids[place, 0], ids[place, 1], place)


@inlined
def find_id(ids: Ids, index: Ints, high: UInt64, low: UInt64) -> Int64:
    """The place of an id, or -1."""
    mask: Int64 = len(index) - 1
    at: Int64 = mix(high, low) & mask
    while index[at] != 0:
        place: Int64 = index[at] - 1
        if ids[place, 0] == high and ids[place, 1] == low:
            return place
        at = (at + 1) & mask
    return -1


@inlined
def put_id(ids: Ids, index: IntsOut, high: UInt64, low: UInt64, place: Int64) -> None:
    """Note the place of an id, instead of an earlier one of the same id."""
    mask: Int64 = len(index) - 1
    at: Int64 = mix(high, low) & mask
    while index[at] != 0 and (ids[index[at] - 1, 0] != high or ids[index[at] - 1, 1] != low):
        at = (at + 1) & mask
    index[at] = place + 1


@inlined
def hash_name(data: Bytes, start: Int64, stop: Int64) -> UInt64:
    """64 bits of a name."""
    x: UInt64 = 0xCBF29CE484222325
    for i in range(start, stop):
        x = (x ^ data[i]) * 0x100000001B3
    return mix(x, stop - start)


@compiled
def index_names(data: Bytes, ends: Longs, hashes: HashesOut, topics: IntsOut) -> None:
    """Fill the table of names: that of topic t ends at ends[t] in `data`, one byte before the next one."""
    start: Int64 = 0
    for topic in range(len(ends)):
        x = hash_name(data, start, ends[topic])
        at = free_place(topics, x)
        hashes[at] = x
        topics[at] = topic + 1
        start = ends[topic] + 1


@compiled
def move_names(hashes: Hashes, topics: Ints, new_hashes: HashesOut, new_topics: IntsOut) -> None:
    """Move the table of names into a larger one."""
    for i in range(len(hashes)):
        if topics[i] != 0:
            at = free_place(new_topics, hashes[i])
            new_hashes[at] = hashes[i]
            new_topics[at] = topics[i]


@compiled
def index_odd(odd: IntRows, count: Int64, index: IntsOut) -> None:
    """Fill the table of partitions that do not stand where their ids say."""
    for k in range(count):
        index[free_place(index, mix(odd[k, 0], odd[k, 1]))] = k + 1
