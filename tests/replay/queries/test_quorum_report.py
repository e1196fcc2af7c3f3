"""Copies of one log beside each other: who votes, whose goes furthest, who can be elected."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from kraftlake.kafka_files.writer import write_segment
from kraftlake.records.batch import RecordBatch
from kraftlake.records.control_records import (
    KRaftVersionFeature,
    KRaftVersionRecord,
    LeaderChangeMessage,
    LeaderChangeVoter,
    Voter,
    VoterEndpoint,
    VotersRecord,
)
from kraftlake.records.metadata_records import ControllerEndpoint, RegisterControllerRecord
from kraftlake.records.schema import Message
from kraftlake.records.uuid import Uuid
from kraftlake.replay.comparing.log_copy import read_log_copies
from kraftlake.replay.comparing.voters import Role
from kraftlake.replay.queries.quorum_report import QuorumReport, describe_quorum
from kraftlake.runtime.errors import NotASourceError, UsageError
from tests.replay.made_logs import data, no_op
from tests.replay.sample_logs import directory_of

KAFKA_44 = directory_of("kafka-4.4")


def directory_id(node: int) -> Uuid:
    return Uuid(bytes([node]) * 16)


def voters_record(*nodes: int) -> VotersRecord:
    return VotersRecord(
        version=0,
        voters=tuple(
            Voter(
                voter_id=node,
                voter_directory_id=directory_id(node),
                endpoints=(VoterEndpoint(name="CONTROLLER", host="h", port=9000 + node),),
                k_raft_version_feature=KRaftVersionFeature(min_supported_version=0, max_supported_version=1),
            )
            for node in nodes
        ),
    )


def elected(offset: int, epoch: int, *voters: int, dynamic: bool = True) -> RecordBatch:
    """The first batch of a leader: for a dynamic quorum with the voter set, three records, else one."""
    named = tuple(LeaderChangeVoter(voter_id=voter) for voter in voters)
    messages: list[Message] = [LeaderChangeMessage(version=0, leader_id=voters[0], voters=named)]
    if dynamic:
        messages += [KRaftVersionRecord(version=0, k_raft_version=1), voters_record(*voters)]
    return RecordBatch.control_of(offset, epoch, 1_700_000_000_000, messages)


def node_at(folder: Path, node: int, batches: Sequence[RecordBatch], *, directory: int | None = None) -> str:
    """The directory of a node; `directory` where its id is not the one that the voter set has."""
    data = folder / f"node-{node}-{directory}"
    log = data / "__cluster_metadata-0"
    log.mkdir(parents=True)
    write_segment(log / "00000000000000000000.log", batches)
    id_ = directory_id(node if directory is None else directory)
    (data / "meta.properties").write_text(f"version=1\ncluster.id=made\nnode.id={node}\ndirectory.id={id_}\n")
    return str(data)


def no_ops(first: int, last: int, epoch: int = 1) -> list[RecordBatch]:
    return [no_op(offset, epoch=epoch) for offset in range(first, last + 1)]


def roles(report: QuorumReport) -> list[Role]:
    return [report.role_of(copy) for copy in report.copies]


def test_a_quorum_of_one_node_is_that_node() -> None:
    report = describe_quorum(KAFKA_44)
    assert report == describe_quorum([str(KAFKA_44)])
    assert (report.electable, report.needed, report.has_all_committed, report.on_majority) == ((3000,), 1, True, 5736)
    assert [(voter.id, voter.endpoints) for voter in report.voters] == [(3000, ("CONTROLLER://127.0.0.1:19180",))]


def test_the_voters_whose_log_a_majority_does_not_exceed_can_be_elected(tmp_path: Path) -> None:
    start = [elected(0, 1, 1, 2, 3)]
    ends = {1: 20, 2: 20, 3: 9}
    report = describe_quorum([node_at(tmp_path, node, start + no_ops(3, end)) for node, end in ends.items()])
    assert (report.electable, report.on_majority, report.has_all_committed) == ((1, 2), 20, True)
    assert [node["behind"] for node in report.to_json()["nodes"]] == [0, 0, 11]


def test_a_majority_may_elect_a_voter_that_is_not_the_furthest(tmp_path: Path) -> None:
    start = [elected(0, 1, 1, 2, 3)]
    report = describe_quorum([node_at(tmp_path, node, start + no_ops(3, 10 + node)) for node in (1, 2, 3)])
    assert (report.electable, report.on_majority) == ((2, 3), 12)


def test_a_minority_elects_nobody_and_may_lack_what_was_committed(tmp_path: Path) -> None:
    report = describe_quorum([node_at(tmp_path, 3, [elected(0, 1, 1, 2, 3), *no_ops(3, 9)])])
    assert (report.electable, report.on_majority, report.has_all_committed) == ((), -1, False)
    assert [voter["here"] for voter in report.to_json()["voters"]] == [False, False, True]


def test_half_of_an_even_quorum_elects_nobody_but_has_all_that_was_committed(tmp_path: Path) -> None:
    log = [elected(0, 1, 1, 2, 3, 4), *no_ops(3, 9)]
    report = describe_quorum([node_at(tmp_path, node, log) for node in (1, 4)])
    assert (report.needed, report.electable, report.has_all_committed) == (3, (), True)


def test_a_voter_with_another_directory_has_no_vote(tmp_path: Path) -> None:
    log = [elected(0, 1, 1, 2, 3), *no_ops(3, 9)]
    report = describe_quorum([node_at(tmp_path, 1, log), node_at(tmp_path, 2, log, directory=9)])
    assert roles(report) == [Role.VOTER, Role.OTHER_DIRECTORY]
    assert report.electable == ()


def test_in_a_static_quorum_ids_alone_count(tmp_path: Path) -> None:
    log = [elected(0, 1, 1, 2, 3, dynamic=False), *no_ops(1, 9)]
    report = describe_quorum([node_at(tmp_path, 1, log), node_at(tmp_path, 2, log, directory=9)])
    assert roles(report) == [Role.VOTER, Role.VOTER]
    assert report.electable == (1, 2)
    assert report.to_json()["voters"][0] == {"id": 1, "directoryId": None, "endpoints": [], "here": True}


def test_the_voters_of_a_static_quorum_are_reached_where_they_registered(tmp_path: Path) -> None:
    end_points = (ControllerEndpoint(name="CONTROLLER", host="c1", port=9093, security_protocol=0),)
    registered = RegisterControllerRecord(controller_id=1, incarnation_id=directory_id(1), end_points=end_points)
    log = [elected(0, 1, 1, 2, 3, dynamic=False), data(1, registered)]
    voters = describe_quorum([node_at(tmp_path, 2, log)]).voters
    assert [(voter.id, voter.endpoints) for voter in voters] == [(1, ("CONTROLLER://c1:9093",)), (2, ()), (3, ())]


def test_a_broker_has_no_vote_but_its_log_may_go_furthest(tmp_path: Path) -> None:
    start = [elected(0, 1, 1, 2, 3)]
    report = describe_quorum(
        [node_at(tmp_path, 1, start + no_ops(3, 9)), node_at(tmp_path, 101, start + no_ops(3, 12))]
    )
    assert roles(report) == [Role.VOTER, Role.OBSERVER]
    assert report.furthest.properties.node_id == 101
    assert report.electable == ()


def test_the_first_offset_of_a_deposed_leaders_own_records_is_reported(tmp_path: Path) -> None:
    start = [elected(0, 1, 1, 2, 3), *no_ops(3, 9)]
    deposed = node_at(tmp_path, 1, start + no_ops(10, 30))
    others = [node_at(tmp_path, node, [*start, elected(10, 2, 1, 2, 3), *no_ops(13, 14, 2)]) for node in (2, 3)]
    report = describe_quorum([deposed, *others])
    assert report.electable == (2, 3)
    nodes = report.to_json()["nodes"]
    assert [node["otherFrom"] for node in nodes] == [10, None, None]
    assert [node["behind"] for node in nodes] == [None, 0, 0]  # it is another log, not a shorter one


def test_the_newest_voter_set_of_the_furthest_log_counts(tmp_path: Path) -> None:
    log = [elected(0, 1, 1, 2, 3), *no_ops(3, 9)]
    grown = [*log, RecordBatch.control_of(10, 1, 1_700_000_000_000, [voters_record(1, 2, 3, 4)])]
    report = describe_quorum([node_at(tmp_path, 1, log), node_at(tmp_path, 2, grown)])
    assert ([voter.id for voter in report.voters], report.needed) == ([1, 2, 3, 4], 3)


def test_the_voters_are_found_in_a_snapshot_where_the_log_before_it_is_gone(tmp_path: Path) -> None:
    shutil.copy(KAFKA_44 / "00000000000000004593-0000000002.checkpoint", tmp_path)
    report = describe_quorum([str(tmp_path)])
    assert [voter.id for voter in report.voters] == [3000]
    assert (report.furthest.position, roles(report)) == ((2, 4593), [Role.UNKNOWN])


def test_a_broken_copy_is_reported_and_has_no_vote(tmp_path: Path) -> None:
    log = [elected(0, 1, 1, 2, 3), *no_ops(3, 9)]
    sources = [node_at(tmp_path, node, log) for node in (1, 2, 3)]
    broken = Path(sources[1]) / "__cluster_metadata-0" / "00000000000000000000.log"
    content = bytearray(broken.read_bytes())
    content[len(content) // 2] ^= 1
    broken.write_bytes(content)
    (Path(sources[2]) / "__cluster_metadata-0" / "quorum-state").write_bytes(b"")
    report = describe_quorum(sources)
    assert report.electable == ()
    faults = [copy.fault or "" for copy in report.copies]
    assert faults[0] == ""
    assert "00000000000000000000.log: broken at position" in faults[1]
    assert faults[2] == "quorum-state is empty"
    assert report.furthest is report.copies[0]


def test_logs_of_two_clusters_are_not_compared(tmp_path: Path) -> None:
    made = node_at(tmp_path, 1, [elected(0, 1, 1), *no_ops(3, 9)])
    with pytest.raises(UsageError, match=r"different clusters: .* of made, .* of VXUoBgBGTaWWfCM4Toybuw"):
        describe_quorum([made, str(KAFKA_44)])


def test_nothing_is_no_quorum(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="at least one node"):
        describe_quorum([])
    for options in ({"cluster_id": "c"}, {"command_config": "c.properties"}):
        with pytest.raises(UsageError, match=r"--(cluster-id|command-config) belongs to HOST:PORT of a quorum"):
            describe_quorum([str(KAFKA_44)], **options)  # type: ignore[arg-type]
    with pytest.raises(NotASourceError, match="does not exist"):
        describe_quorum([str(tmp_path / "gone")])


def test_a_log_in_many_parts_ends_as_it_ends_batch_by_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    in_parts = read_log_copies(str(KAFKA_44))[0]
    monkeypatch.setattr("kraftlake.replay.reading.chunks.BULK_FROM", 2**63)
    assert read_log_copies(str(KAFKA_44))[0] == in_parts
    assert in_parts.epoch_ends == ((1, 1085), (2, 5737))
