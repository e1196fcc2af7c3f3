"""A cluster of a lake beside one of Kafka, three brokers and a controller each: python -m benchmarks.cluster

In turn, with the same client, on the same machine:
- produce throughput with acks=all to six partitions of three replicas, records of 100 bytes in batches of up to 64 kB,
  and the throughput of reading them back;
- records one by one with acks=all, each after the last was acknowledged: p50 and p99 of the time;
- a topic's creation: from the request until each of the three brokers names a leader of it;
- the loss of a broker by kill -9, with 1,000 partitions of three replicas: until both others show that each partition
  has a leader that lives. It includes the session timeout, three seconds on both sides;
- the CPU seconds of all processes of the cluster for the throughput part, and the share of a core that a node takes
  while nobody asks anything of it.
Kafka's nodes run with the JVM's own defaults, and 1 GB of memory each.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kio.static.primitive import i32

from benchmarks.folders import made_folder
from benchmarks.follow import cpu_seconds
from kraftlake.protocol.address import parse_addresses
from kraftlake.protocol.node_connector import NodeConnector
from tests.kafka_node import new_nodes
from tests.server.lake_processes import LakeProcesses

BROKERS, CONTROLLER = (1, 2, 3), 101
JVM = ("-Xmx1g", "-Xms1g")
SESSION_MS = "3000"
PARTITIONS, MANY = 6, 1_000
RECORD = 100
ONE_BY_ONE, WARM = 1_000, 300
TOPICS = 40
IDLE_SECONDS = 20


@attrs.frozen(kw_only=True)
class Peer:
    """A cluster: the addresses of its brokers by id, its processes, and what kills a broker."""

    addresses: dict[int, str]
    pids: Sequence[int]
    kill: Callable[[int], None]

    @property
    def bootstrap(self) -> str:
        """The addresses of all brokers."""
        return ",".join(self.addresses.values())

    def cpu(self) -> float:
        """The CPU seconds that its processes have taken."""
        return sum(cpu_seconds(pid) for pid in self.pids)


@contextmanager
def kafka(folder: Path) -> Iterator[Peer]:
    """Kafka's own."""
    roles = {CONTROLLER: "controller", **dict.fromkeys(BROKERS, "broker")}
    settings = {"broker.session.timeout.ms": SESSION_MS, "broker.heartbeat.interval.ms": "500"}
    nodes = new_nodes(folder, roles, settings=settings)
    try:
        for node in nodes.values():
            node.java_options = JVM
            node.start()
        pids = [pid for node in nodes.values() if (pid := node.pid) is not None]
        yield Peer(
            addresses={id_: nodes[id_].bootstrap for id_ in BROKERS}, pids=pids, kill=lambda id_: nodes[id_].kill()
        )
    finally:
        for node in nodes.values():
            node.kill()


@contextmanager
def ours(folder: Path) -> Iterator[Peer]:
    """That of a lake."""
    with LakeProcesses(folder, controllers=1, settings={"broker.session.timeout.ms": SESSION_MS}) as cluster:
        yield Peer(
            addresses={node.id: f"127.0.0.1:{node.port}" for node in cluster.brokers},
            pids=[node.pid for node in cluster.nodes.values()],
            kill=lambda id_: cluster.nodes[id_].kill(),
        )


def create(peer: Peer, name: str, partitions: int) -> None:
    """A topic with three replicas, of which each broker names a leader afterwards."""
    admin = AdminClient({"bootstrap.servers": peer.bootstrap, "log_level": 2})
    admin.create_topics([NewTopic(name, partitions, 3)], operation_timeout=60)[name].result(60)
    for address in peer.addresses.values():
        with Asker(address) as asker:
            while asker.leaders(name, partitions) is None:
                time.sleep(0.02)


class Asker:
    """Asks one broker for metadata over one connection."""

    def __init__(self, address: str) -> None:
        (where,) = parse_addresses(address)
        self._node = NodeConnector(max_response_bytes=1 << 27)(where)

    def __enter__(self) -> Asker:
        return self

    def __exit__(self, *_: object) -> None:
        self._node.close()

    def leaders(self, topic: str, partitions: int) -> set[int] | None:
        """The leaders of a topic's partitions; None until all are known."""

        def make(module: Any) -> Any:
            wanted = (module.MetadataRequestTopic(name=topic, topic_id=None),)
            return module.MetadataRequest(
                topics=wanted, allow_auto_topic_creation=False, include_topic_authorized_operations=False
            )

        answer = self._node.ask("metadata", range(12, 13), make, timeout=30)
        (found,) = answer.topics
        leaders = [int(one.leader_id) for one in found.partitions]
        return set(leaders) if len(leaders) == partitions and i32(-1) not in leaders else None


def produce(peer: Peer, name: str, seconds: float) -> tuple[float, float]:
    """Records a second, and the CPU seconds of the cluster for a million of them."""
    faults: list[Any] = []
    producer = Producer(
        {"bootstrap.servers": peer.bootstrap, "acks": "all", "linger.ms": 5, "batch.size": 65_536,
         "batch.num.messages": 10_000, "queue.buffering.max.messages": 200_000, "log_level": 2}
    )  # fmt: skip
    value = os.urandom(RECORD)
    note = lambda fault, _: faults.append(fault) if fault is not None else None  # noqa: E731
    begin, cpu, count = time.perf_counter(), peer.cpu(), 0
    while time.perf_counter() - begin < seconds:
        for _ in range(1_000):
            try:
                producer.produce(name, value, on_delivery=note)
                count += 1
            except BufferError:
                producer.poll(0.01)
        producer.poll(0)
    assert producer.flush(60) == 0
    taken = time.perf_counter() - begin
    assert not faults, faults[0]
    return count / taken, (peer.cpu() - cpu) / count * 1e6


