"""`kraftlake broker` beside a real Kafka follower of the same leader: python -m benchmarks.broker [--megabytes N]

One combined node leads. In turn, a broker of Kafka 4.4 and one of ours, both running for the whole time, get
- a topic of N megabytes (batches of some 16 kB): how long until its log has all of it, and the CPU seconds of the whole
  process; one fetcher thread each. The first turn does not count.
- records one by one with acks=all, each after the last was acknowledged: the time to the acknowledgement, of which all
  but the follower's part is the same.
- a thousand partitions of which nothing is written: the CPU that each takes for its fetch session and its heartbeats,
  both in the same seconds.
The node and the broker of Kafka run with the JVM's own defaults, and 1 GB of memory each.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import attrs
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic
from kio.static.primitive import i32Timedelta

from benchmarks.folders import made_folder
from benchmarks.follow import cpu_seconds
from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.protocol.address import parse_addresses
from kraftlake.protocol.node_connector import NodeConnector
from kraftlake.protocol.observer.quorum_observer import QuorumObserver
from tests.kafka_node import KafkaNode, new_nodes
from tests.server.broker.broker_process import BrokerProcess, partition_of, wait_for

LEADER, KAFKA, OURS = 1, 2, 7
JVM = ("-Xmx1g", "-Xms1g")
PARTITIONS = 1_000
IDLE_SECONDS = 20.0
ACKNOWLEDGED, WARM = 1_000, 200
RECORD = 1_000


@attrs.frozen
class Peer:
    """A follower: its id, its process, and the size of its log of a partition."""

    id: int
    pid: int
    size: Callable[[TopicPartition], int]


@contextmanager
def cluster(folder: Path) -> Iterator[tuple[KafkaNode, dict[str, Peer]]]:
    """A node that leads, and the followers by name."""
    nodes = new_nodes(folder / "kafka", {LEADER: "broker,controller", KAFKA: "broker"})
    ours = BrokerProcess(controllers=nodes[LEADER].controller, folder=folder / "ours", broker_id=OURS)
    try:
        for node in nodes.values():
            node.java_options = JVM
            node.start()
        ours.start()
        ours.await_running()
        theirs = nodes[KAFKA]
        assert theirs.pid is not None
        yield (
            nodes[LEADER],
            {
                "Kafka": Peer(KAFKA, theirs.pid, lambda name: size_of(theirs.log_directory / str(name))),
                "ours": Peer(
                    OURS, ours.pid, lambda name: sum(size_of(path) for path in ours.folder.glob(f"d*/{name}"))
                ),
            },
        )
    finally:
        ours.kill()
        for node in nodes.values():
            node.kill()


def size_of(folder: Path) -> int:
    """The bytes of the segments in a partition's folder."""
    return sum(path.stat().st_size for path in folder.glob("*.log"))


def create(node: KafkaNode, name: str, replicas: list[int], partitions: int = 1) -> TopicPartition:
    """A new topic."""
    topic = NewTopic(name, partitions, replica_assignment=[replicas] * partitions)
    node.admin.create_topics([topic])[name].result(timeout=120)
    return TopicPartition(name, 0)


def fill(node: KafkaNode, name: TopicPartition, megabytes: int) -> None:
    """Records of a kilobyte in batches of 16."""
    producer = Producer(
        {"bootstrap.servers": node.bootstrap, "acks": "1", "batch.num.messages": 16, "linger.ms": 5,
         "queue.buffering.max.messages": 100_000}
    )  # fmt: skip
    value = os.urandom(RECORD)
    for number in range(megabytes << 20 >> 10):
        while True:
            try:
                producer.produce(name.topic, value)
                break
            except BufferError:
                producer.poll(0.05)
        if number % 1000 == 0:
            producer.poll(0)
    assert producer.flush(120) == 0


def reassign(node: KafkaNode, name: TopicPartition, replicas: list[int]) -> None:
    """Have other replicas."""

    def request(module: Any) -> Any:
        partition = module.ReassignablePartition(partition_index=name.partition, replicas=tuple(replicas))
        topic = module.ReassignableTopic(name=name.topic, partitions=(partition,))
        wait = i32Timedelta.parse(timedelta(seconds=30))
        return module.AlterPartitionReassignmentsRequest(timeout=wait, topics=(topic,))

    with QuorumObserver(parse_addresses(node.controller), connect=NodeConnector()) as quorum:
        answer = quorum.ask_controller("alter_partition_reassignments", range(1), request)
    (code,) = {one.error_code.name for topic in answer.responses for one in topic.partitions}
    assert code == "none", code


