"""All partitions at any offset, and what any range of offsets means to all brokers, as Spark DataFrames."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from kraftlake.image.provenance import MetadataProvenance
from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.storage.location import Location, fixed_location
from kraftlake.replay.log.delta_chunk import DeltaBoundaries
from kraftlake.replay.log.partition_changes import PartitionChanges, changes_of_image
from kraftlake.replay.reading.open_reader import LakeReader
from kraftlake.replay.reading.replay_base import check_covered
from kraftlake.runtime.arguments import whole, whole_or_none
from kraftlake.runtime.errors import OffsetError, UsageError
from kraftlake.spark_jobs.fold.frames import rows_frame, sound_plan
from kraftlake.spark_jobs.tasks import called
from kraftlake.tables.image_partitions import partition_table
from kraftlake.tables.local_changes.local_changes_columns import local_change_table
from kraftlake.tables.local_changes.local_changes_table import SCHEMA
from kraftlake.tables.partition_columns import PARTITION_SCHEMA
from kraftlake.tables.shards.replayed import parts_of_step
from kraftlake.tables.shards.shard_plan import provenance_at

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kraftlake.replay.log.log_replay import LogReplay
    from kraftlake.tables.shards.chunks import Chunk

_PARTITIONS_AT_ONCE = 50_000
_ROWS_AT_ONCE = 20_000


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
        yield from partition_table(replay.store.topics()).to_batches(_PARTITIONS_AT_ONCE)

    return rows_frame(spark, plan, partitions, PARTITION_SCHEMA)


def local_changes_frame(
    spark: SparkSession,
    lake: str | Path,
    from_offset: int,
    to_offset: int | None = None,
    *,
    shards: int | None = None,
    from_snapshot: bool | None = None,
) -> DataFrame:
    """The local changes of all brokers in one metadata delta of the offsets (from_offset, to_offset].

    The columns are those of the table `local_changes/`, with `to_offset` (None: the end of the log) as `offset`; the
    rows of a broker are those of `kraftlake local-changes` for the same offsets. `from_offset` -1 is the empty image.
    No process holds more than a shard of an image. Raises UsageError for a range that runs backwards, OffsetError if
    the log does not hold it; the error of a record is raised when the DataFrame is used.
    """
    place, from_offset, to_offset = fixed_location(lake), whole(from_offset), whole_or_none(to_offset)
    to, end = called(spark, lambda: _end_of(place, from_offset, to_offset))
    before = to if from_offset < 0 else from_offset
    plan = sound_plan(spark, place, before, to=to, shards=shards, from_snapshot=from_snapshot)

    def rows(replay: LogReplay, step: Iterator[Chunk]) -> Iterator[pa.RecordBatch]:
        yield from batches_of(changes_after(from_offset, replay, step), end)

    return rows_frame(spark, plan, rows, SCHEMA)


def _end_of(lake: Location, from_offset: int, to_offset: int | None) -> tuple[int, MetadataProvenance]:
    """The end of a range of offsets that the log holds, and the provenance of the image there."""
    log = MetadataLog.open(lake)
    to = log.end_offset - 1 if to_offset is None else to_offset
    if from_offset > to:
        raise UsageError(f"Local changes from offset {from_offset} to {to} run backwards.")
    if from_offset < -1:
        raise OffsetError(f"Offset {from_offset} is no offset to begin from: the lowest is -1, the empty image.")
    if from_offset >= 0:
        check_covered(LakeReader(log), from_offset, to)
    return to, provenance_at(log, to)


def changes_after(from_offset: int, replay: LogReplay, step: Iterator[Chunk]) -> PartitionChanges:
    """The changes of one metadata delta: of all records of a step after a replay, or from -1, of all state in it."""
    if from_offset < 0:
        return changes_of_image(replay.store.topics())
    chunks = [*replay.take_parts(parts_of_step(step), in_one_delta=True)]
    return chunks[0].partitions.by_delta() if chunks else changes_of_image(TopicsImage.EMPTY)


def batches_of(changes: PartitionChanges, end: MetadataProvenance) -> Iterator[pa.RecordBatch]:
    """The rows of one metadata delta, up to the image with this provenance, in batches of bounded size."""
    boundaries = DeltaBoundaries.single(end.offset, end.epoch, end.timestamp)
    for first in range(0, len(changes), _PARTITIONS_AT_ONCE):
        rows = local_change_table(changes.take(slice(first, first + _PARTITIONS_AT_ONCE)), boundaries)
        yield from rows.cast(SCHEMA).to_batches(max_chunksize=_ROWS_AT_ONCE)
