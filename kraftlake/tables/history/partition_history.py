"""`partition_history/` of the changes of partitions: the states that ended, and those that go on. Imports numpy."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import numpy as np
import pyarrow as pa

from kraftlake.tables.changes.partition_changes import HAD, PartitionChanges, PartitionRows
from kraftlake.tables.history.columns import ENCODED_STATES, STILL_SO
from kraftlake.tables.history.state_columns import GatheredStates, StateColumns, States
from kraftlake.tables.lazy_table import LazyTable


class EndedStates:
    """The states that changes have ended, until they are taken."""

    def __init__(self) -> None:
        self._parts: list[tuple[StateColumns, GatheredStates]] = []
        """States whose lists are in the same memory, with what makes rows of them."""

    def add(self, changes: PartitionChanges) -> None:
        """Add the states that changes end, which follow those before."""
        some = np.flatnonzero((changes.flags & HAD != 0) & changes.altered)
        if not len(some):
            return
        columns = StateColumns(changes.names, changes.heaps)
        if self._parts and self._parts[-1][0].heaps.base is changes.heaps.base:
            self._parts[-1] = columns, self._parts[-1][1]  # later names and lists include those before
        else:
            self._parts.append((columns, GatheredStates()))
        self._parts[-1][1].add(
            States(
                topics=changes.topics[some],
                partitions=changes.partitions[some],
                rows=changes.before.take(some, axis=0),
                begins=changes.since[some],
                begin_times=changes.since_times[some],
                ends=changes.offsets[some],
                end_times=changes.times[some],
            )
        )

    def take(self) -> LazyTable:
        """All of them, as rows sorted by where they began: ENCODED_STATES; there are none afterwards."""
        parts = [(columns, states.take()) for columns, states in self._parts]
        self._parts = []
        return LazyTable.in_parts(
            lambda: chain.from_iterable(columns.tables(states) for columns, states in parts),
            ENCODED_STATES,
            sum(len(states.topics) for _, states in parts),
        )


def open_state_tables(partitions: PartitionRows) -> Iterator[pa.Table]:
    """The states that go on, sorted by where they began, in tables of ROW_GROUP_ROWS at most: ENCODED_STATES."""
    still = np.full(len(partitions.rows), STILL_SO, np.int64)
    columns = StateColumns(partitions.names, partitions.heaps)
    return columns.tables(
        States(
            topics=partitions.topics.astype(np.int64),
            partitions=partitions.partitions.astype(np.int64),
            rows=partitions.rows,
            begins=partitions.since,
            begin_times=partitions.since_times,
            ends=still,
            end_times=still,
        )
    )
