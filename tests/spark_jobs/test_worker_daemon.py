"""The daemon that forks Spark's Python workers: what it has imported, and that no thread runs in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from kraftlake.spark_jobs import run_job
from kraftlake.spark_jobs.worker_daemon import MODULE
from tests.tables.sample_log import lake_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

IMPORTED_ONCE = ("kraftlake", "numpy", "pandas", "pyarrow", "rpds")
THREADED = "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "JE_ARROW_MALLOC_CONF"

ASK = f"""
import json, os, sys
from {MODULE} import import_for_tasks
import_for_tasks()
print(json.dumps([os.listdir("/proc/self/task"), os.getpid(), sorted(sys.modules)]))
"""


@pytest.fixture(scope="module")
def imported() -> set[str]:
    """The modules of a daemon, after a check that it has no thread but its own."""
    environment = {name: value for name, value in os.environ.items() if name not in THREADED}
    done = subprocess.run([sys.executable, "-c", ASK], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    threads, own, modules = json.loads(done.stdout)
    assert threads == [str(own)]
    return {*modules}


def test_the_imports_start_no_thread_and_open_nothing(imported: set[str]) -> None:
    assert {"kraftlake.kernels.compiled", "numpy", "pandas", "pyarrow.parquet"} <= imported
    assert "obstore" not in imported, "its runtime has threads"


def of_workers(spark: SparkSession) -> list[dict[str, Any]]:
    """The process of each of two tasks, and that which forked it."""

    def told(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from ()
        for batch in batches:
            daemon = Path("/proc", str(os.getppid()))
            facts = {
                "modules": sorted(sys.modules),
                "daemon": (daemon / "cmdline").read_text().split("\0"),
                "threads": [task.name for task in (daemon / "task").iterdir()],
                "pid": daemon.name,
            }
            yield pa.RecordBatch.from_pylist([{"told": json.dumps(facts)}] * batch.num_rows)

    told_rows = spark.range(0, 2, 1, 2).mapInArrow(told, "told string").toArrow()
    return [json.loads(text) for text in told_rows.column("told").to_pylist()]


@pytest.mark.spark
def test_workers_of_a_job_have_nothing_left_to_import(spark: SparkSession, imported: set[str], tmp_path: Path) -> None:
    lake_of(tmp_path / "lake", commits=1)
    for job in ("all", "records"):
        run_job(job, tmp_path / "lake", spark=spark)
    workers = of_workers(spark)
    assert len(workers) == 2
    for worker in workers:
        assert worker["daemon"][1:3] == ["-m", MODULE]
        assert worker["threads"] == [worker["pid"]], "none but the thread that forks"
        later = {name for name in worker["modules"] if name.partition(".")[0] in IMPORTED_ONCE} - imported
        assert not later
