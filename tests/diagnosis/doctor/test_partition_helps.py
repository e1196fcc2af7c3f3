"""Help for partitions names what to start; what loses records stands where nothing else may lead, with its cost."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import attrs
import pytest

from kraftlake.diagnosis.doctor.diagnosis import diagnose
from kraftlake.diagnosis.doctor.help import Help, HelpRisk
from kraftlake.records import metadata_records as r
from kraftlake.records.schema import Message
from kraftlake.records.uuid import Uuid
from tests.diagnosis.doctor.made import HOUR, broker, by_check, change, config, log_of, partition

D1, D2, D3 = (Uuid(bytes([number] * 16)) for number in (1, 2, 3))
LOST = Uuid((2).to_bytes(16, "big"))
FENCE_3 = r.BrokerRegistrationChangeRecord(broker_id=3, broker_epoch=3, fenced=1)
FENCE_2 = attrs.evolve(FENCE_3, broker_id=2, broker_epoch=2)
GONE_3 = r.UnregisterBrokerRecord(broker_id=3, broker_epoch=3)
GONE_1 = r.UnregisterBrokerRecord(broker_id=1, broker_epoch=1)
ONLY_3 = change(0, leader=-1, isr=(3,))
MOVE_TO_4 = change(0, replicas=(1, 2, 3, 4), adding_replicas=(4,), removing_replicas=(3,))


def with_directories(*directories: Uuid) -> list[Message]:
    """foo-0 in a directory of each broker, with metadata.version of 3.7, the first that knows directories."""
    return [
        attrs.evolve(partition(0, 1, 2, 3), directories=directories),
        *(attrs.evolve(broker(id_), log_dirs=(own,)) for id_, own in ((1, D1), (2, D2), (3, D3))),
    ]


def helps(folder: Path, check: str, *befalls: Message, later: int = 0) -> Sequence[Help]:
    return by_check(diagnose(log_of(folder, *befalls, later=later)))[check].helps


def destructive(helps: Sequence[Help]) -> list[HelpRisk]:
    return [one.risk for one in helps if one.risk.is_destructive]


def test_a_fenced_replica_in_sync_is_started_and_no_election_is_proposed(tmp_path: Path) -> None:
    (only,) = helps(tmp_path, "offline_partitions", ONLY_3, FENCE_3)
    assert only.action.startswith("Start broker 3 with the log directories it had: it may lead 1 partition again.")
    assert "Do not start it on an empty disk" in only.action
    assert not destructive([only])


@pytest.mark.parametrize("field", ["eligible_leader_replicas", "last_known_elr"])
def test_an_eligible_replica_that_is_fenced_is_started(field: str, tmp_path: Path) -> None:
    befalls = [change(0, leader=-1, isr=(), **{field: (2,)}), FENCE_2, GONE_3]
    (only,) = helps(tmp_path, "offline_partitions", *befalls)
    assert only.action.startswith("Start broker 2 ")


def test_an_eligible_replica_counts_beside_one_in_sync_that_is_lost(tmp_path: Path) -> None:
    befalls = [change(0, leader=-1, isr=(3,), eligible_leader_replicas=(2,)), FENCE_2, GONE_3]
    found = helps(tmp_path, "offline_partitions", *befalls)
    assert [one.action.split(" with")[0] for one in found] == ["Start broker 2", "Start broker 3"]
    assert not destructive(found)


def test_an_unclean_election_has_its_evidence_and_its_cost(tmp_path: Path) -> None:
    start, elect = helps(tmp_path, "offline_partitions", ONLY_3, GONE_3)
    assert start.action.startswith("Start broker 3 ")
    assert elect.risk is HelpRisk.UNCLEAN_ELECTION
    (evidence,) = elect.evidence
    assert evidence.things == ("foo-0",)
    assert evidence.reason == "may lead: 3 (not registered); active and out of sync: 1, 2"
    assert "acknowledged ones too" in elect.cost


@pytest.mark.parametrize("befalls", [(), (FENCE_3,), (GONE_3,)], ids=["active", "fenced", "not registered"])
def test_a_removed_replica_that_stays_eligible_is_not_started(befalls: tuple[Message, ...], tmp_path: Path) -> None:
    stuck = change(0, replicas=(1, 2), isr=(), leader=-1, eligible_leader_replicas=(3,), last_known_elr=(1,))
    found = by_check(diagnose(log_of(tmp_path, stuck, *befalls)))["offline_partitions"]
    assert found.groups[0].reason.endswith("eligible to lead: 3 (no replica any more)")
    (elect,) = found.helps
    assert elect.risk is HelpRisk.UNCLEAN_ELECTION
    assert elect.evidence[0].reason == "may lead: 3 (no replica any more); active and out of sync: 1, 2"


def test_without_another_active_replica_nothing_else_gives_a_leader(tmp_path: Path) -> None:
    befalls = [change(0, replicas=(3, 2), isr=(3,), leader=-1), FENCE_2, GONE_3]
    start, nothing = helps(tmp_path, "offline_partitions", *befalls)
    assert start.action.startswith("Start broker 3 ")
    assert nothing.action == "Nothing else gives a leader now: foo-0 has no other replica on an active broker."


@pytest.mark.parametrize("directory", [LOST, D2], ids=["lost", "not among the broker's"])
def test_a_failed_log_directory_is_brought_back_first(directory: Uuid, tmp_path: Path) -> None:
    befalls = [*with_directories(D1, D2, directory), ONLY_3]
    mend, elect = helps(tmp_path, "offline_partitions", *befalls)
    assert mend.action.startswith("Bring back the log directories of broker 3 that are offline")
    assert elect.evidence[0].reason == "may lead: 3 (log directory is offline); active and out of sync: 1, 2"


def test_a_replica_that_may_lead_and_does_not_is_a_matter_of_the_controller(tmp_path: Path) -> None:
    (only,) = helps(tmp_path, "offline_partitions", ONLY_3)
    assert only.action == (
        "Look at the log of the active controller: broker 3 may lead 1 partition and was not elected. It elects it "
        "when it is unfenced, and so after a restart."
    )


def test_replicas_out_of_sync_are_brought_back_by_what_is_wrong_with_their_broker(tmp_path: Path) -> None:
    befalls = [*with_directories(D1, LOST, D3), change(0, isr=(1,)), change(1, isr=(2,)), FENCE_3]
    found = helps(tmp_path, "under_replicated", *befalls)
    assert [one.action.split(":")[0] for one in found] == [
        "Start broker 3",
        "Bring back the log directories of broker 2 that are offline, with 1 partition, and restart it. Replace them "
        "only if other brokers lead all that lay there (offline_directories)",
        "Look at the disks, the network and the throttles of broker 1",
    ]
    assert not destructive(found)


def test_a_reassignment_that_waits_in_vain_can_be_taken_back(tmp_path: Path) -> None:
    start, cancel = helps(tmp_path, "reassignments", broker(4, fenced=True), MOVE_TO_4)
    assert start.action == "Start broker 4: the reassignment of 1 partition waits for it."
    assert cancel.risk is HelpRisk.CANCEL
    assert cancel.evidence[0].reason == "waits for 4 (fenced); of the replicas before it 1, 2 and 3 are in sync"
    assert "deleted with all that they have copied" in cancel.cost


def test_a_reassignment_without_a_way_back_is_not_taken_back(tmp_path: Path) -> None:
    befalls = [broker(4, fenced=True), MOVE_TO_4, change(0, isr=(1,), leader=-1), GONE_1]
    found = helps(tmp_path, "reassignments", *befalls)
    assert not destructive(found)
    assert found[-1].action.startswith("Do not take the reassignment of foo-0 back: none of the replicas before it")


def test_a_reassignment_that_can_catch_up_is_not_taken_back(tmp_path: Path) -> None:
    throttle = config("leader.replication.throttled.rate", "9", type_=4, resource="1")
    befalls = [broker(4), MOVE_TO_4, throttle, r.NoOpRecord()]
    found = helps(tmp_path, "reassignments", *befalls, later=HOUR)
    assert not destructive(found)
    assert found[-1].action.endswith(": leader.replication.throttled.rate=9 of broker 1.")


def test_what_unregistered_brokers_host_is_moved_only_where_another_replica_leads(tmp_path: Path) -> None:
    start, move = helps(tmp_path, "unregistered_brokers", ONLY_3, GONE_3)
    assert start.action.startswith("Start the broker with the log directories that it had")
    assert move.risk is HelpRisk.REASSIGN
    assert move.evidence[0].things == ("foo-1",)
    assert (
        destructive(helps(tmp_path / "all", "unregistered_brokers", ONLY_3, change(1, leader=-1, isr=(3,)), GONE_3))
        == []
    )
