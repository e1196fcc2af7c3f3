from __future__ import annotations

import logging
import os
import shutil
import tempfile
import threading
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import structlog
from deltalake import DeltaTable

from kraftlake.metadata_log.delta_table.delta_log import read_table
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.maintenance.trimming import set_properties, trim
from kraftlake.metadata_log.storage.disk import Disk
from kraftlake.runtime.errors import EnvironmentFaultError, LakeError, OffsetError, UsageError
from kraftlake.spark_jobs import ReplayListener, ReplayProgress, StreamOptions, StreamResult, run_job, table_stream
from kraftlake.spark_jobs.stream_steps import StreamSteps
from kraftlake.tables.catch_up.updating import update_by_job, update_tables
from kraftlake.tables.jobs import ALL, JOBS
from tests.at_least_one import at_least_one
from tests.cli.running import fault, run_json
from tests.tables.sample_log import LAST_OFFSET, append_in, batches_between, lake_of, sample_batches, trim_to_a_snapshot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

Tables = dict[str, list[dict[str, Any]]]


LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"
APPENDED = {"local_changes", "events", "cluster_metrics", "records"}
"""The tables to which rows are appended and nothing else is done."""
TABLES = sorted({table for job in JOBS.values() for table in job.tables})


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """All tables as they are made where there is nothing to stream: no Spark has a part in it."""
    lake = tmp_path_factory.mktemp("expected") / "lake"
    lake_of(lake, commits=2)
    update_tables(lake, [*ALL.tables, "records"])
    return tables_of(lake, tuple(TABLES))


def tables_of(lake: Path, names: tuple[str, ...] = ALL.tables) -> Tables:
    """The rows of tables, in an order of their own: those of one offset may be read in any."""
    return {name: sorted(DeltaTable(lake / name).to_pyarrow_table().to_pylist(), key=str) for name in names}


def of_all(expected: Tables) -> Tables:
    return {name: expected[name] for name in ALL.tables}


def run(lake: Path, spark: SparkSession, name: str = "all", **options: Any) -> StreamResult:
    return run_job(name, lake, spark=spark, options=StreamOptions(**options))


def test_every_job_keeps_its_tables_and_no_other(tmp_path: Path, expected: Tables, spark: SparkSession) -> None:
    for job in at_least_one({*JOBS.values()} - {ALL} if LONG else (JOBS["history"], JOBS["metrics"])):
        lake = tmp_path / job.name
        lake_of(lake, commits=2)
        done = run(lake, spark, job.name, max_records=3_000)
        assert (done.offset, done.base_offset, done.micro_batches) == (LAST_OFFSET, -1, 2)
        assert (done.steps, done.executors, done.driver_batches) == (2, 1, 0)
        assert tables_of(lake, job.tables) == {name: expected[name] for name in job.tables}
        for name in APPENDED & {*job.tables}:
            assert done.rows[name] == len(expected[name])
        made = {path.name for path in lake.iterdir()} - {"_spark", "log", "snapshots", "cache"}
        assert made == set(job.tables)


def test_what_a_job_writes_into_a_lake_is_for_its_user_alone_whatever_the_umask_is(
    tmp_path: Path, spark: SparkSession
) -> None:
    lake = tmp_path / "lake"
    before = os.umask(0o022)
    try:
        lake_of(lake, commits=1, last=200)
        run(lake, spark)
    finally:
        os.umask(before)
    assert [path for path in lake.rglob("*") if path.stat().st_mode & 0o077] == []
    assert spark.conf.get("fs.permissions.umask-mode", None) is None


