"""Replication under loss, delay, reordering, crashes, pauses and changes of leaders: no committed record is lost.

Each seed is one history. A failing seed is printed; each fault found has its own test, which does not depend on the
simulation, in tests/replica_manager/partition/test_partition.py and logs/test_memory_log.py.
"""

from __future__ import annotations

import os

import pytest

from tests.simulation.replication import Simulation

SEEDS = 1_000 if os.environ.get("KRAFTLAKE_TESTS") == "long" else 100
GROUPS = 10


@pytest.mark.parametrize("group", range(GROUPS))
def test_committed_records_stay_and_all_replicas_become_equal(group):
    runs = [Simulation(seed) for seed in range(group, SEEDS, GROUPS)]
    for run in runs:
        run.run()
    # a history in which nothing happens shows nothing
    assert sum(len(log) for run in runs for log in run.committed.values()) > 3 * len(runs)
    assert sum(len(run.acknowledged) for run in runs) > len(runs)
    assert sum(len(run.leaders) for run in runs) > 3 * len(runs)
    assert sum(run.moved for run in runs) > len(runs)
