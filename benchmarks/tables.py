"""How fast tables are made in process: `python -m benchmarks.tables [--records N] [--partitions N] [--runs N]`.

Two generated logs, one of no-op records (an idle cluster's) and one of a busy cluster, taken in from their first record
as `kraftlake tables` does it, each time in a process of its own: the tables of each job, with the snapshots, and images
and snapshots alone. Records a second, of the clock and of CPU, from the start of the process to its end; compiling does
not count (first runs are thrown away).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

GOAL: Final = 1_000_000
"""Records a second."""

WHATS: Final = {
    "snapshots": "images and snapshots alone",
    "replay": "and local_changes/",
    "history": "histories",
    "metrics": "cluster_metrics/",
    "events": "events/",
    "all": "all of these at once",
}


def run(what: str, lake: Path) -> dict[str, float]:
    """Take the lake's log in, as one of WHATS, in this process, which has done nothing else."""
    from kraftlake.runtime.process_setup import configure_process

    configure_process()  # as `kraftlake tables` does
    import pyarrow as pa

    from kraftlake.replay.log.delta_chunk import DeltaChunk
    from kraftlake.tables.catch_up.snapshot_publisher import DEFAULT_SNAPSHOT_BYTES
    from kraftlake.tables.catch_up.table_run import table_run
    from kraftlake.tables.changes_writer import ChangesWriter
    from kraftlake.tables.jobs import JOBS
    from kraftlake.tables.lake_table import TableDescription

    class NoRows(ChangesWriter):
        description = TableDescription("no_rows", "Nothing.", ((pa.field("offset", pa.int64()), "an offset"),))

        def take_deltas(self, chunk: DeltaChunk) -> None:
            pass

    writers = [NoRows()] if what == "snapshots" else JOBS[what].new_writers()
    snapshots = DEFAULT_SNAPSHOT_BYTES if what == "snapshots" or JOBS[what].snapshots else None
    with table_run(what, lake, writers, snapshot_every_bytes=snapshots) as run:
        run.begin()
        run.catch_up(run.end_offset - 1, to_the_end=True)
        run.finish()
        done = run.result()
    return {
        "records": done.offset + 1,
        "rows": sum(done.rows.values()),
        "snapshots": len(done.snapshots),
        "cpu": time.process_time(),
    }


def measured(what: str, lake: Path) -> dict[str, float]:
    """The same in a process of its own, on the log alone."""
    from benchmarks.processes import as_installed  # the process that is measured does without

    for made in lake.iterdir():
        if made.name != "log":
            shutil.rmtree(made) if made.is_dir() else made.unlink()
    command = [sys.executable, "-m", "benchmarks.tables", "--child", what, str(lake)]
    started = time.perf_counter()
    environment = os.environ | as_installed(lake.parent)
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    wall = time.perf_counter() - started
    if done.returncode:
        sys.exit(f"{what} on {lake} failed: {done.stderr[-2000:]}")
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return {**figures, "wall": wall}


def measure(folder: Path, records: int, partitions: int, runs: int) -> list[dict[str, object]]:
    """A row for each log and job: the best of so many runs."""
    from benchmarks.lakes import lake_of

    rows: list[dict[str, object]] = []
    for log in ("no-op", "busy"):
        lake = lake_of(log, folder, records, partitions)
        for what in WHATS:
            if not rows:
                for first in ("replay", "history", "events", "metrics"):
                    measured(first, lake)
            best = min((measured(what, lake) for _ in range(runs)), key=lambda one: one["wall"])
            rows.append({"log": log, "what": what, **best})
    return rows


def main() -> None:
    """Measure and print."""
    if sys.argv[1:2] == ["--child"]:
        sys.stdout.write(json.dumps(run(sys.argv[2], Path(sys.argv[3]))) + "\n")
        return
    from benchmarks.lakes import number

    parser = argparse.ArgumentParser(prog="python -m benchmarks.tables", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--records", type=number, default=3_000_000, help="of each log")
    parser.add_argument("--partitions", type=number, default=100_000, help="of the busy cluster")
    parser.add_argument("--runs", type=int, default=1, help="the best of so many counts")
    parser.add_argument("--lakes", type=Path, help="where generated lakes are kept")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.lakes or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        rows = measure(folder, options.records, options.partitions, options.runs)
    if options.json:
        sys.stdout.write(json.dumps(rows, indent=1) + "\n")
        return
    line = "{:6} {:30} {:>12} {:>14} {:>12}  {}\n".format
    sys.stdout.write(line("log", "", "records/s", "a CPU second", "rows", f"goal {GOAL:,} records/s"))
    for row in rows:
        records, wall, cpu = (float(str(row[name])) for name in ("records", "wall", "cpu"))
        rates = (f"{records / wall:,.0f}", f"{records / cpu:,.0f}", f"{int(str(row['rows'])):,}")
        sys.stdout.write(
            line(str(row["log"]), WHATS[str(row["what"])], *rates, "met" if records / wall >= GOAL else "NOT met")
        )


if __name__ == "__main__":
    main()
