"""One job over many lakes: each is a task of its own, and none stops another."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

from kraftlake.metadata_log.log import MetadataLog
from kraftlake.runtime.errors import LakeError, UsageError
from kraftlake.spark_jobs import run_lakes
from kraftlake.spark_jobs.many_lakes import LakeRun, _each_in_a_task
from kraftlake.tables.catch_up.updating import update_by_job
from kraftlake.tables.jobs import ALL
from kraftlake.tables.table_locks import hold_tables
from tests.cli.running import fault, run, run_json
from tests.spark_cluster import REPOSITORY, SparkCluster, driver_environment
from tests.tables.sample_log import LAST_OFFSET, append_in, batches_between, lake_of
from tests.waiting import wait_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def damage(lake: Path) -> None:
    """Cut a file of a lake's log."""
    file = next((lake / "log").glob("*.parquet"))
    file.write_bytes(file.read_bytes()[:500])


def rows_of(lake: Path, tables: tuple[str, ...]) -> dict[str, list[str]]:
    return {name: sorted(map(str, DeltaTable(lake / name).to_pyarrow_table().to_pylist())) for name in tables}


def three_lakes(folder: Path) -> Path:
    """A folder of two lakes, with the lakes that one process makes of them beside it, and a damaged one."""
    lakes = folder / "lakes"
    lakes.mkdir()
    lake_of(lakes / "a", commits=1, last=500)
    lake_of(lakes / "b", commits=1, last=500)
    MetadataLog.create(lakes / "c", "the-cluster").append(batches_between(0, 1_000))
    for name in ("a", "c"):
        shutil.copytree(lakes / name, folder / name)
        assert update_by_job("all", folder / name).offset > 400
    damage(lakes / "b")
    return lakes


def check_three_lakes(lakes: Path, said: str) -> None:
    report = json.loads(said)
    assert [Path(run["lake"]).name for run in report["lakes"]] == ["a", "b", "c"]
    assert report["failed"] == 1
    first, damaged, last = report["lakes"]
    assert damaged == {"lake": str(lakes / "b"), "error": damaged["error"]}
    assert ".parquet is no Parquet file that can be read" in damaged["error"]
    assert (first["clusterId"], last["clusterId"]) == (None, "the-cluster")
    for lake, name in ((first, "a"), (last, "c")):
        by_one = lakes.parent / name
        assert (lake["firstOffset"], lake["offset"]) == (0, MetadataLog.open(lakes / name).end_offset - 1)
        assert [snapshot.name for snapshot in MetadataLog.open(lakes / name).snapshots()] == [
            snapshot.name for snapshot in MetadataLog.open(by_one).snapshots()
        ]
        assert rows_of(lakes / name, ALL.tables) == rows_of(by_one, ALL.tables)


@pytest.mark.usefixtures("spark")
def test_two_lakes_are_made_as_in_one_process_and_the_damaged_third_is_reported(tmp_path: Path) -> None:
    """On a cluster, in the quick profile: tests/spark_jobs/test_object_store.py."""
    lakes = three_lakes(tmp_path)
    result = run("spark", "all", lakes, lakes / "a", "--json", code=1)
    assert result.stderr == "error: 1 of 3 lakes failed\n"
    check_three_lakes(lakes, result.stdout)


@pytest.mark.skipif(os.environ.get("KRAFTLAKE_TESTS") != "long", reason="KRAFTLAKE_TESTS=long: three JVMs")
def test_they_are_made_so_on_a_cluster(spark_cluster: SparkCluster, tmp_path: Path) -> None:
    lakes = three_lakes(tmp_path)
    words = ["spark", "all", str(lakes), str(lakes / "a"), "--master", spark_cluster.master_for_another_driver()]
    done = subprocess.run(
        [sys.executable, "-m", "kraftlake.cli", *words, "--json"],
        cwd=REPOSITORY, env=driver_environment(), capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, "error: 1 of 3 lakes failed\n")
    check_three_lakes(lakes, done.stdout)


def test_each_lake_goes_on_from_where_its_tables_are_and_counts_once(spark: SparkSession, tmp_path: Path) -> None:
    log = lake_of(tmp_path / "a", commits=1, last=500)
    lake_of(tmp_path / "b", commits=1, last=700)
    progress: list[tuple[int, int]] = []
    lakes = [tmp_path / "a", str(tmp_path / "*"), f"{tmp_path}/b/"]
    first = run_lakes("records", lakes, spark=spark, on_progress=lambda *step: progress.append(step))
    assert [(run.lake, run.error) for run in first.lakes] == [(str(tmp_path / name), None) for name in "ab"]
    assert progress == [(0, 2), (1, 2), (2, 2)]
    append_in(log, 1, batches_between(log.end_offset, LAST_OFFSET))
    again = run_lakes("records", [tmp_path], spark=spark)
    made = [(run.summary or {})["rows"]["records"] for result in (first, again) for run in result.lakes]
    assert made == [501, MetadataLog.open(tmp_path / "b").end_offset, LAST_OFFSET - 500, 0]
    assert DeltaTable(tmp_path / "a" / "records").to_pyarrow_table().num_rows == LAST_OFFSET + 1
    assert again.to_json()["lakes"][0].items() >= {"from": 500, "offset": LAST_OFFSET, "unwritable": None}.items()


