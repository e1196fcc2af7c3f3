"""Work by shards as Spark DataFrames: records are read and routed, shuffled by shard, and replayed shard by shard."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.reading.pieces import SnapshotPiece, read_piece
from kraftlake.metadata_log.storage.location import Location
from kraftlake.runtime.errors import KraftlakeError
from kraftlake.spark_jobs.spark_versions import by_number
from kraftlake.spark_jobs.tasks import InArrow, called, in_arrow, in_tasks, lake_here, numbered_frame, parallelism
from kraftlake.tables.shards.chunks import CHUNK_SCHEMA, Chunk, Part, batch_of
from kraftlake.tables.shards.faults import fault_to_json, raise_first
from kraftlake.tables.shards.replayed import parts_of_step, replayed
from kraftlake.tables.shards.results import in_order, result_of, shards_in
from kraftlake.tables.shards.shard_plan import ShardPlan, check_of, plan_fold, plans, read_chunks

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from kraftlake.replay.log.log_replay import LogReplay

    Work: TypeAlias = Callable[[int, Iterator[Chunk]], tuple[object, object]]
    """A function that makes something, and the facts for the driver, of a shard's chunks."""


def chunks_frame(spark: SparkSession, plan: ShardPlan) -> DataFrame:
    """All records of the plan by shard: rows of CHUNK_SCHEMA, those of a shard in one partition and in order."""

    read = numbered_frame(spark, plan.piece_count, plan.piece_count, partial(_read, plan), CHUNK_SCHEMA)
    return by_number(read, plan.shards + 1, "shard").sortWithinPartitions("shard", "part", "first")


def _read(plan: ShardPlan, number: int) -> Iterator[pa.RecordBatch]:
    """The chunks of one of the plan's pieces, or the error of its reader."""
    try:
        lake_here(plan.lake)
        yield from map(batch_of, read_chunks(plan, number))
    except KraftlakeError as fault:
        yield batch_of([Chunk.of(plan.shards, Part.UNREAD, fault_to_json(fault))])


def results_frame(spark: SparkSession, plan: ShardPlan, work: Work) -> DataFrame:
    """The results of all shards that have chunks, and the chunks for the driver, unchanged: rows of CHUNK_SCHEMA."""
    return in_arrow(chunks_frame(spark, plan), partial(_results, plan, work), CHUNK_SCHEMA)


def _results(plan: ShardPlan, work: Work, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for shard, chunks in shards_in(batches):
        if shard < plan.shards:
            yield result_of(shard, partial(work, shard, chunks))
        else:
            yield from (batch_of([chunk]) for chunk in chunks)


def ended_frame(spark: SparkSession, plan: ShardPlan, work: Work, ending: InArrow, *, is_short: bool) -> DataFrame:
    """What one task more makes of all results: rows of CHUNK_SCHEMA. One task alone does everything if it `is_short`.

    Three stages of Spark would then take longer than the work.
    """

    def alone(_: int) -> Iterator[pa.RecordBatch]:
        read = chain.from_iterable(_read(plan, number) for number in range(plan.piece_count))
        return ending(_results(plan, work, [in_order(read)]))

    if is_short:
        return numbered_frame(spark, 1, 1, alone, CHUNK_SCHEMA)
    return in_arrow(results_frame(spark, plan, work).repartition(1), ending, CHUNK_SCHEMA)


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


def fold_plans(spark: SparkSession, lake: Location, at: int, **options: Any) -> Iterator[ShardPlan]:
    """The plans of a fold, made where the lake is seen, as `plans` of `plan_fold`; `options` are the latter's."""
    tasks = parallelism(spark)

    def plan(**chosen: Any) -> ShardPlan:
        return called(spark, lambda: plan_fold(MetadataLog.open(lake), at, parallelism=tasks, **options, **chosen))

    return plans(plan)


def sound_plan(spark: SparkSession, lake: Location, at: int, **options: Any) -> ShardPlan:
    """Plan a fold of topics alone, as `plan_fold`, from a base that the executors check: damaged ones are skipped."""
    for plan in fold_plans(spark, lake, at, topics_only=True, **options):
        pieces = [piece for piece in plan.pieces if isinstance(piece, SnapshotPiece)]
        if plan.is_sound(in_tasks(spark, lambda piece: check_of(piece, read_piece(piece)), pieces) if pieces else []):
            break
    return plan
