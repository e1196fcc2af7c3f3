"""The whole cluster in virtual time: nothing acknowledged is lost, and it becomes whole again, whatever fails.

Each history is an hour of a cluster, in a process of its own, see docs/simulation.md. A failing one names the command
that repeats it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest

from simulator.planted import PLANTED
from simulator.planted_fault import CAUGHT_WITHIN
from simulator.specification import LIVENESS, SAFETY
from tests.at_least_one import at_least_one
from tools.simulate import SECONDS_AN_HOUR, counts, run_process, simulate

LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"
FEW_HOURS = range(7, 9)
"""Seeds of the quick run; the lake of 7 is on a disk."""
GROUPS = [range(first, first + 20) for first in range(1, 101, 20)] if LONG else [FEW_HOURS]
BY_PROPERTY = {fault.breaks: name for name, fault in reversed(PLANTED.items()) if fault.breaks}
"""The first planted fault of each property of the specification."""
QUICKLY_CAUGHT = ("acknowledged-at-once", "commits-overwrite", "last-records-removed", *BY_PROPERTY.values())
"""The planted faults that `make test` tries, too: of a broker, a lake, a cleaner, and one of each property."""


def run(seeds: range) -> list[dict[str, Any]]:
    """What happened in the histories of seeds; a process that ends otherwise is a failure, too."""
    hours: list[dict[str, Any]] = []

    def take(hour: dict[str, Any]) -> bool:
        hours.append(hour)
        return True

    simulate(seeds, 1.0, take)
    return hours


@cache
def hours_of(seeds: range) -> list[dict[str, Any]]:
    """What happened in histories without a planted fault, which run once."""
    return run(seeds)


@pytest.mark.parametrize("seeds", GROUPS, ids=str)
@pytest.mark.xdist_group("hours")
def test_nothing_acknowledged_is_lost_and_the_cluster_becomes_whole(seeds: range) -> None:
    hours = hours_of(seeds)
    failures = [hour["failure"] for hour in hours if "failure" in hour]
    assert not failures, "\n\n".join(failures)
    assert max(hour["cleanings"] for hour in hours) > 10
    assert max(hour["properties_judged"] for hour in hours) > 20
    counted = [hour for hour in hours if counts(hour)]
    assert len(counted) >= len(seeds) - len(seeds) // 10, [hour["seed"] for hour in hours if not counts(hour)]
    cpu_seconds = sum(hour["cpu_seconds"] for hour in hours)
    speed_up = 3_600 * len(hours) / cpu_seconds
    print(f"{len(hours)} cluster-hours in {cpu_seconds:.0f} s of CPU: {speed_up:,.0f} times as fast as the clock")
    assert speed_up > 100


@pytest.mark.skipif(not LONG, reason="make test-long: tests/simulation/test_simulate.py repeats a shorter history")
@pytest.mark.xdist_group("hours")
def test_a_seed_is_one_history() -> None:
    histories = [dict(hour) for hour in (*run(FEW_HOURS[-1:]), *hours_of(FEW_HOURS))]
    for hour in at_least_one(histories):
        assert "failure" not in hour, hour["failure"]
        assert counts(hour), hour
        del hour["cpu_seconds"]
    one, other, again = histories
    assert one == again
    assert one["trace"] != other["trace"]


def test_each_property_of_the_specification_has_a_planted_fault_that_breaks_it() -> None:
    assert BY_PROPERTY.keys() == {*SAFETY, *LIVENESS}


@pytest.mark.parametrize("names", [[name] for name in PLANTED] if LONG else [QUICKLY_CAUGHT], ids=str)
def test_a_planted_fault_is_caught_by_the_property_that_it_breaks(names: Sequence[str]) -> None:
    options = [option for name in names for option in ("--planted", name)]
    hours: list[dict[str, Any]] = []

    def take(hour: dict[str, Any]) -> bool:
        hours.append(hour)
        return True

    _, why = run_process(options, take, seconds=SECONDS_AN_HOUR * CAUGHT_WITHIN)
    for name in at_least_one(names):
        fault = PLANTED[name]
        failures = [hour["failure"] for hour in hours if hour["planted"] == name and "failure" in hour]
        assert any(map(fault.is_shown_by, failures)), f"{fault.what}; seen is {failures or why}"
