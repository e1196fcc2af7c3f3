"""Real Kafka nodes on loopback, 4.4 or 3.9, for tests that need a live one; Spark's resolver gets the jars, not Maven.

    with started_node(tmp_path, settings=SMALL_LOG) as node:
        node.admin.create_topics([NewTopic("orders", 3, 1)])["orders"].result()
        node.metadata_directory, node.bootstrap, node.controller

A node is a process of its own in a folder of its own: `kill` is kill -9, and `start` after it is a restart. Tests that
use one bear the mark `spark`, since they start a JVM.
"""

from __future__ import annotations

import atexit
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import attrs
from confluent_kafka.admin import AdminClient

from kraftlake.records.uuid import Uuid
from kraftlake.runtime.free_ports import free_ports
from tests.archive_classes import KAFKA_CLASSES, archived
from tests.interop.jars import kafka_jars
from tests.java import java_command
from tests.waiting import PATIENCE

METADATA_LOG = "__cluster_metadata-0"
# Segments of 32 KiB and a snapshot each 4 KiB of records: a test sees both, and the deletion of what lies before (once
# a minute). The records of one request must fit into a segment: 30 topics of 8 partitions end the node.
SMALL_LOG = {
    "internal.metadata.log.segment.bytes": "32768",
    "metadata.log.max.record.bytes.between.snapshots": "4096",
    "metadata.max.retention.bytes": "65536",
}
SMALL_NODE = {
    "num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "log.index.size.max.bytes": "65536",
    "num.network.threads": "1",
    "num.io.threads": "2",
}
"""The settings of every node, unless its own say otherwise."""
FEW_PARTITIONS = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}
"""Internal topics that are made soon: they have fifty partitions otherwise."""
_START_TAKES_AT_MOST = 300.0  # seconds, on a busy machine
_LOGGING = """
appenders=console
appender.console.type=Console
appender.console.name=console
appender.console.layout.type=PatternLayout
appender.console.layout.pattern=%d %p %c: %m%n
rootLogger.level=warn
rootLogger.appenderRefs=console
rootLogger.appenderRef.console.ref=console
"""


class KafkaNodeError(Exception):
    """The node did not start; with the last of what it said."""


