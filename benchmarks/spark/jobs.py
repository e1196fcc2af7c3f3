"""What a job costs on a cluster: `python -m benchmarks.spark.jobs [--sizes 3M:100k,10M:100k] [--workers 1,2]`.

The tables of a generated log are made from its first record on: in one process (`kraftlake tables`), then by the job on
a standalone cluster of one-core workers. CPU seconds of the driver and of each executor during the job, Python and JVM
apart, the clock, and the records decoded by all as a part of the log's. Goals:

- the driver's CPU and the busiest executor's together: with two workers at most 0.67 of that with one;
- the driver's CPU per million records of topics: at most 0.1 of that of one process. A session and the first plans
  cost the driver's JVM some seconds however long the log is, so it is counted from one size of log to the next;
- the CPU of all from one size to the next: at most 3 times what one process needs more;
- records decoded: at most 1.1 times the log's.
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
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.lakes import Size, lake_of
from benchmarks.spark.cpu import processes, tree_cpu

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
        told: dict[str, Any] = cluster.run_driver("benchmarks.spark.jobs:by_driver", job, lake, workers, timeout=3600)
        return told


def by_driver(spark: SparkSession, job: str, lake: str, workers: str) -> dict[str, Any]:
    """The CPU seconds of all processes before and after the job."""
    from kraftlake.spark_jobs import run_job

    while spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() <= int(workers):
        spark.range(1).count()
    decoded = counted_steps()
    started, begun = spent(), time.perf_counter()
    done = run_job(job, lake, spark=spark)
    wall, ended = time.perf_counter() - begun, spent()
    records = done.offset + 1 - done.first_offset
    return {
        "wall": wall,
        "records": records,
        "decoded": sum(decoded) / records,
        "steps": done.steps,
        "executors": [
            {name: ended[pid][name] - started.get(pid, {}).get(name, 0.0) for name in ("python", "jvm")}
            for pid in ended
            if pid
        ],
        "driver": {name: ended[0][name] - started[0][name] for name in ("python", "jvm")},
    }


def counted_steps() -> list[int]:
    """The numbers of records that are decoded in the steps to come, which the list grows by."""
    from kraftlake.spark_jobs import shard_run

    decoded, run_step = list[int](), shard_run.run_step

    def counting(*plan: Any) -> Any:
        done = run_step(*plan)
        decoded.append(shard_run.step_size(done)[0])
        return done

    shard_run.run_step = counting
    return decoded


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
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.spark.jobs", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--job", default="all")
    parser.add_argument("--log", choices=("busy", "topics"), default="busy", help="topics: no records of anything else")
    parser.add_argument("--sizes", default="3M:100k,10M:100k", help="RECORDS:PARTITIONS, some with commas between")
    parser.add_argument("--workers", default="1,2")
    parser.add_argument("--lakes", type=Path, help="where generated lakes are kept")
    options = parser.parse_args()
    workers = [int(count) for count in options.workers.split(",")]
    sizes = [Size.parse(text) for text in options.sizes.split(",")]
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.lakes or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        runs = [measured(options.job, options.log, size, folder, workers) for size in sizes]
    for size, run in zip(sizes, runs, strict=True):
        for found in verdicts_of(run):
            say(size, *found)
    for (_, before), (size, after) in pairwise(zip(sizes, runs, strict=True)):
        for found in verdicts_of_growth(before, after):
            say(size, *found)


Run = dict[int, dict[str, Any]]
"""What each number of workers took; 0 is one process without Spark."""


def measured(job: str, log: str, size: Size, folder: Path, workers: Sequence[int]) -> Run:
    """All runs over a log, printed."""
    lake = lake_of(log, folder, size.records, size.partitions)
    in_process(job, lake)  # compiles
    alone = in_process(job, lake)
    run: Run = {0: {**alone, "total": alone["cpu"]}}
    say(size, "one process", run[0])
    for count in workers:
        told = on_cluster(job, lake, count)
        driver = sum(told["driver"].values())
        each = [sum(executor.values()) for executor in told["executors"]]
        told |= {"total": driver + sum(each), "driver_cpu": driver, "driver_and_busiest": driver + max(each)}
        run[count] = told
        say(size, f"{count} workers", told)
    return run


def verdicts_of(run: Run) -> Iterator[tuple[str, dict[str, Any]]]:
    """What the runs over one log say."""
    for count, told in run.items():
        if count:
            yield verdict(f"records decoded / the log's, {count} workers", told["decoded"], 1.1)
    if {1, 2} <= run.keys():
        ratio = run[2]["driver_and_busiest"] / run[1]["driver_and_busiest"]
        yield verdict("driver and busiest executor, 2 workers / 1", ratio, 0.67)


def verdicts_of_growth(before: Run, after: Run) -> Iterator[tuple[str, dict[str, Any]]]:
    """What the runs over two logs say."""
    alone = after[0]["total"] - before[0]["total"]
    for count in after:
        if count:
            driver, total = (after[count][name] - before[count][name] for name in ("driver_cpu", "total"))
            yield verdict(f"driver's CPU for the records more / one process's, {count} workers", driver / alone, 0.1)
            yield verdict(f"CPU of all for the records more / one process's, {count} workers", total / alone, 3.0)


def verdict(text: str, value: float, goal: float) -> tuple[str, dict[str, Any]]:
    """A line for `say`."""
    return text, {"value": value, "goal": goal, "met": value <= goal}


def say(size: Size, what: str, told: dict[str, Any]) -> None:
    """Print one line of JSON."""
    rounded = json.loads(json.dumps(told), parse_float=lambda text: round(float(text), 2))
    sys.stdout.write(json.dumps({"log": str(size), "what": what, **rounded}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
