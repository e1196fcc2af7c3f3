"""A backlog of a lake's tables, made by Spark's executors step by step, by shards of topics.

A step: readers route a range of offsets, a shuffle brings each shard its records, a task for each shard makes rows and
writes files, one task after them does so for what is of no topic (`ShardTask`), and the driver commits the files of
each table, in one commit with the offset. Files of lost or repeated tasks are part of no commit, and vacuum removes
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Final

import attrs
import pyarrow as pa

from kraftlake.image.provenance import MetadataProvenance
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.storage.location import Location, lake_location
from kraftlake.replay.loader.image_columns import topics_to_arrow
from kraftlake.replay.reading.open_reader import LakeReader
from kraftlake.replay.reading.replay_base import has_beginning, oldest_snapshot, snapshot_provenance
from kraftlake.runtime.errors import OffsetError, UnwritableMetadataError
from kraftlake.runtime.log import get_logger
from kraftlake.spark_jobs.fold.build_snapshot import add_snapshot
from kraftlake.spark_jobs.fold.frames import ended_frame
from kraftlake.spark_jobs.fold.topic_files import Folded
from kraftlake.spark_jobs.stream_steps import ExecutorStep
from kraftlake.spark_jobs.tasks import bounded_batches, collected, numbered_frame, parallelism, this_executor
from kraftlake.tables.catch_up.covered import covered_by
from kraftlake.tables.catch_up.updating import writers_of
from kraftlake.tables.shards.chunks import CHUNK_SCHEMA, Chunk, Part, chunks_of
from kraftlake.tables.shards.faults import raise_first
from kraftlake.tables.shards.results import Results, result_of
from kraftlake.tables.shards.shard_plan import ShardPlan, plan_fold, plans, provenance_at
from kraftlake.tables.shards.shard_task import ShardDone, ShardTask
from kraftlake.tables.shards.state_files import (
    StateFile,
    StateManifest,
    read_manifest,
    read_state,
    write_manifest,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kraftlake.tables.lake_table import LakeTable

STEP_RECORDS: Final = 6_000_000
"""The number of records in a step for each task that runs at a time."""
SHORT_LOG: Final = 65_536
"""The offset below which a step is a single task: neither its records nor the state can be more than that."""
_ROWS_OF_A_PIECE: Final = 250_000
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
    _size: int = attrs.field(init=False, default=0)
    _unwritable: str | None = attrs.field(init=False, default=None)

    def __call__(self, spark: SparkSession, last: int) -> Iterator[ExecutorStep]:
        """Update the tables to an offset: see ExecutorSteps.

        Tables at different offsets first catch up with the furthest one, and continue together. Raises LakeError too if
        a table is of another log or release, OffsetError if the log was trimmed past one.
        """
        names, log = self.names, MetadataLog.open(self.lake)
        tasks = parallelism(spark)
        while True:
            covers = covered_by(LakeReader(log), writers_of(names))
            behind = {name: offset for name, offset in covers.items() if offset is None or offset < last}
            if not behind:
                return
            low = min(behind.values(), key=lambda offset: -1 if offset is None else offset)
            group = [name for name, offset in behind.items() if offset == low]
            ahead = [offset for offset in covers.values() if offset is not None and (low is None or offset > low)]
            phase = _Phase(
                spark=spark,
                log=log,
                holder=names[0],
                covers=low,
                step_records=self.step_records or STEP_RECORDS * tasks,
                tasks=tasks,
                tables=[writer.table(log.path) for writer in writers_of(group)],
            )
            for offset, done, rows in phase.steps(min([last, *ahead]), names):
                yield ExecutorStep(
                    offset=offset,
                    end=max(offset, last) + 1,
                    rows=rows,
                    executors=frozenset(each.executor for each in done[:-1]),
                    topics=sum(each.names.num_rows for each in done),
                    partitions=sum(each.partitions for each in done),
                    snapshots=self._snapshots(spark, log, offset, done),
                    unwritable=self._unwritable,
                )

    def _snapshots(
        self, spark: SparkSession, log: MetadataLog, offset: int, done: Sequence[ShardDone]
    ) -> tuple[int, ...]:
        """Write a snapshot of the states after a step if one is due, as at the log's end; returns its end offset."""
        self._size += sum(each.size for each in done)
        every, end_offset, others = self.snapshot_every_bytes, offset + 1, done[-1].state
        if every is None or not self._size or (self._size < every and end_offset < log.end_offset):
            return ()
        self._unwritable = done[-1].unwritable
        state = None if others is None else read_state(log.path, others)
        if state is None or state.open_since is not None:
            return ()
        self._size = 0
        if any(snapshot.end_offset == end_offset for snapshot in log.snapshots()):
            return ()
        states = [each.state for each in done[:-1] if each.state is not None]
        topics: Folded
        read = partial(_topics_in, str(log.path), states)
        if offset < SHORT_LOG:
            topics = [*chain.from_iterable(map(read, range(len(states))))]
        else:
            topics = numbered_frame(spark, len(states), len(states), read, CHUNK_SCHEMA)
        try:
            with bounded_batches(spark):
                add_snapshot(log.path, state, pa.concat_tables([each.names for each in done]), topics)
        except UnwritableMetadataError as fault:
            self._unwritable = str(fault)
            return ()
        return (end_offset,)


