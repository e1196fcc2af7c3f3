"""A real Kafka 4.4 broker whose controllers are ours: it registers, follows the lake's log, and serves clients."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, NewPartitions, NewTopic, ResourceType

import kraftlake
from kraftlake.runtime.free_ports import free_ports
from tests.controller.controlled_cluster import CLUSTER_ID
from tests.interop.kafka_tools import KafkaTools
from tests.interop.restored_nodes import consumed, produced
from tests.kafka_node import FEW_PARTITIONS, KafkaNode
from tests.server.controller import wire_requests as w
from tests.server.controller.controllers import PATIENCE, controller_process, new_lake, started_controller
from tests.waiting import wait_for

pytestmark = pytest.mark.spark

VALUES = [b"%d" % number for number in range(20)]


class Cluster:
    """Controllers 100 and 101 of ours, and Kafka's broker 1."""

    def __init__(self, folder: Path, tools: KafkaTools) -> None:
        self._tools = tools
        self.lake = new_lake(folder / "lake")
        self.controllers = {id_: controller_process(self.lake, folder, id_) for id_ in (100, 101)}
        (port,) = free_ports(1)
        self.broker = KafkaNode(
            folder=folder / "broker", node_id=1, cluster_id=CLUSTER_ID, broker_port=port, controller_port=0,
            voters=tuple(f"{id_}@{one.address}" for id_, one in self.controllers.items()), roles="broker",
            settings=FEW_PARTITIONS | {"controlled.shutdown.enable": "true", "auto.create.topics.enable": "false"},
        )  # fmt: skip
        self.broker.format()

    def leader(self) -> int:
        """The node id of the controller that leads, as Kafka's tool says."""
        status = self.tool("--bootstrap-controller", self.controllers[100].address, "describe", "--status")
        return int(status["LeaderId"])

    def tool(self, *words: str) -> dict[str, str]:
        """What `kafka-metadata-quorum` prints, by its names."""
        pairs = (line.partition(":") for line in said(self._tools, "MetadataQuorumCommand", *words).splitlines())
        return {name.strip(): value.strip() for name, _, value in pairs}


def said(tools: KafkaTools, tool: str, *words: str) -> str:
    """What one of Kafka's tools prints."""
    done = tools.run(f"org.apache.kafka.tools.{tool}", *words)
    assert done.code == 0, done
    return done.out


@pytest.fixture(scope="module")
def tools() -> Iterator[KafkaTools]:
    with closing(KafkaTools()) as made:
        yield made


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, tools: KafkaTools) -> Iterator[Cluster]:
    made = Cluster(tmp_path_factory.mktemp("ours"), tools)
    with ExitStack() as stack:
        for controller in made.controllers.values():
            stack.callback(controller.kill)
            controller.start()
        stack.callback(made.broker.kill)
        made.broker.start()
        yield made
        for controller in made.controllers.values():
            controller.check_sound()


def test_kafkas_broker_lives_with_our_controllers_through_a_take_over(cluster: Cluster) -> None:
    admin, bootstrap = cluster.broker.admin, cluster.broker.bootstrap
    admin.create_topics([NewTopic("orders", 2, 1, config={"retention.ms": "7000000"})])["orders"].result(PATIENCE)
    acked = produced(bootstrap, "orders", VALUES)
    assert {*acked} <= consumed(bootstrap, "orders", acked)
    admin.create_partitions([NewPartitions("orders", 3)])["orders"].result(PATIENCE)
    entry = ConfigEntry("retention.ms", "8000000", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, "orders", incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(PATIENCE)

    def has_config() -> bool:
        found = admin.describe_configs([resource])[resource].result(PATIENCE)
        return bool(found["retention.ms"].value == "8000000")

    wait_for(has_config, "the broker has the config")
    status = cluster.tool("--bootstrap-server", bootstrap, "describe", "--status")
    leader = int(status["LeaderId"])
    assert status["ClusterId"] == CLUSTER_ID
    assert '"id":100' in status["CurrentVoters"].replace(" ", "")
    assert '"id":1,' in status["CurrentObservers"].replace(" ", "")
    cluster.controllers[leader].kill()
    admin.create_topics([NewTopic("bills", 1, 1)])["bills"].result(PATIENCE)
    acked = produced(bootstrap, "bills", VALUES)
    assert {*acked} <= consumed(bootstrap, "bills", acked)
    cluster.controllers[leader].start()
    cluster.controllers[leader].await_event("registered")
    assert cluster.leader() == 201 - leader
    admin.delete_topics(["orders"])["orders"].result(PATIENCE)
    cluster.broker.stop()

    def is_fenced() -> bool:
        return kraftlake.open(cluster.lake).image().cluster.brokers[1].fenced

    wait_for(is_fenced, "the broker has left in a controlled way")
    topics = kraftlake.open(cluster.lake).image().topics.topics_by_name()
    assert {*topics} == {"bills", "__consumer_offsets"}


@pytest.mark.skipif(
    os.environ.get("KRAFTLAKE_TESTS") != "long", reason="make test-long: tools that others ask brokers by"
)
def test_kafkas_tools_ask_our_controllers(tmp_path: Path, tools: KafkaTools) -> None:
    quiet = {"metadata_max_idle_interval_ms": "500", "controller_quorum_fetch_timeout_ms": "1500"}
    with started_controller(new_lake(tmp_path / "lake"), **quiet) as made:
        made.await_active()
        at = ("--bootstrap-controller", made.address)
        rpc = made.rpc()
        rpc.ask(w.heartbeat(1, rpc.ask(w.registration(1)).broker_epoch))
        rows = [
            line.split() for line in said(tools, "MetadataQuorumCommand", *at, "describe", "--replication").splitlines()
        ]
        replicas = {row[0]: (int(row[3]), row[-1]) for row in rows[1:] if row}
        assert replicas["100"] == (0, "Leader")
        assert replicas["1"][0] >= 0  # no-op records since its heartbeat
        assert replicas["1"][1] == "Observer"
        brokers = (*at, "--entity-type", "brokers", "--entity-default")
        assert "Completed" in said(tools, "ConfigCommand", *brokers, "--alter", "--add-config", "log.retention.ms=777")
        assert "log.retention.ms=777" in said(tools, "ConfigCommand", *brokers, "--describe")
        assert made.address.rpartition(":")[2] in said(tools, "ClusterTool", "list-endpoints", *at)
        assert CLUSTER_ID in said(tools, "ClusterTool", "cluster-id", *at)
        assert "Broker 1 is no longer registered" in said(tools, "ClusterTool", "unregister", *at, "--id", "1")
        assert "FinalizedVersionLevel: 4.4-IV2" in said(tools, "FeatureCommand", *at, "describe")
