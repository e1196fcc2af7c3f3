"""Controllers and brokers with metrics: what they serve, and what they say of their health."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from kraftlake.runtime.errors import EnvironmentFaultError
from kraftlake.runtime.free_ports import free_ports
from kraftlake.runtime.metrics_address import MetricsAddress
from kraftlake.server.broker.broker_config import BrokerConfig
from kraftlake.server.broker.broker_server import BrokerServer
from kraftlake.server.controller.controller_config import ControllerServerConfig
from kraftlake.server.controller.controller_server import ControllerServer
from kraftlake.server.node_config import ListenerAddress, NodeSettings
from tests.server.broker.lake_cluster import QUICK, SESSION, Member, format_lake
from tests.server.scraping import asked, samples
from tests.waiting import wait_for


def controller_config(lake: Path) -> ControllerServerConfig:
    return ControllerServerConfig(
        lake=str(lake), node_id=100, listeners=(ListenerAddress(name="CONTROLLER", host="127.0.0.1", port=0),),
        settings=NodeSettings(values=SESSION),
    )  # fmt: skip


def broker_config(lake: Path, logs: Path) -> BrokerConfig:
    return BrokerConfig(
        broker_id=1, lake=str(lake), log_dirs=(str(logs),), settings=QUICK,
        listener=ListenerAddress(name="PLAINTEXT", host="127.0.0.1", port=0),
    )  # fmt: skip


def test_a_controller_and_a_broker_serve_kafkas_metrics_and_are_ready_when_they_work(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    format_lake(lake)
    of_controller, of_broker = free_ports(2)
    broker = Member(
        lambda stop: BrokerServer(
            broker_config(lake, tmp_path / "logs"), stop=stop, metrics=MetricsAddress(port=of_broker)
        )
    )
    wait_for(lambda: asked(of_broker, "/readyz")[0] == 503)
    assert asked(of_broker, "/healthz") == (200, "ok\n")
    config = controller_config(lake)
    controller = Member(lambda stop: ControllerServer(config, stop=stop, metrics=MetricsAddress(port=of_controller)))
    try:
        wait_for(lambda: asked(of_controller, "/readyz") == (200, "ok\n"))
        wait_for(lambda: asked(of_broker, "/readyz") == (200, "ok\n"))
        wait_for(lambda: samples(of_controller).get("kafka_controller_kafkacontroller_activebrokercount") == 1)
        values = samples(of_controller)
        assert values["kafka_controller_kafkacontroller_activecontrollercount"] == 1
        assert values["kafka_server_metadataloader_currentcontrollerid"] == 100
        wait_for(lambda: samples(of_controller).get(f'kraftlake_lake_end_offset{{cluster="{lake}"}}', 0) > 0)
        values = samples(of_broker)
        assert values["kafka_server_kafkaserver_brokerstate"] == 3
        assert values["kafka_server_replicamanager_leadercount"] == 0
        assert values["kafka_log_logmanager_offlinelogdirectorycount"] == 0
        labels = f'{{logDirectory="{tmp_path / "logs"}"}}'
        assert values[f"kafka_log_logcleanermanager_uncleanable_partitions_count{labels}"] == 0
        assert values["kafka_log_logcleanermanager_max_dirty_percent"] == 0
    finally:
        broker.stop()
        controller.stop()


def test_a_node_whose_port_for_metrics_is_taken_does_not_start(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    format_lake(lake)
    before = sorted(path.name for path in (lake / "log" / "_delta_log").iterdir())
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        node = Member(
            lambda stop: ControllerServer(controller_config(lake), stop=stop, metrics=MetricsAddress(port=port))
        )
        with pytest.raises(
            EnvironmentFaultError, match=f"Metrics can't be served at 127.0.0.1:{port}: Address already"
        ):
            node.stop()
    assert sorted(path.name for path in (lake / "log" / "_delta_log").iterdir()) == before