def consume(peer: Peer, name: str) -> float:
    """Records a second, of all that a topic has."""
    consumer = Consumer(
        {"bootstrap.servers": peer.bootstrap, "group.id": "none", "enable.auto.commit": False, "log_level": 2}
    )
    places = [TopicPartition(name, number, 0) for number in range(PARTITIONS)]
    wanted = sum(consumer.get_watermark_offsets(place, timeout=30)[1] for place in places)
    consumer.assign(places)
    begin, count = time.perf_counter(), 0
    while count < wanted:
        count += len(consumer.consume(10_000, timeout=1.0))
    taken = time.perf_counter() - begin
    consumer.close()
    return count / taken


def one_by_one(peer: Peer, name: str) -> tuple[float, float]:
    """p50 and p99 in ms."""
    producer = Producer({"bootstrap.servers": peer.bootstrap, "acks": "all", "linger.ms": 0, "log_level": 2})
    taken: list[float] = []
    for number in range(WARM + ONE_BY_ONE):
        begin = time.perf_counter()
        producer.produce(name, b"x" * RECORD, partition=number % PARTITIONS)
        assert producer.flush(60) == 0
        if number >= WARM:
            taken.append((time.perf_counter() - begin) * 1_000)
    taken.sort()
    return taken[len(taken) // 2], taken[len(taken) * 99 // 100]


def creations(peer: Peer) -> float:
    """The median in ms."""
    admin = AdminClient({"bootstrap.servers": peer.bootstrap, "log_level": 2})
    askers = [Asker(address) for address in peer.addresses.values()]
    taken: list[float] = []
    for number in range(TOPICS):
        name = f"made-{number}"
        begin = time.perf_counter()
        done = admin.create_topics([NewTopic(name, 1, 3)])[name]
        for asker in askers:
            while asker.leaders(name, 1) is None:
                time.sleep(0.0005)
        taken.append((time.perf_counter() - begin) * 1_000)
        done.result(60)
    for asker in askers:
        asker.__exit__()
    return statistics.median(taken[TOPICS // 4 :])


def lose_a_broker(peer: Peer) -> float:
    """Seconds from kill -9 until both other brokers name living leaders of all partitions."""
    create(peer, "many", MANY)
    time.sleep(5)
    lost = BROKERS[0]
    others = [Asker(address) for id_, address in peer.addresses.items() if id_ != lost]
    begin = time.perf_counter()
    peer.kill(lost)
    for asker in others:
        while lost in (asker.leaders("many", MANY) or {lost}):
            time.sleep(0.005)
    return time.perf_counter() - begin


def idle(peer: Peer) -> float:
    """The share of a core that each node takes while nothing happens, in percent."""
    time.sleep(5)
    begin, cpu = time.perf_counter(), peer.cpu()
    time.sleep(IDLE_SECONDS)
    return (peer.cpu() - cpu) / (time.perf_counter() - begin) / len(peer.pids) * 100


def measure(peer: Peer, seconds: float) -> dict[str, float]:
    """All figures of a cluster, by name."""
    create(peer, "bulk", PARTITIONS)
    produce(peer, "bulk", seconds / 2)  # what is compiled and cached on both sides
    rate, cpu = produce(peer, "bulk", seconds)
    read = consume(peer, "bulk")
    idles = idle(peer)
    create(peer, "single", PARTITIONS)
    p50, p99 = one_by_one(peer, "single")
    return {
        "produce, records/s": rate, "cluster's CPU, s a million": cpu, "idle node's CPU, %": idles,
        "consume, records/s": read,
        "acks=all p50, ms": p50, "acks=all p99, ms": p99, "topic on all brokers, ms": creations(peer),
        "broker lost, 1,000 partitions, s": lose_a_broker(peer),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10, help="how long records are produced")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--only", choices=["kafka", "ours"], help="one of the two")
    parser.add_argument("--folder", type=made_folder, help="where the logs lie; by default among the temporary files")
    options = parser.parse_args()
    figures: dict[str, dict[str, list[float]]] = {}
    for turn in range(options.rounds):
        for name, cluster in (("kafka", kafka), ("ours", ours)):
            if options.only in (None, name):
                with tempfile.TemporaryDirectory(dir=options.folder) as scratch, cluster(Path(scratch) / name) as peer:
                    for figure, value in measure(peer, options.seconds).items():
                        figures.setdefault(figure, {}).setdefault(name, []).append(value)
                print(f"round {turn + 1}: {name} is done", flush=True)
    print(f"{'':36} {'kafka':>12} {'ours':>12}  ours/kafka")
    for figure, values in figures.items():
        medians = {name: statistics.median(values[name]) for name in values}
        shown = [f"{medians[name]:12.2f}" if name in medians else " " * 12 for name in ("kafka", "ours")]
        ratio = f"{medians['ours'] / medians['kafka']:8.2f}" if len(medians) == 2 else ""
        print(f"{figure:36} {shown[0]} {shown[1]}  {ratio}")


if __name__ == "__main__":
    main()