@pytest.mark.skipif(not LONG, reason="KRAFTLAKE_TESTS=long: the quick run has such tables in test_shard_run.py")
def test_tables_that_are_apart_each_go_on_where_they_are(tmp_path: Path, expected: Tables, spark: SparkSession) -> None:
    lake = tmp_path / "lake"
    parts = batches_between(0, 1500), batches_between(1501, 3500), batches_between(3501, LAST_OFFSET)
    whole = list(sample_batches())
    cuts = [len(parts[0]), len(parts[0]) + len(parts[1])]
    log = MetadataLog.create(lake)
    append_in(log, 2, whole[: cuts[0]])
    run(lake, spark, "replay", max_records=3_000)
    append_in(log, 2, whole[cuts[0] : cuts[1]])
    run(lake, spark, "events", max_records=3_000)
    append_in(log, 2, whole[cuts[1] :])
    done = run(lake, spark, max_records=3_000)
    assert done.base_offset == -1, "metrics has nothing yet"
    assert done.rows["events"] < len(expected["events"])
    assert tables_of(lake) == of_all(expected)
    again = run(lake, spark)
    assert (again.base_offset, again.steps, sum(again.rows.values())) == (LAST_OFFSET, 0, 0)


def test_a_micro_batch_is_bounded_by_records(tmp_path: Path, spark: SparkSession) -> None:
    lake_of(tmp_path / "lake", commits=1, last=800)
    assert run(tmp_path / "lake", spark, "metrics", max_records=300).micro_batches == 3


@pytest.mark.skipif(not LONG, reason="KRAFTLAKE_TESTS=long: the quick run adds it under a stream, see below")
def test_a_column_that_a_later_version_adds_stops_nothing(
    tmp_path: Path, expected: Tables, spark: SparkSession
) -> None:
    lake = tmp_path / "lake"
    whole = list(sample_batches())
    log = MetadataLog.create(lake)
    append_in(log, 2, whole[:200])
    run(lake, spark, max_records=3_000)
    append_in(log, 1, whole[200:300])
    spark.sql(f"ALTER TABLE delta.`{lake / 'log'}` ADD COLUMN since_then STRING")
    log.refresh()
    append_in(log, 2, whole[300:])
    done = run(lake, spark, max_records=3_000)
    assert done.offset == LAST_OFFSET
    assert tables_of(lake) == of_all(expected)


def test_a_stream_lives_through_what_upkeep_and_others_do_to_the_log_under_it(
    tmp_path: Path, expected: Tables, spark: SparkSession
) -> None:
    lake = tmp_path / "lake"
    whole = list(sample_batches())
    log = MetadataLog.create(lake)
    append_in(log, 1, whole[:100])
    offsets: list[int] = []
    progressed = threading.Condition()

    def on_progress(offset: int, _: int) -> None:
        with progressed:
            offsets.append(offset)
            progressed.notify_all()

    results: list[StreamResult] = []
    stream = threading.Thread(
        target=lambda: results.append(
            run_job(
                "all",
                lake,
                spark=spark,
                options=StreamOptions(trigger="100 milliseconds", until_offset=LAST_OFFSET, max_records=3_000),
                on_progress=on_progress,
                snapshot_every_bytes=60_000,
            )
        )
    )
    stream.start()
    cuts = [100, 200, 300, 400, 500, len(whole)]
    for number, (start, end) in enumerate(pairwise(cuts)):
        with progressed:
            reached = whole[start].base_offset - 1
            assert progressed.wait_for(lambda due=reached: offsets[-1:] >= [due] or not stream.is_alive(), timeout=120)
        assert stream.is_alive()
        log.refresh()
        match number:
            case 1:
                DeltaTable(lake / "log").optimize.compact()
            case 2:
                spark.sql(f"ALTER TABLE delta.`{lake / 'log'}` ADD COLUMN since_then STRING")
            case 3:
                set_properties(Disk(), read_table(lake / "log"), {"kraftlake.max_stream_lag_ms": "0"})
            case 4:
                end_offset = max(snapshot.end_offset for snapshot in MetadataLog.open(lake).snapshots())
                trim(lake / "log", Disk(), end_offset, [end_offset])
        log.refresh()
        log.append(whole[start:end])
    stream.join(timeout=120)
    assert not stream.is_alive()
    assert results[0].offset == LAST_OFFSET
    assert tables_of(lake) == of_all(expected)


