"""A cluster of a lake and one of real Kafka nodes, with the same ids and settings, that get the same requests."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import attrs

from tests.kafka_node import SMALL_NODE, started_nodes
from tests.server.broker.lake_cluster import lake_cluster
from tests.server.matrix.answers import Normalizer
from tests.server.matrix.wire import CLOSED, Wire, frame_of, known_versions
from tests.waiting import wait_for

LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"
BROKERS, CONTROLLER = (1, 2, 3), 101
NODES = (1, CONTROLLER) if LONG else (1,)
"""Those that are asked to change something: a broker passes it on to the controller."""
SESSION_SLOTS = 160
"""The fetch sessions that a broker keeps."""
SUPER_USER = "admin"
SETTINGS = {
    **SMALL_NODE,
    "allow.everyone.if.no.acl.found": "true",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "auto.create.topics.enable": "false",
    "broker.heartbeat.interval.ms": "300",
    "broker.session.timeout.ms": "60000",
    "delegation.token.secret.key": "a key of the matrix",
    "log.index.size.max.bytes": "10485760",
    "log.initial.task.delay.ms": "500",
    "log.retention.check.interval.ms": "500",
    "max.incremental.fetch.session.cache.slots": str(SESSION_SLOTS),
    "replica.fetch.backoff.ms": "100",
    "replica.fetch.wait.max.ms": "100",
    "replica.lag.time.max.ms": "120000",
    "super.users": f"User:{SUPER_USER}",
}
"""Of the nodes on both sides."""


def broker_settings(controller_port: int) -> dict[str, str]:
    """What a broker on Kafka's side has, beside its own id, listener and directory."""
    return {
        **SETTINGS,
        "controlled.shutdown.enable": "false",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": f"{CONTROLLER}@127.0.0.1:{controller_port}",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    }


@attrs.define
class Side:
    """One of the two clusters: `ports` by the ids of its nodes, and the directories of the brokers' logs.

    `seen` has the answers by what was asked.
    """

    name: str
    ports: Mapping[int, int]
    logs: Mapping[int, Path]
    seen: dict[str, Any] = attrs.field(factory=dict)
    _wires: dict[int, Wire] = attrs.field(factory=dict)
    _ids: dict[str, UUID] = attrs.field(factory=dict)
    normalizer: Normalizer = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.normalizer = Normalizer({port: node for node, port in self.ports.items()})

    @property
    def bootstrap(self) -> str:
        """HOST:PORT of the brokers."""
        return ",".join(f"127.0.0.1:{self.ports[id_]}" for id_ in BROKERS)

    def wire(self, node: int = 1) -> Wire:
        """A connection that is kept."""
        if node not in self._wires:
            self._wires[node] = self.new_wire(node)
        return self._wires[node]

    def new_wire(self, node: int = 1) -> Wire:
        """A connection of its own."""
        return Wire("127.0.0.1", self.ports[node])

    @property
    def controller(self) -> str:
        """HOST:PORT of the controller."""
        return f"127.0.0.1:{self.ports[CONTROLLER]}"

    def close(self) -> None:
        """Close the connections."""
        for wire in self._wires.values():
            wire.close()

    def ask(self, api: str, version: int, to: int = 1, **values: Any) -> Any:
        """An answer as kio declares it."""
        return self.wire(to).ask(api, version, values)

    def call(self, label: str, api: str, version: int, to: int = 1, **values: Any) -> Any:
        """Ask, and keep the answer for the comparison."""
        answer = self.ask(api, version, to, **values)
        self.keep(f"{api} v{version} {label}", answer)
        return answer

    def frame(self, api: str, version: int, values: Mapping[str, Any]) -> bytes:
        """A request's frame."""
        return frame_of(api, version, values)

    def call_raw(self, label: str, frame: bytes, to: int = 1) -> None:
        """Send a frame over a new connection, and keep the frame of the answer."""
        wire = self.new_wire(to)
        answer = wire.exchange(frame)
        self.keep(label, CLOSED if answer is None else answer)
        wire.close()

    def keep(self, label: str, answer: Any) -> None:
        """Keep an answer for the comparison."""
        assert label not in self.seen, f"{label} is asked twice"
        self.seen[label] = self.normalizer.normal(answer)

    # what cases begin with

    def id_of(self, topic: str) -> UUID:
        """The id of a topic that was created by `create`."""
        return self._ids[topic]

    def create(self, topic: str, *replicas: Sequence[int], **configs: object) -> None:
        """Create a topic, and wait until each broker knows its leaders; `_` stands for the dots in names of configs."""
        answer = self.ask(
            "create_topics", 7, timeout=30_000,
            topics=[{
                "name": topic, "num_partitions": -1, "replication_factor": -1,
                "assignments": [
                    {"partition_index": number, "broker_ids": tuple(ids)} for number, ids in enumerate(replicas)
                ],
                "configs": [
                    {"name": name.replace("_", "."), "value": str(value)} for name, value in configs.items()
                ],
            }],
        )  # fmt: skip
        (created,) = answer.topics
        assert created.error_code == 0, created
        self.know(topic, created.topic_id)
        self.await_leaders(topic, [ids[0] for ids in replicas])

    def know(self, topic: str, id_: UUID) -> None:
        """Name a topic by its id from now on."""
        self._ids[topic] = id_
        self.normalizer.topics[id_] = topic

    def await_leaders(self, topic: str, leaders: Sequence[int]) -> None:
        """Wait until each broker says that the partitions have these leaders, and all replicas in sync."""

        def leads(broker: int) -> bool:
            (found,) = self.ask("metadata", 12, broker, topics=[{"name": topic, "topic_id": None}]).topics
            led = {int(one.partition_index): int(one.leader_id) for one in found.partitions}
            return led == dict(enumerate(leaders)) and all(
                set(one.isr_nodes) == set(one.replica_nodes) for one in found.partitions
            )

        for broker in BROKERS:
            self.wait_for(lambda broker=broker: leads(broker), f"broker {broker} to know the leaders of {topic}")
        for leader in set(leaders):
            asked = [
                {"partition_index": number, "timestamp": -1, "current_leader_epoch": -1}
                for number, broker in enumerate(leaders)
                if broker == leader
            ]
            self.wait_for(
                lambda leader=leader, asked=asked: self._answers(topic, leader, asked),
                f"broker {leader} to have the logs of {topic}",
            )

    def _answers(self, topic: str, leader: int, partitions: Sequence[Mapping[str, Any]]) -> bool:
        answer = self.ask("list_offsets", 7, leader, replica_id=-1, topics=[{"name": topic, "partitions": partitions}])
        return all(one.error_code == 0 for one in answer.topics[0].partitions)

    def await_replicas(self, topic: str, partition: int, replicas: Sequence[int]) -> None:
        """Wait until each broker says that a partition has these replicas, all in sync."""

        def has(broker: int) -> bool:
            (found,) = self.ask("metadata", 12, broker, topics=[{"name": topic, "topic_id": None}]).topics
            one = next(one for one in found.partitions if one.partition_index == partition)
            return tuple(one.replica_nodes) == tuple(replicas) and set(one.isr_nodes) == set(replicas)

        for broker in BROKERS:
            self.wait_for(lambda broker=broker: has(broker), f"broker {broker} to know of {topic}'s new replicas")

    def wait_for(self, holds: Callable[[], Any], what: str) -> Any:
        """The first true answer."""
        return wait_for(holds, f"{self.name}: {what}")


@attrs.frozen
class Sides:
    """Both clusters, and the versions that both have of an API, by the node that is asked."""

    ours: Side
    theirs: Side

    def versions(self, api: str, node: int = 1) -> list[int]:
        """The versions of an API that both clusters and kio have; in the quick run the first and the last one."""
        found = list(self._versions(api, node))
        return found if LONG else sorted({found[0], found[-1]})

    def _versions(self, api: str, node: int) -> range:
        ranges = [known_versions(api)]
        for side in (self.ours, self.theirs):
            answer = side.ask("api_versions", 3, node, client_software_name="matrix", client_software_version="1")
            key = frame_of(api, ranges[0][0], {})[:2]
            ranges += [
                range(one.min_version, one.max_version + 1)
                for one in answer.api_keys
                if int(one.api_key).to_bytes(2, "big") == key
            ]
        assert len(ranges) == 3, f"{api} is not served by both"
        return range(max(one.start for one in ranges), min(one.stop for one in ranges))


@contextmanager
def started_sides(folder: Path) -> Iterator[Sides]:
    """Both clusters, running: three brokers and a controller each."""
    roles = {CONTROLLER: "controller"} | dict.fromkeys(BROKERS, "broker")
    (folder / "ours").mkdir()
    with ExitStack() as stack:
        nodes = stack.enter_context(started_nodes(folder / "theirs", roles, settings=SETTINGS))
        cluster = stack.enter_context(lake_cluster(folder / "ours", brokers=(), controllers=()))
        cluster.start_controller(CONTROLLER, **SETTINGS)
        for id_ in BROKERS:
            cluster.start_broker(id_, broker_settings(nodes[CONTROLLER].controller_port))
        cluster.await_unfenced(*BROKERS)
        our_ports = {id_: cluster.members[id_].server.listeners[0].port for id_ in BROKERS}
        controller_port = cluster.members[CONTROLLER].server.listeners[0].port
        our_logs = {id_: folder / "ours" / f"broker-{id_}" for id_ in BROKERS}
        ours = Side("ours", our_ports | {CONTROLLER: controller_port}, our_logs)
        their_ports = {id_: nodes[id_].broker_port for id_ in BROKERS}
        their_logs = {id_: nodes[id_].log_directory for id_ in BROKERS}
        theirs = Side("theirs", their_ports | {CONTROLLER: nodes[CONTROLLER].controller_port}, their_logs)
        for side in (ours, theirs):
            stack.callback(side.close)
        yield Sides(ours, theirs)
