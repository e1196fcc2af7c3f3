"""Planted faults of callbacks: the simulation of replication sees each of them within a few histories."""

from __future__ import annotations

import pytest

from kraftlake.replica_manager import alter_partition_manager
from kraftlake.replica_manager.assignments_manager import AssignmentsManager
from kraftlake.replica_manager.requests.purgatory import DelayedOperation
from tests.simulation.replication import CallbackError, Simulation

ENOUGH_SEEDS = 100


def run_histories() -> None:
    for seed in range(ENOUGH_SEEDS):
        Simulation(seed).run()


def test_the_simulation_sees_isr_changes_that_end_with_a_raising_callback(monkeypatch):
    monkeypatch.setattr(alter_partition_manager, "_call", lambda _, on_answer, answer: on_answer(answer))
    with pytest.raises(AssertionError, match="no peace"):
        run_histories()


def test_the_simulation_sees_endless_assignments_of_deleted_topics(monkeypatch):
    monkeypatch.setattr(AssignmentsManager, "_is_valid", lambda *_: True)
    with pytest.raises(AssertionError, match="no peace: assignments"):
        run_histories()


def test_the_simulation_sees_a_callback_that_raises_into_another_request(monkeypatch):
    monkeypatch.setattr(DelayedOperation, "_contained", lambda _, call, what: bool(call()))
    with pytest.raises(CallbackError):
        run_histories()
