"""Commands at our controller and at a real Kafka 4.4 node on loopback, in turn in one run.

    python -m benchmarks.controller [--topics N] [--linger MS] [--json]

Topics of one partition are created one at a time, and 16 at a time; each is answered when it is durable (fsync on both
sides). Then one at a time from the request until a broker knows of it: at the node, until its broker answers a Metadata
request with it, asked again and again; here, until a publisher that follows the lake gets it. The node is asked over
its RPCs from Python, our controller in this process. Both run once before anything counts. A ratio below 1 is faster
than Kafka, which does not wait here for more to append (--linger 25 is its default, and ours has none).
"""

from __future__ import annotations

import argparse
import datetime
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from kio.schema.create_topics.v7 import request as new_topics
from kio.schema.metadata.v12 import request as metadata

from kraftlake.controller.config import ControllerConfig
from kraftlake.controller.quorum.bootstrap import BootstrapMetadata, BootstrapSnapshot
from kraftlake.controller.quorum.quorum_controller import QuorumController
from kraftlake.controller.replication.topics import CreatableTopic, create_topics
from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.metadata_log.append.creation import Contents
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.replay.loader.lake_feed import LakeFeed
from kraftlake.replay.loader.manifest import LeaderAndEpoch, LoaderManifest
from kraftlake.replay.loader.metadata_loader import MetadataLoader
from kraftlake.runtime.clock import SystemClock
from kraftlake.runtime.fault_handler import LoggingFaultHandler
from tests.controller.controlled_cluster import CLUSTER_ID
from tests.controller.kafka_rpc import KafkaRpc
from tests.controller.quorum.test_quorum_controller import eventually, start_broker
from tests.kafka_node import KafkaNode, started_node

AT_ONCE = 16
MINUTE = datetime.timedelta(minutes=1)


class Published:
    """A publisher that passes each image on."""

    name = "published"

    def __init__(self) -> None:
        self.images: SimpleQueue[MetadataImage] = SimpleQueue()

    def on_metadata_update(self, delta: MetadataDelta, new_image: MetadataImage, manifest: LoaderManifest) -> None:
        self.images.put(new_image)

    def on_controller_change(self, leader_and_epoch: LeaderAndEpoch) -> None: ...

    def close(self) -> None: ...


class Ours:
    """Our controller on a lake, and a loader that follows it."""

    def __init__(self, lake: Path) -> None:
        bootstrap = BootstrapSnapshot(metadata=BootstrapMetadata.of(), timestamp=0)
        contents = Contents(snapshots=[(bootstrap, bootstrap.batches())])
        log = MetadataLog.create(lake, CLUSTER_ID, "controlled", contents=contents)
        config = ControllerConfig(node_id=1, cluster_id=CLUSTER_ID, broker_session_timeout_ms=3_600_000)
        self.controller = QuorumController(log, config, claim_at_once=True)
        eventually(lambda: start_broker(self.controller, 1))
        clock, faults = SystemClock(), LoggingFaultHandler("benchmark")
        feed = LakeFeed(MetadataLog.open(lake), clock, faults)
        self.published = Published()
        self.loader = MetadataLoader(clock=clock, fault_handler=faults, high_watermark=lambda: feed.end_at_start)
        self.loader.install_publishers([self.published]).result()
        feed.start(self.loader)

    def close(self) -> None:
        self.loader.close()
        self.controller.close()

    def create(self, name: str) -> None:
        topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
        answer = self.controller.submit(lambda state: create_topics(state, [topic])).result()
        assert answer[name].error.error is ErrorCode.NONE

    def await_published(self, name: str) -> None:
        while name not in self.published.images.get().topics.topics_by_name():
            pass

    @contextmanager
    def workers(self) -> Iterator[Callable[[list[str]], None]]:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            yield lambda names: list(pool.map(self.create, names))  # type: ignore[func-returns-value]