def catch_up(leader: KafkaNode, peer: Peer, turn: int, megabytes: int) -> tuple[float, float]:
    """Wall and CPU seconds until a follower has a topic."""
    name = create(leader, f"bulk-{peer.id}-{turn}", [LEADER])
    fill(leader, name, megabytes)
    wanted = size_of(leader.log_directory / str(name))
    begin, cpu = time.perf_counter(), cpu_seconds(peer.pid)
    reassign(leader, name, [LEADER, peer.id])
    while peer.size(name) < wanted:
        time.sleep(0.01)
    taken = time.perf_counter() - begin, cpu_seconds(peer.pid) - cpu
    wait_for(lambda: peer.id in partition_of(leader.controller, name).isr, "it is in the ISR")
    leader.admin.delete_topics([name.topic])[name.topic].result(timeout=120)
    return taken


def acknowledgements(leader: KafkaNode, peer: Peer) -> list[float]:
    """Milliseconds from sending a record to its acknowledgement by the leader, which waits for the follower."""
    name = create(leader, f"acks-{peer.id}", [LEADER, peer.id])
    wait_for(lambda: peer.id in partition_of(leader.controller, name).isr, "it is in the ISR")
    producer = Producer({"bootstrap.servers": leader.bootstrap, "acks": "all", "linger.ms": 0})
    taken: list[float] = []
    for number in range(WARM + ACKNOWLEDGED):
        begin = time.perf_counter()
        producer.produce(name.topic, b"x" * 100)
        assert producer.flush(60) == 0
        if number >= WARM:
            taken.append((time.perf_counter() - begin) * 1000)
    leader.admin.delete_topics([name.topic])[name.topic].result(timeout=120)
    return sorted(taken)


def idle(leader: KafkaNode, peers: dict[str, Peer]) -> dict[str, float]:
    """The share of a core that each follower takes for partitions of which nothing is written."""
    for peer in peers.values():
        name = create(leader, f"idle-{peer.id}", [LEADER, peer.id], PARTITIONS)
        last = TopicPartition(name.topic, PARTITIONS - 1)
        wait_for(lambda peer=peer, last=last: peer.id in partition_of(leader.controller, last).isr, "it is in the ISR")  # type: ignore[misc]
    time.sleep(5)
    before = {name: cpu_seconds(peer.pid) for name, peer in peers.items()}
    time.sleep(IDLE_SECONDS)
    return {name: (cpu_seconds(peer.pid) - before[name]) / IDLE_SECONDS for name, peer in peers.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=3, help="turns that count")
    parser.add_argument("--folder", type=made_folder, help="where the logs lie; by default among the temporary files")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(dir=options.folder) as scratch,
        cluster(Path(scratch)) as (leader, peers),
    ):
        print(f"catching up with {options.megabytes} MB: MB/s, CPU s a GB")
        taken: dict[str, list[tuple[float, float]]] = {name: [] for name in peers}
        for turn in range(options.rounds + 1):
            for name, peer in peers.items():
                taken[name].append(catch_up(leader, peer, turn, options.megabytes))
        medians = {}
        for name, times in taken.items():
            wall, cpu = (statistics.median(each) for each in zip(*times[1:], strict=True))
            medians[name] = wall, cpu
            print(
                f"  {name:6} {options.megabytes / wall:7.0f} {cpu / options.megabytes * 1024:7.2f}   "
                f"wall {' '.join(f'{one:.2f}' for one, _ in times[1:])}"
            )
        walls, cpus = zip(*medians.values(), strict=True)
        print(f"  ours / Kafka: throughput {walls[0] / walls[1]:.2f}, CPU {cpus[1] / cpus[0]:.2f}")
        print("a record and its acknowledgement: p50, p99, ms")
        for name, peer in peers.items():
            times_ms = acknowledgements(leader, peer)
            print(f"  {name:6} {times_ms[len(times_ms) // 2]:7.2f} {times_ms[len(times_ms) * 99 // 100]:7.2f}")
        print(f"{PARTITIONS} partitions of which nothing is written: per cent of a core")
        for name, share in idle(leader, peers).items():
            print(f"  {name:6} {100 * share:7.1f}")


if __name__ == "__main__":
    main()
