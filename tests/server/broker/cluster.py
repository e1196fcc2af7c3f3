"""A real cluster of three controllers and two brokers, which brokers of ours join."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import attrs
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic

from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.topics.partition_registration import PartitionRegistration
from kraftlake.protocol.abort import Abort
from kraftlake.protocol.address import parse_addresses
from kraftlake.protocol.node_connector import NodeConnector
from kraftlake.protocol.observer.quorum_observer import QuorumObserver
from kraftlake.replay.loader.manifest import LeaderAndEpoch
from kraftlake.replay.loader.metadata_loader import MetadataLoader
from kraftlake.runtime.clock import SystemClock
from kraftlake.runtime.fault_handler import LoggingFaultHandler
from kraftlake.runtime.free_ports import free_ports
from kraftlake.server.broker.metadata_feed import MetadataFeed
from tests.interop.jars import kafka_jars
from tests.java import java_command
from tests.kafka_node import KafkaNode, started_nodes
from tests.replica_manager.kafka_follower import PATIENCE
from tests.server.broker.broker_process import BrokerProcess
from tests.waiting import wait_for

CONTROLLERS, BROKERS = (101, 102, 103), (1, 2)
SETTINGS = {
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "replica.high.watermark.checkpoint.interval.ms": "500",
    "log.retention.check.interval.ms": "1000",
    "log.initial.task.delay.ms": "1000",
    "log.cleaner.backoff.ms": "500",
    "log.cleaner.dedupe.buffer.size": "4194304",
    "auto.create.topics.enable": "false",
}
OURS = {
    name: SETTINGS[name]
    for name in (
        "broker.session.timeout.ms", "broker.heartbeat.interval.ms", "replica.high.watermark.checkpoint.interval.ms",
    )
} | {"replica.fetch.backoff.ms": "200"}  # fmt: skip
_MAY_PASS = {
    KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError.REQUEST_TIMED_OUT, KafkaError.NOT_CONTROLLER,
}  # fmt: skip
_DONE_BEFORE = {KafkaError.TOPIC_ALREADY_EXISTS, KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.ELECTION_NOT_NEEDED}
"""The answers to a request whose first answer got lost."""


class Observed:
    """The newest image of a cluster, as an observer of its quorum has it."""

    name = "observed"

    def __init__(self, controllers: str, cluster_id: str) -> None:
        clock, self.faults = SystemClock(), list[str]()
        connect, abort = NodeConnector(), Abort()
        observer = QuorumObserver(
            parse_addresses(controllers), connect=lambda where: connect(where, abort=abort), cluster_id=cluster_id
        )
        self._feed = MetadataFeed(observer, self.faults.append, abort)
        self._loader = MetadataLoader(
            clock=clock, fault_handler=LoggingFaultHandler("observed"), high_watermark=self._feed.high_watermark
        )
        self.image = MetadataImage.EMPTY
        self.controller: int | None = None
        self._loader.install_publishers([self])
        self._feed.start(self._loader)

    def on_metadata_update(self, delta: MetadataDelta, new_image: MetadataImage, manifest: object) -> None:
        self.image = new_image

    def on_controller_change(self, leader_and_epoch: LeaderAndEpoch) -> None:
        self.controller = leader_and_epoch.leader_id

    def close(self) -> None:
        pass

    def end(self) -> None:
        self._feed.close()
        self._loader.close()


@attrs.define(kw_only=True)
class Cluster:
    """The running nodes, what the quorum says, and the brokers of ours beside them."""

    folder: Path
    nodes: dict[int, KafkaNode]
    observed: Observed
    stack: ExitStack

    @property
    def controllers(self) -> str:
        return ",".join(self.nodes[id_].controller for id_ in CONTROLLERS)

    @property
    def bootstrap(self) -> str:
        return ",".join(node.bootstrap for node in self.nodes.values() if "broker" in node.roles)

    # what the controller says

    @property
    def running(self) -> set[int]:
        return {id_ for id_, broker in self.observed.image.cluster.brokers.items() if not broker.fenced}

    def partition(self, name: TopicPartition) -> PartitionRegistration | None:
        topic = self.observed.image.topics.get_topic(name.topic)
        return None if topic is None else topic.partitions.get(name.partition)

    def isr(self, name: TopicPartition) -> set[int]:
        found = self.partition(name)
        return set() if found is None else set(found.isr)

    def leader(self, name: TopicPartition) -> int:
        found = self.partition(name)
        return -1 if found is None else found.leader

    def await_isr(self, wanted: set[int], *names: TopicPartition) -> None:
        wait_for(
            lambda: all(self.isr(name) == wanted for name in names),
            f"{names} have the ISR {wanted}, not {[(self.leader(name), self.isr(name)) for name in names]}",
        )

    def active_controller(self) -> Any:
        return wait_for(lambda: self.observed.controller, "the quorum has a leader")

    # what an administrator does

    def administer(self, do: Callable[[AdminClient], Mapping[Any, Future[Any]]]) -> None:
        """Do something with the Admin API, again where the broker that was asked has gone away."""
        deadline, again = time.monotonic() + PATIENCE, False
        while True:
            # A new client, since one that is used again may ask a broker that is gone.
            client = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 2})
            try:
                for future in do(client).values():
                    future.result(timeout=20)
            except (KafkaException, TimeoutError) as fault:
                code = fault.args[0].code() if isinstance(fault, KafkaException) else KafkaError._TIMED_OUT
                if again and code in _DONE_BEFORE:
                    return
                if code not in _MAY_PASS or time.monotonic() > deadline:
                    raise
                again = True
            else:
                return

    def create(self, topic: str, *replicas: list[int], **configs: object) -> list[TopicPartition]:
        """A topic of partitions with these replicas, once they run; `_` stands for the dots in the names of configs."""
        wait_for(lambda: {id_ for ids in replicas for id_ in ids} <= self.running, "the brokers run")
        named = {name.replace("_", "."): str(value) for name, value in configs.items()}
        new = NewTopic(topic, len(replicas), replica_assignment=list(replicas), config=named)
        self.administer(lambda admin: admin.create_topics([new], request_timeout=20))
        names = [TopicPartition(topic, number) for number in range(len(replicas))]
        wait_for(lambda: all(map(self.partition, names)), f"{topic} is in the metadata")
        return names

    def configure(self, kind: str, name: str, **configs: object) -> None:
        """Set dynamic configs of a topic or a broker; None deletes one."""
        entries = [
            ConfigEntry(
                setting.replace("_", "."), None if value is None else str(value),
                incremental_operation=AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET,
            )
            for setting, value in configs.items()
        ]  # fmt: skip
        resource = ConfigResource(kind, name, incremental_configs=entries)
        self.administer(lambda admin: admin.incremental_alter_configs([resource], request_timeout=20))

    def reassign(self, replicas: Mapping[TopicPartition, list[int]], *, throttle: int | None = None) -> None:
        """With Kafka's own tool, which throttles each broker (bytes a second), and alters the reassignments."""
        wanted = [{"topic": name.topic, "partition": name.partition, "replicas": ids} for name, ids in replicas.items()]
        file = self.folder / "reassignment.json"
        file.write_text(json.dumps({"version": 1, "partitions": wanted}))
        said = self.tool(
            "org.apache.kafka.tools.reassign.ReassignPartitionsCommand", "--bootstrap-server", self.bootstrap,
            "--reassignment-json-file", file, "--execute", *([] if throttle is None else ["--throttle", throttle]),
        )  # fmt: skip
        assert "Successfully started" in said, said

    def tool(self, tool: str, *words: object) -> str:
        """What one of Kafka's own tools says."""
        class_path = ":".join(map(str, kafka_jars().values()))
        done = subprocess.run(
            [str(java_command()), "-XX:TieredStopAtLevel=1", "-cp", class_path, tool, *map(str, words)],
            capture_output=True, text=True, timeout=PATIENCE, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{tool}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
        return done.stdout + done.stderr

    # more brokers

    def ours(self, broker_id: int, directories: Sequence[Path] | None = None, **settings: object) -> BrokerProcess:
        """A broker of ours, not started; with two directories of its own by default. Killed with the cluster."""
        broker = BrokerProcess(
            controllers=self.controllers, folder=self.folder / f"ours-{broker_id}", broker_id=broker_id,
            directories=("d1", "d2") if directories is None else tuple(map(str, directories)),
            settings=OURS | {name.replace("_", "."): str(value) for name, value in settings.items()},
        )  # fmt: skip
        self.stack.callback(broker.kill)
        return broker

    def theirs(self, broker_id: int, *, directories: int = 1) -> KafkaNode:
        """One more real broker, formatted and not started; it logs what it recovers. Killed with the cluster."""
        folder = self.folder / f"theirs-{broker_id}"
        paths = [folder / f"data{number or ''}" for number in range(directories)]
        settings = SETTINGS | {"log.dirs": ",".join(map(str, paths))}
        node = attrs.evolve(
            self.nodes[BROKERS[0]], node_id=broker_id, folder=folder, broker_port=free_ports(1)[0], settings=settings
        )
        node.format()
        logging = folder / "log4j2.properties"
        logging.write_text(logging.read_text().replace("rootLogger.level=warn", "rootLogger.level=info"))
        self.stack.callback(node.kill)
        return node


@contextmanager
def started_cluster(folder: Path) -> Iterator[Cluster]:
    """The cluster, with its internal topics made, so that no broker of ours is chosen for them."""
    from confluent_kafka import Producer

    roles = dict.fromkeys(CONTROLLERS, "controller") | dict.fromkeys(BROKERS, "broker")
    with started_nodes(folder, roles, settings=SETTINGS) as nodes, ExitStack() as stack:
        controllers = ",".join(nodes[id_].controller for id_ in CONTROLLERS)
        observed = Observed(controllers, nodes[CONTROLLERS[0]].cluster_id)
        stack.callback(observed.end)
        cluster = Cluster(folder=folder, nodes=nodes, observed=observed, stack=stack)
        (first,) = cluster.create("first", [1, 2])
        cluster.await_isr({1, 2}, first)
        producer = Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": "first", "log_level": 2})
        producer.init_transactions(PATIENCE)
        yield cluster
        assert not observed.faults
