"""What Spark's jobs cost: the distributed fold against one process, at sizes that are asked for.

    python -m benchmarks.spark [--sizes 1M:100k,10M:1M] [--cluster 1M] [--runs N] [--lakes DIR] [--json]

A size is RECORDS:PARTITIONS; --cluster is a log of nothing but so many partitions' creation. Everything runs in a
process of its own, one after the other, and counts the CPU seconds of all processes that it starts, Spark's JVM and its
start included. How long an append takes to reach a table is measured by `python -m benchmarks.spark.latency`. Lakes are
generated (seeded) into DIR and kept there; without it they lie in a folder that goes away.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from benchmarks.lakes import Size, lake_of, number

FOLD_GOAL = 5.0
"""CPU of the distributed fold against the local one, at 10 M records over 1 M partitions."""
GROWTH_GOAL = 1.3
"""Of the cost a record from a smaller log to a larger one."""


def measured(what: str, lake: Path) -> dict[str, float]:
    """One run in a process of its own; the lake has no snapshot before it, and none behind it."""
    shutil.rmtree(lake / "snapshots", ignore_errors=True)
    command = [sys.executable, "-m", "benchmarks.spark.child", what, str(lake)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    shutil.rmtree(lake / "snapshots", ignore_errors=True)
    if done.returncode:
        sys.exit(f"{what} on {lake} failed: {done.stderr[-2000:]}")
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def best(what: str, lake: Path, runs: int) -> dict[str, float]:
    """The run that took the least CPU."""
    return min((measured(what, lake) for _ in range(runs)), key=lambda run: run["cpu"])


def row_of(what: str, size: Size, lake: Path, runs: int) -> dict[str, object]:
    """What one way to do it took."""
    return {"what": what, "size": str(size), "asked": size.records, **best(what, lake, runs)}


def measure(sizes: Sequence[Size], cluster: int | None, folder: Path, runs: int) -> list[dict[str, object]]:
    """A row for each size and way to do it."""
    rows: list[dict[str, object]] = []
    for size in sizes:
        lake = lake_of("busy", folder, size.records, size.partitions)
        rows += [row_of(what, size, lake, runs) for what in ("local-fold", "spark-fold")]
    if cluster is not None:
        size = Size(records=cluster, partitions=cluster)
        lake = lake_of("busy", folder, size.records, size.partitions)
        rows += [row_of(what, size, lake, runs) for what in ("local-snapshot", "spark-snapshot")]
    return rows


def verdicts(rows: Sequence[dict[str, object]]) -> list[tuple[str, float, float | None]]:
    """What the rows say, each with its goal where it has one."""
    cost = {(row["what"], row["size"]): _cost(row) for row in rows}
    found: list[tuple[str, float, float | None]] = []
    for row in rows:
        if str(row["what"]).startswith("spark-"):
            local = cost[str(row["what"]).replace("spark", "local"), row["size"]]
            goal = FOLD_GOAL if row["what"] == "spark-fold" and int(str(row["asked"])) >= 10_000_000 else None
            found.append((f"CPU of {row['what']} / the local one, {row['size']}", _cost(row) / local, goal))
    for what in ("local-fold", "spark-fold"):
        mine = [row for row in rows if row["what"] == what]
        for before, after in pairwise(mine):
            text = f"cost a record of {what}, {after['size']} / {before['size']}"
            found.append((text, _cost(after) / _cost(before), GROWTH_GOAL))
    return found


def _cost(row: dict[str, object]) -> float:
    """CPU seconds a record of the log."""
    return float(str(row["cpu"])) / float(str(row["records"]))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sizes", default="1M:100k", help="RECORDS:PARTITIONS, several with commas between them")
    parser.add_argument("--cluster", type=number, help="partitions of a cluster to make a snapshot of")
    parser.add_argument("--runs", type=int, default=1, help="the best of so many counts")
    parser.add_argument("--lakes", type=Path, help="where generated lakes are kept")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.lakes or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        sizes = [Size.parse(text) for text in options.sizes.split(",") if text]
        rows = measure(sizes, options.cluster, folder, options.runs)
    results = verdicts(rows)
    if options.json:
        sys.stdout.write(json.dumps({"runs": rows, "verdicts": results}, indent=1) + "\n")
        return
    line = "{:16} {:42} {:>9} {:>9} {:>12} {:>9}\n".format
    sys.stdout.write(line("", "size", "CPU s", "wall s", "records/s", "peak GiB"))
    for row in rows:
        rate = f"{float(str(row['records'])) / float(str(row['cpu'])):,.0f}"
        cells = (f"{float(str(row['cpu'])):.1f}", f"{float(str(row['wall'])):.1f}", rate)
        sys.stdout.write(line(str(row["what"]), str(row["size"]), *cells, f"{float(str(row['peak_gib'])):.2f}"))
    sys.stdout.write("\nrecords/s are those of a CPU second, the start of Python and of Spark's JVM included\n\n")
    for text, value, goal in results:
        verdict = "" if goal is None else f"  goal {goal:g}: {'met' if value <= goal else 'NOT met'}"
        sys.stdout.write(f"{value:7.2f}  {text}{verdict}\n")


if __name__ == "__main__":
    main()
