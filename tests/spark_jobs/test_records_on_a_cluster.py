"""Workers and drivers are killed while executors write the backlog of `records/`: each record is there once."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from deltalake import DeltaTable

from kraftlake.tables.records_table import RECORDS
from tests.spark_cluster import SparkCluster
from tests.spark_driver import ClusterDriver
from tests.spark_jobs.cluster_records import PARTS_A_COMMIT, RECORDS_A_PART
from tests.spark_jobs.test_records import expected, rows_of
from tests.tables.sample_log import LAST_OFFSET, lake_of

pytestmark = pytest.mark.spark

DRIVER = "tests.spark_jobs.cluster_records"
in_the_long_profile = pytest.mark.skipif(
    os.environ.get("KRAFTLAKE_TESTS") != "long", reason="KRAFTLAKE_TESTS=long: half a minute each"
)
A_COMMIT = RECORDS_A_PART * PARTS_A_COMMIT
SECOND_COMMIT = A_COMMIT + RECORDS_A_PART
"""No part of the first commit begins here or later."""


@contextmanager
def held_in_the_middle(
    cluster: SparkCluster, lake: Path, gate: Path, *, stage: str, offset: int, tasks: int = 2
) -> Iterator[ClusterDriver]:
    """A driver whose tasks, at least so many of them, wait at the gate."""
    gate.mkdir()
    with cluster.start_driver(DRIVER, lake, gate, stage, offset) as driver:
        deadline = time.monotonic() + 300
        while len(list(gate.glob("begun-*"))) < tasks and driver.busy and time.monotonic() < deadline:
            time.sleep(0.02)
        assert len(list(gate.glob("begun-*"))) >= tasks, driver.said() or "no task"
        yield driver


def finish(driver: ClusterDriver, gate: Path) -> list[int]:
    """Opens the gate; what the driver has committed at its end."""
    (gate / "open").touch()
    committed: list[int] = driver.answer(timeout=400)
    return committed


def kill(driver: ClusterDriver, gate: Path) -> None:
    driver.kill()
    (gate / "open").touch()  # Pythons that outlive their executor write what nobody will commit


def run_to_the_end(cluster: SparkCluster, lake: Path) -> list[int]:
    committed: list[int] = cluster.run_driver(DRIVER, lake, "-", "-", 0, timeout=400)
    return committed


def is_whole(lake: Path) -> bool:
    """Whether the table has each record of the log once, and covers all."""
    covered = DeltaTable(lake / "records").transaction_version(RECORDS.app_id)
    return covered == LAST_OFFSET and rows_of(lake).equals(expected(lake))


@pytest.mark.parametrize("stage", [pytest.param("before", marks=in_the_long_profile), "after"])
def test_a_worker_that_is_killed_while_executors_write_changes_nothing(
    spark_cluster: SparkCluster, tmp_path: Path, stage: str
) -> None:
    lake, gate = tmp_path / "lake", tmp_path / "gate"
    lake_of(lake, commits=5)
    with held_in_the_middle(spark_cluster, lake, gate, stage=stage, offset=SECOND_COMMIT) as driver:
        known = len(DeltaTable(lake / "records").file_uris())
        assert known == PARTS_A_COMMIT, "the first commit is made"
        spark_cluster.workers[0].kill()
        committed = finish(driver, gate)
    assert committed[-1] == LAST_OFFSET
    assert len(committed) == -(-LAST_OFFSET // A_COMMIT)
    assert is_whole(lake)
    files = list((lake / "records").glob("*.parquet"))
    written_for_nothing = len(files) - len(DeltaTable(lake / "records").file_uris())
    assert (written_for_nothing > 0) == (stage == "after"), "what the dead worker had written is no part of the table"


@in_the_long_profile
def test_a_driver_that_is_killed_while_executors_write_goes_on_after_what_it_had_committed(
    spark_cluster: SparkCluster, tmp_path: Path
) -> None:
    lake, gate = tmp_path / "lake", tmp_path / "gate"
    lake_of(lake, commits=5)
    with held_in_the_middle(spark_cluster, lake, gate, stage="after", offset=SECOND_COMMIT) as driver:
        kill(driver, gate)
    covered = DeltaTable(lake / "records").transaction_version(RECORDS.app_id)
    assert covered is not None
    assert rows_of(lake).num_rows == covered + 1 < SECOND_COMMIT
    assert run_to_the_end(spark_cluster, lake)[0] > covered
    assert is_whole(lake)


@in_the_long_profile
@pytest.mark.parametrize("seed", range(6))
def test_random_kills_of_workers_and_drivers_lose_and_double_nothing(
    spark_cluster: SparkCluster, tmp_path: Path, seed: int
) -> None:
    chosen = random.Random(seed)
    lake = tmp_path / "lake"
    lake_of(lake, commits=chosen.randint(1, 8))
    for number in range(chosen.randint(1, 3)):
        offset = chosen.randrange(0, LAST_OFFSET - RECORDS_A_PART, RECORDS_A_PART)
        table = lake / "records"
        covered = DeltaTable(table).transaction_version(RECORDS.app_id) if table.exists() else None
        if covered == LAST_OFFSET:
            break
        gate = tmp_path / f"gate-{number}"
        stage = chosen.choice(["before", "after"])
        with held_in_the_middle(spark_cluster, lake, gate, stage=stage, offset=offset, tasks=1) as driver:
            if chosen.random() < 0.5:
                kill(driver, gate)
            else:
                chosen.choice(spark_cluster.workers).kill()
                finish(driver, gate)
        spark_cluster.start()
    run_to_the_end(spark_cluster, lake)
    assert is_whole(lake)
