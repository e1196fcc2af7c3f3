"""Replication under loss, delay, reordering, crashes, pauses and changes of leaders: nothing that is committed is lost.

Each seed is one history. A seed that fails is printed, and kept here for good once it is understood.
"""

from __future__ import annotations

import os

import pytest

from tests.simulation.replication import Simulation

SEEDS = 1_000 if os.environ.get("KRAFTLAKE_TESTS") == "long" else 100
GROUPS = 10


KEPT = {
    8: "a leader that appended nothing leaves its epoch at the end of its log",
    280: "metadata that is no news drops a proposal of which the controller has made an ISR",
}
"""Seeds that have failed, and what was found by them."""


@pytest.mark.parametrize("seed", KEPT)
def test_what_was_found_once_stays_found(seed):
    Simulation(seed).run()


@pytest.mark.parametrize("group", range(GROUPS))
def test_what_is_committed_stays_and_all_replicas_end_up_the_same(group):
    for seed in range(group, SEEDS, GROUPS):
        Simulation(seed).run()
