"""A backlog of a lake's tables, made by Spark's executors step by step, by shards of topics.

A step: readers route a range of offsets, a shuffle brings each shard its records, a task for each shard makes rows and
writes files (`ShardTask`), and the driver makes all other rows and commits the files of each table with its own, in one
commit with the offset. Files of lost or repeated tasks are part of no commit, and vacuum removes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import attrs
import pyarrow as pa

from kraftlake.image.provenance import MetadataProvenance
from kraftlake.metadata_log.delta_table.delta_log import read_table
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.log_facts import LOG_TABLE
from kraftlake.metadata_log.storage.location import Location, lake_location
from kraftlake.replay.loader.image_columns import topics_to_arrow
from kraftlake.replay.reading.open_reader import LakeReader
from kraftlake.replay.reading.replay_base import has_beginning, oldest_snapshot, snapshot_provenance
from kraftlake.runtime.errors import OffsetError, UnwritableMetadataError
from kraftlake.runtime.log import get_logger
from kraftlake.spark_jobs.backlog import ExecutorStep
from kraftlake.spark_jobs.fold.build_snapshot import add_snapshot
from kraftlake.spark_jobs.fold.frames import results_frame
from kraftlake.spark_jobs.tasks import bounded_batches, collected, numbered_frame, parallelism, this_executor
from kraftlake.tables.catch_up.covered import covered_by
from kraftlake.tables.catch_up.updating import writers_of
from kraftlake.tables.changes_writer import ChangesWriter
from kraftlake.tables.history.history_table import HistoryTable
from kraftlake.tables.metrics.count_changes import CountChanges
from kraftlake.tables.shards.chunks import CHUNK_SCHEMA, Chunk, Part
from kraftlake.tables.shards.faults import earliest
from kraftlake.tables.shards.replayed import parts_of_step, replayed
from kraftlake.tables.shards.results import Results, result_of
from kraftlake.tables.shards.shard_plan import ShardPlan, plan_fold, plans, provenance_at
from kraftlake.tables.shards.shard_task import ShardDone, ShardTask
from kraftlake.tables.shards.state_files import (
    StateFile,
    StateManifest,
    read_manifest,
    read_state,
    write_manifest,
    write_state,
)
from kraftlake.tables.shards.steps import DriverStep

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kraftlake.replay.log.delta_chunk import ReplayState
    from kraftlake.tables.lake_table import LakeTable

STEP_RECORDS: Final = 6_000_000
"""The number of records in a step for each task that runs at a time."""
_ROWS_OF_A_PIECE: Final = 500_000
_HISTORY: Final = "partition_history"


@attrs.define(kw_only=True)
class TableSteps:
    """Tables `names` of the job `all`, and with `snapshot_every_bytes` snapshots: one after that many bytes of records.

    A step has `step_records` records, where None, STEP_RECORDS for each task that runs at a time.
    """

    lake: Location
    names: Sequence[str]
    snapshot_every_bytes: int | None = None
    step_records: int | None = None
    _snapshots: _Snapshots | None = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._snapshots = None if self.snapshot_every_bytes is None else _Snapshots(self.snapshot_every_bytes)

    def __call__(self, spark: SparkSession, last: int) -> Iterator[ExecutorStep]:
        """Update the tables to an offset: see ExecutorSteps.

        Tables at different offsets first catch up with the furthest one, and continue together. Raises LakeError too if
        a table is of another log or release, OffsetError if the log was trimmed past one.
        """
        names, log = self.names, MetadataLog.open(self.lake)
        tasks = parallelism(spark)
        step_records = self.step_records or STEP_RECORDS * tasks
        while True:
            covers = covered_by(LakeReader(log), writers_of(names))
            behind = {name: offset for name, offset in covers.items() if offset is None or offset < last}
            if not behind:
                return
            low = min(behind.values(), key=lambda offset: -1 if offset is None else offset)
            group = [name for name, offset in behind.items() if offset == low]
            ahead = [offset for offset in covers.values() if offset is not None and (low is None or offset > low)]
            writers = [writer for writer in writers_of(group) if isinstance(writer, ChangesWriter)]
            phase = _Phase(
                spark=spark,
                log=log,
                held=names,
                covers=low,
                step_records=step_records,
                tasks=tasks,
                writers=writers,
            )
            for state, done, rows in phase.steps(min([last, *ahead])):
                offset = state.image.provenance.offset
                made = self._snapshots
                if made is not None:
                    made.step_done(spark, log, state, done, ends=offset + 1 >= log.end_offset)
                yield ExecutorStep(
                    offset=offset,
                    end=max(offset, last) + 1,
                    rows=rows,
                    executors=frozenset(shard.executor for shard in done.facts),
                    topics=sum(shard.names.num_rows for shard in done.facts),
                    partitions=sum(shard.partitions for shard in done.facts),
                    snapshots=() if made is None else made.taken(),
                    unwritable=None if made is None else made.unwritable,
                )


def run_step(spark: SparkSession, plan: ShardPlan, task: ShardTask) -> Results:
    """Run a step on the executors; nothing is committed.

    By shard, the facts are the ShardDone and what was made the CountChanges; with faults, those of the other shards.
    Raises LakeError if the lake can't be read or written, and EnvironmentFaultError if Spark fails.
    """

    def work(shard: int, chunks: Iterator[Chunk]) -> tuple[CountChanges, ShardDone]:
        done, counts = task.run(shard, chunks, plan.base_at)
        return counts, attrs.evolve(done, executor=this_executor())

    with bounded_batches(spark):
        results = collected(results_frame(spark, plan, work), made=True)
    assert len(results.facts) + len(results.faults) == plan.shards, "each shard had a task"
    return results


def step_size(done: Results) -> tuple[int, int]:
    """The number of a step's records that shards and driver decode, counted once for each, and their bytes."""
    parts = [*parts_of_step(done.driver)]
    records = sum(map(len, parts)) + sum(shard.records for shard in done.facts)
    return records, sum(len(part.data) for part in parts) + sum(shard.size for shard in done.facts)


