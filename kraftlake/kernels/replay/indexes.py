"""Hash tables of topic ids, names and partitions in arrays of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from kraftlake.kernels.language import compiled, inlined


@inlined
def mix(high: Any, low: Any) -> Any:
    """64 well-mixed bits of two numbers."""
    x = high * 0x9E3779B97F4A7C15 ^ low
    x ^= x >> 32
    x *= 0xD6E8FEB86659FD93
    return x ^ (x >> 32)


@inlined
def free_place(index: Any, x: Any) -> Any:
    """The first free place for a hash: in a table whose length is a power of two, where 0 means free."""
    mask = np.uint64(len(index) - 1)
    at = x & mask
    while index[at] != 0:
        at = (at + 1) & mask
    return at


@compiled
def index_ids(ids: Any, count: int, index: Any) -> None:
    """Fill `index` (int32, a power of two, zeros) so that `find_id` finds the places of `ids`."""
    for place in range(count):
        index[free_place(index, mix(ids[place, 0], ids[place, 1]))] = place + 1


@inlined
def find_id(ids: Any, index: Any, high: Any, low: Any) -> Any:
    """The place of an id, or -1."""
    mask = np.uint64(len(index) - 1)
    at = mix(high, low) & mask
    while index[at] != 0:
        place = np.int64(index[at]) - 1
        if ids[place, 0] == high and ids[place, 1] == low:
            return place
        at = (at + 1) & mask
    return -1


@compiled
def insert_id(index: Any, high: Any, low: Any, place: int) -> None:
    """Note the place of an id that is not there yet."""
    index[free_place(index, mix(high, low))] = place + 1


@compiled
def hash_name(data: Any, start: int, stop: int) -> Any:
    """64 bits of a name."""
    x = 0xCBF29CE484222325
    for i in range(start, stop):
        x = (x ^ np.uint64(data[i])) * 0x100000001B3
    return mix(x, np.uint64(stop - start))


@compiled
def index_names(data: Any, hashes: Any, topics: Any) -> None:
    """Fill the table of names from `data`: names of topics 0, 1, …, each with a newline behind it."""
    start = 0
    topic = 0
    for i in range(len(data)):
        if data[i] == 10:
            x = hash_name(data, start, i)
            at = free_place(topics, x)
            hashes[at] = x
            topics[at] = topic + 1
            topic += 1
            start = i + 1


@compiled
def move_names(hashes: Any, topics: Any, new_hashes: Any, new_topics: Any) -> None:
    """Put the table of names into a larger one."""
    for i in range(len(hashes)):
        if topics[i] != 0:
            at = free_place(new_topics, hashes[i])
            new_hashes[at] = hashes[i]
            new_topics[at] = topics[i]


@compiled
def move_fresh(old: Any, new: Any, topics: Any, partitions: Any) -> None:
    """Put the table of fresh rows into a larger one."""
    for i in range(len(old)):
        if old[i] != 0:
            new[free_place(new, mix(np.uint64(topics[old[i] - 1]), np.uint64(partitions[old[i] - 1])))] = old[i]
