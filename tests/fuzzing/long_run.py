"""Fuzzing by CPU time, in pieces: a run that is stopped goes on where it was.

    python -m tests.fuzzing.long_run FOLDER [MINUTES] [TARGET…]    # 60 minutes of all targets, in equal parts

The folder keeps the kernels that guide the fuzzer, the inputs that it found, and the figures of each target.
"""

from __future__ import annotations

import json
import re
import resource
import sys
import time
from pathlib import Path
from typing import Any

from tests.fuzzing.targets import OF_KERNELS, TARGETS
from tests.kernels.guarded_builds import GuardedBuild, build_guided
from tests.wheel import REPOSITORY

PLAIN = GuardedBuild(REPOSITORY, {})
"""The kernels of this checkout, for targets without compiled code."""
PIECE = 600
"""The longest time between two notes of the figures, in seconds of a clock: of CPU time it may be a tenth."""
MINUTES = 60
"""CPU time of all targets."""
ROUNDS = 4
"""The number of turns of each target."""


def fuzz_target(name: str, seconds: float, folder: Path, guided: GuardedBuild) -> dict[str, Any]:
    """Fuzz one target until it has had `seconds` of CPU time; the figures of all its pieces.

    `coverage` are the branches and functions that were reached, `counters` the branches of the kernels that guide.
    Raises AssertionError for a finding, with its input in a file of the folder.
    """
    inputs, notes = folder / "inputs" / name, folder / f"{name}.json"
    inputs.mkdir(parents=True, exist_ok=True)
    figures: dict[str, Any] = {"cpu_seconds": 0.0, "seconds": 0.0, "executions": 0, "pieces": 0}
    if notes.exists():
        figures = json.loads(notes.read_text("utf-8"))
    while figures["cpu_seconds"] < seconds:
        share = figures["cpu_seconds"] / figures["seconds"] if figures["pieces"] else 1.0
        piece = max(1, min(PIECE, round((seconds - figures["cpu_seconds"]) / share)))
        options = (f"-seed={figures['pieces'] + 1}", f"-max_total_time={piece}", f"-artifact_prefix={folder}/{name}-")
        before, begun = _cpu_seconds(), time.monotonic()
        said = run_fuzzer(guided if name in OF_KERNELS else PLAIN, name, *options, inputs)
        figures["cpu_seconds"] += _cpu_seconds() - before
        figures["seconds"] += time.monotonic() - begun
        figures["executions"] += int(re.findall(r"number_of_executed_units: *(\d+)", said)[-1])
        figures["coverage"] = int(re.findall(r"\bcov: (\d+)", said)[-1])
        figures["counters"] = sum(map(int, re.findall(r"\((\d+) inline 8-bit counters\)", said)))
        figures["pieces"] += 1
        notes.write_text(json.dumps(figures), "utf-8")
    return figures


def run_fuzzer(build: GuardedBuild, *words: object) -> str:
    """What a run of the fuzzer printed. Raises AssertionError where it ended by a finding."""
    done = build.run("-m", "tests.fuzzing", *words)
    said = done.stdout + done.stderr
    assert done.returncode == 0, f"{' '.join(map(str, words))}: {done.stdout[-3000:]}{done.stderr[-2000:]}"
    return said


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main(where: str, minutes: str = str(MINUTES), *names: str) -> int:
    """Fuzz targets in rounds, so that a run that is stopped has seen all, and print their figures; 1 for a finding."""
    folder = Path(where).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    guided = build_guided(folder / "guided")
    share = 60 * float(minutes) / len(TARGETS)
    left = list(names or TARGETS)
    found = False
    for turn in range(1, ROUNDS + 1):
        for name in list(left):
            try:
                figures = fuzz_target(name, share * turn / ROUNDS, folder, guided)
            except AssertionError as finding:
                left.remove(name)
                found = True
                print(f"{name}: {finding}", flush=True)
            else:
                print(f"{name}: {json.dumps(figures)}", flush=True)
    return int(found)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
