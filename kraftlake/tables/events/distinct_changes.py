"""The changes of partitions that differ in their events: each of them is put into words once. Imports numpy."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from kraftlake.kernels.partition_row import DIRECTORIES, HEAP_LISTS, LEADER, RARE, RECOVERY, SHAPE
from kraftlake.replay.log.broker_lists import BrokerLists
from kraftlake.replay.log.partition_changes import Heaps, PartitionChanges
from kraftlake.tables.events.partition_events import Hosts, PartitionColumns

_OF_EVENTS: Final = (slice(0, DIRECTORIES), slice(LEADER, LEADER + 1), slice(RECOVERY, SHAPE + 1))
"""The columns of a row that events depend on: not the epochs and the directories. The shape is the last."""


def distinct_changes(changes: PartitionChanges, some: Any) -> tuple[Any, Any]:
    """One of `some` changes (int64[n]) of each kind that events distinguish, and the kind of each of them (int32[n]).

    The first is an index among them (int64[k]). Two changes of partitions with lists in a heap may count as distinct
    and be the same.
    """
    sides = [side.take(some, axis=0) for side in (changes.before, changes.after)]
    pairs = np.concatenate([rows[:, columns] for rows in sides for columns in _OF_EVENTS], axis=1)
    rows = pairs.reshape(-1, pairs.shape[1] // 2)
    rare = np.flatnonzero(rows[:, -1] == RARE)
    if len(rare):
        rows[rare, 0] = _numbers_of_lists(changes.heaps, rows[rare, 0].astype(np.int64))
    content = pa.binary(pairs.dtype.itemsize * pairs.shape[1])
    encoded = pa.Array.from_buffers(content, len(pairs), [None, pa.py_buffer(pairs)]).dictionary_encode()
    numbers = encoded.indices.to_numpy()
    kinds = np.empty(len(encoded.dictionary), np.int64)
    kinds[numbers] = np.arange(len(pairs))
    return kinds, numbers


def event_columns(changes: PartitionChanges, rows: Any) -> PartitionColumns:
    """Rows, `before` or `after`, as the columns that events depend on."""
    lists = changes.lists(rows)
    replicas, isr, adding, removing, elr = (
        BrokerLists(*lists.flat(name)) for name in ("replicas", "isr", "adding_replicas", "removing_replicas", "elr")
    )
    return PartitionColumns(
        leader=rows[:, LEADER],
        recovery=rows[:, RECOVERY],
        isr=isr,
        elr=elr,
        hosts=Hosts(replicas, adding, removing),
    )


def _numbers_of_lists(heaps: Heaps, starts: Any) -> Any:
    """A number (int64) for the lists at each place of the heaps; other lists have other numbers."""
    known = np.sort(starts)
    known = known[np.diff(known, prepend=-1) > 0]  # np.unique would import numpy.ma
    in_base = int(np.searchsorted(known, len(heaps.base)))
    of_base = _numbers_in_heap(heaps.base, known[:in_base])
    of_added = _numbers_in_heap(heaps.added, known[in_base:] - len(heaps.base))
    return np.concatenate((of_base, of_added + len(of_base)))[np.searchsorted(known, starts)]


def _numbers_in_heap(heap: Any, starts: Any) -> Any:
    """A number below n (int64[n]) for the lists at each place (ascending), the same for equal lists."""
    if not len(starts):
        return starts
    bounds = np.empty(2 * len(starts) + 1, np.int64)  # of lists, and of what lies between them, which counts as null
    bounds[:-1:2] = starts
    bounds[1::2] = starts + HEAP_LISTS + heap[starts[:, None] + np.arange(HEAP_LISTS)].sum(axis=1)
    bounds[-1] = bounds[-2]
    is_list = np.packbits(np.arange(len(bounds)) % 2 == 0, bitorder="little")
    buffers = [pa.py_buffer(part) for part in (is_list, bounds * heap.itemsize, heap)]
    encoded = pa.Array.from_buffers(pa.large_binary(), len(bounds) - 1, buffers).dictionary_encode()
    return encoded.indices.fill_null(0).to_numpy()[::2].astype(np.int64)
