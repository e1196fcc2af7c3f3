"""What a job costs on a cluster: `python -m benchmarks.spark.jobs [--sizes 3M:100k,10M:100k] [--workers 1,2]`.

The tables of a generated log are made from its first record on: in one process (`kraftlake tables`), then by the job on
a standalone cluster of one-core workers. CPU seconds of the driver and of each executor during the job, Python and JVM
apart, and the clock. What grows past one machine is the sum of the driver's and of the busiest executor's: with two
workers it is to be at most two thirds of that with one.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.spark.__main__ import Size
from benchmarks.spark.cpu import processes, tree_cpu
from benchmarks.tables import lake_of

_EXECUTOR = "CoarseGrainedExecutorBackend"


def in_process(job: str, lake: Path) -> dict[str, float]:
    """`kraftlake tables`, in a process of its own."""
    emptied(lake)
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, "-m", "benchmarks.tables", "--child", job, str(lake)]
    subprocess.run(command, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"cpu": cpu, "wall": time.perf_counter() - begun}


def on_cluster(job: str, lake: Path, workers: int) -> dict[str, Any]:
    """The job, on a cluster that starts and ends with it."""
    from tests.spark_cluster import started_cluster

    emptied(lake)
    with (
        tempfile.TemporaryDirectory() as folder,
        started_cluster(Path(folder), workers=workers, memory="2g") as cluster,
    ):
        module = "benchmarks.spark.jobs"
        done = cluster.run_driver(module, "--child", job, lake, workers, timeout=3600)
        if done.returncode:
            sys.exit(f"{job} on {lake} failed: {done.stderr[-3000:]}")
        told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return told


def child(master: str, job: str, lake: str, workers: int) -> dict[str, Any]:
    """A driver: the CPU seconds of all processes before and after the job."""
    from kraftlake.spark_jobs import run_job, spark_session

    spark = spark_session("benchmark", master=master)
    while spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() <= workers:
        spark.range(1).count()
    started, begun = spent(), time.perf_counter()
    done = run_job(job, lake, spark=spark)
    wall, ended = time.perf_counter() - begun, spent()
    told = {
        "wall": wall,
        "records": done.offset + 1,
        "steps": done.steps,
        "executors": [
            {name: ended[pid][name] - started.get(pid, {}).get(name, 0.0) for name in ("python", "jvm")}
            for pid in ended
            if pid
        ],
        "driver": {name: ended[0][name] - started[0][name] for name in ("python", "jvm")},
    }
    spark.stop()
    return told


def spent() -> dict[int, dict[str, float]]:
    """CPU seconds so far of the driver (0) and of each executor (its PID)."""
    own = os.times()
    python = own.user + own.system
    found = {0: {"python": python, "jvm": tree_cpu() - python}}
    for pid, words in processes().items():
        if _EXECUTOR in words:
            jvm = tree_cpu(pid, alone=True)
            found[pid] = {"python": tree_cpu(pid) - jvm, "jvm": jvm}
    return found


def emptied(lake: Path) -> None:
    """Leave a lake nothing but its log."""
    for made in lake.iterdir():
        if made.name != "log":
            shutil.rmtree(made) if made.is_dir() else made.unlink()


def main() -> None:
    """Measure and print."""
    if "--child" in sys.argv:
        master, _, job, lake, workers = sys.argv[1:6]
        sys.stdout.write(json.dumps(child(master, job, lake, int(workers))) + "\n")
        return
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.spark.jobs", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--job", default="all")
    parser.add_argument("--sizes", default="3M:100k,10M:100k", help="RECORDS:PARTITIONS, some with commas between")
    parser.add_argument("--workers", default="1,2")
    parser.add_argument("--lakes", type=Path, help="where generated lakes are kept")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.lakes or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        for size in map(Size.parse, options.sizes.split(",")):
            lake = lake_of("busy", folder, size.records, size.partitions)
            in_process(options.job, lake)  # compiles
            alone = in_process(options.job, lake)
            say(size, "one process", {**alone, "total": alone["cpu"]})
            for workers in map(int, options.workers.split(",")):
                told = on_cluster(options.job, lake, workers)
                driver = sum(told["driver"].values())
                each = [sum(executor.values()) for executor in told["executors"]]
                told |= {
                    "total": driver + sum(each),
                    "driver_and_busiest": driver + max(each),
                    "driver_per_million": driver / told["records"] * 1e6,
                    "to_one_process": (driver + sum(each)) / alone["cpu"],
                }
                say(size, f"{workers} workers", told)


def say(size: Size, what: str, told: dict[str, Any]) -> None:
    """Print one line of JSON."""
    rounded = json.loads(json.dumps(told), parse_float=lambda text: round(float(text), 2))
    sys.stdout.write(json.dumps({"log": str(size), "what": what, **rounded}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
