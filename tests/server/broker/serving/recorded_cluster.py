"""A cluster in a process of its own, and the requests of a session with it, as its nodes got them.

    with recorded_cluster(folder) as recorded:
        recorded.frames, recorded.ports, recorded.memory(), recorded.log

The process has a controller (101) and a broker (1). What they log is JSON in a file, as that of a service.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
)

from kraftlake.cli.output.logs import log_as_service
from kraftlake.controller.replication import topics
from kraftlake.server.requests.dispatcher import Dispatcher
from tests.server.broker.lake_cluster import LakeCluster, lake_cluster
from tests.waiting import PATIENCE

FAULTS = {"request_failed", "connection_failed", "fault", "log_directory_failed"}
"""Events that no request may bring about."""


@attrs.frozen(kw_only=True)
class RecordedCluster:
    """The process; `frames` are those that each node got, by its id, and `ports` where it listens on loopback."""

    process: subprocess.Popen[str]
    frames: dict[int, list[bytes]]
    ports: dict[int, int]
    log: Path

    def memory(self) -> int:
        """The bytes that the process has in memory."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        (line,) = [line for line in status.splitlines() if line.startswith("VmRSS")]
        return int(line.split()[1]) * 1024

    def faults(self) -> list[str]:
        """What it has logged that is a fault of ours."""
        lines = [line for line in self.log.read_text().splitlines() if not line.startswith("%")]  # of librdkafka
        return [line for line in lines if not line.startswith("{") or json.loads(line)["event"] in FAULTS]


@contextmanager
def recorded_cluster(folder: Path) -> Iterator[RecordedCluster]:
    """The cluster after the session."""
    log = folder / "log.jsonl"
    with log.open("w") as stderr:
        command = [sys.executable, "-m", __name__, str(folder)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True)
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            assert line, log.read_text()
            made = json.loads(line)
            yield RecordedCluster(
                process=process,
                frames={int(id_): [bytes.fromhex(one) for one in frames] for id_, frames in made["frames"].items()},
                ports={int(id_): port for id_, port in made["ports"].items()},
                log=log,
            )
            assert process.poll() is None, log.read_text()[-3_000:]
        finally:
            process.stdin.close()
            process.stdout.close()
            try:
                process.wait(PATIENCE)
            finally:
                process.kill()


def session(cluster: LakeCluster) -> None:
    """What an administrator, a producer and a consumer ask for; answers do not count here."""
    admin, brokers = cluster.admin(), cluster.brokers
    wanted = [NewTopic("orders", 3, 1, config={"retention.ms": "1000000"}), NewTopic("bills", 1, 1)]
    _done(admin.create_topics(wanted))
    _done(admin.create_partitions([NewPartitions("orders", 5)]))
    cluster.wait_for(lambda: len(admin.list_topics("orders", PATIENCE).topics["orders"].partitions) == 5)
    resources = [ConfigResource(ConfigResource.Type.TOPIC, "orders"), ConfigResource(ConfigResource.Type.BROKER, "1")]
    _done(admin.describe_configs(resources))
    entry = ConfigEntry("max.message.bytes", "900000", incremental_operation=AlterConfigOpType.SET)
    changed = ConfigResource(ConfigResource.Type.TOPIC, "orders", incremental_configs=[entry])
    _done(admin.incremental_alter_configs([changed]))
    admin.describe_cluster().result(PATIENCE)
    for codec, idempotent in (("none", False), ("zstd", True), ("gzip", True)):
        producer = Producer(
            {"bootstrap.servers": brokers, "compression.type": codec, "enable.idempotence": idempotent, "linger.ms": 5}
        )
        for number in range(20):
            producer.produce("orders", b"value %d" % number * 9, b"key", partition=0, headers={"from": b"a test"})
        assert producer.flush(PATIENCE) == 0
    consumer = Consumer({"bootstrap.servers": brokers, "group.id": "g", "enable.auto.commit": False})
    consumer.assign([TopicPartition("orders", 0, 0)])
    assert len(consumer.consume(60, PATIENCE)) == 60
    consumer.close()
    _done(admin.list_offsets({TopicPartition("orders", 0): OffsetSpec.latest()}))
    _done(admin.delete_records([TopicPartition("orders", 0, 10)]))
    _done(admin.delete_topics(["bills"]))
    admin.list_topics(timeout=PATIENCE)


def _done(futures: dict[Any, Any]) -> None:
    for future in futures.values():
        future.result(PATIENCE)


def main(folder: Path) -> None:
    """Run the cluster until stdin ends."""
    log_as_service(as_json=True, debug=False, colours=False)
    topics.MOST_PARTITIONS_PER_BROKER = 200  # type: ignore[misc]  # folders of thousands would take minutes to be made
    got: list[tuple[Dispatcher, bytes]] = []
    handle = Dispatcher.handle

    def noted(self: Dispatcher, frame: bytes, *more: Any) -> None:
        got.append((self, frame))
        handle(self, frame, *more)

    Dispatcher.handle = noted  # type: ignore[method-assign]
    with lake_cluster(folder, brokers=(1,)) as cluster:
        session(cluster)
        frames: dict[int, list[str]] = {id_: [] for id_ in cluster.members}
        for id_, member in cluster.members.items():
            frames[id_] = [frame.hex() for dispatcher, frame in got if dispatcher is member.server.dispatcher]
        broker, controller = (cluster.members[id_].server for id_ in (1, 101))
        ports = {1: broker.listeners[0].port, 101: controller.listeners[0].port}
        got.clear()
        Dispatcher.handle = handle  # type: ignore[method-assign]
        print(json.dumps({"frames": frames, "ports": ports}), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
