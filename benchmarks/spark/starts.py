"""What Spark's start costs: `python -m benchmarks.spark.starts [--job all] [--jobs 4]`; prints lines of JSON.

A session starts, and a job makes the tables of copies of the sample, one after the other, which is as small as jobs
get. Clock and CPU seconds of all processes, by what they are. Goals: the first job within 6 s and 9 CPU s beyond the
session's start, the best of the others within 1.5 s and 2 CPU s.

A watcher looks at the processes many times a second, for Spark's workers end when they like and nobody waits for them;
what one spends after the last look is missing.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from benchmarks.spark.cpu import cpu_by_process

SAMPLE: Final = Path(__file__).resolve().parents[2] / "samples" / "kafka-4.4"
FIRST: Final = {"wall": 6.0, "cpu": 9.0}
BEST: Final = {"wall": 1.5, "cpu": 2.0}
_WATCH: Final = "--watch"
_LOOK_SECONDS = 0.03
_SETTLES_SECONDS = 0.2
_KINDS: Final = {
    "bin/java": "jvm",
    "source_runner": "stream planner",
    "_data_source": "planners",
    "daemon": "workers",
    "benchmarks.spark.starts": "driver",
}


def watch(root: int) -> None:
    """Answer each line of stdin with the CPU seconds so far of a process and all that it started, by kind."""
    spent: dict[int, float] = {}
    kinds: dict[int, str] = {}
    while True:
        found = cpu_by_process(root)
        spent |= found
        for pid in found:  # a process has the command line of the one that forked it at first
            kinds[pid] = _kind_of(pid) or kinds.get(pid, "others")
        if select.select([sys.stdin], [], [], _LOOK_SECONDS)[0]:
            if not sys.stdin.readline():
                return
            totals: Counter[str] = Counter()
            for pid, seconds in spent.items():
                if pid != os.getpid():
                    totals[kinds[pid]] += seconds  # type: ignore[assignment] # numbers
            sys.stdout.write(json.dumps(totals) + "\n")
            sys.stdout.flush()


def _kind_of(pid: int) -> str | None:
    try:
        line = Path("/proc", str(pid), "cmdline").read_text("utf-8", "replace")
    except OSError:
        return None
    if not line:  # it has ended
        return None
    return next((kind for word, kind in _KINDS.items() if word in line), "others")


class Stopwatch:
    """Clock and CPU seconds between its calls."""

    def __init__(self) -> None:
        self._watcher = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.spark.starts", _WATCH, str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._before = self._spent()

    def time(self, run: Callable[[], object]) -> dict[str, Any]:
        """What a call takes."""
        begun = time.perf_counter()
        run()
        wall = time.perf_counter() - begun
        time.sleep(_SETTLES_SECONDS)
        after = self._spent()
        by_kind = {kind: after[kind] - self._before.get(kind, 0.0) for kind in after}
        self._before = after
        return {"wall": wall, "cpu": sum(by_kind.values()), **by_kind}

    def end(self) -> None:
        """End the watcher."""
        with self._watcher:
            assert self._watcher.stdin is not None
            self._watcher.stdin.close()

    def _spent(self) -> dict[str, float]:
        assert self._watcher.stdin is not None
        assert self._watcher.stdout is not None
        self._watcher.stdin.write("\n")
        self._watcher.stdin.flush()
        spent: dict[str, float] = json.loads(self._watcher.stdout.readline())
        return spent


def main() -> None:
    """Measure and print."""
    if _WATCH in sys.argv:
        watch(int(sys.argv[-1]))
        return
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark.starts", description=__doc__)
    parser.add_argument("--job", default="all")
    parser.add_argument("--jobs", type=int, default=4, help="how many, one after the other")
    options = parser.parse_args()
    from kraftlake.replay.imports.import_log import import_source
    from kraftlake.spark_jobs import run_job, spark_session

    with tempfile.TemporaryDirectory() as folder:
        lakes = [Path(folder, f"lake-{number}") for number in range(options.jobs)]
        for lake in lakes:
            import_source(SAMPLE, lake)
        stopwatch = Stopwatch()
        say("session", stopwatch.time(lambda: spark_session("starts benchmark")))
        runs = []
        for number, lake in enumerate(lakes):
            runs.append(stopwatch.time(lambda lake=lake: run_job(options.job, lake)))
            say(f"job {number + 1}", runs[-1])
        stopwatch.end()
        spark_session("starts benchmark").stop()
    best = {name: min(run[name] for run in runs[1:] or runs) for name in BEST}
    for what, found, goals in (("first job", runs[0], FIRST), ("best of the others", best, BEST)):
        for name, goal in goals.items():
            say(f"{what}, {name}", {"value": found[name], "goal": goal, "met": found[name] <= goal})


def say(what: str, figures: dict[str, Any]) -> None:
    """Print one line of JSON."""
    rounded = {name: round(value, 2) if isinstance(value, float) else value for name, value in figures.items()}
    sys.stdout.write(json.dumps({"what": what, **rounded}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
