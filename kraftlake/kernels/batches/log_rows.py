"""The batches of a partition's log as rows of numbers: found by their headers and checked, chosen and indexed.

`choose` and `index` run on lists as well (`compiled.run`), for a few batches and where there is no compiled code.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kraftlake.kernels.aot.compiled import compiled, inlined
from kraftlake.kernels.batches.batch_walk import HEADER_SIZE, number
from kraftlake.kernels.batches.checksum import crc32c
from kraftlake.kernels.batches.log_columns import (
    BASE,
    BEHIND,
    CHOSEN,
    CONTROL,
    EPOCH,
    KEPT,
    KIND,
    LARGEST,
    LAST,
    NO_PRODUCER,
    OFFSET,
    OFFSET_OF_LARGEST,
    POSITION,
    PRODUCER,
    PRODUCER_EPOCH,
    SLOT,
    START,
    STOP,
    TIME,
    TRANSACTIONAL,
)

_LENGTH_FROM, _CRC_AT, _CRC_FROM = 12, 17, 21
_MAGIC = 2


@inlined
def _is_plain(row: Any) -> Any:
    """Whether no producer's state depends on the batch."""
    return row[KIND] == 0 and row[PRODUCER] == NO_PRODUCER


@inlined
def _goes_on(row: Any, other: Any) -> Any:
    """Whether two batches of records are the same producer's, in one epoch, and both in transactions or not."""
    return (
        row[PRODUCER] == other[PRODUCER] and row[PRODUCER_EPOCH] == other[PRODUCER_EPOCH]
        and row[KIND] == other[KIND] and row[KIND] & CONTROL == 0
    )  # fmt: skip


@compiled
def choose(rows: Any, count: Any) -> Any:
    """Find the batches that a log has to look at, of `count`: their rows' numbers are in column CHOSEN; gives how many.

    These are the first batch and the first of a leader epoch, those of control records, and of a producer's batches
    that go on in one producer epoch, in transactions or not, the first and the last KEPT. Where producers share a slot,
    of which there are as many as rows at most, more of theirs are chosen.
    """
    slots = 1
    while 2 * slots <= count:
        slots *= 2
    for slot in range(min(slots, count)):
        rows[slot][SLOT] = -1
    for i in range(count):
        row = rows[i]
        row[CHOSEN] = 1 if i == 0 or row[EPOCH] != rows[i - 1][EPOCH] else 0
        if not _is_plain(row):
            held = rows[row[PRODUCER] & (slots - 1)]
            if held[SLOT] < 0 or not _goes_on(row, rows[held[SLOT]]):
                row[CHOSEN] = 1
            held[SLOT] = i
    for slot in range(min(slots, count)):
        rows[slot][SLOT] = -1
    for j in range(count):
        i = count - 1 - j
        row = rows[i]
        if not _is_plain(row):
            held = rows[row[PRODUCER] & (slots - 1)]
            held[BEHIND] = held[BEHIND] + 1 if held[SLOT] >= 0 and _goes_on(row, rows[held[SLOT]]) else 0
            if held[BEHIND] < KEPT:
                row[CHOSEN] = 1
            held[SLOT] = i
    found = 0
    for i in range(count):
        if rows[i][CHOSEN] != 0:
            rows[found][CHOSEN] = i
            found += 1
    return found


@compiled
def find(data: Any, expected: int, latest_epoch: int, lowest: int, highest: int, rows: Any) -> Any:
    """Go over the whole sound batches that `data` starts with, into `rows`, and `choose` among them.

    Gives how many there are, where they end, their largest timestamp, and how many are chosen. It stops at a batch of a
    leader epoch after `latest_epoch`, and at one whose last offset is not in [lowest, highest]. Unless `expected` is
    -1, the first base offset is that or a later one, and no batch begins before the end of the one in front of it.
    """
    size = len(data)
    p, count = np.int64(0), np.int64(0)
    newest = np.int64(-(2**63))
    while p + HEADER_SIZE <= size and count < len(rows):
        length = number(data, p + 8, 4)
        stop = p + _LENGTH_FROM + length
        base, epoch, delta = number(data, p, 8), number(data, p + 12, 4), number(data, p + 23, 4)
        last = base + delta
        if (
            data[p + 16] != _MAGIC or length < HEADER_SIZE - _LENGTH_FROM or stop > size or delta < 0
            or epoch > latest_epoch or last < lowest or last > highest or (expected >= 0 and base < expected)
            or crc32c(data, p + _CRC_FROM, stop) != number(data, p + _CRC_AT, 4) & 0xFFFFFFFF
        ):  # fmt: skip
            break
        row = rows[count]
        row[BASE], row[LAST], row[EPOCH], row[TIME] = base, last, epoch, number(data, p + 35, 8)
        row[PRODUCER], row[PRODUCER_EPOCH] = number(data, p + 43, 8), number(data, p + 51, 2)
        row[KIND] = np.int64(data[p + 22]) & (TRANSACTIONAL | CONTROL)
        row[START], row[STOP] = p, stop
        newest = max(newest, row[TIME])
        if expected >= 0:
            expected = last + 1
        count += 1
        p = stop
    return count, p, newest, choose(rows, count)


@compiled
def index(
    rows: Any, base: int, position: int, interval: int, unindexed: int, largest: int, offset_of_largest: int,
    indexed_time: int,
) -> Any:  # fmt: skip
    """The entries of a segment's indexes for batches that begin at `position` of it.

    Those of the offset index are in the columns OFFSET and POSITION, those of the time index in LARGEST and
    OFFSET_OF_LARGEST. `unindexed` bytes are behind the last entry; `largest` is the largest timestamp before the
    batches, `offset_of_largest` the last offset of its batch, `indexed_time` the timestamp of the last entry. Gives how
    many entries there are for each index, how many bytes are behind the last one, and the row with the largest
    timestamp, -1 where an earlier batch has it.
    """
    in_offsets, in_times, newest = 0, 0, -1
    shift = position - rows[0][START]
    for i in range(len(rows)):
        row = rows[i]
        if row[TIME] > largest:
            largest, offset_of_largest, newest = row[TIME], row[LAST], i
        if unindexed > interval:
            entry = rows[in_offsets]
            entry[OFFSET], entry[POSITION] = row[LAST] - base, shift + row[START]
            in_offsets += 1
            if largest > indexed_time:
                entry = rows[in_times]
                entry[LARGEST], entry[OFFSET_OF_LARGEST] = largest, offset_of_largest - base
                in_times += 1
                indexed_time = largest
            unindexed = 0
        unindexed += row[STOP] - row[START]
    return in_offsets, in_times, unindexed, newest
