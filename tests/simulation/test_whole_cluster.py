"""The whole cluster in virtual time: nothing acknowledged is lost, and it becomes whole again, whatever fails.

Each history is an hour of a cluster, in a process of its own, see docs/simulation.md. A failing one names the command
that repeats it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.simulation.virtual.planted import PLANTED

ROOT = Path(__file__).resolve().parents[2]
LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"
HOURS = 1_120 if LONG else 20
HOURS_A_GROUP = 20 if LONG else 5
CAUGHT_WITHIN = 30
"""The number of hours within which a planted fault is found."""
QUICKLY_CAUGHT = ("acknowledged-at-once", "commits-overwrite", "duplicates-appended", "high-watermark-at-log-end")
"""The planted faults that `make test` tries, too."""


def run(*arguments: str) -> list[dict[str, Any]]:
    """What happened in each history."""
    command = [sys.executable, "-m", "tests.simulation.virtual", "--json", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines, done.stderr
    return lines


def counts(hour: dict[str, Any]) -> bool:
    """Whether enough happened in an hour."""
    return hour["records"] >= 1_000 and sum(hour["faults"].values()) >= 20 and hour["leader_moves"] >= 5


@pytest.mark.parametrize("first", range(1, HOURS + 1, HOURS_A_GROUP))
def test_nothing_acknowledged_is_lost_and_the_cluster_becomes_whole(first: int) -> None:
    hours = run(f"{first}-{first + HOURS_A_GROUP - 1}")
    failures = [hour["failure"] for hour in hours if "failure" in hour]
    assert not failures, "\n\n".join(failures)
    counted = [hour for hour in hours if counts(hour)]
    assert len(counted) >= HOURS_A_GROUP - HOURS_A_GROUP // 10, [hour["seed"] for hour in hours if not counts(hour)]
    cpu_seconds = sum(hour["cpu_seconds"] for hour in hours)
    speed_up = 3_600 * len(hours) / cpu_seconds
    print(f"{len(hours)} cluster-hours in {cpu_seconds:.0f} s of CPU: {speed_up:,.0f} times as fast as the clock")
    assert speed_up > 100


def test_a_seed_is_one_history() -> None:
    one, other = run("7", "--hours", "0.1"), run("7-8", "--hours", "0.1")  # the lake of 7 is on a disk
    assert one[0]["trace"] == other[0]["trace"] != other[1]["trace"]


@pytest.mark.parametrize("name", PLANTED if LONG else QUICKLY_CAUGHT)
def test_a_planted_fault_is_caught(name: str) -> None:
    *_, last = run("--until-failure", "--planted", name, f"1-{CAUGHT_WITHIN}")
    assert "failure" in last, f"{PLANTED[name].what}, and {CAUGHT_WITHIN} hours do not show it"
