"""Partitions, from rows of numbers, as the values of the PartitionRecords that a snapshot holds."""

from __future__ import annotations

from kraftlake.kernels import partition_fields as fields
from kraftlake.kernels.batches.put_bytes import put_int, put_uvarint, uvarint_size
from kraftlake.kernels.language import (
    Bool,
    ByteRows,
    BytesOut,
    Int64,
    IntRows,
    Ints,
    Longs,
    LongsOut,
    compiled,
    inlined,
)
from kraftlake.kernels.partition_row import HEAP_LISTS, LEADER, LOST_DIRECTORIES, LOST_ELR, RARE, RECOVERY, SHAPE, WIDTH


@inlined
def _list(rows: IntRows, r: Int64, heap: Ints, which: Int64) -> tuple[Int64, Int64]:
    """The length of one of a row's lists and its position: in the row itself, or in the heap for a rare shape."""
    shape: Int64 = rows[r, SHAPE]
    if shape != RARE:
        if which == 0 or which == 2:
            return shape & 255, which * WIDTH
        if which == 1:
            return shape >> 8, WIDTH
        return 0, 0
    start: Int64 = rows[r, 0]
    at = start + HEAP_LISTS
    for i in range(which):
        at += heap[start + i]
    return heap[start + which], at


@inlined
def _list_size(length: Int64) -> Int64:
    return uvarint_size(length + 1) + 4 * length


@inlined
def _put_list(out: BytesOut, p: Int64, rows: IntRows, r: Int64, heap: Ints, which: Int64) -> Int64:
    length, at = _list(rows, r, heap, which)
    p = put_uvarint(out, p, length + 1)
    rare: Bool = rows[r, SHAPE] == RARE
    for i in range(at, at + length):
        p = put_int(out, p, heap[i] if rare else rows[r, i])
    return p


@inlined
def _lost(rows: IntRows, r: Int64, heap: Ints, with_directories: Bool, with_elr: Bool) -> Int64:
    lost: Int64 = 0
    if rows[r, SHAPE] == RARE and not with_elr:
        elr, _ = _list(rows, r, heap, 5)
        last_known, _ = _list(rows, r, heap, 6)
        if elr + last_known > 0:
            lost |= LOST_ELR
    if not with_directories:
        count, at = _list(rows, r, heap, 2)
        rare: Bool = rows[r, SHAPE] == RARE
        for i in range(at, at + count):
            if (heap[i] if rare else rows[r, i]) != 0:
                lost |= LOST_DIRECTORIES
    return lost


@compiled
def measure(rows: IntRows, heap: Ints, with_directories: Bool, with_elr: Bool, sizes: LongsOut) -> tuple[Int64, Int64]:
    """Store the size of each row's record in bytes in `sizes` (int64[n]).

    Returns the losses of all records (LOST_ELR | LOST_DIRECTORIES, or 0), and those of the first record with a loss.
    """
    ever: Int64 = 0
    first: Int64 = 0
    for r in range(len(rows)):
        size: Int64 = 3 + 4 + 16 + 12 + 1
        for which in range(5):
            if which != 2:
                length, _ = _list(rows, r, heap, which)
                size += _list_size(length)
        if with_directories:
            count, _ = _list(rows, r, heap, 2)
            size += uvarint_size(count + 1) + 16 * count
        if rows[r, RECOVERY] != 0:
            size += 3
        if with_elr:
            for which in range(5, 7):
                length, _ = _list(rows, r, heap, which)
                if length > 0:
                    size += 1 + uvarint_size(_list_size(length)) + _list_size(length)
        lost = _lost(rows, r, heap, with_directories, with_elr)
        if ever == 0:
            first = lost
        ever |= lost
        sizes[r] = size
    return ever, first


@compiled
def write(
    rows: IntRows, heap: Ints, directories: ByteRows, partitions: Ints, topics: Ints, ids: ByteRows, version: Int64,
    with_directories: Bool, with_elr: Bool, begins: Longs, out: BytesOut,
) -> None:  # fmt: skip
    """Write the record of each row at out[begins[r]], with the length from `measure`.

    `partitions` and `topics` (int32[n]) are the rows' partition ids and the numbers of their topics, whose ids are
    ids[topic] (uint8[t, 16]); `directories` (uint8[d, 16]) are the directories' by number.
    """
    for r in range(len(rows)):
        p: Int64 = begins[r]
        out[p] = 1
        out[p + 1] = 3
        out[p + 2] = version
        p = put_int(out, p + 3, partitions[r])
        for i in range(16):
            out[p + i] = ids[topics[r], i]
        p += 16
        for k in range(fields.ORDERED):
            p = _put_list(out, p, rows, r, heap, fields.LISTS_IN_ORDER >> 4 * k & 15)
        for column in range(LEADER, RECOVERY):  # leader, leader epoch, partition epoch
            p = put_int(out, p, rows[r, column])
        if with_directories:
            count, at = _list(rows, r, heap, 2)
            p = put_uvarint(out, p, count + 1)
            rare: Bool = rows[r, SHAPE] == RARE
            for k in range(at, at + count):
                number = heap[k] if rare else rows[r, k]
                for i in range(16):
                    out[p + i] = directories[number, i]
                p += 16
        begin = p
        out[begin] = 0
        p += 1
        for tag in range(fields.PARTITION_LAST_TAG + 1):
            field: Int64 = fields.PARTITION_TAGS >> 4 * tag & 15
            if field == fields.RECOVERY_FIELD and rows[r, RECOVERY] != 0:
                out[p], out[p + 1], out[p + 2] = tag, 1, rows[r, RECOVERY]
                p += 3
                out[begin] += 1
            elif field < HEAP_LISTS and with_elr:
                length, _ = _list(rows, r, heap, field)
                if length > 0:
                    out[p] = tag
                    p = put_uvarint(out, p + 1, _list_size(length))
                    p = _put_list(out, p, rows, r, heap, field)
                    out[begin] += 1