@attrs.define(kw_only=True)
class KafkaNode:
    """One node, stopped or running; combined (broker and controller) unless `roles` says otherwise.

    `voters` are the quorum's `ID@HOST:PORT`. `settings` go over the defaults of server.properties. `more_listeners`
    have the security protocol and the port by the listener's name; those of the controller begin with CONTROLLER.
    `release` is one of `tests.interop.jars.RELEASES`.
    """

    folder: Path
    node_id: int
    cluster_id: str
    broker_port: int
    controller_port: int
    voters: tuple[str, ...]
    roles: str = "broker,controller"
    settings: Mapping[str, str] = attrs.field(factory=dict)
    more_listeners: Mapping[str, tuple[str, int]] = attrs.field(factory=dict)
    release: str = "4.4.0"
    java_options: tuple[str, ...] = ("-Xmx320m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
    _process: subprocess.Popen[bytes] | None = attrs.field(init=False, default=None)
    _admin: AdminClient | None = attrs.field(init=False, default=None)

    @property
    def bootstrap(self) -> str:
        """HOST:PORT of the broker's listener."""
        return f"127.0.0.1:{self.broker_port}"

    @property
    def controller(self) -> str:
        """HOST:PORT of the controller's listener."""
        return f"127.0.0.1:{self.controller_port}"

    def listener(self, name: str) -> str:
        """HOST:PORT of one of `more_listeners`."""
        return f"127.0.0.1:{self.more_listeners[name][1]}"

    @property
    def log_directory(self) -> Path:
        """What `log.dirs` names: it holds meta.properties and the metadata log."""
        return self.folder / "data"

    @property
    def metadata_directory(self) -> Path:
        """The directory of the metadata log."""
        return self.log_directory / METADATA_LOG

    @property
    def admin(self) -> AdminClient:
        """Kafka's Admin API at this node's broker; one client, which outlives a restart."""
        if self._admin is None:
            self._admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 2})
        return self._admin

    def format(self) -> None:
        """Make the node's folders as `kafka-storage format` does; those that are formatted stay as they are."""
        self.write_properties()
        if "log.dirs" in self.settings or self.log_directory.exists():
            self.run_format()
            return
        shutil.copytree(_formatted(self.release, self.roles), self.log_directory)
        meta = self.log_directory / "meta.properties"
        own = {"node.id": self.node_id, "cluster.id": self.cluster_id, "directory.id": Uuid.random()}
        lines = [line.partition("=") for line in meta.read_text("utf-8").splitlines()]
        meta.write_text("".join(f"{name}{equals}{own.get(name, value)}\n" for name, equals, value in lines), "utf-8")

    def write_properties(self) -> None:
        """Write what the node is started with."""
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "log4j2.properties").write_text(_LOGGING, "utf-8")
        properties = "".join(f"{key}={value}\n" for key, value in self._properties().items())
        (self.folder / "server.properties").write_text(properties, "utf-8")

    def run_format(self) -> None:
        """Run Kafka's own tool on the folder's properties."""
        command = ["kafka.tools.StorageTool", "format", "-g", "-t", self.cluster_id, "-c", self._properties_file]
        done = subprocess.run(self._java(*command), capture_output=True, text=True, timeout=PATIENCE, check=False)
        if done.returncode != 0:
            raise KafkaNodeError(f"formatting {self.folder} failed: {done.stdout[-2000:]}{done.stderr[-2000:]}")

    def launch(self) -> None:
        """Start the process without waiting for it."""
        assert self._process is None, "it runs already"
        with (self.folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                self._java("kafka.Kafka", self._properties_file),
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
            )  # fmt: skip

    def await_ready(self) -> None:
        """Wait until the node answers: a broker its Admin API, a controller its port."""
        deadline = time.monotonic() + _START_TAKES_AT_MOST
        port = self.broker_port if "broker" in self.roles else self.controller_port
        while not _answers(port):
            self._check_running(deadline)
            time.sleep(0.1)
        if "broker" in self.roles:
            while not any(broker.id == self.node_id for broker in self._brokers().values()):
                self._check_running(deadline)

    def start(self) -> None:
        """Start, and wait until it answers."""
        self.launch()
        self.await_ready()

    def stop(self) -> None:
        """A clean shutdown; nothing where it does not run."""
        self._end(kill=False)

    def kill(self) -> None:
        """kill -9."""
        self._end(kill=True)

    def signal(self, number: int) -> None:
        """Send the process a signal, such as SIGSTOP."""
        assert self._process is not None, "it does not run"
        self._process.send_signal(number)

    @property
    def pid(self) -> int | None:
        """The process id; None where it does not run."""
        return None if self._process is None else self._process.pid

    def _end(self, *, kill: bool) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if not kill:
            process.terminate()
            try:
                process.wait(timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                kill = True
        if kill:
            process.kill()
        process.wait()

    def _brokers(self) -> dict[int, Any]:
        from confluent_kafka import KafkaException

        try:
            brokers: dict[int, Any] = self.admin.list_topics(timeout=5).brokers
        except KafkaException:
            return {}
        return brokers

    def _check_running(self, deadline: float) -> None:
        assert self._process is not None, "it was not launched"
        if self._process.poll() is not None or time.monotonic() > deadline:
            said = (self.folder / "server.log").read_text("utf-8", errors="replace")[-3000:]
            raise KafkaNodeError(f"node {self.node_id} did not start (exit {self._process.poll()}):\n{said}")

    @property
    def _properties_file(self) -> str:
        return str(self.folder / "server.properties")

    def _properties(self) -> dict[str, str]:
        host, listeners = "127.0.0.1", []
        if "broker" in self.roles:
            listeners.append(f"PLAINTEXT://{host}:{self.broker_port}")
        if "controller" in self.roles:
            listeners.append(f"CONTROLLER://{host}:{self.controller_port}")
        listeners += [f"{name}://{host}:{port}" for name, (_, port) in self.more_listeners.items()]
        protocols = {"CONTROLLER": "PLAINTEXT", "PLAINTEXT": "PLAINTEXT"}
        protocols |= {name: protocol for name, (protocol, _) in self.more_listeners.items()}
        return {
            "process.roles": self.roles,
            "node.id": str(self.node_id),
            "controller.quorum.voters": ",".join(self.voters),
            "controller.listener.names": ",".join(name for name in protocols if name.startswith("CONTROLLER")),
            "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in protocols.items()),
            "listeners": ",".join(listeners),
            "log.dirs": str(self.log_directory),
            **SMALL_NODE,
            "controlled.shutdown.enable": "false" if self.roles == "broker" else "true",
            **self.settings,
        }

    def _java(self, *arguments: str) -> Sequence[str]:
        return [
            str(java_command()), *self.java_options, *archived(KAFKA_CLASSES),
            f"-Dlog4j2.configurationFile={self.folder / 'log4j2.properties'}",
            "-cp", ":".join(str(jar) for jar in kafka_jars(self.release).values()), *arguments,
        ]  # fmt: skip


@cache
def _formatted(release: str, roles: str) -> Path:
    """A log directory that Kafka's own tool has formatted: nodes differ in the ids of meta.properties alone."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    voters = (f"{1 if 'controller' in roles else 2}@127.0.0.1:9093",)
    node = KafkaNode(
        folder=folder, node_id=1, cluster_id="kraftlakeTestClusterAA", broker_port=9092, controller_port=9093,
        voters=voters, roles=roles, release=release,
    )  # fmt: skip
    node.write_properties()
    node.run_format()
    return node.log_directory


def new_nodes(
    folder: Path,
    roles: Mapping[int, str],
    *,
    settings: Mapping[str, str] | None = None,
    listeners: Mapping[str, str] | None = None,
    cluster_id: str = "kraftlakeTestClusterAA",
    release: str = "4.4.0",
) -> dict[int, KafkaNode]:
    """Formatted nodes of one cluster by id, not started; `roles` has process.roles by node id.

    `listeners` are more of each node, by name with their security protocol. A real test of a quorum: `{1:
    "broker,controller", 2: "broker,controller", 3: "broker,controller"}`.
    """
    Uuid.from_string(cluster_id)
    ports = free_ports((2 + len(listeners or {})) * len(roles))
    of_node = {node_id: (ports.pop(), ports.pop()) for node_id in roles}
    voters = tuple(f"{node_id}@127.0.0.1:{of_node[node_id][1]}" for node_id in roles if "controller" in roles[node_id])
    nodes = {
        node_id: KafkaNode(
            folder=folder / f"node-{node_id}", node_id=node_id, cluster_id=cluster_id,
            broker_port=of_node[node_id][0], controller_port=of_node[node_id][1],
            voters=voters, roles=node_roles, settings=dict(settings or {}), release=release,
            more_listeners={name: (protocol, ports.pop()) for name, protocol in (listeners or {}).items()},
        )
        for node_id, node_roles in roles.items()
    }  # fmt: skip
    for node in nodes.values():
        node.format()
    return nodes


@contextmanager
def started_nodes(
    folder: Path, roles: Mapping[int, str], *, settings: Mapping[str, str] | None = None, **options: Any
) -> Iterator[dict[int, KafkaNode]]:
    """A running cluster; its processes end with the block."""
    nodes = new_nodes(folder, roles, settings=settings, **options)
    with ExitStack() as stack:
        for node in nodes.values():
            stack.callback(node.kill)
            node.launch()
        for node in nodes.values():
            node.await_ready()
        yield nodes


@contextmanager
def started_node(folder: Path, *, settings: Mapping[str, str] | None = None, **options: Any) -> Iterator[KafkaNode]:
    """A running combined node, the only one of its cluster; `settings` may be `SMALL_LOG` or more."""
    with started_nodes(folder, {1: "broker,controller"}, settings=settings, **options) as nodes:
        yield nodes[1]


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
