"""A backlog that executors make by shards: its tables are those of one process, wherever it stops and goes on."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from kraftlake.metadata_log.delta_table.delta_log import read_table
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.snapshots.snapshot_rows import SnapshotFacts
from kraftlake.records import metadata_records as r
from kraftlake.replay.loader.fold import image_at
from kraftlake.replay.reading.open_reader import LakeReader
from kraftlake.runtime.errors import LakeError, OffsetError, ReplayError
from kraftlake.spark_jobs import shard_run
from kraftlake.spark_jobs.shard_run import TableSteps, run_step
from kraftlake.spark_jobs.stream_steps import ExecutorStep
from kraftlake.tables.catch_up.covered import covered_by
from kraftlake.tables.catch_up.table_run import unlocked_run
from kraftlake.tables.catch_up.updating import update_tables, writers_of
from kraftlake.tables.jobs import ALL
from kraftlake.tables.shards.results import Results
from kraftlake.tables.shards.shard_plan import ShardPlan
from kraftlake.tables.shards.shard_task import ShardTask
from kraftlake.tables.table_locks import JOBS_FOLDER
from tests.at_least_one import at_least_one
from tests.replay.made_logs import begin, data, end, metadata_version, partition, topic, uuid_of
from tests.tables.sample_log import LAST_OFFSET, append_in, batches_between, lake_of, trim_to_a_snapshot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

Rows = dict[str, Counter[str]]


@pytest.fixture(autouse=True)
def _in_many_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The logs here are short: one task alone would make their steps."""
    monkeypatch.setattr(shard_run, "SHORT_LOG", 0)


def advance(spark: SparkSession, lake: Path, names: Sequence[str], last: int) -> list[ExecutorStep]:
    return [*TableSteps(lake=lake, names=names)(spark, last)]


def rows_of(lake: Path) -> Rows:
    """The rows of all tables, each as often as it is there."""
    return {name: rows_in(lake, name) for name in ALL.tables}


def rows_in(lake: Path, name: str) -> Counter[str]:
    files = [pq.read_table(lake / name / file.path) for file in read_table(lake / name).files.values()]
    return Counter(repr(row) for table in files for row in table.to_pylist())


def made_in_process(lake: Path, log: MetadataLog) -> Rows:
    """The rows that one process makes of a log, in a lake of its own."""
    other = MetadataLog.create(lake, start_offset=log.start_offset)
    other.append([*log.batches()])
    for snapshot in log.snapshots():
        facts = SnapshotFacts(
            end_offset=snapshot.end_offset,
            epoch=snapshot.epoch,
            last_contained_log_timestamp=snapshot.last_contained_log_timestamp,
        )
        other.add_snapshot(facts, [*snapshot.batches()])
    update_tables(lake, ALL.tables)
    return rows_of(lake)


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    lake = tmp_path_factory.mktemp("in process") / "lake"
    lake_of(lake, commits=1)
    update_tables(lake, ALL.tables)
    return rows_of(lake)


def test_in_several_runs_by_both_engines_it_makes_the_tables_of_one(
    spark: SparkSession, tmp_path: Path, expected: Rows
) -> None:
    """Some tables are ahead, made in process; states are lost, and made again of a snapshot, the log and the table."""
    lake = tmp_path / "lake"
    batches = batches_between(0, LAST_OFFSET)
    log = MetadataLog.create(lake)
    append_in(log, 2, batches[:400])
    update_tables(lake, ["events", "topic_history", "partition_history"])
    log.append(batches[400:800])
    at = list[int]()

    def run(last: int, **options: int) -> list[ExecutorStep]:
        steps = [*TableSteps(lake=lake, names=ALL.tables, **options)(spark, last)]
        at.extend(step.offset for step in steps)
        return steps

    made = [offset for step in run(batches[799].last_offset, snapshot_every_bytes=1) for offset in step.snapshots]
    assert at == [batches[399].last_offset, batches[799].last_offset]
    assert made == [batches[399].last_offset + 1, batches[799].last_offset + 1]
    for snapshot in at_least_one(log.snapshots()):
        by_log = image_at(LakeReader(log), snapshot.end_offset - 1, from_snapshot=False).image
        assert image_at(LakeReader(log), snapshot.end_offset - 1).image == by_log
    shutil.rmtree(lake / JOBS_FOLDER)
    append_in(log, 3, batches[800:])
    run(batches[900].last_offset)
    kept = lake / JOBS_FOLDER / "state" / "local_changes"
    states = {path.name for path in kept.iterdir()}
    rows = sum(step.rows["local_changes"] for step in run(LAST_OFFSET, step_records=600))
    assert at[2] == batches[900].last_offset
    assert len(at) > 4
    assert states & {path.name for path in kept.iterdir()} == {"manifest.json"}
    assert rows_of(lake) == expected
    assert rows > 0
    assert run(LAST_OFFSET) == [], "there is nothing to do"
    update_tables(lake, ALL.tables)
    assert rows_of(lake) == expected


