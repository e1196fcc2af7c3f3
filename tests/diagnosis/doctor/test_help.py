"""A help that destroys data can't be made without its evidence and its cost, nor hidden in words."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from kraftlake.diagnosis.doctor.check import Check
from kraftlake.diagnosis.doctor.diagnosis import CHECKS
from kraftlake.diagnosis.doctor.finding import Finding, Severity
from kraftlake.diagnosis.doctor.group import Affected
from kraftlake.diagnosis.doctor.help import Help, HelpRisk, risks_named, safe

EVIDENCE = (Affected(reason="its only replica is on broker 3, which is not registered", things=("foo-0",)),)
COST = "all records of foo-0"
ACTIONS = {
    HelpRisk.SAFE: "Start broker 3.",
    HelpRisk.DELETE: "Delete the folder.",
    HelpRisk.FORMAT: "Format the directory (kafka-storage.sh format).",
    HelpRisk.UNCLEAN_ELECTION: "Elect a leader (kafka-leader-election.sh --election-type UNCLEAN).",
    HelpRisk.REASSIGN: "Move the replicas (kafka-reassign-partitions.sh --execute).",
    HelpRisk.CANCEL: "Take it back (kafka-reassign-partitions.sh --cancel).",
    HelpRisk.UNREGISTER: "Unregister the broker.",
    HelpRisk.REMOVE_VOTER: "Take the voter out (kafka-metadata-quorum.sh remove-controller).",
    HelpRisk.TRUNCATE: "Truncate the log at offset 9.",
    HelpRisk.RESTORE: "Restore the cluster from the lake.",
}
DESTRUCTIVE = [risk for risk in HelpRisk if risk.is_destructive]


def test_an_action_of_each_risk_is_known_by_its_words() -> None:
    assert set(ACTIONS) == set(HelpRisk)
    for risk, action in ACTIONS.items():
        assert risks_named(action) == ({risk} if risk.is_destructive else set())


@pytest.mark.parametrize("risk", DESTRUCTIVE)
def test_a_destructive_help_has_evidence_and_a_cost(risk: HelpRisk) -> None:
    whole = Help(action=ACTIONS[risk], risk=risk, evidence=EVIDENCE, cost=COST)
    assert whole.to_json() == {
        "action": ACTIONS[risk],
        "risk": risk.value,
        "evidence": [{"reason": EVIDENCE[0].reason, "things": ["foo-0"], "since": None}],
        "cost": COST,
    }
    lacking: dict[str, Any]
    for lacking in ({"evidence": ()}, {"evidence": (Affected(reason="it is so", things=()),)}, {"cost": " "}):
        with pytest.raises(ValueError, match="needs evidence that names things, and its cost"):
            attrs.evolve(whole, **lacking)


@pytest.mark.parametrize("risk", DESTRUCTIVE)
def test_a_destructive_help_is_not_declared_safe(risk: HelpRisk) -> None:
    with pytest.raises(ValueError, match=f"names the risk {risk.value}"):
        safe(f"Look at the disk. {ACTIONS[risk]}")


def test_a_help_has_one_risk() -> None:
    with pytest.raises(ValueError, match="names the risk format, and is declared delete"):
        Help(action="Delete the folder and format the disk.", risk=HelpRisk.DELETE, evidence=EVIDENCE, cost=COST)
    with pytest.raises(ValueError, match="says what to do"):
        Help(action=" ")


@pytest.mark.parametrize(
    "action",
    [
        "Do not format the directory: it has the only log.",
        "Keep a copy. Never delete the folder before the leader runs.",
        "Remove the throttle (kafka-configs.sh --alter --delete-config).",
        "See how it goes on (kafka-reassign-partitions.sh --verify).",
        "Set unclean.leader.election.enable=false.",
    ],
)
def test_a_warning_of_what_destroys_data_is_no_advice_to_do_so(action: str) -> None:
    assert risks_named(action) == frozenset()


def test_a_check_of_its_own_has_safe_helps_alone() -> None:
    assert all(one.risk is HelpRisk.SAFE for check in CHECKS for one in check.helps)
    destructive = Help(action=ACTIONS[HelpRisk.DELETE], risk=HelpRisk.DELETE, evidence=EVIDENCE, cost=COST)
    made: dict[str, Any] = {"name": "made", "severity": Severity.INFO, "text": "", "command": "", "find": list}
    with pytest.raises(ValueError, match="belongs to what is found"):
        Check(**made, helps=(destructive,))
    with pytest.raises(ValueError, match="must be"):
        Check(**made, helps=())


def test_a_finding_has_help() -> None:
    with pytest.raises(ValueError, match="must be"):
        Finding(check="made", severity=Severity.INFO, sentence="it is so", groups=(), command="", helps=())
