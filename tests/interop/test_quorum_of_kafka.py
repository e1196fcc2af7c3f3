"""Whom real Kafka nodes elect is whom their directories say that they can."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kraftlake.kafka_files.node.quorum_state import ElectionState, read_election_state
from kraftlake.replay import QuorumReport, describe_quorum
from tests.kafka_node import KafkaNode, started_nodes

pytestmark = pytest.mark.spark

PATIENCE = 120.0  # seconds until something is called stuck


def told_of(*nodes: KafkaNode) -> QuorumReport:
    return describe_quorum([node.metadata_directory for node in nodes])


def stood(node: KafkaNode) -> ElectionState:
    nothing_yet = ElectionState(leader_epoch=0, leader_id=None, voted_id=None)
    return read_election_state(node.metadata_directory) or nothing_yet


def await_that(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.1)


def test_a_voter_that_lags_behind_is_not_elected_by_who_does_not(tmp_path: Path) -> None:
    with started_nodes(tmp_path, dict.fromkeys((1, 2, 3), "controller")) as nodes:
        await_that(lambda: all(stood(node).leader_id is not None for node in nodes.values()))
        leader = nodes[stood(nodes[1]).leader_id or 1]
        ahead, late = (node for node in nodes.values() if node is not leader)
        late.kill()
        behind = told_of(late).furthest.end_offset
        await_that(lambda: told_of(ahead).furthest.end_offset > behind + 2)  # an idle leader writes no-ops
        leader.kill()
        ahead.kill()

        report = told_of(leader, ahead, late)
        assert (len(report.voters), report.needed, report.has_all_committed) == (3, 2, True)
        assert late.node_id not in report.electable
        assert told_of(ahead, late).electable == (ahead.node_id,)

        before = stood(ahead).leader_epoch
        ahead.launch()
        late.launch()
        await_that(lambda: stood(late).leader_epoch > before and stood(late).leader_id is not None)
        assert stood(late).leader_id == ahead.node_id
