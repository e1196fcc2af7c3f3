"""The writers of the history tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import attrs
import pyarrow as pa

from kraftlake.kernels.partition_row import LEADER
from kraftlake.metadata_log.storage.location import Location
from kraftlake.replay.log.delta_chunk import DeltaChunk, LogBegin, ReplayState
from kraftlake.replay.log.partition_store import PartitionStore
from kraftlake.runtime.errors import LakeError
from kraftlake.tables.changes_writer import ChangesWriter
from kraftlake.tables.history.entity_history import EntityHistory
from kraftlake.tables.history.entity_table import EntityTable, RowTable
from kraftlake.tables.history.entity_tables import SMALL_TABLES
from kraftlake.tables.history.history_columns import PARTITION_COLUMNS
from kraftlake.tables.history.history_table import HistoryTable
from kraftlake.tables.history.leader_racks import LeaderRacks
from kraftlake.tables.history.open_intervals import entities_since, open_states, partitions_since
from kraftlake.tables.history.partition_history import EndedStates, open_state_tables
from kraftlake.tables.lake_table import LakeTable, TableDescription
from kraftlake.tables.lazy_table import LazyTable
from kraftlake.tables.table_writer import TableWriter

if TYPE_CHECKING:
    from kraftlake.replay.log.log_replay import LogReplay


class HistoryWriter(ChangesWriter):
    """Passes ended states to the table, and keeps the open states."""

    def table(self, lake: Location) -> HistoryTable:
        """The table in a lake; it takes the open rows from this writer."""
        return HistoryTable(self.description, lake, self)

    @property
    def open_count(self) -> int:
        """The number of open states."""
        raise NotImplementedError

    def open_tables(self) -> Iterator[pa.Table]:
        """The open states as rows of the table, a bounded number in each table."""
        raise NotImplementedError


class PartitionHistoryWriter(HistoryWriter):
    """Writes `partition_history/`."""

    description = TableDescription("partition_history", "What each partition was, from when to when", PARTITION_COLUMNS)
    of_topics = True

    def __init__(self) -> None:
        super().__init__()
        self._ended = EndedStates()
        self._store = PartitionStore()
        self._racks = LeaderRacks({})

    def open(self, replay: LogReplay, begin: LogBegin, table: LakeTable | None = None) -> None:
        """Initialize with the partitions of the replay, each since the start of its open row in the table.

        If the table covers nothing and the log starts above 0, the states are those of the oldest snapshot that covers
        the log's start, and begin at the snapshot's offset. Raises LakeError if table and log contradict each other.
        """
        self._store, self._racks = replay.store, LeaderRacks(begin.image.cluster.brokers)
        if isinstance(table, HistoryTable) and table.covered is not None and not begin.in_shards:
            replay.store.begin(begin.image.topics, *partitions_since(begin.image.topics, table))

    @property
    def open_count(self) -> int:
        """The number of partitions."""
        return self._store.count

    def open_tables(self) -> Iterator[pa.Table]:
        """The open states of the partitions."""
        return open_state_tables(self._store.rows(), self._racks)

    def begun(self, state: ReplayState) -> ReplayState:
        """The state of the replay, in which each partition has the start of its open row."""
        leaders = state.image.topics.rows().merged().rows[:, LEADER]
        since, since_times = self._racks.begins(leaders, state.since, state.since_times)
        return attrs.evolve(state, since=since, since_times=since_times)

    def drain_later(self) -> LazyTable:
        """The states that ended since the last call, made on request."""
        return self._ended.take()

    def take_deltas(self, chunk: DeltaChunk) -> None:
        """Keep the states that deltas end."""
        self._ended.add(chunk, self._racks)


class EntityHistoryWriter(HistoryWriter):
    """Writes one of the other history tables, `of`."""

    def __init__(self, of: EntityTable) -> None:
        self.description = TableDescription(of.name, of.comment, of.columns)
        super().__init__()
        self.of = of
        self._states = EntityHistory(of)

    @property
    def open_count(self) -> int:
        """The number of open states."""
        return self._states.open_count

    def open_tables(self) -> Iterator[pa.Table]:
        """The open states, as one table."""
        return iter([self._states.open_table()])

    def open(self, replay: LogReplay, begin: LogBegin, table: LakeTable | None = None) -> None:
        """Initialize with the states of the image, each since its start in the table; raises as for partitions.

        States that no image has alone are the open rows of the table.
        """
        assert isinstance(table, HistoryTable), "the table is the one of `table`"
        known = None if table.covered is None else entities_since(table, self.of.key)
        states = self.of.begins(begin.image, replay.quorum)
        if known is not None and isinstance(self.of, RowTable):
            states = open_states(table, self.of)

        def since(key: tuple[Any, ...]) -> tuple[int, int] | None:
            if known is None:
                return None
            if key not in known:
                raise LakeError(f"{table.path} lacks {key}, which its log has: delete {table.name}/ and run again")
            return known[key]

        self._states = EntityHistory(self.of, begin.image, since, states=states)

    def take_deltas(self, chunk: DeltaChunk) -> None:
        """Keep the states that deltas end."""
        self.rows.extend(self._states.take(chunk))


def history_writers() -> list[TableWriter]:
    """A writer of each history table, for one run."""
    return [PartitionHistoryWriter(), *map(EntityHistoryWriter, SMALL_TABLES)]