def run_step(spark: SparkSession, plan: ShardPlan, task: ShardTask) -> Results:
    """Run a step on the executors; nothing is committed.

    The facts are the ShardDone of each shard, and then that of the last task; with faults, those of the others.
    Raises LakeError if the lake can't be read or written, and EnvironmentFaultError if Spark fails.
    """

    def work(shard: int, chunks: Iterator[Chunk]) -> tuple[object, ShardDone]:
        made, done = task.run(shard, chunks, plan.base_at)
        return made, attrs.evolve(done, executor=this_executor())

    def ending(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return task.ending(plan.shards, chunks_of(batches), plan.base_at)

    with bounded_batches(spark):
        results = collected(ended_frame(spark, plan, work, ending, is_short=task.to.offset < SHORT_LOG))
    assert len(results.facts) + len(results.faults) == plan.shards + 1, "each shard had a task"
    return results


def _topics_in(lake: str, states: Sequence[StateFile], shard: int) -> Iterator[pa.RecordBatch]:
    """The topics in the file of a shard's state, as `topics_to_arrow`, in rows of CHUNK_SCHEMA."""
    yield result_of(shard, lambda: (topics_to_arrow(read_state(lake_location(lake), states[shard]).image.topics), 0))


@attrs.define(kw_only=True)
class _Phase:
    """Tables that cover the same offset, and are updated to another one.

    `tables` cover the offset `covers`; `holder` is the table whose folder gets the states; `tasks` run at a time.
    """

    spark: SparkSession
    log: MetadataLog
    holder: str
    covers: int | None
    step_records: int
    tasks: int
    tables: Sequence[LakeTable]

    def steps(self, last: int, held: Sequence[str]) -> Iterator[tuple[int, Sequence[ShardDone], dict[str, int]]]:
        """Advance to an offset, in steps, or to the end of the snapshot with which the tables begin, if that is later.

        A step is the offset after it, what its tasks have made, and the number of rows of each table. `held` are the
        tables of the run, whose folders may have states.
        """
        for table in self.tables:
            table.go_on_from(self.covers)
            table.create(self.log.table_id)
        load, reader = self.covers is None, LakeReader(self.log)
        if load and not has_beginning(reader):
            at = snapshot_provenance(oldest_snapshot(reader))
        else:
            at, load = self._provenance(-1 if self.covers is None else self.covers), False
        last = max(last, at.offset)
        states = self._states(at.offset, last, held)
        shards = len(states) - 1 if states else self.tasks
        task = ShardTask(
            lake=str(self.log.path),
            holder=self.holder,
            tables=tuple(table.name for table in self.tables),
            at=at,
            to=self._step_end(at, last),
            states=states,
            goes_on=self.covers is not None,
            is_load=load,
        )
        logger = get_logger(__name__).bind(lake=task.lake, tables=",".join(task.tables))
        while True:
            done = self._done(task, shards)
            rows = self._commit(done, task.to.offset)
            states = self._keep(done, task.to.offset)
            records, decoded = task.to.offset - task.at.offset, sum(each.records for each in done)
            logger.info("step", offset=task.to.offset, shards=shards, records=records, decoded=decoded)
            yield task.to.offset, done, rows
            if task.to.offset >= last:
                break
            end = self._step_end(task.to, last)
            task = attrs.evolve(task, at=task.to, to=end, states=states, is_load=False, goes_on=True)
        for table in self.tables:
            table.finish()

    def _done(self, task: ShardTask, shards: int) -> Sequence[ShardDone]:
        """The step; without states, those at its start are made of the newest sound snapshot and the log."""
        made: Iterable[ShardPlan] = [ShardPlan(lake=task.lake, shards=shards)]
        if not task.states and task.at.offset >= 0:
            made = plans(partial(plan_fold, self.log, task.at.offset, parallelism=shards, shards=shards))
        for plan in made:
            done = run_step(self.spark, self._with_step(plan, task), task)
            if plan.is_sound(done.checks):
                break
        raise_first(done.faults)
        return done.facts

    def _with_step(self, plan: ShardPlan, task: ShardTask) -> ShardPlan:
        """A plan with the records of a step, in which each shard has a task."""
        plan = plan.with_log(self.log, Part.STEP, task.at.offset + 1, task.to.offset, _ROWS_OF_A_PIECE)
        return attrs.evolve(plan, all_shards=True)

    def _states(self, offset: int, last: int, held: Sequence[str]) -> tuple[StateFile, ...]:
        """The files of states after an offset, if they have all that the tables need, and suffice to go on.

        With more records than a task takes in a step, a cluster that has grown makes states for more shards.
        """
        needs_since = any(table.name == _HISTORY for table in self.tables)
        least = self.tasks if last - offset > STEP_RECORDS else 1
        for name in held if self.covers is not None else ():
            found = read_manifest(self.log.path, name, self.log.table_id)
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

    def _step_end(self, at: MetadataProvenance, last: int) -> MetadataProvenance:
        """The end of the step after an offset: that of a batch."""
        end = at.offset + self.step_records
        if at.offset >= last:
            return at
        return self._provenance(last if end >= last else next(iter(self.log.batches(end, end))).last_offset)

    def _commit(self, done: Sequence[ShardDone], offset: int) -> dict[str, int]:
        """Commit the files of a step, each table by itself; returns the numbers of rows."""

        def commit(table: LakeTable) -> tuple[str, int]:
            before = table.added_rows
            table.append_files([file for each in done for file in each.files.get(table.name, ())], offset)
            return table.name, table.added_rows - before

        with ThreadPoolExecutor(len(self.tables)) as pool:  # each waits for the disk, for most of its time
            return dict(pool.map(commit, self.tables))

    def _keep(self, done: Sequence[ShardDone], offset: int) -> tuple[StateFile, ...]:
        """Keep the states for the next step and run; none if records can't express one."""
        known = [each.state for each in done if each.state is not None]
        files = tuple(known) if len(known) == len(done) else ()
        knows_since = any(table.name == _HISTORY for table in self.tables)
        manifest = StateManifest(log_id=self.log.table_id, offset=offset, files=files, knows_since=knows_since)
        write_manifest(self.log.path, self.holder, manifest)
        return files
