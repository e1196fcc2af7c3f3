"""The changes of brokers, sorted, and as the columns of a table."""

from __future__ import annotations

from kraftlake.kernels.columns.change_buffers import (
    DELETE,
    BrokerChanges,
    ChangeColumns,
    ChangedPartitions,
    DeltaHeads,
)
from kraftlake.kernels.language import Int64, Ints, IntsOut, Longs, LongsOut, compiled, inlined
from kraftlake.kernels.partition_row import HEAP_LISTS, ISR, LEADER, SHAPE
from kraftlake.kernels.replay.row_lists import heap_at


@compiled
def sort_changes(changed: Longs, deltas: Longs, numbers: Longs, first: LongsOut, places: LongsOut) -> None:
    """Sort the changes of brokers by delta and broker; those of one broker in a delta keep their order.

    Row k has the partition changed[k] (int64), its delta in `deltas` (int64), and the broker numbers[k] (int64, from 0
    on). places[i] (int64) gets the ith row of the order. `first` (int64) is working memory for one element more than
    there are numbers.
    """
    count = len(changed)
    begin: Int64 = 0
    while begin < count:
        delta = deltas[changed[begin]]
        end = begin + 1
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
            for number in range(len(first)):
                first[number] = 0
            for k in range(begin, end):
                first[numbers[k] + 1] += 1
            first[0] = begin
            for number in range(1, len(first)):
                first[number] += first[number - 1]
            for k in range(begin, end):
                places[first[numbers[k]]] = k
                first[numbers[k]] += 1
        begin = end


@inlined
def _copy_list(at: Int64, which: Int64, base_heap: Ints, heap: Ints, members: IntsOut, into: Int64) -> Int64:
    """Copy replicas (0) or ISR (1) of a row whose lists lie in a heap to the end of `into`; returns their end."""
    size = heap_at(base_heap, heap, at + which)
    first = at + HEAP_LISTS
    if which:
        first += heap_at(base_heap, heap, at)
    for i in range(size):
        members[into + i] = heap_at(base_heap, heap, first + i)
    return into + size


@compiled
def fill_change_columns(
    found: BrokerChanges, places: Longs, changed: ChangedPartitions, heads: DeltaHeads, base_heap: Ints, heap: Ints,
    columns: ChangeColumns,
) -> None:  # fmt: skip
    """Store the rows `places` of `found` (see `changes_of_brokers`), one after the other, as columns.

    `changed` has for each changed partition its row after its delta (int32[n, 14]), its `deltas` (int64), `topics` and
    `partitions` (int32); `heads` has for each delta `offsets`, `epochs` (int32) and `times`. Row i of `columns` gets
    `offsets` and `times` (int64), and as int32 `epochs`, `brokers`, `kinds`, `directories`, `topics`, `partitions`,
    `leaders`, `leader_epochs` and `partition_epochs`; `replica_bounds` and `isr_bounds`, one longer, have the starts of
    its lists, and the end of the last, in `replicas` and `isr`, which have room for three more. The numbers of a DELETE
    have no meaning, its lists are empty.
    """
    rows = changed.rows
    replicas: Int64 = 0
    members: Int64 = 0
    for i in range(len(places)):
        k = places[i]
        r = found.changed[k]
        delta = changed.deltas[r]
        columns.offsets[i] = heads.offsets[delta]
        columns.times[i] = heads.times[delta]
        columns.epochs[i] = heads.epochs[delta]
        columns.brokers[i] = found.brokers[k]
        columns.kinds[i] = found.kinds[k]
        columns.directories[i] = found.directories[k]
        columns.topics[i] = changed.topics[r]
        columns.partitions[i] = changed.partitions[r]
        columns.leaders[i] = rows[r, LEADER]
        columns.leader_epochs[i] = rows[r, LEADER + 1]
        columns.partition_epochs[i] = rows[r, LEADER + 2]
        columns.replica_bounds[i] = replicas
        columns.isr_bounds[i] = members
        if found.kinds[k] == DELETE:
            continue
        shape: Int64 = rows[r, SHAPE]
        if shape < 0:
            replicas = _copy_list(rows[r, 0], 0, base_heap, heap, columns.replicas, replicas)
            members = _copy_list(rows[r, 0], 1, base_heap, heap, columns.isr, members)
            continue
        for at in range(ISR):  # the next row overwrites what is past the row's own lists
            columns.replicas[replicas + at] = rows[r, at]
            columns.isr[members + at] = rows[r, ISR + at]
        replicas += shape & 0xFF
        members += shape >> 8
    columns.replica_bounds[len(places)] = replicas
    columns.isr_bounds[len(places)] = members
