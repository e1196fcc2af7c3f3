"""Rows of `partition_history/`: the states that changes of partitions end, and the open states. Imports numpy."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import numpy as np
import pyarrow as pa

from kraftlake.replay.log.partition_changes import HAD, PartitionChanges, PartitionRows
from kraftlake.tables.history.columns import ENCODED_STATES, STILL_SO
from kraftlake.tables.history.state_columns import GatheredStates, StateColumns, States
from kraftlake.tables.lazy_table import LazyTable


class EndedStates:
    """Gathers the states that changes end, until they are taken."""

    def __init__(self) -> None:
        self._groups: list[tuple[StateColumns, GatheredStates]] = []
        """States whose lists are in the same memory, with the maker of their rows."""

    def add(self, changes: PartitionChanges) -> None:
        """Add the states that changes end; these follow the changes before."""
        some = np.flatnonzero((changes.flags & HAD != 0) & changes.altered)
        if not len(some):
            return
        columns = StateColumns(changes.names, changes.heaps)
        if self._groups and self._groups[-1][0].heaps.base is changes.heaps.base:
            self._groups[-1] = columns, self._groups[-1][1]  # later names and lists include the earlier ones
        else:
            self._groups.append((columns, GatheredStates()))
        self._groups[-1][1].add(
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
        """Take all of them as rows in ENCODED_STATES, each group sorted by where the states began."""
        groups = [(columns, states.take()) for columns, states in self._groups]
        self._groups = []
        return LazyTable.in_chunks(
            lambda: chain.from_iterable(columns.tables(states) for columns, states in groups),
            ENCODED_STATES,
            sum(len(states.topics) for _, states in groups),
        )


def open_state_tables(partitions: PartitionRows) -> Iterator[pa.Table]:
    """The open states in ENCODED_STATES, sorted by where they began, in tables of at most ROW_GROUP_ROWS."""
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