class Theirs:
    """A combined node; each worker has a connection of its own."""

    def __init__(self, node: KafkaNode) -> None:
        self.node = node
        self.rpc = KafkaRpc(node.controller)
        self.broker = KafkaRpc(node.bootstrap)

    def close(self) -> None:
        self.rpc.close()
        self.broker.close()

    def create(self, name: str, rpc: KafkaRpc | None = None) -> None:
        topic = new_topics.CreatableTopic(name=name, num_partitions=1, replication_factor=1, assignments=(), configs=())
        (answer,) = (rpc or self.rpc).ask(new_topics.CreateTopicsRequest(topics=(topic,), timeout=MINUTE)).topics
        assert answer.error_code == 0, answer

    def await_published(self, name: str) -> None:
        topic = metadata.MetadataRequestTopic(topic_id=None, name=name)
        request = metadata.MetadataRequest(
            topics=(topic,), allow_auto_topic_creation=False, include_topic_authorized_operations=False
        )
        while self.broker.ask(request).topics[0].error_code != 0:
            pass

    @contextmanager
    def workers(self) -> Iterator[Callable[[list[str]], None]]:
        connections = [KafkaRpc(self.node.controller) for _ in range(AT_ONCE)]

        def work(place: int, names: list[str]) -> None:
            for name in names[place::AT_ONCE]:
                self.create(name, connections[place])

        with ThreadPoolExecutor(AT_ONCE) as pool:
            yield lambda names: list(pool.map(lambda place: work(place, names), range(AT_ONCE)))  # type: ignore[func-returns-value]
        for connection in connections:
            connection.close()


def measure(side: Ours | Theirs, prefix: str, topics: int) -> dict[str, float]:
    """Milliseconds a topic, and of the way to the brokers."""
    start = time.perf_counter()
    for number in range(topics):
        side.create(f"{prefix}-one-{number}")
    one = (time.perf_counter() - start) / topics
    names = [f"{prefix}-many-{number}" for number in range(4 * topics)]
    with side.workers() as create_all:
        start = time.perf_counter()
        create_all(names)
        many = (time.perf_counter() - start) / len(names)
    ways = []
    for number in range(topics):
        name = f"{prefix}-published-{number}"
        start = time.perf_counter()
        side.create(name)
        side.await_published(name)
        ways.append(time.perf_counter() - start)
    ways.sort()
    return {
        "oneAtATimeMs": 1_000 * one,
        "sixteenAtATimeMs": 1_000 * many,
        "publishedP50Ms": 1_000 * statistics.median(ways),
        "publishedP99Ms": 1_000 * ways[min(len(ways) - 1, round(0.99 * len(ways)))],
    }


def run(topics: int, rounds: int, linger_ms: int) -> dict[str, Any]:
    settings = {"controller.quorum.append.linger.ms": str(linger_ms)}
    with tempfile.TemporaryDirectory() as scratch, started_node(Path(scratch), settings=settings) as node:
        sides: dict[str, Ours | Theirs] = {"kraftlake": Ours(Path(scratch) / "lake"), "kafka": Theirs(node)}
        results: dict[str, list[dict[str, float]]] = {name: [] for name in sides}
        try:
            for number in range(rounds + 1):
                for name, side in sides.items():
                    measured = measure(side, f"round{number}", topics)
                    if number:
                        results[name].append(measured)
        finally:
            for side in sides.values():
                side.close()
    medians: dict[str, Any] = {
        name: {key: statistics.median(each[key] for each in of) for key in of[0]} for name, of in results.items()
    }
    medians["ratio"] = {key: medians["kraftlake"][key] / medians["kafka"][key] for key in medians["kafka"]}
    return medians


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--topics", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--linger", type=int, default=0, help="Kafka's controller.quorum.append.linger.ms; 25 there")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    medians = run(options.topics, options.rounds, options.linger)
    if options.json:
        print(json.dumps(medians))
        return
    print(f"{'':20}{'kraftlake':>12}{'kafka':>12}{'ratio':>8}")
    for key in medians["kafka"]:
        print(f"{key:20}{medians['kraftlake'][key]:12.2f}{medians['kafka'][key]:12.2f}{medians['ratio'][key]:8.2f}")


if __name__ == "__main__":
    main()
