"""The work of one shard in a step: from its state and records to files of the tables, and the next state.

Imports numpy.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs
import pyarrow as pa

from kraftlake.image.provenance import MetadataProvenance
from kraftlake.metadata_log.delta_table.actions import AddFile
from kraftlake.metadata_log.storage.location import Location, lake_location
from kraftlake.replay.log.delta_chunk import ReplayState
from kraftlake.replay.log.effective_records import ShardRecords
from kraftlake.replay.log.log_replay import LogReplay
from kraftlake.tables.catch_up.updating import writers_of
from kraftlake.tables.changes_writer import ChangesWriter
from kraftlake.tables.history.open_intervals import partitions_since
from kraftlake.tables.history.writers import PartitionHistoryWriter
from kraftlake.tables.lazy_table import LazyTable
from kraftlake.tables.metrics.count_changes import CountChanges
from kraftlake.tables.shards.chunks import Chunk
from kraftlake.tables.shards.replayed import parts_of_step, replayed
from kraftlake.tables.shards.results import names_of
from kraftlake.tables.shards.state_files import StateFile, read_state, write_state
from kraftlake.tables.shards.steps import ShardStep

_FILES_AT = 16 << 20
"""The bytes of records after which their rows become files."""


@attrs.frozen(kw_only=True)
class ShardDone:
    """The result of a shard's task.

    `files` are the files of each table by name, and `open_files` those of open rows; none is part of a table yet.
    `begins_with` makes the shard's topics before the step, `names` (NAMES_SCHEMA) are those after it and `partitions`
    the number of theirs; `records` and `size` are the number and the bytes of the step's records. `executor` names that
    of the task, if the caller sets it.
    """

    files: dict[str, list[AddFile]]
    open_files: list[AddFile]
    state: StateFile
    begins_with: CountChanges
    names: pa.Table
    partitions: int
    records: int
    size: int
    executor: str = ""


@attrs.frozen(kw_only=True)
class ShardTask:
    """A step as its shards know it: from the states after `at` to offset `last`; it can be sent to other processes.

    `tables` are the names of the tables that get rows, `holder` is the table whose folder gets the states. `states` are
    the files of the shards' states; without, chunks of BASE and LOG come first, and make them. Partitions then are as
    they are since `at`, unless `partition_history/` is among the tables and `goes_on`: it covers `at` and knows since
    when. `is_load` is that of LogBegin.
    """

    lake: str
    tables: tuple[str, ...]
    holder: str
    at: MetadataProvenance
    last: int
    states: tuple[StateFile, ...] = ()
    goes_on: bool = False
    is_load: bool = False

    def run(
        self, shard: int, chunks: Iterable[Chunk], base_at: MetadataProvenance = MetadataProvenance.EMPTY
    ) -> tuple[ShardDone, CountChanges]:
        """Run the task of a shard on its chunks in order; `base_at` is the end of the snapshot among them.

        Raises what a replay raises, with its offset, and LakeError if the lake can't be read or written.
        """
        lake = lake_location(self.lake)
        files = _ShardFiles(lake, self.tables, self.last)
        replay, chunks = replayed(chunks, base_at, of_shard=True)
        state = read_state(lake, self.states[shard]) if self.states else self._folded(replay, files)
        step = ShardStep(state.ending(self.at), files.writers, is_load=self.is_load)
        for part in parts_of_step(chunks):
            step.take([part])
            files.take(part)
        files.write()
        state = step.state
        done = ShardDone(
            files=files.written,
            open_files=files.open_rows(),
            state=write_state(lake, f"{self.holder}/{self.last:020d}-{shard:05d}", state),
            begins_with=step.begins_with,
            names=names_of(state.image.topics),
            partitions=state.image.topics.partition_count,
            records=files.records,
            size=files.size,
        )
        return done, step.counts()

    def _folded(self, replay: LogReplay, files: _ShardFiles) -> ReplayState:
        """The state that the chunks of BASE and LOG have made."""
        state = replay.state.begun(self.at)
        if files.history is None or not self.goes_on:
            return state
        table = files.history.table(lake_location(self.lake))
        table.go_on_from(self.at.offset)
        since, since_times = partitions_since(state.image.topics, table, of_shard=True)
        return attrs.evolve(state, since=since, since_times=since_times)


class _ShardFiles:
    """The writers of a shard's rows, and the files that their rows have become."""

    def __init__(self, lake: Location, tables: Sequence[str], last: int) -> None:
        made = [writer for writer in writers_of(tables) if isinstance(writer, ChangesWriter) and writer.of_topics]
        self.writers: list[ChangesWriter] = made
        self.history = next((writer for writer in made if isinstance(writer, PartitionHistoryWriter)), None)
        self.written: dict[str, list[AddFile]] = {writer.description.name: [] for writer in made}
        self._tables = {writer.description.name: writer.table(lake) for writer in made}
        self._last = last
        self._written_at = self.size = self.records = 0

    def take(self, records: ShardRecords) -> None:
        """Count records of which the writers have made rows."""
        self.size += len(records.data)
        self.records += len(records)
        if self.size - self._written_at >= _FILES_AT:
            self.write()

    def write(self) -> None:
        """Write the rows that the writers have."""
        self._written_at = self.size
        for writer in self.writers:
            rows, name = writer.drain_later(), writer.description.name
            if rows.num_rows:
                self.written[name].append(self._tables[name].write_file(rows, self._last))

    def open_rows(self) -> list[AddFile]:
        """Write the open rows of `partition_history/`."""
        writer = self.history
        if writer is None or not writer.open_count:
            return []
        table, schema = self._tables[writer.description.name], writer.description.encoded_schema
        rows = LazyTable.in_chunks(writer.open_tables, schema, writer.open_count)
        return [table.write_file(rows, self._last)]