def states_frame(spark: SparkSession, lake: Location, states: Sequence[StateFile]) -> DataFrame:
    """The topics in the files of the shards' states, as `topics_to_arrow`, in rows of CHUNK_SCHEMA."""
    place = str(lake)

    def read(shard: int) -> Iterator[pa.RecordBatch]:
        yield result_of(
            shard, lambda: (topics_to_arrow(read_state(lake_location(place), states[shard]).image.topics), 0)
        )

    return numbered_frame(spark, len(states), len(states), read, CHUNK_SCHEMA)


@attrs.define
class _Snapshots:
    """The lake's snapshots that a run writes: one after each `every_bytes` bytes of records, at the end of a step.

    Another one is written at the log's end. `written` are their end offsets; `unwritable` is the reason if the newest
    image should have a snapshot and can't have one.
    """

    every_bytes: int
    written: list[int] = attrs.field(factory=list)
    unwritable: str | None = None
    _size: int = 0

    def step_done(
        self, spark: SparkSession, log: MetadataLog, state: ReplayState, done: Results, *, ends: bool
    ) -> None:
        """Count the records of a step, and write a snapshot of the states after it if one is due."""
        self._size += step_size(done)[1]
        end_offset = state.image.provenance.offset + 1
        if state.open_since is not None or not self._size or not (ends or self._size >= self.every_bytes):
            return
        self._size = 0
        if any(snapshot.end_offset == end_offset for snapshot in log.snapshots()):
            return
        topics = states_frame(spark, log.path, [shard.state for shard in done.facts])
        try:
            with bounded_batches(spark):
                add_snapshot(log, state, pa.concat_tables([shard.names for shard in done.facts]), topics)
        except UnwritableMetadataError as fault:
            self.unwritable = str(fault)
            return
        self.written.append(end_offset)
        self.unwritable = None

    def taken(self) -> tuple[int, ...]:
        """The end offsets of the snapshots that were written since the last call."""
        taken, self.written = tuple(self.written), []
        return taken


