from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from kraftlake.api import open_source
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.kafka_files.directory import open_directory
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.snapshots.snapshot_rows import SnapshotFacts
from kraftlake.records.rows import LOG_SCHEMA
from kraftlake.records.serde import UnknownRecord
from kraftlake.runtime.errors import LakeError, UnknownRecordError, UsageError
from kraftlake.spark_jobs import StreamOptions, StreamResult, run_job
from kraftlake.tables.lake_table import LakeTable
from kraftlake.tables.local_changes.local_changes_table import LOCAL_CHANGES, SCHEMA
from kraftlake.tables.table_locks import hold_tables
from tests.replay.made_logs import data, no_op, topic
from tests.tables.sample_log import (
    LAST_OFFSET,
    SAMPLE,
    append_in,
    batches_between,
    image_without_spark,
    lake_of,
    sample_batches,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kraftlake.tables.catch_up.table_run import Progress

LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"
SNAPSHOT_BYTES = 60_000


@attrs.frozen
class Tables:
    """What a replay wrote, in an order of its own."""

    local_changes: list[dict[str, Any]]
    covers: int

    @classmethod
    def of(cls, lake: Path) -> Tables:
        table = DeltaTable(lake / "local_changes")
        order = [(name, "ascending") for name in ("offset", "broker", "topic", "partition", "change")]
        return cls(
            table.to_pyarrow_table().sort_by(order).to_pylist(),
            table.transaction_version(LOCAL_CHANGES.app_id),
        )


def replay(
    lake: Path, spark: SparkSession | None = None, *, on_progress: Progress | None = None, **options: Any
) -> StreamResult:
    given = StreamOptions(**options)
    return run_job(
        "replay", lake, spark=spark, options=given, snapshot_every_bytes=SNAPSHOT_BYTES, on_progress=on_progress
    )


@pytest.fixture(scope="module")
def lake_in_one_go(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("replay") / "lake"
    lake_of(path, commits=1)
    return path


@pytest.fixture(scope="module")
def result(lake_in_one_go: Path, spark: SparkSession) -> StreamResult:
    """The sample in one commit, replayed in one micro-batch."""
    return replay(lake_in_one_go, spark)


@pytest.fixture(scope="module")
def expected(lake_in_one_go: Path, result: StreamResult) -> Tables:
    assert result.micro_batches == 1
    return Tables.of(lake_in_one_go)


@pytest.mark.spark
def test_the_streams_last_image_is_the_one_replayed_without_spark(
    lake_in_one_go: Path, result: StreamResult, expected: Tables
) -> None:
    image = image_without_spark(lake_in_one_go)
    assert result.image == image
    assert (result.offset, result.base_offset) == (LAST_OFFSET, -1)
    assert (result.steps, result.executors, result.driver_batches) == (1, 1, 0)
    assert result.rows["local_changes"] == len(expected.local_changes) > 1000
    assert expected.covers == LAST_OFFSET


@pytest.mark.spark
def test_steps_end_with_snapshots_that_are_the_images_at_their_offsets(tmp_path: Path, spark: SparkSession) -> None:
    log = lake_of(tmp_path / "lake", commits=1, last=LAST_OFFSET if LONG else 2_500)
    done = replay(tmp_path / "lake", spark, max_records=1_000 if LONG else 800)
    assert len(done.snapshots) > (3 if LONG else 1)
    assert done.snapshots[-1] == log.end_offset
    source = open_source(tmp_path / "lake")
    for end_offset in done.snapshots:
        assert source.image(end_offset - 1, from_snapshot=True) == source.image(end_offset - 1, from_snapshot=False)
    assert {snapshot.end_offset for snapshot in MetadataLog.open(tmp_path / "lake").snapshots()} == {*done.snapshots}


@pytest.mark.spark
def test_a_run_with_nothing_new_writes_nothing(lake_in_one_go: Path, expected: Tables, spark: SparkSession) -> None:
    before = DeltaTable(lake_in_one_go / "local_changes").version()
    again = replay(lake_in_one_go, spark)
    assert (again.micro_batches, again.steps, again.snapshots, again.offset) == (0, 0, (), LAST_OFFSET)
    assert again.image == image_without_spark(lake_in_one_go)
    assert DeltaTable(lake_in_one_go / "local_changes").version() == before
    assert Tables.of(lake_in_one_go) == expected


def changed_partitions(rows: list[dict[str, Any]], *changes: str) -> set[str]:
    return {f"{row['topic']}-{row['partition']}" for row in rows if row["change"] in changes}


@pytest.mark.spark
def test_the_table_is_described_and_readable_by_all(lake_in_one_go: Path, expected: Tables) -> None:
    table = DeltaTable(lake_in_one_go / "local_changes")
    assert table.protocol().min_reader_version == 1
    assert table.protocol().min_writer_version == 2
    assert table.metadata().description == "What each metadata delta means to each broker."
    assert table.metadata().configuration == {
        "delta.appendOnly": "true",
        "delta.dataSkippingStatsColumns": (
            "offset,epoch,timestamp,broker,partition,leader,leader_epoch,partition_epoch"
        ),
        "kraftlake.log": DeltaTable(lake_in_one_go / "log").metadata().id,
    }
    comments = {field.name: field.metadata.get("comment") for field in table.schema().fields}
    assert comments == {field.name: comment for field, comment in LOCAL_CHANGES.table_columns}
    rows = table.to_pyarrow_table()
    assert rows.select(SCHEMA.names).cast(SCHEMA).num_rows == len(expected.local_changes)


@pytest.mark.spark
def test_micro_batches_of_any_size_give_the_same_tables(tmp_path: Path, expected: Tables, spark: SparkSession) -> None:
    lake_of(tmp_path / "lake", commits=4)
    progress: list[tuple[int, int]] = []
    done = replay(tmp_path / "lake", spark, max_records=1_500, on_progress=lambda *step: progress.append(step))
    assert done.micro_batches == 4
    assert len(progress) == done.steps == 4
    assert progress[-1] == (LAST_OFFSET, LAST_OFFSET + 1)
    assert done.image == image_without_spark(tmp_path / "lake")
    assert Tables.of(tmp_path / "lake") == expected


@pytest.mark.spark
def test_a_lake_that_is_compacted_and_vacuumed_and_a_lost_checkpoint_give_the_same_tables(
    tmp_path: Path, expected: Tables, spark: SparkSession
) -> None:
    lake = tmp_path / "lake"
    log = MetadataLog.create(lake)
    first, second, third = batches_between(0, 1500), batches_between(1501, 3500), batches_between(3501, LAST_OFFSET)
    append_in(log, 2, [b for b in sample_batches() if b.last_offset <= first[-1].last_offset])
    rest = sample_batches()[len(first) :]
    one = replay(lake, spark)
    append_in(log, 2, rest[: len(second)])
    compact_and_vacuum(lake)
    log.refresh()
    two = replay(lake, spark, max_records=3_000)
    assert (two.micro_batches, two.base_offset) == (1, one.offset)
    assert two.image == image_without_spark(lake)
    append_in(log, 2, rest[len(second) :])
    assert third
    shutil.rmtree(lake / "_spark")
    three = replay(lake, spark, max_records=3_000)
    assert (three.base_offset, three.offset) == (two.offset, LAST_OFFSET)
    tables = Tables.of(lake)
    assert three.image == image_without_spark(lake)
    assert tables.local_changes == expected.local_changes
    assert tables.covers == expected.covers


def compact_and_vacuum(lake: Path) -> None:
    """Leave the log without the files that its commits name."""
    log = DeltaTable(lake / "log")
    log.optimize.compact()
    log.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    assert {Path(uri).name for uri in log.file_uris()} == {file.name for file in (lake / "log").glob("*.parquet")}


@pytest.mark.spark
@pytest.mark.skipif(not LONG, reason="KRAFTLAKE_TESTS=long: a JVM of its own; in the quick profile crashes are random")
@pytest.mark.parametrize(("stage", "number"), [("before", 2), ("after", 3)])
def test_a_stream_killed_in_the_middle_goes_on_to_the_same_tables(
    tmp_path: Path, expected: Tables, spark: SparkSession, stage: str, number: int
) -> None:
    lake = tmp_path / "lake"
    lake_of(lake, commits=4)
    command = [sys.executable, "-m", "tests.spark_jobs.doomed_replay", str(lake), stage, str(number)]
    command.append(str(SNAPSHOT_BYTES))
    child = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, timeout=300, check=False)
    assert child.returncode == -signal.SIGKILL, child.stderr.decode()
    covered = LakeTable(LOCAL_CHANGES, lake).last_offset()
    assert covered is not None
    assert 0 < covered < LAST_OFFSET
    done = replay(lake, spark, max_records=1_500)
    assert done.base_offset == covered
    assert done.image == image_without_spark(lake)
    assert Tables.of(lake) == expected


@pytest.mark.spark
def test_where_the_log_starts_above_0_it_begins_with_the_oldest_snapshot(tmp_path: Path, spark: SparkSession) -> None:
    directory = open_directory(SAMPLE)
    (snapshot,) = (s for s in directory.snapshots if s.end_offset == 3038)
    log = MetadataLog.create(tmp_path / "lake", start_offset=2027)
    log.add_snapshot(
        SnapshotFacts(
            end_offset=3038, epoch=snapshot.epoch, last_contained_log_timestamp=snapshot.last_contained_log_timestamp
        ),
        snapshot.batches(),
    )
    append_in(log, 2, batches_between(2027, LAST_OFFSET))
    done = replay(tmp_path / "lake", spark)
    whole = open_source(SAMPLE).image(LAST_OFFSET, from_snapshot=False)
    assert done.image == whole
    rows = Tables.of(tmp_path / "lake").local_changes
    assert rows[0]["offset"] == 3037
    first = [row for row in rows if row["offset"] == 3037 and row["broker"] == 1]
    at_snapshot = open_source(SAMPLE).image(3037)
    assert changed_partitions(first, "leader_elected", "follower") == hosted(at_snapshot, 1)


def hosted(image: MetadataImage, broker: int) -> set[str]:
    return {
        f"{name}-{number}"
        for name, topic_image in image.topics.topics_by_name().items()
        for number, partition in topic_image.partitions.items()
        if broker in partition.replicas
    }


@pytest.mark.spark
def test_an_interval_trigger_gives_the_same_tables(tmp_path: Path, expected: Tables, spark: SparkSession) -> None:
    lake_of(tmp_path / "lake", commits=2)
    done = replay(tmp_path / "lake", spark, trigger="50 milliseconds", max_records=3_000, until_offset=LAST_OFFSET)
    assert done.offset == LAST_OFFSET
    assert Tables.of(tmp_path / "lake") == expected


@pytest.mark.spark
def test_a_record_that_cannot_be_replayed_stops_the_stream_with_its_offset(tmp_path: Path, spark: SparkSession) -> None:
    log = MetadataLog.create(tmp_path / "lake")
    log.append([data(0, topic(1)), no_op(1)])
    log.append([data(2, UnknownRecord(99, 3, b"\x01\x63\x03rest"))])
    with pytest.raises(UnknownRecordError, match=r"^offset 2\b.*record type 99"):
        replay(tmp_path / "lake", spark, max_records=2)
    assert LakeTable(LOCAL_CHANGES, tmp_path / "lake").last_offset() == 1


@pytest.mark.spark
def test_an_image_without_metadata_version_has_no_snapshot_and_says_why(tmp_path: Path, spark: SparkSession) -> None:
    log = MetadataLog.create(tmp_path / "lake")
    log.append([data(0, topic(1)), no_op(1)])
    done = replay(tmp_path / "lake", spark)
    assert done.snapshots == ()
    assert done.unwritable is not None
    assert "metadata.version" in done.unwritable


@pytest.mark.spark
def test_an_empty_lake_is_replayed_to_nothing(tmp_path: Path, spark: SparkSession) -> None:
    MetadataLog.create(tmp_path / "lake")
    done = replay(tmp_path / "lake", spark)
    assert (done.offset, done.micro_batches, done.snapshots) == (-1, 0, ())
    assert done.image == MetadataImage.EMPTY


@pytest.mark.spark
@pytest.mark.skipif(not LONG, reason="KRAFTLAKE_TESTS=long: the quick run has a smaller log in test_reading_the_log.py")
def test_spark_and_delta_rs_and_our_reader_read_the_same_log(tmp_path: Path, spark: SparkSession) -> None:
    lake = tmp_path / "lake"
    log = lake_of(lake, commits=3)
    for compacted in (False, True):
        if compacted:
            DeltaTable(lake / "log").optimize.compact()
            log.refresh()
        ours = log.rows()
        by_spark = spark.read.format("delta").load(str(lake / "log")).toArrow()
        by_delta_rs = DeltaTable(lake / "log").to_pyarrow_table()
        assert ours.num_rows == LAST_OFFSET + 1
        for other in (by_spark, by_delta_rs):
            assert in_order(other).equals(ours)


def in_order(rows: pa.Table) -> pa.Table:
    return rows.select(LOG_SCHEMA.names).cast(LOG_SCHEMA).sort_by("offset")


def test_only_one_replay_runs_on_a_lake(tmp_path: Path) -> None:
    lake_of(tmp_path / "lake", commits=1, last=10)
    with (
        hold_tables(tmp_path / "lake", ["local_changes"]),
        pytest.raises(LakeError, match="another run writes local_ch"),
    ):
        replay(tmp_path / "lake")


@pytest.mark.parametrize("trigger", ["sometimes", "5", "5 lightyears", "continuous"])
def test_a_trigger_that_makes_no_sense_is_refused(tmp_path: Path, trigger: str) -> None:
    with pytest.raises(UsageError, match=f'an interval such as "2 seconds", not {trigger!r}'):
        replay(tmp_path / "lake", trigger=trigger)


@pytest.mark.spark
def test_a_run_with_nothing_new_starts_no_jvm(
    lake_in_one_go: Path, expected: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_jvm(*_: object) -> None:
        raise AssertionError("a JVM is started")

    monkeypatch.setattr("kraftlake.spark_jobs.session.spark_session", no_jvm)
    assert replay(lake_in_one_go).offset == expected.covers


def test_without_a_lake_it_says_so_before_a_jvm_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    with pytest.raises(LakeError, match="There is no lake at"):
        replay(tmp_path / "lake")
    assert not (tmp_path / "lake").exists()
