"""The nodes that hold back a feature are named, with what they support; it is no fault."""

from __future__ import annotations

from pathlib import Path

import attrs

from kraftlake.diagnosis.doctor.diagnosis import Diagnosis, diagnose
from kraftlake.diagnosis.doctor.finding import Severity
from kraftlake.diagnosis.doctor.help import HelpRisk
from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch
from kraftlake.records.control_records import KRaftVersionFeature
from kraftlake.records.schema import Message
from tests.cli.made_logs import TIME, directory_of
from tests.diagnosis.doctor.clusters import (
    Step,
    change,
    cluster,
    log_of,
    output_of,
    partition,
    register,
    unfence,
    uuid,
)
from tests.diagnosis.doctor.made import by_check
from tests.replay.queries.test_quorum_report import elected, no_ops


def broker(id_: int, **tops: int) -> list[Step]:
    """A broker that supports features up to these levels; `_` stands for a dot."""
    features = tuple(
        r.BrokerFeature(name=name.replace("_", "."), min_supported_version=0, max_supported_version=top)
        for name, top in tops.items()
    )
    return [(id_, register(id_, id_, features=features)), (id_, unfence(id_, id_))]


def controller(id_: int, top: int) -> Message:
    feature = r.ControllerFeature(name="metadata.version", min_supported_version=7, max_supported_version=top)
    return r.RegisterControllerRecord(controller_id=id_, incarnation_id=uuid(f"c{id_}"), features=(feature,))


def diagnosed(folder: Path, *steps: Step, voters: tuple[int, ...] = (1,)) -> Diagnosis:
    return diagnose(log_of(folder, [*cluster(level=25), *steps], voters))


def reasons(diagnosis: Diagnosis) -> dict[str, tuple[str, ...]]:
    finding = by_check(diagnosis)["held_back_features"]
    assert finding.severity is Severity.INFO
    assert output_of(finding)
    return {group.reason: group.things for group in finding.groups}


def test_a_broker_of_an_older_release_is_named(tmp_path: Path) -> None:
    diagnosis = diagnosed(tmp_path, *broker(1, metadata_version=33), *broker(2, metadata_version=25))
    assert reasons(diagnosis) == {
        "metadata.version is 25 (4.0-IV3) and can't go above 25 (4.0-IV3): broker 2: 25 (4.0-IV3); the others: "
        "33 (4.4-IV2)": ("broker 2",)
    }
    assert diagnosis.is_healthy
    finding = by_check(diagnosis)["held_back_features"]
    assert finding.sentence == "broker 2 holds back upgrades of metadata.version"
    assert finding.since is not None
    assert finding.since.offset == 5


def test_a_feature_that_a_node_does_not_name_is_held_back_by_it(tmp_path: Path) -> None:
    steps = [*broker(1, metadata_version=33, share_version=2), *broker(2, metadata_version=33)]
    assert reasons(diagnosed(tmp_path, *steps)) == {
        "share.version is 0 and can't go above 0: broker 2: 0; the others: 2": ("broker 2",)
    }


def test_nodes_that_may_be_gone_are_said_to_be(tmp_path: Path) -> None:
    steps = [
        *broker(1, metadata_version=33), *broker(2, metadata_version=25), (9, change(2, 2, fenced=1)),
        (9, controller(1, 33)), (9, controller(7, 27)),
    ]  # fmt: skip
    diagnosis = diagnosed(tmp_path, *steps)
    (reason,) = reasons(diagnosis)
    assert "broker 2 (fenced): 25 (4.0-IV3), controller 7 (no voter): 27 (4.1-IV1)" in reason
    helps = by_check(diagnosis)["held_back_features"].helps
    assert [one.risk for one in helps] == [HelpRisk.SAFE, HelpRisk.UNREGISTER]
    assert [group.things for group in helps[1].evidence] == [("broker 2",)]


def test_a_broker_that_hosts_replicas_is_not_to_be_unregistered(tmp_path: Path) -> None:
    steps = [
        *broker(1, metadata_version=33), *broker(2, metadata_version=25),
        (3, partition(0, 1, 2, directories=["a1", "a2"])), (9, change(2, 2, fenced=1)),
    ]  # fmt: skip
    finding = by_check(diagnosed(tmp_path, *steps))["held_back_features"]
    assert [one.risk for one in finding.helps] == [HelpRisk.SAFE]


def test_the_voters_of_a_dynamic_quorum_have_their_say_in_its_kraft_version(tmp_path: Path) -> None:
    first = elected(0, 1, 1, 2, 3)
    change_, version, voters = (record.message for record in first.messages())
    older = KRaftVersionFeature(min_supported_version=0, max_supported_version=0)
    record = attrs.evolve(
        voters,
        voters=tuple(
            attrs.evolve(one, k_raft_version_feature=older) if one.voter_id == 2 else one for one in voters.voters
        ),
    )
    batches = [RecordBatch.control_of(0, 1, TIME, [change_, version, record]), *no_ops(3, 5)]
    finding = by_check(diagnose(directory_of(tmp_path, batches)))["held_back_features"]
    assert finding.groups[0].reason == ("kraft.version is 1 and can't go above 0: voter 2: 0; the others: 1")


def test_a_voter_that_has_not_registered_is_named(tmp_path: Path) -> None:
    steps = [(1, controller(1, 33)), (1, controller(2, 33))]
    ((reason, things),) = reasons(diagnosed(tmp_path, *steps, voters=(1, 2, 3))).items()
    assert "the levels of voters are unknown" in reason
    assert things == ("controller 3",)


def test_nodes_that_support_the_same_are_no_finding(tmp_path: Path) -> None:
    steps = [*broker(1, metadata_version=30), *broker(2, metadata_version=30), (9, controller(1, 30))]
    assert "held_back_features" not in by_check(diagnosed(tmp_path, *steps))
