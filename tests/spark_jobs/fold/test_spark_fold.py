"""On Spark: snapshots, images and local changes are those that one process makes."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from kraftlake.generate.lake import generate_lake
from kraftlake.generate.plan import Plan
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.kafka_files.snapshots.batches import checkpoint_batches
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.snapshots.snapshot_rows import SnapshotFacts
from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.replay.imports.import_log import import_source
from kraftlake.replay.loader.fold import Replay, changes_between, image_at
from kraftlake.replay.reading.open_reader import LakeReader
from kraftlake.runtime.errors import OffsetError, ReplayError, UnwritableMetadataError, UsageError
from kraftlake.spark_jobs import build_snapshot, image_frame, local_changes_frame
from kraftlake.tables.image_partitions import partition_table
from kraftlake.tables.local_changes.local_changes_table import SCHEMA
from kraftlake.tables.partition_columns import PARTITION_SCHEMA
from kraftlake.tables.shards.shard_plan import provenance_at
from tests.at_least_one import at_least_one
from tests.histories import uuid_of
from tests.metadata_log.unsealed import unseal
from tests.tables.local_changes.reference import local_change_rows, row_head
from tests.tables.logs_for_writers import table_of
from tests.tables.sample_log import LAST_OFFSET, SAMPLES, lake_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

RECORDS = 30_000 if os.environ.get("KRAFTLAKE_TESTS") == "long" else 14_000
INSIDE = 3000
"""An offset of the sample in the middle of its history."""


def local_batches(log: MetadataLog, at: int) -> list[RecordBatch]:
    """The snapshot that one process writes, from the log alone."""
    replay: Replay = image_at(LakeReader(log), at, from_snapshot=None if log.start_offset else False)
    provenance = replay.image.provenance
    return list(
        checkpoint_batches(
            replay.image.write(),
            epoch=provenance.epoch,
            timestamp=provenance.timestamp,
            kraft_version=replay.quorum.kraft_version,
            voters=replay.quorum.voters,
        )
    )


def kept_batches(log: MetadataLog, at: int) -> list[RecordBatch]:
    """The snapshot that the lake has, and that is whole."""
    (snapshot,) = [snapshot for snapshot in log.snapshots() if snapshot.end_offset == at + 1]
    assert snapshot.damage() is None
    return list(snapshot.batches())


def changes_in_one_process(log: MetadataLog, from_offset: int, to_offset: int) -> pa.Table:
    topics = changes_between(LakeReader(log), from_offset, to_offset).delta.topics_delta
    if topics is None:
        return SCHEMA.empty_table()
    rows = list(local_change_rows(topics, row_head(provenance_at(log, to_offset))))
    return table_of(rows, SCHEMA)


def same_rows(one: pa.Table, other: pa.Table) -> bool:
    by = [(name, "ascending") for name in ("topic", "partition", "broker", "change") if name in one.schema.names]
    return one.sort_by(by).to_pylist() == other.sort_by(by).to_pylist()


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A history with outages, reassignments and topics that come and go."""
    lake = tmp_path_factory.mktemp("fold") / "lake"
    generate_lake(lake, Plan(brokers=9, topics=150, partitions=20, records=RECORDS, seed=5))
    return lake


def test_a_snapshot_built_on_spark_is_the_local_one_and_the_next_goes_on_from_it(
    spark: SparkSession, generated: Path
) -> None:
    log = MetadataLog.open(generated)
    middle = next(iter(log.batches(9_000, 9_000))).last_offset
    for at, base in ((middle, None), (log.end_offset - 1, f"{middle + 1:020d}-0000000001.checkpoint")):
        built = build_snapshot(spark, generated, at, shards=3)
        assert (built.written, built.base, built.shards) == (True, base, 3)
        assert kept_batches(log, at) == local_batches(log, at)
        image = image_at(LakeReader(log), at, from_snapshot=False).image
        assert (built.topics, built.partitions) == (image.topics.topic_count, image.topics.partition_count)
    assert not build_snapshot(spark, generated, middle).written, "it is there"


def test_the_partitions_at_any_offset_are_those_of_the_local_image(spark: SparkSession, generated: Path) -> None:
    log = MetadataLog.open(generated)
    for at in (10_500, None):
        offset = log.end_offset - 1 if at is None else at
        frame = image_frame(spark, generated, at, shards=2)
        image = image_at(LakeReader(log), offset, from_snapshot=False).image
        assert same_rows(frame.toArrow().cast(PARTITION_SCHEMA), partition_table(image.topics))
    assert frame.where("leader = -1").count() == sum(
        p.leader == -1 for t in image.topics.topics_by_name().values() for p in t.partitions.values()
    )


def test_local_changes_of_any_range_are_those_of_one_process(spark: SparkSession, generated: Path) -> None:
    log = MetadataLog.open(generated)
    end = log.end_offset - 1
    for from_offset, to_offset in ((9_000, 11_000), (-1, 4_000), (end - 5_000, end)):
        expected = changes_in_one_process(log, from_offset, to_offset)
        frame = local_changes_frame(spark, generated, from_offset, to_offset, shards=3)
        assert same_rows(frame.toArrow().cast(SCHEMA), expected)
        assert expected.num_rows


@pytest.mark.parametrize("sample", ["kafka-4.4", "crash-torn"])
def test_the_samples_snapshots_and_local_changes_are_those_of_one_process(
    spark: SparkSession, tmp_path: Path, sample: str
) -> None:
    lake = tmp_path / "lake"
    import_source(next((SAMPLES / sample / "log").glob("__cluster_metadata-0")), lake)
    log = MetadataLog.open(lake)
    at = log.end_offset - 1
    built = build_snapshot(spark, lake)
    assert kept_batches(log, built.offset) == local_batches(log, built.offset)
    from_offset = max(log.start_offset, at - 3000)
    frame = local_changes_frame(spark, lake, from_offset)
    expected = changes_in_one_process(log, from_offset, at)
    assert same_rows(frame.toArrow().cast(SCHEMA), expected)


