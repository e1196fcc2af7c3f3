"""Partitions before and after metadata deltas, as rows of numbers: what the events of partitions are made of.

Imports numpy.
"""

from __future__ import annotations

from typing import Any, Final

import attrs
import numpy as np
import pyarrow as pa

from kraftlake.image.topics.partition_rows import DIRECTORIES, LEADER, RECOVERY, SHAPE
from kraftlake.tables.events.broker_lists import BrokerLists
from kraftlake.tables.events.partition_events import Hosts, PartitionColumns
from kraftlake.tables.row_lists import RowLists

_OF_EVENTS: Final = (*range(DIRECTORIES), LEADER, RECOVERY, SHAPE)
"""The columns of a row that events depend on: not the epochs and the directories."""


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
        changes = np.concatenate([np.take(rows, _OF_EVENTS, axis=1) for rows in (self.before, self.after)], axis=1)
        content = pa.binary(changes.dtype.itemsize * changes.shape[1])
        encoded = pa.Array.from_buffers(content, len(self), [None, pa.py_buffer(changes)]).dictionary_encode()
        numbers = encoded.indices.to_numpy()
        some = np.empty(len(encoded.dictionary), np.int64)
        some[numbers] = np.arange(len(self))
        return some, numbers

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
