"""The work of a step in tasks: from states and records to files of the tables, and the next states.

A task for each shard makes the rows of its topics, and then one task those of what is of no topic. Imports numpy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from operator import attrgetter

import attrs
import pyarrow as pa

from kraftlake.image.provenance import MetadataProvenance
from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.metadata_log.delta_table.actions import AddFile
from kraftlake.metadata_log.storage.location import lake_location
from kraftlake.replay.log.delta_chunk import ReplayState
from kraftlake.replay.log.effective_records import ShardRecords
from kraftlake.runtime.errors import UnwritableMetadataError
from kraftlake.tables.catch_up.updating import writers_of
from kraftlake.tables.changes_writer import ChangesWriter
from kraftlake.tables.history.history_table import HistoryTable
from kraftlake.tables.history.open_intervals import partitions_since
from kraftlake.tables.history.writers import HistoryWriter, PartitionHistoryWriter
from kraftlake.tables.lake_table import LakeTable
from kraftlake.tables.lazy_table import LazyTable
from kraftlake.tables.metrics.count_changes import CountChanges
from kraftlake.tables.shards.chunks import Chunk, Part, batch_of
from kraftlake.tables.shards.replayed import parts_of_step, replayed
from kraftlake.tables.shards.results import names_of, result_of
from kraftlake.tables.shards.state_files import StateFile, read_state, write_state
from kraftlake.tables.shards.steps import OthersStep, ShardStep

_FILES_AT = 16 << 20
"""The bytes of records after which their rows become files."""


@attrs.frozen(kw_only=True)
class ShardDone:
    """The result of a task: of a shard, or of the one after them.

    `files` are the new files of each table by name, of which none is part of a table yet; those of a history that
    changes have all its open rows. `state` is the file of the state after the step, None if records can't express it,
    and `unwritable` says why. `names` (NAMES_SCHEMA) are the shard's topics after the step and `partitions` the number
    of theirs; `records` and `size` are the number and the bytes of the step's records. `executor` names that of the
    task, if the caller sets it.
    """

    files: dict[str, list[AddFile]]
    state: StateFile | None
    names: pa.Table
    partitions: int
    records: int
    size: int
    unwritable: str | None = None
    executor: str = ""


@attrs.frozen(kw_only=True)
class ShardTask:
    """A step as its tasks know it: from the states after `at` to those after `to`; it can be sent to other processes.

    `tables` are the names of the tables that get rows, `holder` is the table whose folder gets the states. `states` are
    the files of the shards' states, and then of what is of no topic; without, chunks of BASE and LOG come first, and
    make them. Partitions then are as they are since `at`, unless `partition_history/` is among the tables and
    `goes_on`: it covers `at` and knows since when. `is_load` is that of LogBegin.
    """

    lake: str
    tables: tuple[str, ...]
    holder: str
    at: MetadataProvenance
    to: MetadataProvenance
    states: tuple[StateFile, ...] = ()
    goes_on: bool = False
    is_load: bool = False

    @property
    def covered(self) -> int | None:
        """The offset that the tables cover before the step; None if they cover nothing yet."""
        return self.at.offset if self.goes_on else None

    def run(
        self, shard: int, chunks: Iterable[Chunk], base_at: MetadataProvenance = MetadataProvenance.EMPTY
    ) -> tuple[tuple[CountChanges, CountChanges], ShardDone]:
        """Run the task of a shard on its chunks in order; `base_at` is the end of the snapshot among them.

        What it makes for the last task are the changes of counts that make its topics before the step, and those of the
        step. Raises what a replay raises, with its offset, and LakeError if the lake can't be read or written.
        """
        files = _StepFiles(self, of_topics=True)
        state, rest = self._begin(shard, chunks, base_at, of_shard=True)
        step = ShardStep(self._with_since(state), files.writers, is_load=self.is_load)
        for part in parts_of_step(rest):
            step.take([part])
            files.take(part)
        return (step.begins_with, step.counts()), files.done(shard, step.state, step.state.image.topics)

    def ending(
        self, shards: int, chunks: Iterable[Chunk], base_at: MetadataProvenance = MetadataProvenance.EMPTY
    ) -> Iterator[pa.RecordBatch]:
        """Run the last task, which makes all rows that are of no topic.

        It gets the results of the shards and the chunks of none, in any order; of these the facts, the faults and the
        checks are passed on. Its own result follows.
        """
        given: list[Chunk] = []
        for chunk in chunks:
            if chunk.part in (Part.MADE, Part.BASE, Part.LOG, Part.STEP):
                given.append(chunk)
            else:
                yield batch_of([chunk])
        yield result_of(shards, partial(self._others, shards, given, base_at))

    def _others(self, shards: int, chunks: Sequence[Chunk], base_at: MetadataProvenance) -> tuple[None, ShardDone]:
        given = sorted(chunks, key=attrgetter("part", "first", "shard"))
        counts = [chunk.content for chunk in given if chunk.part == Part.MADE]
        files = _StepFiles(self, of_topics=False)
        state, rest = self._begin(shards, given, base_at, of_shard=False)
        begins = [begin for begin, _ in counts]
        step = OthersStep(state, files.writers, files.opened(), begins, is_load=self.is_load)
        parts = [*parts_of_step(rest)]
        step.take(parts, [growth for _, growth in counts])
        for part in parts:
            files.count(part)
        return None, files.done(shards, step.state(self.to), TopicsImage.EMPTY)

    def _begin(
        self, number: int, chunks: Iterable[Chunk], base_at: MetadataProvenance, *, of_shard: bool
    ) -> tuple[ReplayState, Iterator[Chunk]]:
        """The state before the step, of its file or of the chunks of BASE and LOG, and the chunks after these."""
        replay, rest = replayed(chunks, base_at, of_shard=of_shard)
        state = read_state(lake_location(self.lake), self.states[number]) if self.states else replay.state
        return state.ending(self.at), rest

    def _with_since(self, state: ReplayState) -> ReplayState:
        """A shard's state that knows where the state of each partition began."""
        if self.states:
            return state
        writers = [writer for writer in writers_of(self.tables) if isinstance(writer, PartitionHistoryWriter)]
        if not writers or not self.goes_on:
            return state.begun(self.at)
        table = writers[0].table(lake_location(self.lake))
        table.go_on_from(self.covered)
        since, since_times = partitions_since(state.image.topics, table, of_shard=True)
        return attrs.evolve(state, since=since, since_times=since_times)


