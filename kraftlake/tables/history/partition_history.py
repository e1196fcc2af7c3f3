"""Rows of `partition_history/`: the states that changes of partitions end, and the open states. Imports numpy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np
import pyarrow as pa

from kraftlake.replay.log.delta_chunk import DeltaChunk
from kraftlake.replay.log.partition_changes import HAD, PartitionChanges, PartitionRows
from kraftlake.tables.history.history_columns import ENCODED_STATES, STILL_SO
from kraftlake.tables.history.leader_racks import LeaderRacks
from kraftlake.tables.history.state_columns import NO_RACK, StateColumns, States
from kraftlake.tables.lazy_table import LazyTable


class EndedStates:
    """Gathers the states that deltas end, until they are taken."""

    def __init__(self) -> None:
        self._groups: list[tuple[StateColumns, list[States]]] = []
        """States whose lists are in the same memory, with the maker of their rows."""

    def add(self, chunk: DeltaChunk, racks: LeaderRacks) -> None:
        """Add the states that deltas end, which follow the earlier ones, and add their changes of racks to `racks`."""
        changes, after, of_racks = chunk.partitions, chunk.partitions_after, racks.changes_in(chunk.others)
        ended = _ended(changes)
        if len(ended.topics):
            self._add(StateColumns(changes.names, changes.heaps, racks.names), racks.divided(ended, of_racks))
        if after is not None:
            self._add(StateColumns(after.names, after.heaps, racks.names), racks.divided(_open(after), of_racks)[:-1])
        racks.take(of_racks)

    def _add(self, columns: StateColumns, parts: Sequence[States]) -> None:
        if self._groups and self._groups[-1][0].heaps.base is columns.heaps.base:
            self._groups[-1] = columns, self._groups[-1][1]  # later names and lists include the earlier ones
        else:
            self._groups.append((columns, []))
        self._groups[-1][1].extend(parts)

    def take(self) -> LazyTable:
        """Take all added states as rows in ENCODED_STATES, each group sorted by the start of the states."""
        groups, self._groups = self._groups, []
        return LazyTable.in_chunks(
            lambda: chain.from_iterable(columns.tables(parts) for columns, parts in groups if parts),
            ENCODED_STATES,
            sum(len(states.topics) for _, parts in groups for states in parts),
        )


def open_state_tables(partitions: PartitionRows, racks: LeaderRacks) -> Iterator[pa.Table]:
    """The open states in ENCODED_STATES, sorted by their start, in tables of at most ROW_GROUP_ROWS."""
    return StateColumns(partitions.names, partitions.heaps, racks.names).tables([racks.known(_open(partitions))])


def _ended(changes: PartitionChanges) -> States:
    some = np.flatnonzero((changes.flags & HAD != 0) & changes.altered)
    return States(
        topics=changes.topics[some],
        partitions=changes.partitions[some],
        rows=changes.before.take(some, axis=0),
        begins=changes.since[some],
        begin_times=changes.since_times[some],
        ends=changes.offsets[some],
        end_times=changes.times[some],
        racks=np.full(len(some), NO_RACK, np.int32),
    )


def _open(partitions: PartitionRows) -> States:
    still = np.full(len(partitions.rows), STILL_SO, np.int64)
    return States(
        topics=partitions.topics.astype(np.int64),
        partitions=partitions.partitions.astype(np.int64),
        rows=partitions.rows,
        begins=partitions.since,
        begin_times=partitions.since_times,
        ends=still,
        end_times=still,
        racks=np.full(len(still), NO_RACK, np.int32),
    )
