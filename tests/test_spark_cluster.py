"""The cluster that other tests rely on is a real one: other processes do the work, and workers can be killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spark_cluster import SparkCluster
from tests.spark_jobs.cluster_sum import ROWS

pytestmark = pytest.mark.spark


def test_a_session_of_ours_runs_delta_and_arrow_on_the_executors_of_a_cluster(
    spark_cluster: SparkCluster, tmp_path: Path
) -> None:
    with spark_cluster.start_driver("tests.spark_jobs.cluster_sum", tmp_path / "table") as driver:
        answer = driver.answer(timeout=240)
    assert answer == {"sum": ROWS * (ROWS - 1) // 2, "executors": 2, "driver_is_one": False}
    assert driver.said() == ""


def test_a_killed_worker_is_missed_and_comes_back(spark_cluster: SparkCluster) -> None:
    spark_cluster.workers[0].kill()
    assert not spark_cluster.workers[0].running
    spark_cluster.await_workers(1)
    spark_cluster.start()
    assert spark_cluster.state()["aliveworkers"] == 2