class _StepFiles:
    """The writers of a task's rows, those of topics or of all else, and the files that their rows have become."""

    def __init__(self, task: ShardTask, *, of_topics: bool) -> None:
        lake = lake_location(task.lake)
        made = [writer for writer in writers_of(task.tables) if isinstance(writer, ChangesWriter)]
        self.writers = [writer for writer in made if writer.of_topics or not of_topics]
        self._tables = [writer.table(lake) for writer in self.writers]
        self._written: dict[str, list[AddFile]] = {table.name: [] for table in self._tables}
        self._task, self._lake = task, lake
        self._written_at = self._size = self._records = 0

    def opened(self) -> Sequence[LakeTable]:
        """The tables, of which histories are read from the disk. Raises LakeError if another run writes one."""
        for table in self._tables:
            if isinstance(table, HistoryTable):
                table.go_on_from(self._task.covered)
        return self._tables

    def take(self, records: ShardRecords) -> None:
        """Count records of which the writers have made rows."""
        self.count(records)
        if self._size - self._written_at >= _FILES_AT:
            self._write()

    def count(self, records: ShardRecords) -> None:
        """Count records of the step."""
        self._size += len(records.data)
        self._records += len(records)

    def _write(self) -> None:
        """Write the rows that the writers have."""
        self._written_at = self._size
        for writer, table in zip(self.writers, self._tables, strict=True):
            self._add(table, writer.drain_later())

    def done(self, number: int, state: ReplayState, topics: TopicsImage) -> ShardDone:
        """Write all rows and the state of a task; `topics` are those of its shard."""
        self._write()
        for writer, table in zip(self.writers, self._tables, strict=True):
            if not isinstance(writer, HistoryWriter) or not isinstance(table, HistoryTable):
                continue
            if self._written[table.name] or writer.open_count != table.open_count:
                schema = writer.description.encoded_schema
                self._add(table, LazyTable.in_chunks(writer.open_tables, schema, writer.open_count))
        file, unwritable = None, None
        try:
            name = f"{self._task.holder}/{self._task.to.offset:020d}-{number:05d}"
            file = write_state(self._lake, name, state)
        except UnwritableMetadataError as fault:
            unwritable = str(fault)
        return ShardDone(
            files=self._written,
            state=file,
            unwritable=unwritable,
            names=names_of(topics),
            partitions=topics.partition_count,
            records=self._records,
            size=self._size,
        )

    def _add(self, table: LakeTable, rows: LazyTable) -> None:
        if rows.num_rows:
            self._written[table.name].append(table.write_file(rows, self._task.to.offset))
