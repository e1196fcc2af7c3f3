from __future__ import annotations

import pytest

from kraftlake.protocol.describe import OtherClusterError
from kraftlake.protocol.node_error import NodeError
from kraftlake.replay.comparing.log_copy import LogCopy
from kraftlake.replay.live.quorum_copies import quorum_copies
from kraftlake.replay.queries.quorum_report import describe_quorum
from tests.protocol.observer.fake_quorum import LED_SINCE, NOW, running


def copies_of(**replicas: tuple[int, int, int]) -> dict[int | None, LogCopy]:
    with running(**replicas) as quorum:
        return {copy.properties.node_id: copy for copy in quorum_copies(quorum)}


def test_a_copy_ends_where_its_node_fetches() -> None:
    copies = copies_of(n1=(5, NOW - 9_000, NOW - 20_000), n2=(9, NOW, NOW), n7=(3, NOW, NOW))
    assert {id_: copy.end_offset for id_, copy in copies.items()} == {0: 8, 1: 5, 2: 9, 7: 3}
    assert {copy.fault for copy in copies.values()} == {None}
    fetching = copies[1].fetching
    assert fetching is not None
    assert (fetching.silent_ms, fetching.since_offset, fetching.caught_up) == (9_000, 5, NOW - 20_000)
    assert {copy.properties.cluster_id for copy in copies.values()} == {"kraftlakeTestClusterAA"}


def test_a_node_that_stopped_fetching_has_that_as_its_fault() -> None:
    copies = copies_of(n1=(5, NOW - 10_001, NOW - 20_000), n2=(-1, -1, -1), n7=(3, NOW - 90_000, NOW - 90_000))
    assert {id_: copy.fault for id_, copy in copies.items()} == {
        0: None,
        1: "it has not fetched for 10 s",
        2: "it has not fetched since 0 leads",
        7: "it has not fetched for 90 s",
    }
    assert copies[2].fetching is not None
    assert (copies[2].fetching.since, copies[2].fetching.since_offset) == (LED_SINCE, 0)


def test_who_has_not_fetched_from_a_leader_of_a_moment_is_not_at_fault_yet() -> None:
    at = LED_SINCE + 10_000
    copies = copies_of(n0=(8, at, at), n1=(8, at, at), n2=(-1, -1, -1))
    assert copies[2].fault is None
    assert copies[2].epoch_ends == ()


def test_a_report_has_the_leader_and_the_voters_of_a_running_quorum() -> None:
    with running(n7=(3, NOW, NOW)) as quorum:
        report = describe_quorum(quorum)
    assert report.running is not None
    assert (report.running.leader_id, report.running.leader_epoch) == (0, 1)
    assert [copy.properties.node_id for copy in report.fetching_voters] == [0, 1, 2]
    assert report.electable == (0, 1, 2)


def test_a_quorum_that_does_not_answer_is_named() -> None:
    with pytest.raises(NodeError, match=r"127\.0\.0\.1:1"):
        quorum_copies("127.0.0.1:1")


def test_the_cluster_is_held_against_the_id_that_was_given() -> None:
    with running() as quorum:
        assert describe_quorum(quorum, cluster_id="kraftlakeTestClusterAA").cluster_id == "kraftlakeTestClusterAA"
        with pytest.raises(OtherClusterError, match="not of kraftlakeTestClusterBB"):
            describe_quorum(quorum, cluster_id="kraftlakeTestClusterBB")
