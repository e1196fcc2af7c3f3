"""The numbers of partitions of each broker, by kind."""

from __future__ import annotations

from kraftlake.kernels.language import (
    Bool,
    Bytes,
    Int64,
    IntRows,
    Ints,
    IntsOut,
    LongRowsOut,
    UInt64,
    compiled,
    inlined,
)
from kraftlake.kernels.partition_row import HEAP_LISTS, ISR, LEADER, SHAPE
from kraftlake.kernels.replay.indexes import free_place, mix

_NO_LEADER = -1
_BROKER, _LED, _FOLLOWED, _OUT_OF_ISR, _UNDER_MIN_ISR, _OFFLINE = range(6)


@inlined
def _number_of(broker: Int64, index: IntsOut, counts: LongRowsOut, known: Int64) -> Int64:
    """The number of a broker's row in `counts`; `known` if it has none."""
    mask: Int64 = len(index) - 1
    key: UInt64 = broker
    at: Int64 = mix(0, key) & mask
    while index[at] != 0:
        if counts[index[at] - 1, _BROKER] == broker:
            return index[at] - 1
        at = (at + 1) & mask
    return known


@inlined
def _is_in(broker: Int64, rows: IntRows, r: Int64, heap: Ints, first: Int64, count: Int64) -> Bool:
    """Whether a broker is in the ISR of a row: `count` members, in the heap from `first` on unless that is 0."""
    for m in range(count):
        if (heap[first + m] if first > 0 else rows[r, ISR + m]) == broker:
            return True
    return False


@compiled
def count_replicas(rows: IntRows, heap: Ints, under: Bytes, index: IntsOut, counts: LongRowsOut) -> Int64:
    """Count the replicas of each broker by the kinds of `kraftlake.image.broker_partitions`; gives how many brokers.

    `under` (uint8) says which rows are under min ISR. `counts` (int64[n, 6], zeros) gets a row for each broker: its id,
    and the kinds in their order. `index` (int32, zeros) is a power of two, larger than n. -1: n is too small.
    """
    brokers: Int64 = 0
    for r in range(len(rows)):
        shape: Int64 = rows[r, SHAPE]
        replicas, members = shape & 0xFF, shape >> 8
        start: Int64 = 0
        isr: Int64 = 0
        if shape < 0:
            start = rows[r, 0] + HEAP_LISTS
            replicas, members = heap[rows[r, 0]], heap[rows[r, 0] + 1]
            isr = start + replicas
        for i in range(replicas):
            broker: Int64 = heap[start + i] if shape < 0 else rows[r, i]
            n = _number_of(broker, index, counts, brokers)
            if n == brokers:
                if brokers == len(counts):
                    return -1
                index[free_place(index, mix(0, broker))] = brokers + 1
                counts[n, _BROKER] = broker
                brokers += 1
            led: Bool = rows[r, LEADER] == broker
            counts[n, _LED if led else _FOLLOWED] += 1
            if not _is_in(broker, rows, r, heap, isr, members):
                counts[n, _OUT_OF_ISR] += 1
            counts[n, _UNDER_MIN_ISR] += under[r]
            if rows[r, LEADER] == _NO_LEADER:
                counts[n, _OFFLINE] += 1
    return brokers
