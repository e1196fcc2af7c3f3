"""All partitions as they were within a chunk. Imports numpy."""

from __future__ import annotations

from typing import Any

import numpy as np

from kraftlake.replay.log.partition_changes import HAD, PartitionChanges, PartitionRows
from kraftlake.replay.spec.partition_states import PartitionStates


class PastStates:
    """All partitions after any operation of a chunk: the `newest` with what its `changes` made later taken back.

    `operations` (int64, rising) are those of the changes. Changes are sorted by partition once, so that an operation
    costs a pass over flags.
    """

    def __init__(self, newest: PartitionRows, changes: PartitionChanges, operations: Any) -> None:
        self._newest, self._changes = newest, changes
        keys, now = _keys(changes.topics, changes.partitions), _keys(newest.topics, newest.partitions)
        self._order = np.argsort(keys, kind="stable")
        keys, self._operations = keys[self._order], operations[self._order]
        self._begins = np.append(True, keys[1:] != keys[:-1])[: len(keys)]
        by_key = np.argsort(now)
        places = np.searchsorted(now, keys, sorter=by_key)
        found = by_key[np.minimum(places, len(now) - 1)] if len(now) else places
        self._places = np.where(now[found] == keys, found, -1) if len(now) else np.full(len(keys), -1)

    def after(self, operation: int) -> PartitionStates:
        """The states after an operation, by number."""
        newest, changes = self._newest, self._changes
        later = self._operations > operation
        first = np.flatnonzero(later & (self._begins | ~np.append(False, later[:-1])))
        kept, places = np.ones(len(newest.topics), np.bool_), self._places[first]
        kept[places[places >= 0]] = False
        were = self._order[first]
        were = were[(changes.flags[were] & HAD) != 0]
        rows = np.concatenate((newest.rows[kept], changes.before[were]))
        topics = np.concatenate((newest.topics[kept], changes.topics[were]))
        partitions = np.concatenate((newest.partitions[kept], changes.partitions[were]))
        return PartitionStates(rows, topics, partitions, newest.names, newest.heaps)


def _keys(topics: Any, partitions: Any) -> Any:
    return (topics.astype(np.int64) << 32) | partitions.astype(np.int64)
