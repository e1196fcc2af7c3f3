"""Tables are brought up to date in this process; whatever the steps, their rows are those of one run."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.maintenance.trimming import declare_stream_lag, trim
from kraftlake.metadata_log.storage.disk import Disk
from kraftlake.replay.imports.kept_snapshot import facts_of
from kraftlake.replay.loader.fold import image_at
from kraftlake.replay.loader.quorum_state import QuorumState
from kraftlake.replay.queries.source import LogSource
from kraftlake.replay.reading.open_reader import LakeReader
from kraftlake.replay.reading.replay_base import usable_snapshots
from kraftlake.runtime.errors import LakeError, UsageError
from kraftlake.tables.catch_up.snapshot_publisher import SnapshotPublisher
from kraftlake.tables.catch_up.table_run import RunResult
from kraftlake.tables.catch_up.updating import update_by_job, update_tables, writers_of
from kraftlake.tables.jobs import ALL, JOBS, RECORDS, Job
from kraftlake.tables.table_locks import hold_tables
from tests.tables.sample_log import LAST_OFFSET, SAMPLE, append_in, batches_between, image_without_spark, lake_of

Tables = dict[str, list[dict[str, Any]]]
LAST = LAST_OFFSET if os.environ.get("KRAFTLAKE_TESTS") == "long" else batches_between(0, 3_000)[-1].last_offset
TABLES = tuple(dict.fromkeys(table for job in JOBS.values() for table in job.tables))


def tables_of(lake: Path, names: tuple[str, ...] = TABLES) -> Tables:
    """The rows of tables, sorted by their text."""
    return {name: sorted(DeltaTable(lake / name).to_pyarrow_table().to_pylist(), key=str) for name in names}


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """All tables of the sample, made in one run."""
    lake = tmp_path_factory.mktemp("expected") / "lake"
    lake_of(lake, commits=2, last=LAST)
    done = update_tables(lake, TABLES)
    assert (done.base_offset, done.offset, done.snapshots) == (-1, LAST, ())
    assert done.image == image_without_spark(lake)
    return tables_of(lake)


@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS)
def test_a_job_writes_its_tables_and_no_others(tmp_path: Path, expected: Tables, job: Job) -> None:
    lake_of(tmp_path / "lake", commits=2, last=LAST)
    done = update_by_job(job.name, tmp_path / "lake")
    assert (done.offset, {*done.rows}) == (LAST, {*job.tables})
    assert tables_of(tmp_path / "lake", job.tables) == {name: expected[name] for name in job.tables}
    assert done.snapshots == ((LAST + 1,) if job.snapshots else ())
    assert not {path.name for path in (tmp_path / "lake").iterdir()} & {*TABLES} - {*job.tables}
    with pytest.raises(UsageError, match="there is no job 'sing'"):
        update_by_job("sing", tmp_path / "lake")


def test_a_run_writes_every_table_but_records_and_the_snapshots(tmp_path: Path, expected: Tables) -> None:
    lake_of(tmp_path / "lake", commits=2, last=LAST)
    progress: list[tuple[int, int]] = []
    done = update_tables(tmp_path / "lake", on_progress=lambda *step: progress.append(step))
    assert progress[-1] == (LAST, LAST + 1)
    assert done.snapshots[-1] == LAST + 1
    assert {*done.rows} == {*ALL.tables}
    assert tables_of(tmp_path / "lake", ALL.tables) == {name: expected[name] for name in ALL.tables}
    assert done.rows["events"] == len(expected["events"])
    assert not (tmp_path / "lake" / "records").exists()
    again = update_tables(tmp_path / "lake")
    assert (again.base_offset, again.batches, sum(again.rows.values())) == (LAST, 0, 0)


def test_tables_that_are_apart_go_on_each_at_its_own_offset(tmp_path: Path, expected: Tables) -> None:
    lake = tmp_path / "lake"
    log = lake_of(lake, commits=1, last=1000)
    assert {*update_tables(lake, ["events", "records", "events"]).rows} == {"events", "records"}
    append_in(log, 2, batches_between(log.end_offset, 2000))
    assert update_tables(lake, ["partition_history", "scram_history"]).base_offset == -1
    append_in(log, 2, batches_between(log.end_offset, LAST))
    assert {*update_tables(lake).rows} == {*ALL.tables, "records"}, "a lake that has records/ gets its rows"
    assert tables_of(lake) == expected


def test_following_takes_in_what_is_appended_until_it_is_stopped(tmp_path: Path, expected: Tables) -> None:
    lake = tmp_path / "lake"
    log = lake_of(lake, commits=1, last=1000)
    stop, updated = threading.Event(), threading.Condition()
    offsets: list[int] = []

    def on_update(done: RunResult) -> None:
        with updated:
            offsets.append(done.offset)
            updated.notify_all()

    results: list[RunResult] = []
    run = threading.Thread(
        target=lambda: results.append(update_tables(lake, TABLES, stop=stop, poll=0.01, on_update=on_update))
    )
    run.start()
    for last in (2000, LAST):
        with updated:
            assert updated.wait_for(lambda due=log.end_offset - 1: offsets[-1:] == [due], timeout=120)
        with pytest.raises(LakeError, match="another run writes events/"), hold_tables(lake, ["events"]):
            pass
        append_in(log, 3, batches_between(log.end_offset, last))
    with updated:
        assert updated.wait_for(lambda: offsets[-1:] == [LAST], timeout=120)
    stop.set()
    run.join(120)
    assert results[0].rows["events"] == len(expected["events"])
    assert tables_of(lake) == expected


@pytest.mark.parametrize("poll", [1.0, None])
def test_a_run_that_is_stopped_commits_what_it_has_read(tmp_path: Path, expected: Tables, poll: float | None) -> None:
    lake = tmp_path / "lake"
    lake_of(lake, commits=1, last=LAST)
    stop = threading.Event()
    stop.set()
    update_tables(lake, TABLES, stop=stop, poll=poll)
    update_tables(lake, TABLES)
    assert tables_of(lake) == expected


def test_records_begin_with_a_trimmed_log_and_the_other_tables_with_its_snapshot(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    log = lake_of(lake, commits=1, last=3000)
    update_tables(lake)
    append_in(log, 3, batches_between(log.end_offset, LAST_OFFSET))
    end = max(snapshot.end_offset for snapshot in log.snapshots())
    declare_stream_lag(lake / "log", Disk(), 0)
    trim(lake / "log", Disk(), end, [end])
    update_tables(lake, ["records", "events"])
    start = MetadataLog.open(lake).start_offset
    assert DeltaTable(lake / "records").to_pyarrow_table().column("offset").to_pylist()[0] == start > 0


def test_names_that_no_table_has_are_refused(tmp_path: Path) -> None:
    lake_of(tmp_path / "lake", commits=1, last=100)
    with pytest.raises(UsageError, match="'event' is no derived table: it is one of local_changes, partition_history"):
        update_tables(tmp_path / "lake", ["event"])
    with pytest.raises(UsageError, match="name at least one table"):
        update_tables(tmp_path / "lake", [])
    with pytest.raises(LakeError):
        update_tables(tmp_path)
    assert sorted(path.name for path in (tmp_path / "lake").iterdir() if path.name != "cache") == ["log"]


def test_every_table_has_one_writer() -> None:
    assert [writer.description.name for writer in writers_of(ALL.tables)] == [*ALL.tables]
    assert [writer.description.name for writer in RECORDS.new_writers()] == ["records"]


def test_a_snapshot_that_an_import_adds_while_a_run_goes_on_is_left_as_it_is(tmp_path: Path) -> None:
    """The records of Kafka's own snapshot are not in the order in which they are written here."""
    lake = tmp_path / "lake"
    source = LogSource.open(SAMPLE)
    theirs = usable_snapshots(source.reader)[-1]
    log = lake_of(lake, commits=1, last=theirs.end_offset - 1)
    publisher = SnapshotPublisher(LakeReader(log))
    log.add_snapshot(facts_of(theirs), theirs.batches())
    publisher.publish(image_at(LakeReader(log), theirs.end_offset - 1).image, QuorumState())
    assert publisher.written == []
    assert [one.end_offset for one in MetadataLog.open(lake).snapshots()] == [theirs.end_offset]
