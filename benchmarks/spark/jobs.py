"""What a job costs on a cluster: `python -m benchmarks.spark.jobs [--sizes 3M:100k,10M:100k] [--workers 1,2] [--warm]`.

The tables of a generated log are made from its first record on: in one process (`kraftlake tables`), then by the job on
a standalone cluster of one-core workers. CPU seconds of the driver and of each executor during the job, Python and JVM
apart, the clock, and the records decoded by all as a part of the log's. With --warm the job runs again in the same
session, from the first record on, as in the session of a stream that goes on: a line of its own. With --runs each
number of workers has its turn so often, and the verdicts are of the medians. Goals:

- the driver's CPU and the busiest executor's together: with two workers at most 0.62 of that with one, warm 0.60;
- the driver's CPU per million records: at most 0.08 of that of one process. The first plans cost the driver's JVM some
  seconds however long the log is, so it is counted from one size of log to the next;
- the CPU of all: at most 1.4 times that of one process;
- records decoded: at most 1.1 times the log's;
- the memory of each process, as long as it lives at the end: at most 4 GiB.
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
from statistics import median
from typing import TYPE_CHECKING, Any

from benchmarks.lakes import Size, lake_of
from benchmarks.spark.cpu import peak_memory, processes, tree_cpu

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


def on_cluster(job: str, lake: Path, workers: int, times: int) -> list[dict[str, Any]]:
    """The job, so many times in one session, on a cluster that starts and ends with it."""
    from tests.spark_cluster import started_cluster

    with (
        tempfile.TemporaryDirectory() as folder,
        started_cluster(Path(folder), workers=workers, memory="2g") as cluster,
    ):
        runs: list[dict[str, Any]] = cluster.run_driver(
            "benchmarks.spark.jobs:by_driver", job, lake, workers, times, timeout=3600
        )
        return runs


def by_driver(spark: SparkSession, job: str, lake: str, workers: str, times: str) -> list[dict[str, Any]]:
    """What each run of the job takes."""
    while spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() <= int(workers):
        spark.range(1).count()
    runs = []
    for _ in range(int(times)):
        emptied(Path(lake))
        runs.append(one_run(spark, job, lake))
    return runs


def one_run(spark: SparkSession, job: str, lake: str) -> dict[str, Any]:
    """The CPU seconds of all processes before and after a run of the job."""
    from kraftlake.spark_jobs import run_job

    decoded = counted_steps()
    started, begun = spent(), time.perf_counter()
    done = run_job(job, lake, spark=spark)
    wall, ended = time.perf_counter() - begun, spent()
    peak = max(peak_memory(), *(peak_memory(pid) for pid in ended if pid))
    records = done.offset + 1 - done.first_offset
    return {
        "wall": wall,
        "records": records,
        "decoded": sum(decoded) / records,
        "steps": done.steps,
        "peak_gib": peak,
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
        decoded.append(sum(each.records for each in done.facts))
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
    logs = "topics: no records of anything else; cluster: brokers and configs change, and hardly a partition"
    parser.add_argument("--log", choices=("busy", "topics", "cluster"), default="busy", help=logs)
    parser.add_argument("--sizes", default="3M:100k,10M:100k", help="RECORDS:PARTITIONS, some with commas between")
    parser.add_argument("--workers", default="1,2")
    parser.add_argument("--warm", action="store_true", help="run the job again in the same session")
    parser.add_argument("--runs", type=int, default=1, help="of each number of workers, in turn")
    parser.add_argument("--lakes", type=Path, help="where generated lakes are kept")
    options = parser.parse_args()
    if options.runs < 1:
        parser.error("--runs is at least 1")
    workers = [int(count) for count in options.workers.split(",")]
    sizes = [Size.parse(text) for text in options.sizes.split(",")]
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.lakes or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        turns = workers * options.runs
        runs = [measured(options.job, options.log, size, folder, turns, warm=options.warm) for size in sizes]
    for size, run in zip(sizes, runs, strict=True):
        for found in verdicts_of(run):
            say(size, *found)
    for (_, before), (size, after) in pairwise(zip(sizes, runs, strict=True)):
        for found in verdicts_of_growth(before, after):
            say(size, *found)


Run = dict[tuple[int, bool], dict[str, Any]]
"""What each number of workers took, fresh and warm; 0 is one process without Spark."""

ALONE = (0, False)


def measured(job: str, log: str, size: Size, folder: Path, turns: Sequence[int], *, warm: bool) -> Run:
    """All runs over a log, printed; `turns` are the numbers of workers. Returns their medians."""
    lake = lake_of(log, folder, size.records, size.partitions)
    in_process(job, lake)  # compiles
    alone = in_process(job, lake)
    alone["total"] = alone["cpu"]
    say(size, "one process", alone)
    runs: dict[tuple[int, bool], list[dict[str, Any]]] = {ALONE: [alone]}
    for count in turns:
        for number, figures in enumerate(on_cluster(job, lake, count, 1 + warm)):
            driver = sum(figures["driver"].values())
            each = [sum(executor.values()) for executor in figures["executors"]]
            figures |= {"total": driver + sum(each), "driver_cpu": driver, "driver_and_busiest": driver + max(each)}
            runs.setdefault((count, number > 0), []).append(figures)
            say(size, named(count, number > 0), figures)
    return {key: medians(found) for key, found in runs.items()}


def medians(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The median of each number in some runs."""
    names = [name for name, value in runs[0].items() if isinstance(value, (int, float))]
    return {name: median(run[name] for run in runs) for name in names}


def named(count: int, warm: bool) -> str:
    """How lines name a run."""
    return f"{count} workers{', warm' * warm}"


def verdicts_of(run: Run) -> Iterator[tuple[str, dict[str, Any]]]:
    """What the runs over one log say."""
    for (count, warm), figures in run.items():
        if count:
            yield verdict(f"GiB of the largest process, {named(count, warm)}", figures["peak_gib"], 4.0)
            yield verdict(f"records decoded / the log's, {named(count, warm)}", figures["decoded"], 1.1)
            yield verdict(
                f"CPU of all / one process's, {named(count, warm)}", figures["total"] / run[ALONE]["total"], 1.4
            )
    for warm, goal in ((False, 0.62), (True, 0.60)):
        if {(1, warm), (2, warm)} <= run.keys():
            ratio = run[2, warm]["driver_and_busiest"] / run[1, warm]["driver_and_busiest"]
            yield verdict(f"driver and busiest executor, 2 workers / 1{', warm' * warm}", ratio, goal)


def verdicts_of_growth(before: Run, after: Run) -> Iterator[tuple[str, dict[str, Any]]]:
    """What the runs over two logs say."""
    alone = after[ALONE]["total"] - before[ALONE]["total"]
    for count, warm in after:
        if count:
            run, names = (count, warm), ("driver_cpu", "total")
            driver, total = (after[run][name] - before[run][name] for name in names)
            yield verdict(f"driver's CPU for the records more / one process's, {named(*run)}", driver / alone, 0.08)
            yield verdict(f"CPU of all for the records more / one process's, {named(*run)}", total / alone, 1.4)


def verdict(text: str, value: float, goal: float) -> tuple[str, dict[str, Any]]:
    """A line for `say`."""
    return text, {"value": value, "goal": goal, "met": value <= goal}


def say(size: Size, what: str, figures: dict[str, Any]) -> None:
    """Print one line of JSON."""
    rounded = json.loads(json.dumps(figures), parse_float=lambda text: round(float(text), 2))
    sys.stdout.write(json.dumps({"log": str(size), "what": what, **rounded}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
