"""Work by shards as Spark DataFrames: records are read and routed, shuffled by shard, and replayed shard by shard."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.reading.pieces import SnapshotPiece, read_piece
from kraftlake.runtime.errors import KraftlakeError
from kraftlake.spark_jobs.executor_environment import lend_store_access
from kraftlake.spark_jobs.spark_versions import by_number
from kraftlake.spark_jobs.stream_faults import worded
from kraftlake.tables.shards.chunks import CHUNK_SCHEMA, Chunk, Part, batch_of
from kraftlake.tables.shards.faults import fault_to_json, raise_first
from kraftlake.tables.shards.replayed import parts_of_step, replayed
from kraftlake.tables.shards.results import Results, result_of, shards_in
from kraftlake.tables.shards.shard_plan import Check, ShardPlan, check_of, plan_fold, plans, read_chunks

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from kraftlake.replay.log.log_replay import LogReplay

    InArrow = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
    Work: TypeAlias = Callable[[int, Iterator[Chunk]], tuple[object, object]]
    """A function that makes something, and the facts for the driver, of a shard's chunks."""

_BATCH_BYTES = str(64 << 20)


def chunks_frame(spark: SparkSession, plan: ShardPlan) -> DataFrame:
    """All records of the plan by shard: rows of CHUNK_SCHEMA, those of a shard in one partition and in order."""

    def read(number: int) -> Iterator[pa.RecordBatch]:
        try:
            yield from map(batch_of, read_chunks(plan, number))
        except KraftlakeError as fault:
            yield batch_of([Chunk.of(plan.shards, Part.UNREAD, fault_to_json(fault))])

    read_frame = numbered_frame(spark, plan.piece_count, plan.piece_count, read, CHUNK_SCHEMA)
    return by_number(read_frame, plan.shards + 1, "shard").sortWithinPartitions("shard", "part", "first")


def results_frame(spark: SparkSession, plan: ShardPlan, work: Work) -> DataFrame:
    """The results of all shards that have chunks, and the chunks for the driver, unchanged: rows of CHUNK_SCHEMA."""

    def results(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for shard, chunks in shards_in(batches):
            if shard < plan.shards:
                yield result_of(shard, partial(work, shard, chunks))
            else:
                yield from (batch_of([chunk]) for chunk in chunks)

    return in_arrow(chunks_frame(spark, plan), results, CHUNK_SCHEMA)


def rows_frame(
    spark: SparkSession,
    plan: ShardPlan,
    rows: Callable[[LogReplay, Iterator[Chunk]], Iterator[pa.RecordBatch]],
    schema: pa.Schema,
) -> DataFrame:
    """The rows that `rows` makes of each shard of topics, from the replay before the step and the chunks of the step.

    The error of a reader, and that of a feature record, are raised as well.
    """

    def made(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for shard, chunks in shards_in(batches):
            if shard < plan.shards:
                yield from rows(*replayed(chunks, plan.base_at, of_shard=True))
                continue
            others = list(chunks)
            raise_first(chunk.content for chunk in others if chunk.part == Part.UNREAD)
            replay, step = replayed(others, plan.base_at, of_shard=False)
            deque(replay.take_parts(parts_of_step(step)), 0)

    return in_arrow(chunks_frame(spark, plan), made, schema)


def sound_plan(spark: SparkSession, log: MetadataLog, at: int, **options: Any) -> ShardPlan:
    """Plan a fold of topics alone, as `plan_fold`, from a base that the executors check: damaged ones are skipped."""
    parallelism = spark.sparkContext.defaultParallelism
    plan = partial(plan_fold, log, at, parallelism=parallelism, topics_only=True, **options)
    return next(made for made in plans(plan) if made.base is None or made.is_sound(_checks(spark, made)))


def _checks(spark: SparkSession, plan: ShardPlan) -> list[Check]:
    """The facts about the pieces of the plan's base."""
    pieces = [piece for piece in plan.pieces if isinstance(piece, SnapshotPiece)]

    def check(number: int) -> Iterator[pa.RecordBatch]:
        piece = pieces[number]
        yield batch_of([Chunk.of(plan.shards, Part.CHECK, check_of(piece, read_piece(piece)))])

    return collected(numbered_frame(spark, len(pieces), len(pieces), check, CHUNK_SCHEMA)).checks


def collected(results: DataFrame, *, made: bool = False) -> Results:
    """The results of shards, with what was `made` or without. Raises the error of a reader."""
    with telling_faults():
        return Results.of((results if made else results.where(f"part <> {Part.MADE:d}")).toArrow())


def numbered_frame(
    spark: SparkSession, count: int, tasks: int, make: Callable[[int], Iterable[pa.RecordBatch]], schema: pa.Schema
) -> DataFrame:
    """The batches that executors make of each number in [0, count), in a number of tasks."""

    def made(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from make(number)

    return in_arrow(spark.range(0, count, 1, max(1, tasks)), made, schema)


def in_arrow(frame: DataFrame, function: InArrow, schema: pa.Schema) -> DataFrame:
    """`mapInArrow` with an Arrow schema."""
    from pyspark.sql.pandas.types import from_arrow_schema

    lend_store_access(frame.sparkSession.sparkContext)
    return frame.mapInArrow(function, from_arrow_schema(schema))


@contextmanager
def bounded_batches(spark: SparkSession) -> Iterator[None]:
    """Keep the batches between the JVM and Python below 64 MiB each, except for a single larger row."""
    name = "spark.sql.execution.arrow.maxBytesPerBatch"
    before = spark.conf.get(name)
    spark.conf.set(name, _BATCH_BYTES)
    try:
        yield
    finally:
        if before is not None:
            spark.conf.set(name, before)


@contextmanager
def telling_faults() -> Iterator[None]:
    """Raise Spark's own errors as EnvironmentFaultError with one sentence."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError, ConnectionError) as fault:
        raise worded(fault) from fault
