"""Spark, delta-rs and our reader over the tables of one lake, at every stage of its life."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, QueryBuilder

from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.maintenance.upkeep import Upkeep
from kraftlake.metadata_log.maintenance.upkeep_policy import UpkeepPolicy
from kraftlake.metadata_log.snapshots.snapshot_rows import SnapshotFacts
from kraftlake.records.batch import NO_TIMESTAMP
from kraftlake.records.rows import LOG_SCHEMA, to_rows
from tests.metadata_log.log_batches import TIME, data_batch, noop_batch, snapshot_batches

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"
POLICY = UpkeepPolicy(checkpoint_after=5, keep_commits=1, compact_from=3, orphan_age_ms=0, exclusive=True)


@pytest.mark.spark
def test_all_readers_have_the_same_rows_at_every_stage(tmp_path: Path, spark: SparkSession) -> None:
    lake = tmp_path / "lake"
    log = MetadataLog.create(lake, "cluster", role="controlled")
    epoch = log.claim(1)
    for batch in (noop_batch(1), data_batch(2, 3, time=NO_TIMESTAMP), data_batch(5, 1_000)):
        log.append([batch], epoch=epoch)
    check(log, spark if LONG else None)  # a read takes Spark a second
    epoch = log.claim(2)
    for number in range(6):
        log.append([data_batch(log.end_offset, number + 1, epoch=epoch)], epoch=epoch)
    check(log, spark)

    end = log.end_offset
    log.add_snapshot(SnapshotFacts(end_offset=end, epoch=epoch, last_contained_log_timestamp=TIME), snapshot_batches(5))
    theirs = spark.read.format("delta").load(str(lake / "snapshots")).toArrow()
    assert in_order(theirs).equals(to_rows(log.snapshots()[0].batches()))

    upkeep = Upkeep(lake, POLICY)
    assert upkeep.run(force_checkpoint=True).compaction.files
    log.refresh()
    check(log, spark)
    log.append([noop_batch(end, epoch=epoch)], epoch=epoch)
    assert upkeep.trim(end, stream_lag_ms=0).files
    log.refresh()
    check(log, spark if LONG else None)
    assert upkeep.run(force_checkpoint=True).cleaned_up.commits
    assert upkeep.vacuum().orphans, "removed, and forgotten by the checkpoint"
    check(MetadataLog.open(lake), spark)


def check(log: MetadataLog, spark: SparkSession | None) -> None:
    """Hold what others read, whole and by a filter that skips files, against our reader."""
    table = str(log.path / "log")
    frame = None if spark is None else spark.read.format("delta").load(table)
    query = QueryBuilder().register("log", DeltaTable(table))
    last = log.end_offset - 1
    filtered = log.rows(last - 3)
    filtered = filtered.filter(pc.field("timestamp").is_valid() & ~pc.field("control"))
    for condition, ours in (
        ("true", log.rows()),
        (f"offset >= {last - 3} and timestamp is not null and not control", filtered),
    ):
        if frame is not None:
            assert in_order(frame.where(condition).toArrow()).equals(ours)
        assert in_order(pa.table(query.execute(f"select * from log where {condition}").read_all())).equals(ours)


def in_order(rows: pa.Table) -> pa.Table:
    return rows.select(LOG_SCHEMA.names).cast(LOG_SCHEMA).sort_by("offset")
