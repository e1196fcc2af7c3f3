"""A fold as Spark DataFrames: records are read and routed, shuffled by shard, and folded shard by shard."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from kraftlake.metadata_log import MetadataLog
from kraftlake.metadata_log.reading.pieces import SnapshotPiece
from kraftlake.runtime.errors import KraftlakeError
from kraftlake.spark_jobs.executor_environment import lend_store_access
from kraftlake.spark_jobs.spark_versions import by_number
from kraftlake.spark_jobs.stream_faults import worded
from kraftlake.tables.shards.chunks import CHUNK_SCHEMA, Chunk, Part, batch_of, chunk_of_fault, chunks_of
from kraftlake.tables.shards.driver_fold import fold_driver
from kraftlake.tables.shards.faults import raise_first
from kraftlake.tables.shards.fold_plan import FoldPlan, base_is_sound, check_piece, plan_fold, plans, read_chunks
from kraftlake.tables.shards.folded import (
    FOLDED_SCHEMA,
    Collected,
    row_of_fault,
    row_of_others,
    row_of_shard,
    shards_in,
)
from kraftlake.tables.shards.shard_fold import ShardFold

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    InArrow = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

_BATCH_BYTES = str(64 << 20)
_COLLECTED = ("shard", "names", "others", "fault")


def chunks_frame(spark: SparkSession, plan: FoldPlan) -> DataFrame:
    """All records of the plan by shard: rows of CHUNK_SCHEMA, those of a shard in one partition and in order."""

    def read(number: int) -> Iterator[pa.RecordBatch]:
        try:
            yield from map(batch_of, read_chunks(plan, number))
        except KraftlakeError as fault:
            yield batch_of([chunk_of_fault(plan.shards, fault)])

    pieces = len(plan.pieces)
    read_frame = numbered_frame(spark, pieces, pieces, read, CHUNK_SCHEMA)
    return by_number(read_frame, plan.shards + 1, "shard").sortWithinPartitions("shard", "part", "first")


def folded_frame(spark: SparkSession, plan: FoldPlan) -> DataFrame:
    """A row of FOLDED_SCHEMA for each shard that has records."""

    def fold(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for shard, chunks in shards_in(batches):
            if shard == plan.shards:
                yield row_of_others(shard, chunks)
                continue
            try:
                yield row_of_shard(shard, ShardFold.of(chunks, base_last=plan.base_last).topics())
            except KraftlakeError as fault:
                yield row_of_fault(shard, fault)

    return in_arrow(chunks_frame(spark, plan), fold, FOLDED_SCHEMA)


def of_topics(plan: FoldPlan, shards: Iterable[tuple[int, Iterator[Chunk]]]) -> Iterator[tuple[int, Iterator[Chunk]]]:
    """The shards of topics. Raises the error of a reader, and that of a record of features."""
    for shard, chunks in shards:
        if shard < plan.shards:
            yield shard, chunks
        else:
            others = list(chunks)
            raise_first(bytes(chunk.payload).decode() for chunk in others if chunk.part == Part.FAULT)
            fold_driver(others)


def sound_plan(
    spark: SparkSession,
    log: MetadataLog,
    at: int,
    *,
    base_at: int | None = None,
    shards: int | None = None,
    split_at: int | None = None,
    from_snapshot: bool | None = None,
    topics_only: bool = False,
) -> FoldPlan:
    """As `plan_fold`, from a base whose checksum the executors have checked; damaged ones are skipped."""
    plan = partial(
        plan_fold,
        log,
        at,
        parallelism=spark.sparkContext.defaultParallelism,
        base_at=base_at,
        shards=shards,
        split_at=split_at,
        topics_only=topics_only,
        from_snapshot=from_snapshot,
    )
    return next(made for made, base in plans(plan) if base is None or base_is_sound(base, _checks(spark, made)))


def _checks(spark: SparkSession, plan: FoldPlan) -> list[Chunk]:
    """The checksums of the pieces of the plan's base."""
    pieces = [number for number, piece in enumerate(plan.pieces) if isinstance(piece, SnapshotPiece)]
    count = len(pieces)
    with telling_faults():
        rows = numbered_frame(
            spark, count, count, lambda number: [batch_of([check_piece(plan, pieces[number])])], CHUNK_SCHEMA
        ).toArrow()
    return [chunk for batch in rows.to_batches() for chunk in chunks_of(batch)]


def collected(folded: DataFrame) -> Collected:
    """The rows of `folded_frame` without topics. Raises the first error in a row."""
    with telling_faults():
        rows = folded.select(*_COLLECTED).toArrow()
    return Collected.of(rows)


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