@attrs.define(kw_only=True)
class _Phase:
    """Tables that cover the same offset, and are updated to another one.

    `held` are the tables of the run, `writers` those of the tables that cover the offset `covers`; `tasks` run at a
    time.
    """

    spark: SparkSession
    log: MetadataLog
    held: Sequence[str]
    covers: int | None
    step_records: int
    tasks: int
    writers: Sequence[ChangesWriter]
    log_id: str = attrs.field(init=False)
    tables: list[LakeTable] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.log_id = read_table(self.log.path / LOG_TABLE).metadata.id
        self.tables = [writer.table(self.log.path) for writer in self.writers]
        for table in self.tables:
            table.go_on_from(self.covers)
            table.create(self.log_id)

    def steps(self, last: int) -> Iterator[tuple[ReplayState, Results, dict[str, int]]]:
        """Advance to an offset, in steps, or to the end of the snapshot with which the tables begin, if that is later.

        A step is the driver's state after it, the results of its shards, and the number of rows of each table.
        """
        load, reader = self.covers is None, LakeReader(self.log)
        if load and not has_beginning(reader):
            at = snapshot_provenance(oldest_snapshot(reader))
        else:
            at, load = self._provenance(-1 if self.covers is None else self.covers), False
        last = max(last, at.offset)
        files = self._states(at.offset, last)
        shards = len(files) - 1 if files else self.tasks
        task = ShardTask(
            lake=str(self.log.path),
            holder=self.held[0],
            tables=tuple(table.name for table in self.tables),
            at=at,
            last=self._step_end(at.offset, last),
            states=files[:-1],
            goes_on=self.covers is not None,
            is_load=load,
        )
        logger = get_logger(__name__).bind(lake=task.lake, tables=",".join(task.tables))
        (base_at, done), driver = self._first(task, shards), None
        while True:
            with earliest(done.faults):
                driver = driver or self._driver(task, base_at, done, files)
                driver.take(parts_of_step(done.driver), done.made)
            rows = self._commit(done, task.last, goes_on=task.last < last)
            at = self._provenance(task.last)
            states = tuple(shard.state for shard in done.facts)
            state = driver.state(at)
            self._keep(state, states)
            records, decoded = task.last - task.at.offset, step_size(done)[0]
            logger.info("step", offset=task.last, shards=shards, records=records, decoded=decoded)
            yield state, done, rows
            if task.last >= last:
                break
            end = self._step_end(at.offset, last)
            task = attrs.evolve(task, at=at, last=end, states=states, is_load=False, goes_on=True)
            done = run_step(self.spark, self._with_step(ShardPlan(lake=task.lake, shards=shards), task), task)
        for table in self.tables:
            table.finish()

    def _first(self, task: ShardTask, shards: int) -> tuple[MetadataProvenance, Results]:
        """The first step; without states, those at its start are made of the newest sound snapshot and the log."""
        made: Iterable[ShardPlan] = [ShardPlan(lake=task.lake, shards=shards)]
        if not task.states and task.at.offset >= 0:
            made = plans(partial(plan_fold, self.log, task.at.offset, parallelism=shards, shards=shards))
        for plan in made:
            done = run_step(self.spark, self._with_step(plan, task), task)
            if plan.is_sound(done.checks):
                break
        return plan.base_at, done

    def _driver(
        self, task: ShardTask, base_at: MetadataProvenance, done: Results, files: Sequence[StateFile]
    ) -> DriverStep:
        """The driver at the start of the first step: from the last of the files of states, or by its chunks."""
        if files:
            state = read_state(self.log.path, files[-1])
        else:
            state = replayed(done.driver, base_at, of_shard=False)[0].state
        counts = [shard.begins_with for shard in done.facts]
        return DriverStep(state.ending(task.at), self.writers, self.tables, counts, is_load=task.is_load)

    def _with_step(self, plan: ShardPlan, task: ShardTask) -> ShardPlan:
        """A plan with the records of a step, in which each shard has a task."""
        plan = plan.with_log(self.log, Part.STEP, task.at.offset + 1, task.last, _ROWS_OF_A_PIECE)
        return attrs.evolve(plan, all_shards=True)

    def _states(self, offset: int, last: int) -> tuple[StateFile, ...]:
        """The states of shards and driver after an offset, if they have all that the tables need, and suffice to go on.

        With more records than a task takes in a step, a cluster that has grown makes states for more shards.
        """
        needs_since = any(table.name == _HISTORY for table in self.tables)
        least = self.tasks if last - offset > STEP_RECORDS else 1
        for name in self.held if self.covers is not None else ():
            found = read_manifest(self.log.path, name, self.log_id)
            if found is None or found.offset != offset or len(found.files) <= least:
                continue
            if found.knows_since or not needs_since:
                return found.files
        return ()

    def _provenance(self, offset: int) -> MetadataProvenance:
        if offset < 0:
            return MetadataProvenance.EMPTY
        provenance = provenance_at(self.log, offset)
        if not provenance.batch_aligned:
            raise OffsetError(f"the tables of {self.log.path} cover offsets up to {offset}, which is inside of a batch")
        return provenance

    def _step_end(self, offset: int, last: int) -> int:
        """The last offset of the step after an offset: the end of a batch."""
        end = offset + self.step_records
        return last if end >= last else next(iter(self.log.batches(end, end))).last_offset

    def _commit(self, done: Results, offset: int, *, goes_on: bool) -> dict[str, int]:
        """Commit the rows that shards and driver have made, table by table; returns their numbers."""
        rows = {}
        for writer, table in zip(self.writers, self.tables, strict=True):
            own, name = writer.drain_later(), table.name
            rows[name] = own.num_rows
            if not writer.of_topics:
                table.append(own, offset, goes_on=goes_on)
                continue
            files = [file for shard in done.facts for file in shard.files[name]]
            rows[name] += sum(file.statistics.record_count for file in files if file.statistics is not None)
            if isinstance(table, HistoryTable):
                files += [file for shard in done.facts for file in shard.open_files]
            elif own.num_rows:
                files.append(table.write_file(own, offset))
            table.append_files(files, offset)
        return rows

    def _keep(self, state: ReplayState, shards: tuple[StateFile, ...]) -> None:
        """Keep the states for the next run; none if records can't express that of the driver."""
        lake, holder, offset = self.log.path, self.held[0], state.image.provenance.offset
        try:
            files = (*shards, write_state(lake, f"{holder}/{offset:020d}-driver", state))
        except UnwritableMetadataError:
            files = ()
        knows_since = any(table.name == _HISTORY for table in self.tables)
        manifest = StateManifest(log_id=self.log_id, offset=offset, files=files, knows_since=knows_since)
        write_manifest(lake, holder, manifest)
