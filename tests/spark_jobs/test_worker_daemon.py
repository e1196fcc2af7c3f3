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


_ROUNDS = 4
"""Spark takes the worker that has waited longest, so that some rounds of two tasks find them all."""


def of_workers(spark: SparkSession) -> dict[int, dict[str, Any]]:
    """The worker process of each of some tasks, by its id, and the process which forked it."""

    def described(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from ()
        for batch in batches:
            daemon = Path("/proc", str(os.getppid()))
            facts = {
                "worker": os.getpid(),
                "modules": sorted(sys.modules),
                "daemon": (daemon / "cmdline").read_text().split("\0"),
                "threads": [task.name for task in (daemon / "task").iterdir()],
                "pid": daemon.name,
            }
            yield pa.RecordBatch.from_pylist([{"facts": json.dumps(facts)}] * batch.num_rows)

    rounds = [spark.range(0, 2, 1, 2).mapInArrow(described, "facts string").toArrow() for _ in range(_ROUNDS)]
    facts = [json.loads(text) for rows in rounds for text in rows.column("facts").to_pylist()]
    return {one["worker"]: one for one in facts}


@pytest.mark.spark
def test_workers_of_a_job_have_nothing_left_to_import(spark: SparkSession, imported: set[str], tmp_path: Path) -> None:
    before = {worker: {*facts["modules"]} for worker, facts in of_workers(spark).items()}  # other tests ran tasks, too
    lake_of(tmp_path / "lake", commits=1, last=1_000)
    for job in ("all", "records"):
        run_job(job, tmp_path / "lake", spark=spark)
    workers = of_workers(spark)
    assert len(workers) >= 2
    for worker in workers.values():
        assert worker["daemon"][1:3] == ["-m", MODULE]
        assert worker["threads"] == [worker["pid"]], "none but the thread that forks"
        later = {name for name in worker["modules"] if name.partition(".")[0] in IMPORTED_ONCE} - imported
        later -= before.get(worker["worker"], set())
        assert not later
