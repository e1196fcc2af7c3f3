"""All jobs on a real standalone cluster whose processes are killed: their tables are those of an undisturbed run."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from deltalake import DeltaTable

from kraftlake.generate.lake import generate_lake
from kraftlake.generate.plan import Plan
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.tables.catch_up.updating import update_tables
from kraftlake.tables.jobs import JOBS
from kraftlake.tables.table_locks import JOBS_FOLDER
from tests.spark_cluster import SparkCluster
from tests.spark_driver import ClusterDriver
from tests.tables.sample_log import LAST_OFFSET, append_in, batches_between, lake_of

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(
        os.environ.get("KRAFTLAKE_TESTS") != "long",
        reason="KRAFTLAKE_TESTS=long: the quick run has a worker killed in test_records_on_a_cluster.py, drivers that "
        "crash in test_random_crashes.py, and all tables of a cluster in test_object_store.py",
    ),
]

DRIVER = "tests.spark_jobs.cluster_jobs"
ALL_JOBS = ("all", "records")
LOGS: dict[str, Callable[[Path], object]] = {
    "sample": lambda lake: lake_of(lake, commits=2),
    "generated": lambda lake: generate_lake(lake, Plan(brokers=6, topics=60, partitions=8, records=20_000)),
}
TABLES = sorted({table for job in JOBS.values() for table in job.tables})

Rows = dict[str, list[str]]


def rows_of(lake: Path, tables: Sequence[str] = TABLES) -> Rows:
    return {name: sorted(map(str, DeltaTable(lake / name).to_pyarrow_table().to_pylist())) for name in tables}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    """What one process makes."""
    lake = tmp_path_factory.mktemp("undisturbed") / "lake"
    lake_of(lake, commits=2)
    update_tables(lake, TABLES)
    return rows_of(lake)


def await_pause(driver: ClusterDriver, lake: Path) -> None:
    await_that(driver, Path(f"{lake}.paused").exists)


def await_that(driver: ClusterDriver, condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 400
    while not condition():
        assert driver.busy, driver.said()
        assert time.monotonic() < deadline, "the driver has not come so far"
        time.sleep(0.01)


def files_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def run_until_killed(cluster: SparkCluster, lake: Path) -> None:
    """A run whose driver is killed after its second step."""
    with cluster.start_driver(DRIVER, lake, 700, 2, *ALL_JOBS) as driver:
        await_pause(driver, lake)
        driver.kill()
    assert not (lake / "records").exists()
    Path(f"{lake}.paused").unlink()


def run_with_a_killed_worker(cluster: SparkCluster, lake: Path, step_records: int) -> None:
    """A run one of whose workers is killed in the middle of its second step."""
    with cluster.start_driver(DRIVER, lake, step_records, 1, *ALL_JOBS) as driver:
        await_pause(driver, lake)
        states = lake / JOBS_FOLDER / "state" / "local_changes"
        kept = files_in(states)
        Path(f"{lake}.go").touch()
        await_that(driver, lambda: bool(files_in(states) - kept))
        cluster.workers[0].kill()
        done = driver.answer(timeout=400)
    assert done["all"][0] >= 2
    assert (done["all"][1], done["records"][1]) == (0, 0), "executors have made all rows"


def test_no_killed_driver_no_lost_state_and_no_killed_worker_changes_anything(
    spark_cluster: SparkCluster, tmp_path: Path, undisturbed: Rows
) -> None:
    lake = tmp_path / "lake"
    whole = batches_between(0, LAST_OFFSET)
    log = MetadataLog.create(lake)
    append_in(log, 4, whole[:600])
    run_until_killed(spark_cluster, lake)
    shutil.rmtree(lake / JOBS_FOLDER)
    append_in(log, 2, whole[600:])
    run_with_a_killed_worker(spark_cluster, lake, 1_500)
    assert rows_of(lake) == undisturbed


def test_states_that_a_killed_driver_kept_are_gone_on_with_and_made_again_once_lost(
    spark_cluster: SparkCluster, tmp_path: Path, undisturbed: Rows
) -> None:
    lake = tmp_path / "lake"
    whole = batches_between(0, LAST_OFFSET)
    log = MetadataLog.create(lake)
    append_in(log, 4, whole[:600])
    run_until_killed(spark_cluster, lake)
    run_with_a_killed_worker(spark_cluster, lake, 700)
    spark_cluster.start()
    shutil.rmtree(lake / JOBS_FOLDER)
    append_in(log, 2, whole[600:])
    again = spark_cluster.run_driver(DRIVER, lake, 100_000, 0, *ALL_JOBS, timeout=400)
    assert again == {"all": [1, 0], "records": [1, 0]}
    assert rows_of(lake) == undisturbed


@pytest.mark.parametrize("steps", [1, 10])
@pytest.mark.parametrize("log", LOGS)
def test_every_job_makes_the_rows_of_one_process_in_any_number_of_steps(
    spark_cluster: SparkCluster, tmp_path: Path, log: str, steps: int
) -> None:
    expected = tmp_path / "expected"
    LOGS[log](expected)
    for job in JOBS:
        shutil.copytree(expected, tmp_path / job)
    update_tables(expected, TABLES)
    records = -(-MetadataLog.open(expected).end_offset // steps)
    answer = spark_cluster.run_driver(DRIVER, tmp_path / "JOB", records, 0, *JOBS, timeout=1_800)
    for name, job in JOBS.items():
        taken, by_driver = answer[name]
        assert steps // 2 < taken <= max(1, 2 * (steps - 1)), "a step ends with a batch, and takes one that is larger"
        assert by_driver == 0, "executors have made all rows"
        assert rows_of(tmp_path / name, job.tables) == rows_of(expected, job.tables)
