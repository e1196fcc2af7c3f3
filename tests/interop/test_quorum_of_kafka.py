"""Whom real Kafka nodes elect is whom their directories say that they can."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka.admin import NewTopic

from kraftlake.diagnosis.doctor.diagnosis import Diagnosis, diagnose
from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.kafka_files.node.quorum_state import ElectionState, read_election_state
from kraftlake.replay.queries.quorum_report import QuorumReport, describe_quorum
from kraftlake.replay.queries.source import LogSource
from tests.kafka_node import KafkaNode, started_nodes
from tests.waiting import PATIENCE

pytestmark = pytest.mark.spark


def quorum_of(*nodes: KafkaNode) -> QuorumReport:
    return describe_quorum([node.metadata_directory for node in nodes])


def stood(node: KafkaNode) -> ElectionState:
    nothing_yet = ElectionState(leader_epoch=0, leader_id=None, voted_id=None)
    return read_election_state(node.metadata_directory) or nothing_yet


def topics_of(node: KafkaNode) -> TopicsImage:
    return LogSource.open(node.metadata_directory).replay().image.topics


def await_that(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.1)


@pytest.mark.skipif(os.environ.get("KRAFTLAKE_TESTS") != "long", reason="make test-long: it starts five nodes")
def test_a_voter_that_lags_behind_is_not_elected_by_who_does_not(tmp_path: Path) -> None:
    with started_nodes(tmp_path, dict.fromkeys((1, 2, 3), "controller")) as nodes:
        await_that(lambda: all(stood(node).leader_id is not None for node in nodes.values()))
        leader = nodes[stood(nodes[1]).leader_id or 1]
        ahead, late = (node for node in nodes.values() if node is not leader)
        late.kill()
        behind = quorum_of(late).furthest.end_offset
        await_that(lambda: quorum_of(ahead).furthest.end_offset > behind + 2)  # an idle leader writes no-ops
        leader.kill()
        ahead.kill()

        report = quorum_of(leader, ahead, late)
        assert (len(report.voters), report.needed, report.has_all_committed) == (3, 2, True)
        assert late.node_id not in report.electable
        assert quorum_of(ahead, late).electable == (ahead.node_id,)

        before = stood(ahead).leader_epoch
        ahead.launch()
        late.launch()
        await_that(lambda: stood(late).leader_epoch > before and stood(late).leader_id is not None)
        assert stood(late).leader_id == ahead.node_id


@pytest.mark.skipif(os.environ.get("KRAFTLAKE_TESTS") != "long", reason="make test-long: it waits for silence")
def test_a_voter_that_was_killed_is_silent_and_a_broker_that_was_shut_down_is_not(tmp_path: Path) -> None:
    roles = dict.fromkeys((1, 2, 3), "controller") | dict.fromkeys((4, 5), "broker")
    with started_nodes(tmp_path, roles) as nodes:
        controllers = [nodes[id_] for id_ in (1, 2, 3)]

        def looked() -> Diagnosis:
            return diagnose(",".join(node.controller for node in controllers))

        healthy = looked()
        assert healthy.is_healthy, healthy.to_json()
        assert len(healthy.quorum.voting) == 3
        assert healthy.quorum.running is not None
        leader = healthy.quorum.running.leader_id
        killed = next(node for node in controllers if node.node_id != leader)
        nodes[5].stop()
        killed.kill()
        assert "silent_node" not in {finding.check for finding in looked().findings}
        await_that(lambda: "silent_node" in {finding.check for finding in looked().findings})
        (finding,) = (one for one in looked().findings if one.check == "silent_node")
        assert finding.things == (f"voter {killed.node_id}",)
        assert finding.since is not None
        assert finding.since.offset <= (looked().offset or 0)
        killed.start()
        await_that(lambda: "silent_node" not in {finding.check for finding in looked().findings})
        assert len(looked().quorum.voting) == 3


@pytest.mark.skipif(os.environ.get("KRAFTLAKE_TESTS") != "long", reason="make test-long: it starts five nodes twice")
def test_controllers_that_lost_their_disks_write_a_second_history(tmp_path: Path) -> None:
    roles = dict.fromkeys((1, 2, 3), "controller") | {4: "broker"}
    with started_nodes(tmp_path, roles) as nodes:
        await_that(lambda: all(stood(nodes[id_]).leader_id is not None for id_ in (1, 2, 3)))
        nodes[4].admin.create_topics([NewTopic("kept", 3, 1)])["kept"].result(30)
        await_that(lambda: topics_of(nodes[1]).get_topic("kept") is not None)
        for node in nodes.values():
            node.kill()
        for id_ in (2, 3):
            shutil.rmtree(nodes[id_].log_directory)
            nodes[id_].format()
            nodes[id_].launch()
        await_that(lambda: all(stood(nodes[id_]).leader_id is not None for id_ in (2, 3)))
        await_that(lambda: quorum_of(nodes[2]).furthest.end_offset > 5)
        for id_ in (2, 3):
            nodes[id_].kill()

        diagnosis = diagnose([nodes[id_].metadata_directory for id_ in (1, 2, 3, 4)])
        first, second = diagnosis.quorum.histories
        assert {copy.properties.node_id for copy in first.copies} == {1, 4}
        assert {copy.properties.node_id for copy in second.copies} == {2, 3}
        assert (first.brokers, second.brokers, second.is_on_majority, second.is_outvoted) == ((4,), (), True, False)
        assert [held is not None and held.shows_commit for held in (first.alone, second.alone)] == [True, True]
        assert [finding.check for finding in diagnosis.findings] == ["two_histories"]