def trimmed_lake(lake: Path, job: str) -> int:
    """A lake whose tables of `job` cover its first half, and whose log starts behind that; returns where."""
    log = lake_of(lake, commits=3, last=3000)
    update_by_job(job, lake)
    append_in(log, 2, list(sample_batches())[len(batches_between(0, 3000)) :])
    update_by_job("replay", lake)
    set_properties(Disk(), read_table(lake / "log"), {"kraftlake.max_stream_lag_ms": "0"})
    ends = [snapshot.end_offset for snapshot in MetadataLog.open(lake).snapshots()]
    trim(lake / "log", Disk(), max(ends), ends)
    return MetadataLog.open(lake).start_offset


def test_a_table_past_which_the_log_was_trimmed_is_named_with_the_way_out(tmp_path: Path, spark: SparkSession) -> None:
    lake = tmp_path / "lake"
    start = trimmed_lake(lake, "events")
    assert start > 3000
    with pytest.raises(OffsetError, match=r"events/ of .* ends at offset \d+, .* trimmed: delete the folder events/"):
        run(lake, spark, "events")
    shutil.rmtree(lake / "events")
    done = run(lake, spark, "all")
    assert done.offset == LAST_OFFSET
    assert tables_of(lake, ("events",)) == {"events": []}


def test_tables_begin_with_the_snapshot_of_a_trimmed_log_whatever_a_micro_batch_takes(
    tmp_path: Path, spark: SparkSession
) -> None:
    lake, other, batches = tmp_path / "lake", tmp_path / "other", batches_between(0, LAST_OFFSET)[:500]
    log = MetadataLog.create(lake)
    append_in(log, 6, batches)
    trim_to_a_snapshot(log, batches[400].last_offset + 1)
    shutil.copytree(lake, other)
    update_tables(other, ALL.tables)
    until = run(lake, spark, trigger="10 milliseconds", max_records=10, until_offset=log.start_offset)
    assert until.offset == until.image.provenance.offset == batches[400].last_offset
    done = run(lake, spark, max_records=300)
    assert (done.base_offset, done.offset) == (until.offset, batches[-1].last_offset)
    assert tables_of(lake) == tables_of(other)


def test_a_run_that_has_its_last_offset_takes_no_micro_batch_more_until_it_is_stopped(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_stream, "_POLL_SECONDS", 10 if LONG else 3)
    lake_of(tmp_path / "lake", commits=1, last=1000)
    done = run(tmp_path / "lake", spark, "metrics", trigger="10 milliseconds", max_records=10, until_offset=5)
    assert done.micro_batches == 1
    assert 5 <= done.offset < 50


