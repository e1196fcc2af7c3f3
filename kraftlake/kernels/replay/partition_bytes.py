"""Partition and partition change records, from their bytes into lists of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from kraftlake.kernels.language import inlined
from kraftlake.kernels.replay.change_state import HOMES, LONGEST, N_DIRECTORIES
from kraftlake.kernels.replay.indexes import find_id, insert_id


@inlined
def read_int(data: Any, p: Any) -> Any:
    """The big-endian int32 at `p`. Written so that LLVM makes one load of it: no index that could be negative."""
    q = np.uint64(p)
    return np.int32(
        np.uint32(data[q]) << 24 | np.uint32(data[q + 1]) << 16 | np.uint32(data[q + 2]) << 8 | np.uint32(data[q + 3])
    )


@inlined
def read_long(data: Any, p: Any) -> Any:
    """The eight bytes at `p` as a big-endian number; as one load, too."""
    q = np.uint64(p)
    return (
        np.uint64(data[q]) << 56
        | np.uint64(data[q + 1]) << 48
        | np.uint64(data[q + 2]) << 40
        | np.uint64(data[q + 3]) << 32
        | np.uint64(data[q + 4]) << 24
        | np.uint64(data[q + 5]) << 16
        | np.uint64(data[q + 6]) << 8
        | np.uint64(data[q + 7])
    )


@inlined
def read_uvarint(data: Any, p: Any, end: int) -> Any:
    """A number of at most 28 bits and the position behind it; -1 instead where there is none."""
    value = 0
    for shift in (0, 7, 14, 21):
        if p >= end:
            return value, -1
        byte = np.int64(data[p])
        p += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, p
    return value, -1


@inlined
def _ints(data: Any, p: Any, end: int, lists: Any, lengths: Any, which: int, nullable: bool) -> Any:
    """Read an int32 array; its length is -1 for null. The position behind it, or -1."""
    count, p = read_uvarint(data, p, end)
    if p < 0 or (count == 0 and not nullable):
        return -1
    count -= 1
    if count > LONGEST or p + 4 * count > end:
        return -1
    lengths[which] = count
    for i in range(count):
        lists[which, i] = read_int(data, p + 4 * i)
    return p + 4 * count if count > 0 else p


@inlined
def directory_number(data: Any, p: Any, state: Any) -> Any:
    """The number of the directory id at `p`, a new one where it was not seen before."""
    high, low = read_long(data, p), read_long(data, p + 8)
    number = find_id(state.directories, state.directory_index, high, low)
    if number < 0:
        number = state.counts[N_DIRECTORIES]
        state.directories[number, 0] = high
        state.directories[number, 1] = low
        insert_id(state.directory_index, high, low, number)
        state.counts[N_DIRECTORIES] += 1
    return number


@inlined
def home_number(data: Any, p: Any, broker: Any, state: Any) -> Any:
    """`directory_number` for a replica of a broker: mostly where its replicas were before, so it is looked at first."""
    place = np.uint64(broker) & np.uint64(HOMES - 1)
    number = np.uint64(state.homes[place])
    if state.directories[number, 0] == read_long(data, p) and state.directories[number, 1] == read_long(data, p + 8):
        return np.int64(number)
    found = np.int64(directory_number(data, p, state))
    state.homes[place] = found
    return found


@inlined
def _directories(data: Any, p: Any, end: int, state: Any, nullable: bool) -> Any:
    """Read an array of directory ids as their numbers, new ones appended. The position behind it, or -1."""
    count, p = read_uvarint(data, p, end)
    if p < 0 or (count == 0 and not nullable):
        return -1
    count -= 1
    if count > LONGEST or p + 16 * count > end:
        return -1
    state.lengths[2] = count
    for i in range(count):
        state.lists[2, i] = directory_number(data, p, state)
        p += 16
    return p


@inlined
def read_partition(data: Any, p: Any, end: int, version: int, state: Any, numbers: Any) -> Any:
    """A PartitionRecord behind its topic id, into `state.lists` and `numbers` (leader, epochs, recovery state)."""
    lists, lengths = state.lists, state.lengths
    p = _ints(data, p, end, lists, lengths, 0, False)
    if p >= 0:
        p = _ints(data, p, end, lists, lengths, 1, False)
    if p >= 0:
        p = _ints(data, p, end, lists, lengths, 4, False)
    if p >= 0:
        p = _ints(data, p, end, lists, lengths, 3, False)
    if p < 0 or p + 12 > end:
        return False
    numbers[0] = read_int(data, p)
    numbers[1] = read_int(data, p + 4)
    numbers[2] = read_int(data, p + 8)
    numbers[3] = 0
    p += 12
    lengths[2] = lengths[5] = lengths[6] = 0
    if version >= 1:
        p = _directories(data, p, end, state, False)
        if p < 0:
            return False
    count, p = read_uvarint(data, p, end)
    for _ in range(count):
        if p < 0 or p + 2 > end:
            return False
        tag = data[p]
        size, p = read_uvarint(data, p + 1, end)
        stop = p + size
        if p < 0 or stop > end:
            return False
        if tag == 0 and size == 1:
            numbers[3] = np.int8(data[p])
            p += 1
        elif version >= 2 and (tag == 1 or tag == 2):
            p = _ints(data, p, stop, lists, lengths, 4 + tag, True)
            lengths[4 + tag] = max(lengths[4 + tag], 0)
        else:
            return False
        if p != stop:
            return False
    return p == end


@inlined
def read_change(data: Any, p: Any, end: int, version: int, state: Any, numbers: Any) -> Any:
    """The tagged fields of a PartitionChangeRecord; what is not there has the length -1."""
    lists, lengths = state.lists, state.lengths
    lengths[:] = -1
    numbers[0] = -2
    numbers[3] = -1
    count, p = read_uvarint(data, p, end)
    for _ in range(count):
        if p < 0 or p + 2 > end:
            return False
        tag = data[p]
        size, p = read_uvarint(data, p + 1, end)
        stop = p + size
        if p < 0 or stop > end:
            return False
        if tag == 0:
            p = _ints(data, p, stop, lists, lengths, 1, True)
        elif tag == 1 and size == 4:
            numbers[0] = read_int(data, p)
            p += 4
        elif tag == 2:
            p = _ints(data, p, stop, lists, lengths, 0, True)
        elif tag == 3:
            p = _ints(data, p, stop, lists, lengths, 4, True)
        elif tag == 4:
            p = _ints(data, p, stop, lists, lengths, 3, True)
        elif tag == 5 and size == 1:
            numbers[3] = np.int8(data[p])
            p += 1
        elif tag == 8 and version >= 1:
            p = _directories(data, p, stop, state, True)
        elif version >= 2 and (tag == 6 or tag == 7):
            p = _ints(data, p, stop, lists, lengths, tag - 1, True)
        else:
            return False
        if p != stop:
            return False
    return p == end
