"""On a real cluster of Spark: the same results, also when a worker dies in the middle."""

from __future__ import annotations

import os
import shutil
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kraftlake.generate.lake import generate_lake
from kraftlake.generate.plan import Plan
from kraftlake.metadata_log.log import MetadataLog
from tests.spark_cluster import SparkCluster
from tests.spark_jobs.fold.cluster_fold import begun
from tests.spark_jobs.fold.test_spark_fold import changes_in_one_process, kept_batches, local_batches

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(
        os.environ.get("KRAFTLAKE_TESTS") != "long",
        reason="KRAFTLAKE_TESTS=long: the quick run has a worker killed in test_records_on_a_cluster.py",
    ),
]

DRIVER = "tests.spark_jobs.fold.cluster_fold"
RECORDS = 140_000


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    lake = tmp_path_factory.mktemp("cluster-fold") / "lake"
    generate_lake(lake, Plan(brokers=9, topics=150, partitions=20, records=RECORDS, seed=7))
    return lake


def check(lake: Path, answer: dict[str, Any]) -> None:
    """What the driver answered, and left in the lake, is what one process makes of the log."""
    log = MetadataLog.open(lake)
    at = log.end_offset - 1
    rows = changes_in_one_process(log, at - 5_000, at).select(["broker", "change"]).to_pylist()
    assert answer["changes"] == Counter(f"{row['broker']} {row['change']}" for row in rows)
    kept = kept_batches(log, at)
    assert kept == local_batches(log, at)
    assert answer["records"] == sum(batch.record_count for batch in kept)
    assert [snapshot.name for snapshot in log.snapshots()] == [answer["name"]]


@pytest.mark.parametrize("stage", ["-", "read", "fold"])
def test_a_worker_that_is_killed_in_the_middle_changes_nothing(
    spark_cluster: SparkCluster, generated: Path, tmp_path: Path, stage: str
) -> None:
    lake, gate = tmp_path / "lake", tmp_path / "gate"
    shutil.copytree(generated, lake)
    gate.mkdir()
    with spark_cluster.start_driver(DRIVER, lake, gate, stage) as driver:
        if stage != "-":
            deadline = time.monotonic() + 300
            while len(list(begun(gate))) < 2 and driver.busy and time.monotonic() < deadline:
                time.sleep(0.02)
            assert len(list(begun(gate))) >= 2, "both workers are at it"
            spark_cluster.workers[0].kill()
            (gate / "open").touch()
        answer = driver.answer(timeout=500)
    check(lake, answer)
