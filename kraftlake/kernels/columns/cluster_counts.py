"""The growth of a controller's counts by changes of partitions."""

from __future__ import annotations

from kraftlake.kernels.columns import change_buffers as change
from kraftlake.kernels.columns.change_buffers import CountedChanges
from kraftlake.kernels.language import Bool, Int64, IntRows, Ints, LongRowsOut, compiled, inlined
from kraftlake.kernels.partition_row import HEAP_LISTS, LEADER, RECOVERY, SHAPE
from kraftlake.kernels.replay.row_lists import heap_at

_NO_LEADER = -1


@inlined
def _preferred(rows: IntRows, r: Int64, base_heap: Ints, heap: Ints) -> Int64:
    """The first replica of a row, _NO_LEADER without one."""
    at: Int64 = rows[r, 0]
    if rows[r, SHAPE] >= 0:
        return at if rows[r, SHAPE] & 0xFF else _NO_LEADER
    return heap_at(base_heap, heap, at + HEAP_LISTS) if heap_at(base_heap, heap, at) > 0 else _NO_LEADER


@inlined
def _count_health(
    rows: IntRows, r: Int64, sign: Int64, base_heap: Ints, heap: Ints, counts: LongRowsOut, delta: Int64
) -> None:
    at: Int64 = rows[r, 0]
    shape = rows[r, SHAPE]
    if rows[r, RECOVERY] != 0:
        counts[delta, change.RECOVERING] += sign
    if shape >= 0:
        if shape >> 8 < shape & 0xFF:
            counts[delta, change.UNDER_REPLICATED] += sign
        return
    if heap_at(base_heap, heap, at + 1) < heap_at(base_heap, heap, at):
        counts[delta, change.UNDER_REPLICATED] += sign
    if heap_at(base_heap, heap, at + 3) + heap_at(base_heap, heap, at + 4) > 0:
        counts[delta, change.REASSIGNING] += sign


@inlined
def _count(
    rows: IntRows, r: Int64, sign: Int64, base_heap: Ints, heap: Ints, counts: LongRowsOut, delta: Int64
) -> None:
    leader = rows[r, LEADER]
    counts[delta, change.PARTITIONS] += sign
    if leader == _NO_LEADER:
        counts[delta, change.OFFLINE] += sign
    if leader != _preferred(rows, r, base_heap, heap):
        counts[delta, change.IMBALANCED] += sign
    _count_health(rows, r, sign, base_heap, heap, counts, delta)


@compiled
def count_changes(changes: CountedChanges, base_heap: Ints, heap: Ints, counts: LongRowsOut) -> None:
    """Add changes of partitions to the counts of their deltas: int64[d, COUNTS].

    `changes` has `deltas`, `before`, `after`, `flags`, `unclean` and `eligible` of `PartitionChanges`, one change for
    each partition and delta. The elections of partitions that still exist count, as in Kafka.
    """
    before = changes.before
    after = changes.after
    for r in range(len(changes.flags)):
        had: Bool = (changes.flags[r] & change.HAD) != 0
        has: Bool = (changes.flags[r] & change.HAS) != 0
        delta = changes.deltas[r]
        if has:
            counts[delta, change.UNCLEAN] += changes.unclean[r]
            counts[delta, change.ELIGIBLE] += changes.eligible[r]
        stays: Bool = had and has and before[r, LEADER] == after[r, LEADER]
        stays = stays and before[r, RECOVERY] == after[r, RECOVERY]
        if stays and before[r, 0] == after[r, 0] and before[r, SHAPE] == after[r, SHAPE]:
            continue  # as most changes
        if had:
            _count(before, r, -1, base_heap, heap, counts, delta)
        if has:
            _count(after, r, 1, base_heap, heap, counts, delta)


@compiled
def count_partitions(rows: IntRows, heap: Ints, counts: LongRowsOut) -> None:
    """Count the partitions of all rows: int64[1, COUNTS]."""
    for r in range(len(rows)):
        _count(rows, r, 1, heap, heap, counts, 0)
