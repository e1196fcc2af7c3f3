"""Kafka 4.4's image classes and ours on the same bytes, in turn, and the ratios beside their goals.

    python -m benchmarks.image [--topics 12500 100000] [--changes 1000000] [--only load] [--runs N] [--json]

Java writes the logs, both sides read them, and what they compute is compared before anything is timed. A ratio below 1
is faster than Java. Times are of the wall clock: on a busy machine the least one tells more than the median.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.image.goals import COLD_COLUMNS_GOAL, COLD_LOG_GOAL, LARGE, MEMORY_GOAL, WORKLOADS
from benchmarks.image.in_turn import Samples, compare, measure
from benchmarks.image.kafka_side import KafkaSide
from benchmarks.image.lake_columns import in_a_process
from benchmarks.image.our_side import PARTITIONS_PER_TOPIC, workloads
from benchmarks.processes import Timing, as_installed, time_in_turn

ROOT = Path(__file__).resolve().parents[2]
Row = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.image", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--topics", type=int, nargs="+", default=[12_500], help="cluster sizes, 10 partitions a topic")
    parser.add_argument("--changes", type=int, default=1_000_000, help="change records of the workload from wire")
    parser.add_argument("--only", default="", help="only workloads whose key begins so")
    parser.add_argument("--runs", type=int, default=15, help="samples of each side")
    parser.add_argument("--seconds", type=float, default=30, help="about how long a workload is sampled")
    parser.add_argument("--heap", default="6g", help="the JVM's -Xmx")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    report: list[Row] = []
    with KafkaSide(options.heap) as java:
        for topics in options.topics:
            with tempfile.TemporaryDirectory() as folder:
                java.ask_once("gen", topics, options.changes, folder)
                rows = _whole_processes(java, topics, Path(folder), options.only, min(options.runs, 5))
                rows += _in_memory(java, topics, Path(folder), options)
            report += rows
            if not options.json:
                _print(topics, rows)
    if options.json:
        print(json.dumps(report, indent=1))


def _in_memory(java: KafkaSide, topics: int, folder: Path, options: argparse.Namespace) -> list[Row]:
    chosen = [workload for workload in WORKLOADS if workload.key.startswith(options.only)]
    if not chosen:
        return []
    java.serve(folder)
    ours = workloads(folder)
    rows = []
    for workload in chosen:
        _say(f"{topics} topics: {workload.what}")
        compare(workload, java, ours[workload.key])
        samples = measure(workload, java, ours[workload.key], options.runs, options.seconds)
        goal = workload.goal and workload.goal[topics * PARTITIONS_PER_TOPIC >= LARGE]
        rows.append(_time_row(topics, workload.key, workload.what, goal, samples))
        _say(f"  {_ratio(samples.least)} of Java's time at least, {_ratio(samples.median)} in the median")
    java.stop_serving()
    return rows


def _whole_processes(java: KafkaSide, topics: int, folder: Path, only: str, runs: int) -> list[Row]:
    """Memory, and fresh processes."""
    log = folder / "snapshot.log"
    rows = []
    if "memory".startswith(only):
        _say(f"{topics} topics: memory")
        theirs, ours = java.ask_once("memory", log), _fresh("memory", log)
        assert theirs["topics"] == ours["topics"] == topics
        each = [side["bytes"] / topics / PARTITIONS_PER_TOPIC for side in (theirs, ours)]
        rows.append(
            Row(topics=topics, key="memory", what="bytes a partition, indexes included", unit="bytes", goal=MEMORY_GOAL)
            | Row(java_min=each[0], ours_min=each[1], ratio_min=each[1] / each[0], ratio_median=each[1] / each[0])
        )
    if "fresh".startswith(only):
        _say(f"{topics} topics: fresh processes")
        directory = folder / "__cluster_metadata-0"
        directory.mkdir()
        (directory / f"{0:020d}.log").hardlink_to(log)
        in_a_process("make", log, folder / "lake")
        bytecode = [f"{name}={value}" for name, value in as_installed(folder).items()]
        ours = ["env", *bytecode, sys.executable, "-m", "benchmarks.image.fresh"]
        commands = {
            "java": java.command("cold", log),
            "log": [*ours, "time", str(directory)],
            "columns": [*ours, "time", str(folder / "lake")],
        }
        times = time_in_turn(commands, runs, folder / "out")
        for what, words, goal in (
            ("log", "fresh process: log → image", COLD_LOG_GOAL),
            ("columns", "fresh process: the lake's columns → image", COLD_COLUMNS_GOAL),
        ):
            both = times["java"], times[what]
            samples = Samples(*(_ns(side) for side in both), *(_cpu(side) for side in both))
            large = topics * PARTITIONS_PER_TOPIC >= LARGE  # a small log is loaded before Python has imported anything
            rows.append(_time_row(topics, f"fresh_{what}", words, goal if large else None, samples))
    return rows


def _fresh(what: str, log: Path) -> Any:
    command = [sys.executable, "-m", "benchmarks.image.fresh", what, str(log)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-2000:])
    return json.loads(done.stdout)


def _ns(timing: Timing) -> tuple[float, ...]:
    return tuple(seconds * 1e9 for seconds in timing.wall)


def _cpu(timing: Timing) -> tuple[float, ...]:
    return tuple(seconds * 1e9 for seconds in timing.cpu)


def _time_row(topics: int, key: str, what: str, goal: float | None, samples: Samples) -> Row:
    return Row(
        topics=topics,
        key=key,
        what=what,
        goal=goal,
        unit="ns",
        java_min=min(samples.java),
        ours_min=min(samples.ours),
        ratio_min=samples.least,
        ratio_median=samples.median,
        cpu_ratio_min=min(samples.ours_cpu) / (min(samples.java_cpu) or float("nan")),
        runs=len(samples.ours),
    )


def _print(topics: int, rows: list[Row]) -> None:
    print(f"\n{topics * PARTITIONS_PER_TOPIC:,} partitions: ours / Java, least and median")
    print(f"{'':52} {'least':>8} {'median':>8} {'goal':>6}  {'Java':>9} {'ours':>9}")
    for row in rows:
        ratios = f"{'':17}"
        if "ratio_min" in row:
            ratios = f"{_ratio(row['ratio_min']):>8} {_ratio(row['ratio_median']):>8}"
        goal = row.get("goal")
        met = "" if goal is None else "✓" if row["ratio_min"] <= goal else "✗"
        java = _quantity(row["java_min"], row["unit"]) if "java_min" in row else ""
        ours = _quantity(row["ours_min"], row.get("unit", "ns"))
        print(f"{row['what']:52} {ratios} {goal or '':>6} {met:1} {java:>9} {ours:>9}")
    sys.stdout.flush()


def _ratio(ratio: float) -> str:
    return f"{ratio:.3f}" if ratio < 1 else f"{ratio:.2f}"


def _quantity(value: float, unit: str) -> str:
    if unit == "bytes":
        return f"{value:.0f} B"
    for name, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if value >= size:
            return f"{value / size:.3g} {name}"
    return f"{value:.0f} ns"


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
