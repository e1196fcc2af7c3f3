"""All jobs on a real standalone cluster whose processes are killed: their tables are those of an undisturbed run."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from deltalake import DeltaTable

from kraftlake.metadata_log import MetadataLog
from kraftlake.spark_jobs import run_job
from kraftlake.tables.jobs import JOBS
from kraftlake.tables.table_locks import JOBS_FOLDER
from tests.spark_cluster import SparkCluster
from tests.tables.sample_log import LAST_OFFSET, append_in, lake_of, sample_batches

pytestmark = pytest.mark.spark

DRIVER = "tests.spark_jobs.cluster_jobs"
ALL_JOBS = ("all", "records")
TABLES = sorted({table for job in JOBS.values() for table in job.tables})

Rows = dict[str, list[str]]


def rows_of(lake: Path) -> Rows:
    return {name: sorted(map(str, DeltaTable(lake / name).to_pyarrow_table().to_pylist())) for name in TABLES}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    """What the jobs make where there is nothing to stream: no Spark has a part in it."""
    lake = tmp_path_factory.mktemp("undisturbed") / "lake"
    lake_of(lake, commits=2)
    DeltaTable(lake / "log").optimize.compact()
    DeltaTable(lake / "log").vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    for job in ALL_JOBS:
        done = run_job(job, lake, snapshot_every_bytes=60_000)
        assert (done.offset, done.micro_batches) == (LAST_OFFSET, 0)
    return rows_of(lake)


def await_pause(driver: subprocess.Popen[str], lake: Path) -> None:
    deadline = time.monotonic() + 180
    while not Path(f"{lake}.paused").exists():
        assert driver.poll() is None, driver.communicate()[1][-3000:]
        assert time.monotonic() < deadline, "the driver has published nothing"
        time.sleep(0.05)


def test_neither_a_killed_worker_nor_a_lost_checkpoint_changes_anything(
    spark_cluster: SparkCluster, tmp_path: Path, undisturbed: Rows
) -> None:
    lake = tmp_path / "lake"
    whole = list(sample_batches())
    log = MetadataLog.create(lake)
    append_in(log, 4, whole[:600])
    with spark_cluster.start_driver(DRIVER, lake, 2, *ALL_JOBS) as driver:
        await_pause(driver, lake)
        spark_cluster.workers[0].kill()
        Path(f"{lake}.go").touch()
        said, complaints = driver.communicate(timeout=400)
        assert driver.returncode == 0, complaints[-3000:]
    assert json.loads(said) == {"all": 4, "records": 4}
    spark_cluster.start()
    shutil.rmtree(lake / JOBS_FOLDER)
    append_in(log, 2, whole[600:])
    again = spark_cluster.run_driver(DRIVER, lake, 0, *ALL_JOBS, timeout=400)
    assert again.returncode == 0, again.stderr[-3000:]
    assert json.loads(again.stdout) == {"all": 2, "records": 2}
    assert rows_of(lake) == undisturbed


def test_a_killed_driver_is_run_again_and_goes_on(
    spark_cluster: SparkCluster, tmp_path: Path, undisturbed: Rows
) -> None:
    lake = tmp_path / "lake"
    lake_of(lake, commits=4)
    with spark_cluster.start_driver(DRIVER, lake, 2, *ALL_JOBS) as driver:
        await_pause(driver, lake)
        os.kill(driver.pid, signal.SIGKILL)
        driver.wait(timeout=60)
    assert not (lake / "records").exists()
    again = spark_cluster.run_driver(DRIVER, lake, 0, *ALL_JOBS, timeout=400)
    assert again.returncode == 0, again.stderr[-3000:]
    assert json.loads(again.stdout)["records"] == 4
    assert rows_of(lake) == undisturbed
