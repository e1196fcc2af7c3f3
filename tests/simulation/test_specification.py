"""The properties of the specification that the simulation judges by one state alone, and their names in the docs."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import attrs
import pytest

from kraftlake.image.topics.partition_registration import PartitionRegistration
from kraftlake.records.uuid import Uuid
from kraftlake.replica_manager.partition.partition_state import CommittedIsr, PendingExpandIsr, PendingShrinkIsr
from simulator.specification import LIVENESS, SAFETY, quorum_problem, recovery_problem

TOPIC = Uuid.random()
DOC = Path(__file__).resolve().parents[2] / "docs" / "simulation.md"


def registration(**lists: tuple[int, ...]) -> PartitionRegistration:
    return PartitionRegistration(
        replicas=(1, 2, 3), directories=(Uuid.random(),) * 3, leader=1, leader_epoch=0, partition_epoch=0, **lists
    )  # type: ignore[arg-type]


def leader(state: Any) -> Any:
    in_sync = SimpleNamespace(state=state)
    return SimpleNamespace(in_sync=in_sync, topic_id=TOPIC, is_leader=True, leader_epoch=0)


def committed(*isr: int) -> CommittedIsr:
    return CommittedIsr(isr=frozenset(isr))


EXPANDING: dict[str, Any] = {"sent": None, "new_in_sync_replica": 3}
SHRINKING: dict[str, Any] = {"sent": None, "out_of_sync_replicas": frozenset({3})}


@pytest.mark.parametrize(
    ("known", "isr", "elr", "is_safe"),
    [
        (committed(1, 2, 3), (1, 2), (), True),
        (committed(1, 2), (1,), (2,), True),
        (committed(1, 2), (1, 2, 3), (), False),
        (committed(1, 2), (1,), (2, 3), False),
        (committed(1), (1,), (2, 3), True),
        (PendingExpandIsr(last_committed=committed(1, 2), **EXPANDING), (1, 2, 3), (), True),
        (PendingShrinkIsr(last_committed=committed(1, 2, 3), **SHRINKING), (1, 2, 3), (), True),
        (PendingShrinkIsr(last_committed=committed(1, 2), **SHRINKING), (1, 2, 3), (), False),
    ],
)
def test_a_leader_that_can_commit_waits_for_all_that_may_lead_next(
    known: Any, isr: tuple[int, ...], elr: tuple[int, ...], is_safe: bool
) -> None:
    state = registration(isr=isr, elr=elr)
    assert (not quorum_problem(leader(known), TOPIC, state)) == is_safe
    assert not quorum_problem(leader(known), Uuid.random(), state)
    assert not quorum_problem(leader(known), TOPIC, attrs.evolve(state, leader_epoch=1))


@pytest.mark.parametrize(
    ("isr", "elr", "last_known", "is_safe"),
    [((1,), (), (), True), ((), (2,), (), True), ((), (), (1,), True), ((), (), (), False), ((), (), (1, 2), False)],
)
def test_a_partition_without_a_candidate_knows_its_last_leader(
    isr: tuple[int, ...], elr: tuple[int, ...], last_known: tuple[int, ...], is_safe: bool
) -> None:
    assert (not recovery_problem(registration(isr=isr, elr=elr, last_known_elr=last_known))) == is_safe


def test_the_docs_name_the_properties() -> None:
    assert len(SAFETY) == 8
    assert re.findall(r"^- ([A-Z][A-Za-z]+): ", DOC.read_text("utf-8"), re.MULTILINE) == [*LIVENESS]
    assert re.findall(r"^\| ([A-Z][A-Za-z]+) \|", DOC.read_text("utf-8"), re.MULTILINE) == [*SAFETY]
