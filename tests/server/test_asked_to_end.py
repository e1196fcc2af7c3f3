"""SIGTERM to services while no controller answers: each ends by itself, in order."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kraftlake.server.broker.broker_life import UNANSWERED_SECONDS
from tests.cli.running import ROOT
from tests.server.lake_processes import LakeProcesses
from tests.server.node_process import KilledNode
from tests.waiting import PATIENCE, wait_for

pytestmark = pytest.mark.xdist_group("asked_to_end")


def test_a_broker_leaves_without_controllers_that_say_nothing(tmp_path: Path) -> None:
    """Its exit code is 0, its logs need no recovery, and what it waited for is a few seconds, not five minutes."""
    assert UNANSWERED_SECONDS < 5
    with LakeProcesses(tmp_path, brokers=1, controllers=1) as cluster:
        (broker,), (controller,) = cluster.brokers, cluster.controllers
        cluster.create("kept", replicas=1)
        controller.signal(signal.SIGSTOP)
        try:
            assert broker.stop() == 0
        finally:
            controller.signal(signal.SIGCONT)
        waited = broker.events("shuts_down_without_the_controllers_leave")
        assert [one["waited_s"] for one in waited] == [UNANSWERED_SECONDS]
        assert list(broker.folder.glob("**/.kafka_cleanshutdown"))


def test_a_standby_ends_while_the_active_controller_says_nothing(tmp_path: Path) -> None:
    with LakeProcesses(tmp_path, brokers=1, controllers=2) as cluster:
        active, standby = in_their_roles(cluster.controllers)
        standby.await_event("registered")
        active.signal(signal.SIGSTOP)
        try:
            assert standby.stop() == 0
        finally:
            active.signal(signal.SIGCONT)


def in_their_roles(nodes: list[KilledNode]) -> tuple[KilledNode, KilledNode]:
    """The active controller, and the other one."""

    def roles() -> list[KilledNode]:
        active = [node for node in nodes if node.events("active")]
        return active + [node for node in nodes if node not in active] if active else []

    first, second = wait_for(roles, "one leads")
    return first, second


def test_a_follower_ends_where_no_quorum_answers(tmp_path: Path) -> None:
    config = tmp_path / "clusters.toml"
    config.write_text(f'[clusters.gone]\nbootstrap = "127.0.0.1:1"\nlake = "{tmp_path / "lake"}"\n')
    log = tmp_path / "follow.jsonl"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "kraftlake.cli", "follow", "--json", str(config)], cwd=ROOT, stderr=out
        )  # fmt: skip
    try:
        wait_for(lambda: "waiting" in events_of(log), "it can't reach the quorum")
        process.terminate()
        assert process.wait(PATIENCE) == 0
    finally:
        process.kill()
        process.wait()


def events_of(log: Path) -> list[str]:
    """The names of the events in a log of JSON lines, but for a last one that is half written."""
    return [json.loads(line)["event"] for line in log.read_text("utf-8").splitlines() if line.endswith("}")]