def test_a_run_begins_where_its_tables_are_whatever_checkpoints_a_session_keeps(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, kept, temporary = tmp_path / "lake", tmp_path / "kept", tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    lake_of(lake, commits=1, last=1000)
    setting = "spark.sql.streaming.checkpointLocation"
    spark.conf.set(setting, str(kept))
    try:
        first = run(lake, spark, "events")
        shutil.rmtree(lake / "events")
        again = run(lake, spark, "events")
    finally:
        spark.conf.unset(setting)
    assert again.rows == first.rows
    assert again.rows["events"] == len(tables_of(lake, ("events",))["events"]) > 0
    assert not kept.exists()
    assert not any(temporary.iterdir())


def test_a_stream_that_ends_before_it_has_all_that_was_there_is_no_success(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake_of(tmp_path / "lake", commits=1, last=100)
    monkeypatch.setattr(StreamSteps, "take", lambda *_: None)
    with pytest.raises(EnvironmentFaultError, match=r"Spark ended the stream over .* at offset -1 of 100: run again"):
        run(tmp_path / "lake", spark, "events")


def test_progress_reaches_listeners_and_the_log(tmp_path: Path, spark: SparkSession) -> None:
    lake_of(tmp_path / "lake", commits=3)
    heard: list[ReplayProgress] = []
    enough = threading.Event()

    def hear(progress: ReplayProgress) -> None:
        heard.append(progress)
        if progress.offset == LAST_OFFSET:
            enough.set()

    anybody: list[ReplayProgress] = []
    other = ReplayListener(anybody.append)
    spark.streams.addListener(other)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.INFO))
    with structlog.testing.capture_logs() as logged:
        options = StreamOptions(max_records=2_000)
        done = run_job("metrics", tmp_path / "lake", spark=spark, options=options, listener=ReplayListener(hear))
    spark.streams.removeListener(other)
    assert enough.wait(60)
    assert [progress.query for progress in heard] == [f"kraftlake-metrics {tmp_path / 'lake'}"] * 3
    assert sum(progress.records for progress in heard) == LAST_OFFSET + 1
    assert [progress.lag for progress in heard] == [LAST_OFFSET - progress.offset for progress in heard]
    assert heard[-1].partitions == done.image.topics.partition_count
    assert heard[-1].records_outstanding == 0
    assert all(progress.records_per_second > 0 for progress in heard)
    assert anybody[-1].offset == LAST_OFFSET
    assert anybody[-1].lag is None
    steps = [entry for entry in logged if entry["event"] == "step"]
    assert [entry["offset"] for entry in steps] == [progress.offset for progress in heard]
    assert sum(entry["records"] for entry in steps) == LAST_OFFSET + 1


def test_as_a_command_it_prints_one_object(tmp_path: Path) -> None:
    lake_of(tmp_path / "lake", commits=1, last=100)
    printed = run_json("spark", "events", tmp_path / "lake")
    assert (printed["from"], printed["offset"]) == (-1, 100)
    assert printed["rows"]["events"] > 0
    assert "There is no lake at" in fault("spark", "events", tmp_path / "nowhere")
    assert fault("spark", "events", tmp_path / "lake", "--trigger", "often", code=2).startswith("a trigger is")


def test_as_a_command_snapshots_have_an_offset_and_streams_have_not(tmp_path: Path) -> None:
    lake_of(tmp_path / "lake", commits=1, last=100)
    lake = str(tmp_path / "lake")
    assert run_job("replay", lake, options=StreamOptions()).snapshots == (101,)
    printed = run_json("spark", "snapshot", lake, "--at-offset", "100")
    assert (printed["offset"], printed["written"]) == (100, False)
    assert "There is no lake at" in fault("spark", "snapshot", tmp_path / "nowhere")
    for arguments, complaint in (
        (["snapshot", lake, "--trigger", "2 seconds"], "--trigger"),
        (["snapshot", lake, "--max-records-per-trigger", "9"], "--max-records-per-trigger"),
        (["events", lake, "--at-offset", "5"], "--at-offset"),
    ):
        assert complaint in fault("spark", *arguments, code=2)


def test_an_unknown_job_and_options_without_sense_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no job 'sing'"):
        run_job("sing", tmp_path)
    with pytest.raises(UsageError, match="0 is not a number of records for a micro-batch: the lowest is 1"):
        run_job("events", tmp_path, options=StreamOptions(max_records=0))


def test_a_table_made_from_another_log_is_refused(tmp_path: Path) -> None:
    lake_of(tmp_path / "one", commits=1, last=100)
    lake_of(tmp_path / "two", commits=1, last=100)
    assert run_job("metrics", tmp_path / "one").offset == 100
    shutil.copytree(tmp_path / "one" / "cluster_metrics", tmp_path / "two" / "cluster_metrics")
    with pytest.raises(LakeError, match="cluster_metrics was made from another log"):
        run_job("metrics", tmp_path / "two")
