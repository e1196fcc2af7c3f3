"""Idempotent producers while leaders move and brokers stop: nothing is lost, nothing is there twice, all in order.

The clients are processes: Kafka's VerifiableProducer, and one producer and one consumer of librdkafka.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import attrs
import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import NewTopic

from tests.at_least_one import at_least_one
from tests.interop.kafka_tools import tool_command
from tests.server.broker.lake_cluster import PATIENCE, SHORT_SESSION, LakeCluster, lake_cluster

pytestmark = pytest.mark.spark
ROUNDS, AT_LEAST = (15, 200) if os.environ.get("KRAFTLAKE_TESTS") == "long" else (1, 50)
"""How often a broker stops, and how many records each client goes on by before and after it."""
BROKERS, PARTITIONS, TOPIC = (1, 2, 3), 3, "verified"
_JAVA = """
retries=2147483647
enable.idempotence=true
delivery.timeout.ms=120000
retry.backoff.max.ms=500
reconnect.backoff.max.ms=500
linger.ms=5
"""


@attrs.define
class Client:
    """A process that prints what happened to records: partition, offset and value."""

    folder: Path
    name: str
    command: Sequence[str]
    _process: subprocess.Popen[bytes] = attrs.field(init=False)
    _position: int = attrs.field(init=False, default=0)
    _records: list[tuple[int, int, str]] = attrs.field(init=False, factory=list)

    def __attrs_post_init__(self) -> None:
        with (self.folder / self.name).open("wb") as out, (self.folder / f"{self.name}.err").open("wb") as err:
            self._process = subprocess.Popen(self.command, stdout=out, stderr=err)

    def records(self) -> list[tuple[int, int, str]]:
        """What it has printed up to now; each line is read once."""
        with (self.folder / self.name).open("rb") as file:
            file.seek(self._position)
            whole, newline, _ = file.read().rpartition(b"\n")
        self._position += len(whole) + len(newline)
        for printed in map(json.loads, whole.splitlines()):
            if isinstance(printed, list):
                self._records.append((printed[0], printed[1], printed[2]))
            elif printed["name"] == "producer_send_success":
                self._records.append((printed["partition"], printed["offset"], f"theirs-{printed['value']}"))
            else:
                assert printed["name"] != "producer_send_error", printed
        return self._records

    def end(self) -> None:
        """Have it end in order."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        code = self._process.wait(120)
        assert code in (0, 143), f"{self.name} ended with {code}: {(self.folder / f'{self.name}.err').read_text()}"

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


def _python(bootstrap: str, what: str) -> list[str]:
    words = [what, bootstrap, TOPIC, str(PARTITIONS)]
    return [sys.executable, "-m", "tests.server.broker.verifiable_client", *words]


def _epochs(cluster: LakeCluster) -> int:
    topic = cluster.members[1].server.broker.cache.image.topics.get_topic(TOPIC)
    return sum(partition.leader_epoch for partition in topic.partitions.values())


def _ends(cluster: LakeCluster) -> dict[int, int]:
    asking = Consumer({"bootstrap.servers": cluster.brokers, "group.id": "none"})
    try:
        return {
            number: asking.get_watermark_offsets(TopicPartition(TOPIC, number), PATIENCE)[1]
            for number in range(PARTITIONS)
        }
    finally:
        asking.close()


def _all_in_sync(cluster: LakeCluster) -> bool:
    for id_ in BROKERS:
        topic = cluster.members[id_].server.broker.cache.image.topics.get_topic(TOPIC)
        if topic is None or any(len(partition.isr) < len(BROKERS) for partition in topic.partitions.values()):
            return False
    return True


def test_nothing_is_lost_and_nothing_twice(tmp_path: Path) -> None:
    config = tmp_path / "java.properties"
    config.write_text(_JAVA)
    with lake_cluster(tmp_path, brokers=BROKERS, settings=SHORT_SESSION) as cluster, ExitStack() as stack:
        new = NewTopic(TOPIC, PARTITIONS, len(BROKERS), config={"min.insync.replicas": "2"})
        admin = cluster.admin()
        admin.create_topics([new])[TOPIC].result(PATIENCE)
        cluster.wait_for(lambda: _all_in_sync(cluster), "the topic")
        words = ("--topic", TOPIC, "--throughput", 300, "--acks", "-1", "--command-config", config)
        java = tool_command("org.apache.kafka.tools.VerifiableProducer", "--bootstrap-server", cluster.brokers, *words)
        theirs = Client(tmp_path, "theirs", java)
        ours = Client(tmp_path, "ours", _python(cluster.brokers, "produce"))
        reader = Client(tmp_path, "reader", _python(cluster.brokers, "consume"))
        for client in (theirs, ours, reader):
            stack.callback(client.kill)

        def await_more() -> None:
            for client in (theirs, ours, reader):
                wanted = len(client.records()) + AT_LEAST
                cluster.wait_for(lambda c=client, w=wanted: len(c.records()) >= w, f"{client.name} to go on")

        before = _epochs(cluster)
        await_more()
        for round_ in range(ROUNDS):
            stopped = BROKERS[round_ % len(BROKERS)]
            cluster.members.pop(stopped).stop()
            await_more()
            cluster.start_broker(stopped)
            cluster.await_unfenced(*BROKERS)
            cluster.wait_for(lambda: _all_in_sync(cluster), "all replicas to be in sync")
            await_more()
        for client in (theirs, ours):
            client.end()
        moves = _epochs(cluster) - before
        ends = _ends(cluster)
        cluster.wait_for(lambda: len(reader.records()) >= sum(ends.values()), "all to be read")
        reader.end()
    assert moves >= ROUNDS, "leaders have moved"
    read = reader.records()
    for partition, end in at_least_one(ends.items()):
        assert [offset for number, offset, _ in read if number == partition] == list(range(end)), "each offset once"
    twice = [value for value, times in Counter(_named(value) for _, _, value in read).items() if times > 1]
    assert not twice, f"records that are there twice: {twice[:5]}"
    there = {(partition, offset): _named(value) for partition, offset, value in read}
    for client in (theirs, ours):
        lost = [one for one in client.records() if there.get(one[:2]) != one[2]]
        assert not lost, f"acknowledged records that are not there: {lost[:5]}"
        assert len(client.records()) >= AT_LEAST * ROUNDS
    for partition in range(PARTITIONS):
        numbers = [int(value[5:]) for number, _, value in read if number == partition and value.startswith("ours-")]
        assert numbers == sorted(numbers), "in the order of the producer"


def _named(value: str) -> str:
    """The value with its producer: the Java one writes numbers alone."""
    return value if value.startswith("ours-") else f"theirs-{value}"
