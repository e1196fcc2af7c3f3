"""Partitions before and after metadata deltas, as rows of numbers: what the events of partitions are made of.

Imports numpy.
"""

from __future__ import annotations

from typing import Any, Final

import attrs
import numpy as np
import pyarrow as pa

from kraftlake.image.topics.partition_rows import DIRECTORIES, HEAP_LISTS, LEADER, RARE, RECOVERY, SHAPE
from kraftlake.tables.events.broker_lists import BrokerLists
from kraftlake.tables.events.partition_events import Hosts, PartitionColumns
from kraftlake.tables.row_lists import RowLists

_OF_EVENTS: Final = (*range(DIRECTORIES), LEADER, RECOVERY, SHAPE)
"""The columns of a row that events depend on: not the epochs and the directories. The shape is the last."""


@attrs.frozen(kw_only=True, eq=False)
class PartitionPairs:
    """n partitions, each at both ends of a metadata delta.

    `before` and `after` are rows (int32[n, 14]) as in `kraftlake.image.topics.partition_rows`; their lists lie in
    `base_heap` and, behind that, in `heap`. `topics` (int64[n]) are the numbers of the topics among `names` and `ids`
    (string arrays), `partitions` (int32[n]) the partitions' own, `deltas` (int64[n]) those of the deltas.
    """

    before: Any
    after: Any
    base_heap: Any
    heap: Any
    topics: Any
    partitions: Any
    names: pa.StringArray
    ids: pa.StringArray
    deltas: Any

    def __len__(self) -> int:
        return len(self.deltas)

    def take(self, some: Any) -> PartitionPairs:
        """Some of them: a slice or an array of indices."""
        columns = ("before", "after", "topics", "partitions", "deltas")
        return attrs.evolve(self, **{name: getattr(self, name)[some] for name in columns})

    def distinct_changes(self) -> tuple[Any, Any]:
        """One pair (int64[k]) of each change that events tell apart, and each pair's number among those (int32[n]).

        Two changes of partitions with lists in a heap may count as distinct and be the same.
        """
        rows = np.take(np.concatenate((self.before, self.after)), _OF_EVENTS, axis=1)
        rare = np.flatnonzero(rows[:, -1] == RARE)
        if len(rare):
            rows[rare, 0] = self._numbers_of_lists(rows[rare, 0].astype(np.int64))
        changes = np.concatenate((rows[: len(self)], rows[len(self) :]), axis=1)
        content = pa.binary(changes.dtype.itemsize * changes.shape[1])
        encoded = pa.Array.from_buffers(content, len(self), [None, pa.py_buffer(changes)]).dictionary_encode()
        numbers = encoded.indices.to_numpy()
        some = np.empty(len(encoded.dictionary), np.int64)
        some[numbers] = np.arange(len(self))
        return some, numbers

    def _numbers_of_lists(self, starts: Any) -> Any:
        """A number (int64) for the lists that lie at each place of the heaps; other lists have other numbers."""
        known, which = np.unique(starts, return_inverse=True)
        in_base = int(np.searchsorted(known, len(self.base_heap)))
        of_base = _numbers_in_heap(self.base_heap, known[:in_base])
        of_heap = _numbers_in_heap(self.heap, known[in_base:] - len(self.base_heap))
        return np.concatenate((of_base, of_heap + len(of_base)))[which.reshape(-1)]

    def columns(self, rows: Any) -> PartitionColumns:
        """Rows of `before` or `after` by what events tell of."""
        lists = RowLists(rows, self.base_heap, self.heap)
        replicas, isr, adding, removing, elr = (
            BrokerLists(*lists.flat(name))
            for name in ("replicas", "isr", "adding_replicas", "removing_replicas", "elr")
        )
        return PartitionColumns(
            leader=rows[:, LEADER],
            recovery=rows[:, RECOVERY],
            isr=isr,
            elr=elr,
            hosts=Hosts(replicas, adding, removing),
        )


def _numbers_in_heap(heap: Any, starts: Any) -> Any:
    """A number below n (int64[n]) for the lists at each place (ascending): the same where the lists are the same."""
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
