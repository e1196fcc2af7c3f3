"""The life of a cluster of processes."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import kraftlake
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.records.control_records import LeaderChangeMessage
from kraftlake.runtime.errors import EnvironmentFaultError, LakeError
from kraftlake.server.cluster_up.cluster_plan import ClusterPlan, NodeKind
from kraftlake.server.cluster_up.cluster_state import ClusterState, NodeState
from kraftlake.server.cluster_up.cluster_up import ClusterUp, _controlled
from kraftlake.server.node_config import NodeSettings
from tests.metadata_log.object_store import BUCKET
from tests.waiting import PATIENCE, is_alive

QUICK = NodeSettings(
    values={
        "broker.heartbeat.interval.ms": "500",
        "broker.session.timeout.ms": "3000",
        "controller.quorum.fetch.timeout.ms": "30000",
    }
)


class Seen:
    """A cluster that is moved on by the test, and all that it was seen to be."""

    def __init__(self, up: ClusterUp) -> None:
        self._up = up
        self.states: dict[str, list[NodeState]] = {}
        self.kinds: list[str] = []
        self.ended: list[str] = []

    def until(self, holds: Callable[[ClusterState], bool], what: str) -> ClusterState:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            for table in self._up.step():
                self.kinds += table.column("kind").to_pylist()
            state = self._up.state
            for node in state.nodes:
                seen = self.states.setdefault(node.name, [])
                if not seen or seen[-1] is not node.state:
                    seen.append(node.state)
            self.ended += [node.plan.name for node in self._up.newly_ended()]
            if holds(state):
                return state
            time.sleep(0.15)
        raise AssertionError(f"waited in vain until {what}: {self.states}")


def test_nodes_come_up_one_that_dies_stays_down_and_the_others_end_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "queue.py").write_text("raise SystemExit('a file of the user, and no module of theirs')")
    monkeypatch.chdir(tmp_path)
    plan = ClusterPlan.of(str(tmp_path / "lake"), tmp_path / "data", brokers=2, controllers=2, settings=QUICK)
    with ClusterUp(plan) as up:
        seen = Seen(up)
        state = seen.until(lambda state: state.is_up, "all are up")
        pids = [node.pid for node in state.nodes if node.pid is not None]
        assert len(pids) == 4
        assert all(map(is_alive, pids))
        leader = state.leader
        assert [node.state for node in state.nodes if node.id == leader] == [NodeState.ACTIVE]
        assert "broker_unfenced" in seen.kinds

        os.kill(pids[1], signal.SIGKILL)
        state = seen.until(lambda state: state.log.counts.fenced_broker_count == 1, "the dead broker is fenced")
        assert (state.nodes[1].state, state.nodes[1].ending) == (NodeState.DOWN, "killed by SIGKILL")
        assert seen.ended == ["broker 2"]
        assert state.nodes[0].state is NodeState.UP
        assert not state.is_up

        epoch = state.log.epoch
        up.leave()
        seen.until(lambda _: up.is_over, "all have ended")
    standby = next(node.name for node in plan.of_kind(NodeKind.CONTROLLER) if node.id != leader)
    assert seen.ended == ["broker 2", "broker 1", standby, f"controller {leader}"]
    assert seen.states["broker 2"][-1] is NodeState.DOWN
    for name in seen.ended[1:]:
        assert seen.states[name][0] is NodeState.STARTING
        assert seen.states[name][-2:] == [NodeState.LEAVING, NodeState.LEFT]
    opened = kraftlake.open(plan.lake)
    claims = [
        one.message
        for batch in opened.batches()
        if batch.control
        for one in batch.messages()
        if isinstance(one.message, LeaderChangeMessage)
    ]
    assert int(claims[-1].leader_id) == leader
    assert len(claims) >= 1
    assert max(batch.epoch for batch in opened.batches()) == epoch, "no standby took over at the end"
    assert opened.image().cluster.brokers[1].fenced, "by its controlled shutdown"


def test_a_hurry_ends_nodes_that_wait_for_others_and_those_that_were_stopped(tmp_path: Path) -> None:
    plan = ClusterPlan.of(str(tmp_path / "lake"), tmp_path / "data", brokers=1, controllers=1, settings=QUICK)
    with ClusterUp(plan) as up:
        seen = Seen(up)
        state = seen.until(lambda state: state.is_up, "all are up")
        broker, controller = state.nodes
        assert broker.pid is not None
        assert controller.pid is not None
        os.kill(controller.pid, signal.SIGSTOP)  # so that the broker's controlled shutdown waits
        up.leave()
        seen.until(lambda state: state.nodes[0].state is NodeState.LEAVING, "the broker leaves")
        begin = time.monotonic()
        up.hurry()
        seen.until(lambda _: up.is_over, "all have ended")
        assert time.monotonic() - begin < 60


def test_the_end_of_the_statement_leaves_no_process(tmp_path: Path) -> None:
    plan = ClusterPlan.of(str(tmp_path / "lake"), tmp_path / "data", brokers=1, controllers=1)
    with ClusterUp(plan) as up:
        pids = [node.pid for node in up.state.nodes if node.pid is not None]
        assert len(pids) == 2
        assert [node.state for node in up.state.nodes] == [NodeState.STARTING] * 2
    assert not any(map(is_alive, pids))


def test_what_has_no_cluster_of_ours_is_refused_before_a_node_is_started(tmp_path: Path) -> None:
    MetadataLog.create(tmp_path / "imported", "MkU3OEVBNTcwNTJENDM2Qg")
    plan = ClusterPlan.of(str(tmp_path / "imported"), tmp_path / "data")
    with pytest.raises(LakeError, match=r"imported lake.*kraftlake fork"), ClusterUp(plan):
        pass
    assert not (tmp_path / "data").exists()


def test_a_folder_without_a_lake_points_to_what_makes_one_for_a_cluster(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    plan = ClusterPlan.of(str(tmp_path / "lake"), tmp_path / "data")
    with pytest.raises(LakeError, match=r"is an empty folder: `kraftlake format "), ClusterUp(plan):
        pass


@pytest.mark.xdist_group("object_store")
def test_a_lake_in_an_object_store_is_made_once(server: dict[str, str]) -> None:
    made = _controlled(f"s3://{BUCKET}/cluster")
    assert _controlled(f"s3://{BUCKET}/cluster").cluster_id == made.cluster_id


def test_a_data_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file")
    plan = ClusterPlan.of(str(tmp_path / "lake"), tmp_path / "data")
    with pytest.raises(EnvironmentFaultError, match=r"data.* can't be made: .*--data"), ClusterUp(plan):
        pass
