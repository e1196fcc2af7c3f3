"""Replication under loss, delay, reordering, crashes, pauses and changes of leaders: no committed record is lost.

Each seed is one history; with disks, brokers lose power, and their log directories fail or are full. A failing seed is
printed; each fault found has its own test, which does not depend on the simulation, in
tests/replica_manager/partition/test_partition.py, logs/test_memory_log.py and logs/disk.
"""

from __future__ import annotations

import os

import pytest

from tests.simulation.replication import Simulation

LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"
SEEDS = 1_000 if LONG else 100
DISK_SEEDS = 1_000 if LONG else 20
GROUPS = 10


def check_that_something_happened(runs: list[Simulation]) -> None:
    assert sum(len(log) for run in runs for log in run.committed.values()) > 3 * len(runs)
    assert sum(len(run.acknowledged) for run in runs) > len(runs)
    assert sum(len(run.leaders) for run in runs) > 3 * len(runs)
    assert sum(run.moved for run in runs) > len(runs)


@pytest.mark.parametrize("group", range(GROUPS))
def test_committed_records_stay_and_all_replicas_become_equal(group):
    runs = [Simulation(seed) for seed in range(group, SEEDS, GROUPS)]
    for run in runs:
        run.run()
    check_that_something_happened(runs)


@pytest.mark.parametrize("group", range(GROUPS if LONG else 1))
def test_committed_records_stay_on_disks_that_lose_power_and_fail(group):
    runs = [Simulation(seed, disks=True) for seed in range(group, DISK_SEEDS, GROUPS if LONG else 1)]
    for run in runs:
        run.run()
    check_that_something_happened(runs)
    assert sum(node.files.life for run in runs for node in run.cluster.nodes.values()) > len(runs)
