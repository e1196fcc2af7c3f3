"""The changes of brokers, sorted, and as the columns of a table."""

from __future__ import annotations

from typing import Any

import numpy as np

from kraftlake.kernels.columns.broker_changes import DELETE
from kraftlake.kernels.language import compiled, inlined
from kraftlake.kernels.partition_row import ISR, LEADER, SHAPE


@compiled
def sort_changes(changed: Any, deltas: Any, numbers: Any, first: Any, places: Any) -> None:
    """Sort the changes of brokers by delta and broker; those of one broker in a delta keep their order.

    Row k is of the partition changed[k] (int64), of its delta among `deltas` (int64), and of the broker numbers[k]
    (int64, from 0 on). places[i] (int64) gets the row that comes as the ith. `first` (int64) lends room for one more
    than there are numbers.
    """
    count, begin = len(changed), 0
    while begin < count:
        delta, end = deltas[changed[begin]], begin + 1
        while end < count and deltas[changed[end]] == delta:
            end += 1
        size = end - begin
        if size * size < 4 * (size + len(first)):  # then looking at each broker would take longer
            for k in range(begin, end):
                at = k
                while at > begin and numbers[places[at - 1]] > numbers[k]:
                    places[at] = places[at - 1]
                    at -= 1
                places[at] = k
        else:
            first[:] = 0
            for k in range(begin, end):
                first[numbers[k] + 1] += 1
            first[0] = begin
            for number in range(1, len(first)):
                first[number] += first[number - 1]
            for k in range(begin, end):
                number = numbers[k]
                places[first[number]] = k
                first[number] += 1
        begin = end


@inlined
def _copy_list(rows: Any, r: Any, which: Any, base_heap: Any, heap: Any, members: Any, into: Any) -> Any:
    """Copy replicas (0) or ISR (1) of a row that lies in a heap behind `into`; gives where they end."""
    at = np.int64(rows[r, 0])
    source = base_heap
    if at >= len(base_heap):
        source = heap
        at -= len(base_heap)
    size = np.int64(source[at + which])
    at += 7 + (np.int64(source[at]) if which else 0)
    for i in range(size):
        members[into + i] = source[at + i]
    return into + size


@compiled
def fill_change_columns(
    told: Any, places: Any, changed: Any, heads: Any, base_heap: Any, heap: Any, columns: Any
) -> None:
    """The rows `places` of `told` (see `changes_of_brokers`) one after the other, as columns.

    `changed` has of each changed partition the row as it is after its delta (int32[n, 14]), its `deltas` (int64),
    `topics` and `partitions` (int32); `heads` of each delta `offsets`, `epochs` (int32) and `times`. Row i of `columns`
    gets `offsets` and `times` (int64), and int32 all of them `epochs`, `brokers`, `kinds`, `directories`, `topics`,
    `partitions`, `leaders`, `leader_epochs` and `partition_epochs`; `replica_bounds` and `isr_bounds`, one longer,
    where its lists begin and the last end in `replicas` and `isr`, which have room for three more. The numbers of a
    DELETE mean nothing, its lists are empty.
    """
    rows = changed.rows
    replicas = members = 0
    for i in range(len(places)):
        to = np.uint64(i)
        k = np.uint64(places[to])
        r = np.uint64(told.changed[k])
        delta = np.uint64(changed.deltas[r])
        columns.offsets[to], columns.times[to] = heads.offsets[delta], heads.times[delta]
        columns.epochs[to] = heads.epochs[delta]
        columns.brokers[to], columns.kinds[to] = told.brokers[k], told.kinds[k]
        columns.directories[to] = told.directories[k]
        columns.topics[to], columns.partitions[to] = changed.topics[r], changed.partitions[r]
        columns.leaders[to] = rows[r, LEADER]
        columns.leader_epochs[to], columns.partition_epochs[to] = rows[r, LEADER + 1], rows[r, LEADER + 2]
        columns.replica_bounds[to], columns.isr_bounds[to] = replicas, members
        if told.kinds[k] == DELETE:
            continue
        shape = np.int64(rows[r, SHAPE])
        if shape < 0:
            replicas = np.int64(_copy_list(rows, r, 0, base_heap, heap, columns.replicas, replicas))
            members = np.int64(_copy_list(rows, r, 1, base_heap, heap, columns.isr, members))
            continue
        for at in range(ISR):  # the next row overwrites what is past the row's own lists
            columns.replicas[np.uint64(replicas + at)] = rows[r, np.uint64(at)]
            columns.isr[np.uint64(members + at)] = rows[r, np.uint64(ISR + at)]
        replicas += shape & 0xFF
        members += shape >> 8
    columns.replica_bounds[len(places)], columns.isr_bounds[len(places)] = replicas, members
