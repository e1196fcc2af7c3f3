"""The batches of a partition's log as rows of numbers: found by their headers and checked, chosen and indexed."""

from __future__ import annotations

from kraftlake.kernels.batches import log_columns as column
from kraftlake.kernels.batches.batch_columns import CRC_AT, CRC_FROM, HEADER_SIZE, LENGTH_FROM, MAGIC
from kraftlake.kernels.batches.batch_walk import number
from kraftlake.kernels.batches.checksum import crc32c
from kraftlake.kernels.language import Bool, Bytes, Int64, LongRows, LongRowsOut, compiled, inlined


@inlined
def _is_plain(rows: LongRows, i: Int64) -> Bool:
    """Whether no producer's state depends on the batch."""
    return rows[i, column.KIND] == 0 and rows[i, column.PRODUCER] == column.NO_PRODUCER


@inlined
def _goes_on(rows: LongRows, i: Int64, other: Int64) -> Bool:
    """Whether two batches of records belong to the same producer, in one epoch, and both in transactions or not."""
    return (
        rows[i, column.PRODUCER] == rows[other, column.PRODUCER]
        and rows[i, column.PRODUCER_EPOCH] == rows[other, column.PRODUCER_EPOCH]
        and rows[i, column.KIND] == rows[other, column.KIND] and rows[i, column.KIND] & column.CONTROL == 0
    )  # fmt: skip


@compiled
def choose(rows: LongRowsOut, count: Int64) -> Int64:
    """Find the batches, of `count`, that a log has to examine: stores their rows' numbers in CHOSEN; returns how many.

    These are the first batch and the first of a leader epoch, those of control records, and of a producer's consecutive
    batches in one producer epoch, in transactions or not, the first and the last KEPT. Where producers share a slot, of
    which there are as many as rows at most, more of theirs are chosen.
    """
    slots: Int64 = 1
    while 2 * slots <= count:
        slots *= 2
    for slot in range(min(slots, count)):
        rows[slot, column.SLOT] = -1
    for i in range(count):
        rows[i, column.CHOSEN] = i == 0 or rows[i, column.EPOCH] != rows[i - 1, column.EPOCH]
        if not _is_plain(rows, i):
            held = rows[i, column.PRODUCER] & (slots - 1)
            if rows[held, column.SLOT] < 0 or not _goes_on(rows, i, rows[held, column.SLOT]):
                rows[i, column.CHOSEN] = 1
            rows[held, column.SLOT] = i
    for slot in range(min(slots, count)):
        rows[slot, column.SLOT] = -1
    for i in range(count - 1, -1, -1):
        if not _is_plain(rows, i):
            held = rows[i, column.PRODUCER] & (slots - 1)
            goes_on: Bool = rows[held, column.SLOT] >= 0 and _goes_on(rows, i, rows[held, column.SLOT])
            rows[held, column.BEHIND] = rows[held, column.BEHIND] + 1 if goes_on else 0
            if rows[held, column.BEHIND] < column.KEPT:
                rows[i, column.CHOSEN] = 1
            rows[held, column.SLOT] = i
    found: Int64 = 0
    for i in range(count):
        if rows[i, column.CHOSEN] != 0:
            rows[found, column.CHOSEN] = i
            found += 1
    return found


@compiled
def count_batches(data: Bytes) -> Int64:
    """The number of batches at the beginning of `data` that are whole by the length in their headers."""
    p: Int64 = 0
    count: Int64 = 0
    while p + HEADER_SIZE <= len(data):
        length = number(data, p + 8, 4)
        p += LENGTH_FROM + length
        if length < HEADER_SIZE - LENGTH_FROM or p > len(data):
            break
        count += 1
    return count


@compiled
def find(
    data: Bytes, expected: Int64, latest_epoch: Int64, lowest: Int64, highest: Int64, rows: LongRowsOut
) -> tuple[Int64, Int64, Int64, Int64]:
    """Store the whole sound batches that `data` starts with in `rows`, and `choose` among them.

    Returns their number, their end, their largest timestamp, and the number of chosen ones. The search stops at a batch
    of a leader epoch after `latest_epoch`, and at one whose last offset is not in [lowest, highest]. Unless `expected`
    is -1, the first base offset is at least `expected`, and no batch begins before the end of the previous one.
    """
    size = len(data)
    p, count = 0, 0
    newest: Int64 = -(2**63 - 1)
    while p + HEADER_SIZE <= size and count < len(rows):
        length = number(data, p + 8, 4)
        stop = p + LENGTH_FROM + length
        base, epoch, delta = number(data, p, 8), number(data, p + 12, 4), number(data, p + 23, 4)
        last = base + delta
        if (
            data[p + 16] != MAGIC or length < HEADER_SIZE - LENGTH_FROM or stop > size or delta < 0
            or epoch > latest_epoch or last < lowest or last > highest or (expected >= 0 and base < expected)
            or crc32c(data, p + CRC_FROM, stop) != number(data, p + CRC_AT, 4) & 0xFFFFFFFF
        ):  # fmt: skip
            break
        time = number(data, p + 35, 8)
        rows[count, column.BASE], rows[count, column.LAST], rows[count, column.EPOCH], rows[count, column.TIME] = (
            base,
            last,
            epoch,
            time,
        )
        rows[count, column.PRODUCER], rows[count, column.PRODUCER_EPOCH] = (
            number(data, p + 43, 8),
            number(data, p + 51, 2),
        )
        rows[count, column.KIND] = data[p + 22] & (column.TRANSACTIONAL | column.CONTROL)
        rows[count, column.START], rows[count, column.STOP] = p, stop
        newest = max(newest, time)
        if expected >= 0:
            expected = last + 1
        count += 1
        p = stop
    return count, p, newest, choose(rows, count)


@compiled
def index(
    rows: LongRowsOut, base: Int64, position: Int64, interval: Int64, unindexed: Int64, largest: Int64,
    offset_of_largest: Int64, indexed_time: Int64,
) -> tuple[Int64, Int64, Int64, Int64]:  # fmt: skip
    """Find the entries of a segment's indexes for batches that begin at `position` in it.

    The entries of the offset index are in the columns OFFSET and POSITION, those of the time index in LARGEST and
    OFFSET_OF_LARGEST. `unindexed` bytes follow the last entry; `largest` is the largest timestamp before the batches,
    `offset_of_largest` the last offset of its batch, `indexed_time` the timestamp of the last entry. Returns the number
    of entries for each index, the number of bytes after the last one, and the row with the largest timestamp, -1 where
    an earlier batch has it.
    """
    in_offsets: Int64 = 0
    in_times: Int64 = 0
    newest: Int64 = -1
    shift = position - rows[0, column.START]
    for i in range(len(rows)):
        if rows[i, column.TIME] > largest:
            largest, offset_of_largest, newest = rows[i, column.TIME], rows[i, column.LAST], i
        if unindexed > interval:
            rows[in_offsets, column.OFFSET], rows[in_offsets, column.POSITION] = (
                rows[i, column.LAST] - base,
                shift + rows[i, column.START],
            )
            in_offsets += 1
            if largest > indexed_time:
                rows[in_times, column.LARGEST], rows[in_times, column.OFFSET_OF_LARGEST] = (
                    largest,
                    offset_of_largest - base,
                )
                in_times += 1
                indexed_time = largest
            unindexed = 0
        unindexed += rows[i, column.STOP] - rows[i, column.START]
    return in_offsets, in_times, unindexed, newest
