"""Steps of a log in which Spark's executors make the tables' rows of topics, by shards of topics, and write them.

A step: readers route a range of offsets, a shuffle brings each shard its records, a task for each shard makes rows and
writes files (`ShardTask`), and the driver makes all other rows and commits the files of each table with its own, in one
commit with the offset. Files of lost or repeated tasks are part of no commit, and vacuum removes them.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import attrs
import pyarrow as pa

from kraftlake.metadata_log.storage.location import Location, lake_location
from kraftlake.spark_jobs.fold.frames import bounded_batches, collected, numbered_frame, results_frame
from kraftlake.tables.shards.chunks import Chunk, Part
from kraftlake.tables.shards.count_changes import CountChanges
from kraftlake.tables.shards.results import RESULT_SCHEMA, result_of, topics_and_names, unpickled
from kraftlake.tables.shards.shard_plan import ShardPlan
from kraftlake.tables.shards.shard_task import ShardDone, ShardTask
from kraftlake.tables.shards.state_files import StateFile, read_state

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@attrs.frozen(kw_only=True, eq=False)
class StepDone:
    """The results of all shards in their order, merged count changes, their faults, and the chunks for the driver.

    With faults, `shards` and `counts` are those of the other shards.
    """

    shards: list[ShardDone]
    counts: CountChanges
    faults: list[str]
    driver: list[Chunk]

    @property
    def decoded(self) -> int:
        """The number of the step's records that shards and driver decode, counted once for each decoder."""
        of_driver = sum(len(chunk.records()) for chunk in self.driver if chunk.part == Part.STEP)
        return of_driver + sum(shard.records for shard in self.shards)

    @property
    def size(self) -> int:
        """The bytes of the step's records, without no-op records."""
        of_driver = sum(len(chunk.payload) for chunk in self.driver if chunk.part == Part.STEP)
        return of_driver + sum(shard.size for shard in self.shards)


def run_step(spark: SparkSession, plan: ShardPlan, task: ShardTask) -> StepDone:
    """Run a step on the executors; nothing is committed.

    Raises LakeError if the lake can't be read or written, and EnvironmentFaultError if Spark fails.
    """

    def work(shard: int, chunks: Iterator[Chunk]) -> tuple[bytes, bytes]:
        done, counts = task.run(shard, chunks, plan.base_at)
        return pickle.dumps(counts), pickle.dumps(done)

    with bounded_batches(spark):
        results = collected(results_frame(spark, plan, work), "content")
    assert len(results.facts) + len(results.faults) == plan.shards, "each shard had a task"
    return StepDone(
        shards=[*map(unpickled, results.facts)],
        counts=CountChanges.joined([*map(unpickled, results.rows["content"].to_pylist())]),
        faults=results.faults,
        driver=results.driver,
    )


def states_frame(spark: SparkSession, lake: Location, states: Sequence[StateFile]) -> DataFrame:
    """The topics in the files of the shards' states, as rows of RESULT_SCHEMA."""
    place = str(lake)

    def read(shard: int) -> Iterator[pa.RecordBatch]:
        yield result_of(shard, lambda: topics_and_names(read_state(lake_location(place), states[shard]).image.topics))

    return numbered_frame(spark, len(states), len(states), read, RESULT_SCHEMA)