def test_what_fails_is_a_result_and_what_is_asked_wrongly_an_error(spark: SparkSession, tmp_path: Path) -> None:
    lake_of(tmp_path / "a", commits=1, last=500)
    lake_of(tmp_path / "b", commits=1, last=500)
    with hold_tables(tmp_path / "a", ["events"]):
        result = run_lakes("events", [tmp_path / "nowhere", tmp_path / "a", tmp_path / "b"], spark=spark)
    assert result.failed == 2
    errors = [run.error for run in result.lakes]
    assert errors == [
        f"There is no lake at {tmp_path}/nowhere; `kraftlake import SOURCE LAKE` makes one.",
        f"another run writes events/ of {tmp_path}/a: wait until it ends, or stop it",
        None,
    ]
    with pytest.raises(LakeError, match=r"There is no lake at .*/nowhere"):
        run_lakes("events", [tmp_path / "nowhere", tmp_path / "nothing"])
    with pytest.raises(UsageError, match="there is no job 'sing'"):
        run_lakes("sing", [tmp_path])
    with pytest.raises(UsageError, match="name at least one lake"):
        run_lakes("events", [])
    with pytest.raises(UsageError, match="is not a list of lakes"):
        run_lakes("events", str(tmp_path))


def test_neither_a_slow_lake_nor_one_that_ends_its_process_holds_the_others(
    spark: SparkSession, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"

    def make(lake: str) -> LakeRun:
        import os
        import signal
        import time

        if lake == "deadly":
            os.kill(os.getpid(), signal.SIGKILL)
        while lake == "slow" and not gate.exists():
            time.sleep(0.02)
        return LakeRun(lake=lake, summary={})

    ended = []
    for lake in _each_in_a_task(spark, "test", make, ["slow", "deadly", "a", "b", "c"]):
        ended.append(lake)
        if len(ended) == 4:
            gate.touch()
    assert ended[-1].lake == "slow"
    (deadly,) = [lake for lake in ended if lake.error is not None]
    assert deadly.lake == "deadly"
    assert deadly.error == (
        "a Python worker of Spark's executors ended in the middle of its task (killed, or out of memory): run again, "
        "which goes on from there"
    )


def test_no_task_runs_on_when_a_run_ends_early(spark: SparkSession) -> None:
    def make(lake: str) -> LakeRun:
        import time

        while lake == "endless":
            time.sleep(0.02)
        return LakeRun(lake=lake, summary={})

    runs = _each_in_a_task(spark, "test", make, ["a", "endless", "b"])
    assert {next(runs).lake, next(runs).lake} == {"a", "b"}
    runs.close()
    active = spark.sparkContext.statusTracker().getActiveJobsIds  # it hears of the end a moment later
    wait_for(lambda: not list(active()), "no job runs on")


@pytest.fixture
def lakes(tmp_path: Path) -> Path:
    """A folder of two lakes, of which the second is damaged."""
    for name in ("a", "b"):
        lake_of(tmp_path / name, commits=1, last=500)
    damage(tmp_path / "b")
    return tmp_path


def test_the_command_shows_a_line_for_each_lake_and_exits_with_1_if_one_failed(
    spark: SparkSession, lakes: Path
) -> None:
    result = run("spark", "events", lakes, code=1, width=200)
    assert result.stderr == "error: 1 of 2 lakes failed\n"
    heading, _, first, second, error = result.stdout.splitlines()
    assert heading.split() == ["lake", "cluster", "offsets", "rows", "snapshots"]
    assert first.split()[:5] == [str(lakes / "a"), "–", "0", "to", "500"]
    assert second.split() == [str(lakes / "b"), "failed"]
    assert error.startswith(f"✗ {lakes}/b: {lakes}/b/log/")
    again = run_json("spark", "events", f"{lakes}/[a]")
    assert (again["failed"], again["lakes"][0]["from"], again["lakes"][0]["rows"]) == (0, 500, {"events": 0})
    assert "nothing new" in run("spark", "events", lakes / "a", lakes / "a").stdout


def test_what_many_lakes_do_not_have_is_refused_without_a_jvm(lakes: Path) -> None:
    message = fault("spark", "all", lakes, "--trigger", "processing-time=2 seconds", code=2)
    assert message.startswith("--trigger is for one lake: many are brought up to the ends of their logs once")
    fault("spark", "snapshot", lakes / "a", lakes / "b", code=2)
    assert "No lake matches" in fault("spark", "all", f"{lakes}/x*")
    (lakes / "c").mkdir()
    assert "is an empty folder" in fault("spark", "all", lakes / "c", lakes / "d")
    assert "Missing argument 'LAKE...'" in fault("spark", "all", code=2)