def test_offsets_without_a_snapshot_are_refused_with_the_way_out(spark: SparkSession, tmp_path: Path) -> None:
    log = lake_of(tmp_path / "lake", commits=1, last=900)
    batch = next(batch for batch in log.batches(300) if batch.record_count > 2)
    with pytest.raises(OffsetError, match=f"inside of a batch.*take {batch.last_offset}"):
        build_snapshot(spark, tmp_path / "lake", batch.base_offset)
    with pytest.raises(OffsetError, match="past the end"):
        build_snapshot(spark, tmp_path / "lake", LAST_OFFSET)
    with pytest.raises(UsageError, match="backwards"):
        local_changes_frame(spark, tmp_path / "lake", 20, 10)
    with pytest.raises(OffsetError, match="-2 is no offset to begin from: the lowest is -1"):
        local_changes_frame(spark, tmp_path / "lake", -2, 10)
    assert log.snapshots() == ()


def test_an_open_transaction_at_the_end_is_left_out(spark: SparkSession, tmp_path: Path) -> None:
    log = lake_of(tmp_path / "lake", commits=1, last=900)
    end = log.end_offset
    records = [r.BeginTransactionRecord(), r.TopicRecord(name="never", topic_id=uuid_of(77))]
    log.append([RecordBatch.of(end, log.epoch, 1_800_000_000_000, [ApiMessageAndVersion(m, 0) for m in records])])
    with pytest.raises(OffsetError, match=f"transaction that began at offset {end}.*take {end - 1}"):
        build_snapshot(spark, tmp_path / "lake", end + 1)
    assert build_snapshot(spark, tmp_path / "lake").offset == end - 1
    assert kept_batches(log, end - 1) == local_batches(log, end - 1)


def test_a_damaged_base_is_passed_over(spark: SparkSession, generated: Path, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    shutil.copytree(generated, lake)
    shutil.rmtree(lake / "snapshots", ignore_errors=True)
    log = MetadataLog.open(lake)
    early, late = (next(iter(log.batches(at, at))).last_offset for at in (5_000, 12_000))
    image: MetadataImage = image_at(LakeReader(log), early, from_snapshot=False).image
    batches = local_batches(log, early)
    log.add_snapshot(
        SnapshotFacts(end_offset=early + 1, epoch=1, last_contained_log_timestamp=image.provenance.timestamp), batches
    )
    commit = lake / "snapshots" / "_delta_log" / f"{1:020d}.json"
    (snapshot,) = log.snapshots()
    unseal(lake / "snapshots")  # so that the snapshot's own checksum is what counts
    commit.write_text(commit.read_text().replace(f'"version": {snapshot.checksum}', '"version": 7'))
    assert MetadataLog.open(lake).snapshots()[0].damage() is not None
    assert build_snapshot(spark, lake, late).base is None
    assert kept_batches(log, late) == local_batches(log, late)
    frame = image_frame(spark, lake, late)
    assert frame.count() == image_at(LakeReader(log), late, from_snapshot=False).image.topics.partition_count


def test_faults_of_records_come_from_the_executors_as_what_they_are(spark: SparkSession, tmp_path: Path) -> None:
    log = lake_of(tmp_path / "lake", commits=1, last=900)
    end = log.end_offset
    gone = ApiMessageAndVersion(r.RemoveTopicRecord(topic_id=uuid_of(77)), 0)
    log.append([RecordBatch.of(end, log.epoch, 1_800_000_000_000, [gone])])
    with pytest.raises(ReplayError, match="REMOVE_TOPIC_RECORD") as fault:
        build_snapshot(spark, tmp_path / "lake")
    assert fault.value.offset == end
    with pytest.raises(PySparkException, match=r"KraftSourceError: .*REMOVE_TOPIC_RECORD") as shown:
        image_frame(spark, tmp_path / "lake").count()
    assert 'File "' not in str(shown.value), "no traceback of Python"


def test_an_image_that_no_records_can_hold_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    messages = [
        r.FeatureLevelRecord(name="metadata.version", feature_level=7),
        r.TopicRecord(name="foo", topic_id=uuid_of(5)),
        r.PartitionRecord(partition_id=0, topic_id=uuid_of(5), replicas=(1,), isr=(1,), leader=1, leader_epoch=0,
                          partition_epoch=0, directories=(uuid_of(9),)),
    ]  # fmt: skip
    records = [ApiMessageAndVersion(message, 1 if number == 2 else 0) for number, message in enumerate(messages)]
    log = MetadataLog.create(lake)
    log.append([RecordBatch.of(0, 1, 1_800_000_000_000, records)])
    with pytest.raises(UnwritableMetadataError, match="log directories"):
        build_snapshot(spark, lake)
    assert log.snapshots() == ()


def test_the_example_in_the_docs_runs(spark: SparkSession, tmp_path: Path) -> None:
    page = (SAMPLES.parent / "docs" / "spark-jobs.md").read_text("utf-8")
    section = page.partition("\n## Clusters of any size\n")[2].partition("\n## ")[0]
    (program,) = re.findall(r"```python\n(.*?)```", section, flags=re.DOTALL)
    log = lake_of(tmp_path / "lake", commits=1)
    exec(program.replace('"LAKE"', repr(str(tmp_path / "lake"))), {"spark": spark})
    assert [snapshot.end_offset for snapshot in log.snapshots()] == [LAST_OFFSET + 1]
    for name in at_least_one(PARTITION_SCHEMA.names):
        assert f"`{name}`" in section
