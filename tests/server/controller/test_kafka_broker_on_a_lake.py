"""A real Kafka 4.4 broker whose controllers are ours: it registers, follows the lake's log, and serves clients."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, NewPartitions, NewTopic, ResourceType

import kraftlake
from kraftlake.spark_jobs.java import find_java
from tests.controller.controlled_cluster import CLUSTER_ID
from tests.interop.jars import kafka_tools_jars
from tests.interop.restored_nodes import consumed, produced
from tests.kafka_node import KafkaNode
from tests.ports import free_ports
from tests.server.controller.controllers import PATIENCE, ControllerProcess, await_, new_lake

pytestmark = pytest.mark.spark

VALUES = [b"%d" % number for number in range(20)]


class Cluster:
    """Controllers 100 and 101 of ours, and Kafka's broker 1."""

    def __init__(self, folder: Path) -> None:
        self.lake = new_lake(folder / "lake")
        self.controllers = {id_: ControllerProcess(lake=self.lake, folder=folder, node_id=id_) for id_ in (100, 101)}
        (port,) = free_ports(1)
        self.broker = KafkaNode(
            folder=folder / "broker", node_id=1, cluster_id=CLUSTER_ID, broker_port=port, controller_port=0,
            voters=tuple(f"{id_}@{one.address}" for id_, one in self.controllers.items()), roles="broker",
            settings={"controlled.shutdown.enable": "true", "auto.create.topics.enable": "false"},
        )  # fmt: skip
        self.broker.format()

    def leader(self) -> int:
        """The node id of the controller that leads, as Kafka's tool says."""
        status = self.tool("--bootstrap-controller", self.controllers[100].address, "describe", "--status")
        return int(status["LeaderId"])

    def tool(self, *words: str) -> dict[str, str]:
        """What `kafka-metadata-quorum` prints, by its names."""
        class_path = ":".join(map(str, kafka_tools_jars().values()))
        command = [str(find_java().executable), "-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp", class_path]
        command += ["org.apache.kafka.tools.MetadataQuorumCommand", *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        pairs = (line.partition(":") for line in done.stdout.splitlines())
        return {name.strip(): value.strip() for name, _, value in pairs}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    made = Cluster(tmp_path_factory.mktemp("ours"))
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

    await_(has_config, "the broker has the config")
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

    await_(is_fenced, "the broker has left in a controlled way")
    topics = kraftlake.open(cluster.lake).image().topics.topics_by_name()
    assert {*topics} == {"bills", "__consumer_offsets"}
