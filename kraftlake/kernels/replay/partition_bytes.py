"""Partition and partition change records, from their bytes into lists of numbers."""

from __future__ import annotations

import cython

from kraftlake.kernels import partition_fields as fields
from kraftlake.kernels.language import Bool, Bytes, Int8, Int32, Int64, UInt32, UInt64, inlined
from kraftlake.kernels.partition_row import HEAP_LISTS
from kraftlake.kernels.replay.change_state import HOMES, LONGEST_LIST, N_DIRECTORIES, State
from kraftlake.kernels.replay.indexes import find_id, put_id


@inlined
def read_int(data: Bytes, p: Int64) -> Int32:
    """The big-endian int32 at `p`. Its bytes are taken from one place, as then the C compiler makes one load of it."""
    first = cython.address(data[p + 3]) - 3
    return cython.cast(
        Int32,
        cython.cast(UInt32, first[0]) << 24
        | cython.cast(UInt32, first[1]) << 16
        | cython.cast(UInt32, first[2]) << 8
        | first[3],
    )


@inlined
def read_long(data: Bytes, p: Int64) -> UInt64:
    """The eight bytes at `p` as a big-endian number; as one load, too."""
    first = cython.address(data[p + 7]) - 7
    return (
        cython.cast(UInt64, first[0]) << 56
        | cython.cast(UInt64, first[1]) << 48
        | cython.cast(UInt64, first[2]) << 40
        | cython.cast(UInt64, first[3]) << 32
        | cython.cast(UInt64, first[4]) << 24
        | cython.cast(UInt64, first[5]) << 16
        | cython.cast(UInt64, first[6]) << 8
        | first[7]
    )


@inlined
def read_uvarint(data: Bytes, p: Int64, end: Int64) -> tuple[Int64, Int64]:
    """A number of at most 28 bits and the position behind it; -1 instead where there is none."""
    value: Int64 = 0
    for shift in range(0, 28, 7):
        if p >= end:
            return value, -1
        byte = cython.cast(Int64, data[p])
        p += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, p
    return value, -1


@inlined
def _has_room(count: Int64, state: State) -> Bool:
    """Whether a list fits into `state.lists`; how long it is, is noted where it does not."""
    if count > state.lists.shape[1]:
        state.counts[LONGEST_LIST] = max(count, state.counts[LONGEST_LIST])
        return False
    return True


@inlined
def _ints(data: Bytes, p: Int64, end: Int64, state: State, which: Int64, nullable: Bool) -> Int64:
    """Read an int32 array into `state.lists`; its length is -1 for null. The position behind it, or -1."""
    count, p = read_uvarint(data, p, end)
    if p < 0 or (count == 0 and not nullable):
        return -1
    count -= 1
    if p + 4 * count > end or not _has_room(count, state):
        return -1
    state.lengths[which] = count
    for i in range(count):
        state.lists[which, i] = read_int(data, p + 4 * i)
    return p + 4 * count if count > 0 else p


@inlined
def directory_number(data: Bytes, p: Int64, state: State) -> Int64:
    """The number of the directory id at `p`, a new one where it was not seen before."""
    high, low = read_long(data, p), read_long(data, p + 8)
    number = find_id(state.directories, state.directory_index, high, low)
    if number < 0:
        number = state.counts[N_DIRECTORIES]
        put_id(state.directories, state.directory_index, high, low, number)
        state.directories[number, 0] = high
        state.directories[number, 1] = low
        state.counts[N_DIRECTORIES] += 1
    return number


@inlined
def home_number(data: Bytes, p: Int64, broker: Int64, state: State) -> Int64:
    """`directory_number` for a replica of a broker: mostly where its replicas were before, so it is looked at first."""
    place = broker & (HOMES - 1)
    number: Int64 = state.homes[place]
    if state.directories[number, 0] == read_long(data, p) and state.directories[number, 1] == read_long(data, p + 8):
        return number
    number = directory_number(data, p, state)
    state.homes[place] = number
    return number


@inlined
def _directories(data: Bytes, p: Int64, end: Int64, state: State, nullable: Bool) -> Int64:
    """Read an array of directory ids as their numbers, new ones appended. The position behind it, or -1."""
    count, p = read_uvarint(data, p, end)
    if p < 0 or (count == 0 and not nullable):
        return -1
    count -= 1
    if p + 16 * count > end or not _has_room(count, state):
        return -1
    state.lengths[2] = count
    for i in range(count):
        state.lists[2, i] = directory_number(data, p, state)
        p += 16
    return p


@inlined
def _tagged(data: Bytes, p: Int64, end: Int64, version: Int64, tags: UInt64, state: State) -> Bool:
    """Read the tagged fields at the end of a record, where `tags` says which they are; false if one is not known."""
    count, p = read_uvarint(data, p, end)
    last: Int64 = -1
    for _ in range(count):
        if p < 0 or p + 2 > end:
            return False
        tag = cython.cast(Int64, data[p])
        if tag <= last or tag >= fields.TAGS:
            return False
        last = tag
        field = cython.cast(Int64, tags >> 4 * tag & 15)
        size, p = read_uvarint(data, p + 1, end)
        stop = p + size
        if p < 0 or stop > end or version < cython.cast(Int64, fields.FIRST_VERSIONS >> 4 * field & 15):
            return False
        if field == 2:
            p = _directories(data, p, stop, state, True)
        elif field < HEAP_LISTS:
            p = _ints(data, p, stop, state, field, True)
        elif field == fields.LEADER_FIELD and size == 4:
            state.numbers[0] = read_int(data, p)
            p += 4
        elif field == fields.RECOVERY_FIELD and size == 1:
            state.numbers[3] = cython.cast(Int8, data[p])
            p += 1
        else:
            return False
        if p != stop:
            return False
    return p == end


@inlined
def read_partition(data: Bytes, p: Int64, end: Int64, version: Int64, state: State) -> Bool:
    """A PartitionRecord behind its topic id, into `state.lists` and `numbers` (leader, epochs, recovery state)."""
    for k in range(fields.ORDERED):
        p = _ints(data, p, end, state, fields.LISTS_IN_ORDER >> 4 * k & 15, False)
        if p < 0:
            return False
    if p + 12 > end:
        return False
    for i in range(3):
        state.numbers[i] = read_int(data, p + 4 * i)
    state.numbers[3] = 0
    p += 12
    state.lengths[2] = state.lengths[5] = state.lengths[6] = 0
    if version >= 1:
        p = _directories(data, p, end, state, False)
        if p < 0:
            return False
    known: Bool = _tagged(data, p, end, version, fields.PARTITION_TAGS, state)
    for which in range(5, HEAP_LISTS):
        state.lengths[which] = max(state.lengths[which], 0)
    return known


@inlined
def read_change(data: Bytes, p: Int64, end: Int64, version: Int64, state: State) -> Bool:
    """The tagged fields of a PartitionChangeRecord; what is not there has the length -1."""
    for which in range(HEAP_LISTS):
        state.lengths[which] = -1
    state.numbers[0] = -2
    state.numbers[3] = -1
    return _tagged(data, p, end, version, fields.CHANGE_TAGS, state)
