"""Times commands as whole processes, in turn: A B A B …, so that a machine that slows down slows all of them."""

from __future__ import annotations

import resource
import statistics
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs


@attrs.frozen
class Timing:
    """Seconds of each counted run."""

    wall: tuple[float, ...]
    cpu: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.wall)

    @property
    def least(self) -> float:
        return min(self.wall)

    @property
    def median_cpu(self) -> float:
        return statistics.median(self.cpu)


def as_installed(folder: Path) -> dict[str, str]:
    """The environment in which Python keeps bytecode as for an installed package, whatever is chosen for the tree."""
    return {"PYTHONPYCACHEPREFIX": str(folder / "pyc"), "PYTHONDONTWRITEBYTECODE": ""}


def run_once(command: Sequence[str], out: Path) -> tuple[float, float]:
    """Wall and CPU seconds of one run; its output goes to `out`. Raises where the command fails."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    with out.open("wb") as stdout:
        subprocess.run(command, stdout=stdout, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, check=True)
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime)


def time_in_turn(commands: Mapping[str, Sequence[str]], runs: int, out: Path, warm_up: int = 1) -> dict[str, Timing]:
    """Each command `runs` times after `warm_up` uncounted rounds, one after another in each round."""
    measured: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for turn in range(warm_up + runs):
        for name, command in commands.items():
            seconds = run_once(command, out)
            if turn >= warm_up:
                measured[name].append(seconds)
    return {name: Timing(*(tuple(each) for each in zip(*taken, strict=True))) for name, taken in measured.items()}
