"""What is shown of a cluster, of states that are made up."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

from kraftlake.api import WatchState
from kraftlake.cli.output.terminal import Terminal
from kraftlake.cli.output.theme import Style
from kraftlake.cli.views.cluster_view import ClusterEvent, ClusterView, Picture
from kraftlake.image.broker_partitions import BrokerCounts
from kraftlake.image.cluster_counts import ClusterCounts
from kraftlake.server.cluster_up.cluster_plan import ClusterPlan, NodeKind
from kraftlake.server.cluster_up.cluster_security import ClusterSecurity
from kraftlake.server.cluster_up.cluster_state import ClusterState, NodeState, NodeView

PLAN = ClusterPlan.of("lake", Path("/data"), brokers=3, controllers=2, port=9092)
COUNTS = ClusterCounts(
    active_broker_count=2, fenced_broker_count=1, controlled_shutdown_broker_count=0, global_topic_count=1,
    global_partition_count=6, offline_partitions_count=2, preferred_replica_imbalance_count=0,
)  # fmt: skip
LOG = WatchState(leader=101, epoch=3, offset=1234, timestamp=0, counts=COUNTS, seen_to=1234, trouble=None)
EVENTS = [ClusterEvent(number, "10:00:00.000Z", f"event {number} " + "x" * 200, Style.PLAIN) for number in range(90)]


def state_with(*states: NodeState, leader: int | None = 101) -> ClusterState:
    nodes = tuple(
        NodeView(
            name=node.name, id=node.id, kind=node.kind, address=node.address, state=state,
            pid=None if state is NodeState.DOWN else 4711,
            ending="killed by SIGKILL" if state is NodeState.DOWN else None,
            counts=BrokerCounts(led=2, followed=4, out_of_isr=1) if node.kind is NodeKind.BROKER else None,
        )
        for node, state in zip(PLAN.nodes, states, strict=True)
    )  # fmt: skip
    return ClusterState(nodes=nodes, log=LOG, leader=leader, replicas_out_of_isr=3)


UP = state_with(*[NodeState.UP] * 3, NodeState.ACTIVE, NodeState.STANDBY)
ONE_DOWN = state_with(NodeState.UP, NodeState.DOWN, NodeState.UP, NodeState.ACTIVE, NodeState.STANDBY)


def shown(
    state: ClusterState, width: int, lines: int, *, is_leaving: bool = False, plan: ClusterPlan = PLAN
) -> list[str]:
    console = Console(file=io.StringIO(), width=width)
    console.print(Picture(plan, "MkU3OEVBNTcwNTJENDM2Qg", state, EVENTS, is_leaving).drawn(console, lines))
    written = console.file.getvalue()  # type: ignore[attr-defined]
    return str(written).splitlines()


@pytest.mark.parametrize("width", [60, 80, 100, 140])
@pytest.mark.parametrize("lines", [24, 30, 50])
@pytest.mark.parametrize("state", [UP, ONE_DOWN])
def test_the_picture_fills_the_terminal_and_no_more(state: ClusterState, width: int, lines: int) -> None:
    drawn = shown(state, width, lines)
    assert max(map(cell_len, drawn)) <= width
    assert lines - 2 <= len(drawn) < lines or width < 80
    assert any("event 89" in line for line in drawn)


def test_what_is_wrong_is_said() -> None:
    text = "\n".join(shown(ONE_DOWN, 120, 40))
    assert "down, killed by SIGKILL" in text
    assert "led by controller 101 in epoch 3" in text
    assert "1 topic, 6 partitions: 2 offline, 3 replicas out of ISR, 1 fenced broker" in text
    nobody = state_with(*[NodeState.UP] * 3, NodeState.DOWN, NodeState.STANDBY, leader=None)
    assert "nobody leads it" in "\n".join(shown(nobody, 120, 40))
    assert "Ctrl-C again ends at once" in "\n".join(shown(nobody, 120, 40, is_leaving=True))


def test_that_it_is_up_is_reported_once(capsys: pytest.CaptureFixture[str]) -> None:
    addresses = "127.0.0.1:9092,127.0.0.1:9093,127.0.0.1:9094"
    starting = state_with(*[NodeState.UP] * 3, NodeState.ACTIVE, NodeState.STARTING)
    view = ClusterView(Terminal(), PLAN, "MkU3OEVBNTcwNTJENDM2Qg", as_json=False)
    for state in (starting, UP, ONE_DOWN, UP):
        view.state(state)
    view.leaving()
    view.close()
    assert capsys.readouterr().out.splitlines() == [
        "starting 5 nodes of the lake lake; their logs are in /data",
        f"the cluster is up: bootstrap {addresses}, controllers 127.0.0.1:9095,127.0.0.1:9096",
        "ending: brokers first, by a controlled shutdown, then the controllers",
    ]
    view = ClusterView(Terminal(), PLAN, "MkU3OEVBNTcwNTJENDM2Qg", as_json=True)
    for state in (starting, UP, ONE_DOWN, UP):
        view.state(state)
        assert view.is_silent == (state is not starting)
    view.leaving()
    view.close()
    (line,) = capsys.readouterr().out.splitlines()
    answer = json.loads(line)
    assert (answer["bootstrap"], answer["controllers"]) == (addresses, "127.0.0.1:9095,127.0.0.1:9096")
    assert answer["nodes"][0] == {"id": 1, "kind": "broker", "address": "127.0.0.1:9092", "pid": 4711}
    assert view.is_silent


def test_a_secure_cluster_says_what_clients_take_and_no_secret(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    security = ClusterSecurity.at(tmp_path / "security")
    secure = ClusterPlan.of("lake", Path("/data"), brokers=3, controllers=2, port=9092, security=security)
    files = "client.properties, librdkafka.properties, kafka-python.json: SASL_SSL, SCRAM-SHA-512, user admin"
    text = " ".join(shown(UP, 400, 40, plan=secure))
    assert f"clients take {tmp_path}/security/{files}" in text
    for as_json in (False, True):
        view = ClusterView(Terminal(), secure, "MkU3OEVBNTcwNTJENDM2Qg", as_json=as_json)
        view.state(UP)
        view.close()
        text += (printed := capsys.readouterr().out)
    assert json.loads(printed)["security"] == {
        "protocol": "SASL_SSL", "mechanism": "SCRAM-SHA-512", "user": "admin",
        "clientProperties": str(security.client_properties), "kafkaPython": str(security.python_arguments),
        "librdkafkaProperties": str(security.librdkafka_properties),
    }  # fmt: skip
    assert text.count(files) == 2
    assert not [password for password in security.passwords.values() if password in text]


def test_a_warning_is_on_stderr_where_no_terminal_shows_it(capsys: pytest.CaptureFixture[str]) -> None:
    view = ClusterView(Terminal(), PLAN, "MkU3OEVBNTcwNTJENDM2Qg", as_json=True)
    view.warning("preallocate of topic a has no effect: segments grow as they are written")
    view.close()
    output = capsys.readouterr()
    assert output.out == ""
    assert "warning: preallocate of topic a has no effect: segments grow as they are written\n" in output.err