def test_a_log_that_starts_above_0_begins_with_its_oldest_snapshot(spark: SparkSession, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    log = MetadataLog.create(lake, start_offset=2)
    held = [data(2, metadata_version(), *(m for n in range(5) for m in (topic(n), partition(n))))]
    log.append(held)
    log.add_snapshot(SnapshotFacts(end_offset=13, epoch=1, last_contained_log_timestamp=0), held)
    advance(spark, lake, ALL.tables, 12)
    log.append([data(13, partition(0, replicas=(1, 3))), data(14, begin(), topic(9), partition(9))])
    advance(spark, lake, ALL.tables, 16)
    log.append([data(17, partition(9, partition_id=1), end()), data(19, r.RemoveTopicRecord(topic_id=uuid_of(3)))])
    advance(spark, lake, ALL.tables, 19)
    assert rows_of(lake) == made_in_process(tmp_path / "other", log)


def test_tables_begin_with_a_snapshot_that_ends_behind_where_a_run_is_to_end(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake, batches = tmp_path / "lake", batches_between(0, LAST_OFFSET)
    log = MetadataLog.create(lake)
    append_in(log, 6, batches[:800])
    end, steps = batches[600].last_offset + 1, list[ExecutorStep]()
    trim_to_a_snapshot(log, end)
    for last in (log.batches_end(log.start_offset, 1) - 1, log.batches_end(log.start_offset + 100, 1) - 1):
        steps += advance(spark, lake, ALL.tables, last)
        assert [(step.offset, step.end) for step in steps] == [(end - 1, end)]
        assert covered_by(LakeReader(log), writers_of(ALL.tables)) == dict.fromkeys(ALL.tables, end - 1)
    advance(spark, lake, ALL.tables, log.end_offset - 1)
    assert rows_of(lake) == made_in_process(tmp_path / "other", log)


def test_a_history_keeps_its_begins_when_another_table_begins_beside_it_on_a_trimmed_log(
    spark: SparkSession, tmp_path: Path, expected: Rows
) -> None:
    lake, names = tmp_path / "lake", ["events", "partition_history"]
    batches = batches_between(0, LAST_OFFSET)
    log = MetadataLog.create(lake)
    append_in(log, 6, batches[:800])
    update_tables(lake, ["partition_history"])
    log.refresh()
    trim_to_a_snapshot(log, batches[600].last_offset + 1)
    assert log.start_offset > 0
    advance(spark, lake, names, log.end_offset - 1)
    append_in(log, 1, batches[800:])
    advance(spark, lake, names, LAST_OFFSET)
    assert rows_in(lake, "partition_history") == expected["partition_history"]


@pytest.mark.parametrize("names", [["events"], ["partition_history", "topic_history"]], ids=["events", "histories"])
def test_a_run_that_another_overtakes_in_its_first_step_is_refused(
    spark: SparkSession, tmp_path: Path, expected: Rows, monkeypatch: pytest.MonkeyPatch, names: list[str]
) -> None:
    """No lock separates the two: they are on different machines."""
    lake = tmp_path / "lake"
    batches = batches_between(0, LAST_OFFSET)
    log = MetadataLog.create(lake)
    log.append(batches[:400])
    update_tables(lake, names)
    log.refresh()
    append_in(log, 2, batches[400:])

    def overtaken(spark: SparkSession, plan: ShardPlan, task: ShardTask) -> Results:
        done = run_step(spark, plan, task)
        with unlocked_run("other", lake, writers_of(names)) as other:
            other.begin()
            other.catch_up(batches[699].last_offset)
            other.finish()
        return done

    monkeypatch.setattr(shard_run, "run_step", overtaken)
    with pytest.raises(
        LakeError, match=rf"another run writes .*{names[0]}, it is at offset {batches[699].last_offset}"
    ):
        advance(spark, lake, names, LAST_OFFSET)
    monkeypatch.undo()
    advance(spark, lake, names, LAST_OFFSET)
    assert {name: rows_in(lake, name) for name in names} == {name: expected[name] for name in names}


def test_a_record_that_can_not_be_replayed_stops_it_with_its_offset(spark: SparkSession, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    log = lake_of(lake, commits=1, last=500)
    last = log.end_offset - 1
    wrong = r.PartitionChangeRecord(partition_id=9999, topic_id=uuid_of(1), leader=1)
    log.append([data(last + 1, topic(1), wrong, epoch=log.epoch)])
    advance(spark, lake, ["events"], last)
    before = read_table(lake / "events").version
    with pytest.raises(ReplayError, match=f"offset {last + 2}, PARTITION_CHANGE_RECORD") as fault:
        advance(spark, lake, ["events"], last + 2)
    assert fault.value.offset == last + 2
    assert read_table(lake / "events").version == before


def test_a_table_past_which_the_log_was_trimmed_is_named(spark: SparkSession, tmp_path: Path) -> None:
    log = lake_of(tmp_path / "lake", commits=1, last=500)
    update_tables(tmp_path / "lake", ["events"])
    short = MetadataLog.create(tmp_path / "short", start_offset=log.end_offset + 5)
    held = [data(short.start_offset, metadata_version(), topic(1))]
    short.append(held)
    short.add_snapshot(SnapshotFacts(end_offset=short.end_offset, epoch=1, last_contained_log_timestamp=0), held)
    shutil.copytree(tmp_path / "lake" / "events", tmp_path / "short" / "events")
    with pytest.raises(OffsetError, match=rf"events/ of .* ends at offset {log.end_offset - 1}, and the log that"):
        advance(spark, tmp_path / "short", ALL.tables, short.end_offset - 1)


def test_tables_that_do_not_fit_the_log_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    lake_of(tmp_path / "lake", commits=1, last=500)
    last = MetadataLog.open(tmp_path / "lake").end_offset - 1
    advance(spark, tmp_path / "lake", ["events"], last)
    log = MetadataLog.create(tmp_path / "short")
    log.append(batches_between(0, 100))
    shutil.copytree(tmp_path / "lake" / "events", tmp_path / "short" / "events")
    with pytest.raises(LakeError, match=rf"events/ of .* holds offsets up to {last}, but the log ends before"):
        advance(spark, tmp_path / "short", ["events"], 99)
