"""Which nodes are planned, and which plans are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftlake.runtime.errors import UsageError
from kraftlake.server.cluster_up.cluster_plan import ClusterPlan, NodeKind
from kraftlake.server.node_config import NodeSettings


def plan(data: Path, **options: object) -> ClusterPlan:
    return ClusterPlan.of("lake", data, **options)  # type: ignore[arg-type]


def test_ports_follow_each_other_brokers_first(tmp_path: Path) -> None:
    made = plan(tmp_path, brokers=2, controllers=2, port=9092)
    assert [(node.name, node.listener.port) for node in made.nodes] == [
        ("broker 1", 9092),
        ("broker 2", 9093),
        ("controller 101", 9094),
        ("controller 102", 9095),
    ]
    assert made.addresses(NodeKind.BROKER) == "127.0.0.1:9092,127.0.0.1:9093"
    assert made.addresses(NodeKind.CONTROLLER) == "127.0.0.1:9094,127.0.0.1:9095"


def test_free_ports_are_all_others(tmp_path: Path) -> None:
    ports = [node.listener.port for node in plan(tmp_path, brokers=20, controllers=20).nodes]
    assert len({*ports}) == 40


def test_each_node_gets_the_settings_that_it_heeds(tmp_path: Path) -> None:
    settings = NodeSettings(
        values={
            "num.partitions": "6",
            "min.insync.replicas": "2",
            "replica.fetch.wait.max.ms": "50",
            "node.id": "7",
            "no.such": "1",
        }
    )
    made = plan(tmp_path, brokers=1, controllers=1, port=9092, settings=settings)
    broker, controller = made.nodes
    assert dict(broker.settings) == {"min.insync.replicas": "2", "replica.fetch.wait.max.ms": "50"}
    assert dict(controller.settings) == {"min.insync.replicas": "2", "num.partitions": "6"}
    assert made.unheeded == {"no.such": "Kafka has no such setting", "node.id": "each node has its own"}
    assert broker.arguments == [
        "broker", "--json", "--lake", "lake", "--id", "1", "--listener", "PLAINTEXT://127.0.0.1:9092",
        "--config", str(tmp_path / "broker-1" / "node.properties"), "--log-dirs", str(tmp_path / "broker-1" / "logs"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"brokers": 0}, "0 brokers can't be: there are 1 to 100."),
        ({"brokers": 101}, "101 brokers can't be"),
        ({"controllers": 0}, "0 controllers can't be"),
        ({"port": 0}, "5 ports from 0 on can't be: ports go from 1 to 65535."),
        ({"port": 65_532}, "5 ports from 65532 on can't be"),
        ({"settings": NodeSettings(values={"num.partitions": "none"})}, "num.partitions has the value 'none'"),
        ({"settings": NodeSettings(values={"log.segment.bytes": "-5"})}, "log.segment.bytes has the value '-5'"),
    ],
)
def test_what_no_node_would_take_is_refused_before_any_is_started(
    tmp_path: Path, options: dict[str, object], sentence: str
) -> None:
    with pytest.raises(UsageError, match=sentence):
        plan(tmp_path / "data", **options)
    assert not (tmp_path / "data").exists()


def test_the_last_port_is_one(tmp_path: Path) -> None:
    assert plan(tmp_path, port=65_531).nodes[-1].listener.port == 65_535
