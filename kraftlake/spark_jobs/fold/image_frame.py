"""All partitions of a cluster at any offset, as a Spark DataFrame of plain columns."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.storage.location import fixed_location
from kraftlake.runtime.arguments import whole_or_none
from kraftlake.spark_jobs.fold.frames import rows_frame, sound_plan
from kraftlake.spark_jobs.tasks import called
from kraftlake.tables.image_partitions import partition_table
from kraftlake.tables.partition_columns import PARTITION_SCHEMA

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kraftlake.replay.log.log_replay import LogReplay
    from kraftlake.tables.shards.chunks import Chunk

_ROWS_AT_ONCE = 50_000


def image_frame(
    spark: SparkSession,
    lake: str | Path,
    at_offset: int | None = None,
    *,
    shards: int | None = None,
    from_snapshot: bool | None = None,
) -> DataFrame:
    """The partitions of the image at `at_offset` (the end of the log where None), a row each: PARTITION_SCHEMA.

    The executors fold the log when the DataFrame is used, from the newest snapshot at or before that offset, without
    a metadata transaction that is open there. Raises OffsetError for an offset without an image; the error of a record
    is raised when the DataFrame is used.
    """
    place, at_offset = fixed_location(lake), whole_or_none(at_offset)
    at = called(spark, lambda: MetadataLog.open(place).end_offset - 1) if at_offset is None else at_offset
    plan = sound_plan(spark, place, at, shards=shards, from_snapshot=from_snapshot)

    def partitions(replay: LogReplay, _: Iterator[Chunk]) -> Iterator[pa.RecordBatch]:
        yield from partition_table(replay.store.topics()).to_batches(_ROWS_AT_ONCE)

    return rows_frame(spark, plan, partitions, PARTITION_SCHEMA)
