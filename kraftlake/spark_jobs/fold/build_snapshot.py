"""Snapshots of clusters of any size: Spark's executors fold the log and write the files."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from kraftlake.image.provenance import MetadataProvenance
from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.log_facts import SNAPSHOTS_TABLE
from kraftlake.metadata_log.snapshots.snapshot_rows import SnapshotFacts, write_part
from kraftlake.metadata_log.snapshots.snapshot_table import SnapshotTable
from kraftlake.metadata_log.storage.disk import disk_for
from kraftlake.metadata_log.storage.location import Location, fixed_location
from kraftlake.runtime.arguments import whole_or_none
from kraftlake.runtime.errors import OffsetError
from kraftlake.spark_jobs.fold.frames import fold_plans, results_frame
from kraftlake.spark_jobs.fold.topic_files import Folded, TopicFiles
from kraftlake.spark_jobs.run_session import RunSession
from kraftlake.spark_jobs.tasks import bounded_batches, called, collected
from kraftlake.tables.shards.faults import earliest
from kraftlake.tables.shards.replayed import replayed
from kraftlake.tables.shards.results import Results, topics_and_names
from kraftlake.tables.shards.shard_plan import ShardPlan, provenance_at
from kraftlake.tables.shards.snapshot_layout import head_of, ranges_of, tail_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from kraftlake.replay.log.delta_chunk import ReplayState
    from kraftlake.tables.shards.chunks import Chunk


@attrs.frozen(kw_only=True)
class BuiltSnapshot:
    """A snapshot that the lake now has, of the image at `offset`.

    `written` is False if the lake had it before. `base` names the snapshot that the fold started from (None: the empty
    image), `shards` is the number of shards of the fold; neither is set for a snapshot that the lake had before.
    """

    name: str
    offset: int
    epoch: int
    records: int
    topics: int | None = None
    partitions: int | None = None
    written: bool = False
    base: str | None = None
    shards: int = 0

    def to_json(self) -> dict[str, Any]:
        """The JSON form."""
        form = attrs.asdict(self, filter=attrs.filters.exclude("shards"))
        return form | {"from": form.pop("base")}


def build_snapshot(
    spark: SparkSession,
    lake: str | Path,
    at_offset: int | None = None,
    *,
    shards: int | None = None,
    from_snapshot: bool | None = None,
) -> BuiltSnapshot:
    """Fold the lake's log up to and including `at_offset` and write the image to `snapshots/`, in one commit.

    The fold starts from the newest snapshot at or before that offset (`from_snapshot` False: from the log alone). The
    snapshot has the same records in the same batches as one that is written without Spark, if no batch of 1,024 topics
    and partitions has more than a megabyte. `at_offset` None is the end of the log, or, if a metadata transaction is
    open there, the offset before its start. `shards` None: a number that suits the number of records.

    The executors read the lake's files and write those of the snapshot. Raises OffsetError for an offset that has no
    image, or that is within a batch or a metadata transaction; the errors of a replay, with the offset;
    UnwritableMetadataError if the image's metadata.version can't express its content; EnvironmentFaultError if Spark
    fails. After an error the lake has the same snapshots as before.
    """
    from pyspark import StorageLevel

    place, at_offset = fixed_location(lake), whole_or_none(at_offset)
    known, at = called(spark, lambda: _known(place, at_offset))
    plans = fold_plans(spark, place, at, shards=shards, from_snapshot=from_snapshot)
    with bounded_batches(spark):
        while known is None:
            plan = next(plans)
            rows = results_frame(spark, plan, partial(_topics, plan.base_at)).persist(StorageLevel.DISK_ONLY)
            try:
                results = collected(rows)
                if plan.is_sound(results.checks):
                    known = _built(place, at, plan, rows, results, at_the_end=at_offset is None)
            finally:
                rows.unpersist()
    return known


def _topics(base_at: MetadataProvenance, _: int, chunks: Iterator[Chunk]) -> tuple[object, object]:
    """The topics of a shard, and their names."""
    return topics_and_names(replayed(chunks, base_at, of_shard=True)[0].store.topics())


def _built(
    lake: Location, at: int, plan: ShardPlan, rows: DataFrame, results: Results, *, at_the_end: bool
) -> BuiltSnapshot:
    """The snapshot of a finished fold, whose rows and results are given."""
    with earliest(results.faults):
        others = replayed(results.rest, plan.base_at, of_shard=False)[0].state
    if others.open_since is not None:
        begins = others.open_since
        if not at_the_end:
            raise OffsetError(
                f"offset {at} is inside of the metadata transaction that began at offset {begins}, and a snapshot is "
                f"not: take {begins - 1}."
            )
        known, at = called(rows.sparkSession, lambda: _known(lake, begins - 1))
        if known is not None:
            return known
    provenance = called(rows.sparkSession, lambda: _provenance(lake, at))
    built = add_snapshot(lake, others.ending(provenance), results.names, rows, rows.sparkSession)
    return attrs.evolve(built, base=None if plan.base is None else plan.base.name, shards=plan.shards)


def run_snapshot(lake: str | Path, at_offset: int | None = None, *, master: str = "local[*]") -> BuiltSnapshot:
    """`build_snapshot` in the active Spark session, or in a new one whose master is `master`.

    No JVM is started if there is no lake, or no such offset in it, or if the lake has the snapshot.
    """
    place, at_offset = fixed_location(lake), whole_or_none(at_offset)
    with RunSession(None, "kraftlake snapshot", master) as session:
        known, _ = called(session.held, lambda: _known(place, at_offset))
        return known or build_snapshot(session.get(), lake, at_offset)


def add_snapshot(
    lake: Location, others: ReplayState, names: pa.Table, folded: Folded, seen_by: SparkSession | None = None
) -> BuiltSnapshot:
    """Write a snapshot of the topics in rows of CHUNK_SCHEMA, and of the state of all else, in one commit.

    `names` (NAMES_SCHEMA) are those of the topics; tasks of `seen_by` see the lake if this process may not. Raises
    UnwritableMetadataError if the image's metadata.version can't express its content.
    """
    at = others.image.provenance
    image = attrs.evolve(others.image, topics=TopicsImage.EMPTY)
    options = image.writer_options()
    head = head_of(image, options, at, others.quorum)
    ranges = ranges_of(names, head.end_offset)
    called(seen_by, lambda: _table(lake).path)  # tasks write into its folder
    files = TopicFiles(lake=str(lake), provenance=at, options=options, open_batch=head.open_batch, ranges=ranges)
    topics, last_sizes = files.write(folded)
    count = sum(part.record_count for part in topics)
    tail = tail_of(image, options, at, head=head, topic_records=count, last_sizes=last_sizes)
    facts = SnapshotFacts(end_offset=at.offset + 1, epoch=at.epoch, last_contained_log_timestamp=at.timestamp)

    def committed() -> bool:
        table = _table(lake)
        disk = disk_for(lake)
        first, last = (write_part(disk, table.path, rows, facts.end_offset, at.epoch) for rows in (head.rows, tail))
        return table.add_parts([first, *topics, last], facts)

    return BuiltSnapshot(
        name=facts.name,
        offset=at.offset,
        epoch=at.epoch,
        records=head.end_offset + count + tail.num_rows,
        topics=names.num_rows,
        partitions=sum(names["partitions"].to_pylist()),
        written=called(seen_by, committed),
    )


def _table(lake: Location) -> SnapshotTable:
    return SnapshotTable.open_or_create(lake / SNAPSHOTS_TABLE, disk_for(lake))


def _known(lake: Location, at_offset: int | None) -> tuple[BuiltSnapshot | None, int]:
    """The snapshot at an offset, by default the log's last one, that the lake has already, and the offset.

    Raises OffsetError for an offset past the log's end.
    """
    log = MetadataLog.open(lake)
    if at_offset is not None and at_offset >= log.end_offset:
        held = f"offsets {log.start_offset} to {log.end_offset - 1}" if log.end_offset else "no offsets"
        raise OffsetError(f"Offset {at_offset} is past the end of {lake}, which holds {held}.")
    at = log.end_offset - 1 if at_offset is None else at_offset
    for found in log.snapshots():
        if found.end_offset == at + 1 and at >= 0:
            return BuiltSnapshot(name=found.name, offset=at, epoch=found.epoch, records=found.record_count), at
    return None, at


def _provenance(lake: Location, at: int) -> MetadataProvenance:
    """The provenance of the image at an offset; raises OffsetError for one inside of a batch."""
    log = MetadataLog.open(lake)
    provenance = provenance_at(log, at)
    if not provenance.batch_aligned:
        end = next(iter(log.batches(at, at))).last_offset
        raise OffsetError(f"offset {at} is inside of a batch, and a snapshot is not: take {end}, where it ends.")
    return provenance
