"""A backlog that a real cluster makes, whose worker and driver are killed: its tables are those of one process."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest

from kraftlake.tables import update_tables
from kraftlake.tables.jobs import ALL
from tests.spark_cluster import SparkCluster
from tests.spark_jobs.test_jobs_on_a_cluster import await_pause
from tests.spark_jobs.test_shard_run import rows_of
from tests.tables.sample_log import lake_of

pytestmark = pytest.mark.spark

DRIVER = "tests.spark_jobs.cluster_backlog"


def test_neither_a_killed_worker_nor_a_killed_driver_changes_the_tables(
    spark_cluster: SparkCluster, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    lake_of(lake, commits=2)
    with spark_cluster.start_driver(DRIVER, lake, 2000, 1) as driver:
        await_pause(driver, lake)
        os.kill(driver.pid, signal.SIGKILL)
        driver.wait(timeout=60)
    Path(f"{lake}.paused").unlink()
    with spark_cluster.start_driver(DRIVER, lake, 1200, 1) as driver:
        await_pause(driver, lake)
        Path(f"{lake}.go").touch()
        time.sleep(1)  # the next step has begun
        spark_cluster.workers[0].kill()
        said, complaints = driver.communicate(timeout=400)
        assert driver.returncode == 0, complaints[-3000:]
    spark_cluster.start()
    assert json.loads(said) > 2
    lake_of(tmp_path / "other", commits=1)
    update_tables(tmp_path / "other", ALL.tables)
    assert rows_of(lake) == rows_of(tmp_path / "other")
