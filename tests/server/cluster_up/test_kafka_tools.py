"""Kafka's tools and a cluster as a user starts it, of processes, one of which is killed on the way."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.interop.kafka_tools import KafkaTools
from tests.server.cluster_up.started import cluster_up
from tests.waiting import wait_for

pytestmark = [
    pytest.mark.spark,  # a JVM
    pytest.mark.skipif(os.environ.get("KRAFTLAKE_TESTS") != "long", reason="make test-long: a cluster of five nodes"),
]
TOPIC, PARTITIONS, KILLED = "walked", 3, 2
RECORDS = 100


class Tools:
    """Kafka's tools, asking a cluster."""

    def __init__(self, jvm: KafkaTools, cluster: dict[str, Any]) -> None:
        self._jvm = jvm
        self._cluster = cluster

    def __call__(self, tool: str, *words: object, stdin: str = "", at_controllers: bool = False) -> str:
        """What a tool prints; it must not fail."""
        node = ("--bootstrap-controller", self._cluster["controllers"])
        if not at_controllers:
            node = ("--bootstrap-server", self._cluster["bootstrap"])
        said = self._jvm.run(f"org.apache.kafka.tools.{tool}", *node, *words, stdin=stdin)
        assert said.code == 0, said
        return said.out

    def write(self, first: int) -> None:
        """Write records with keys, all of them acknowledged."""
        lines = "".join(f"{number}:value-{number}\n" for number in range(first, first + RECORDS))
        with_keys = ("--reader-property", "parse.key=true", "--reader-property", "key.separator=:")
        self("ConsoleProducer", "--topic", TOPIC, *with_keys, stdin=lines)

    def read(self) -> list[str]:
        """All values, partition by partition."""
        ends = re.findall(rf"{TOPIC}:(\d+):(\d+)", self("GetOffsetShell", "--topic", TOPIC))
        values: list[str] = []
        for partition, end in ends:
            said = self(
                "consumer.ConsoleConsumer", "--topic", TOPIC, "--partition", partition, "--offset", "earliest",
                "--max-messages", end, "--timeout-ms", 30_000,
            )  # fmt: skip
            values += re.findall(r"value-\d+", said)
        return values

    def partitions(self) -> list[tuple[int, set[int], set[int]]]:
        """The leader, the replicas and the ISR of each partition."""
        said = self("TopicCommand", "--describe", "--topic", TOPIC)
        found = re.findall(r"Partition: \d+\s+Leader: (\S+)\s+Replicas: (\S+)\s+Isr: (\S*)", said)
        return [
            (int(leader), {*map(int, replicas.split(","))}, {*map(int, isr.split(","))})
            for leader, replicas, isr in found
        ]

    def await_partitions(self, holds: Callable[[int, set[int], set[int]], bool], what: str) -> None:
        """Wait until all partitions are so."""
        wait_for(lambda: (found := self.partitions()) and all(holds(*one) for one in found), what)


def test_kafkas_tools_walk_through_a_cluster_that_loses_a_broker(tmp_path: Path) -> None:
    jvm = KafkaTools()
    try:
        with cluster_up(tmp_path) as cluster:
            _walk(Tools(jvm, cluster), cluster, tmp_path)
    finally:
        jvm.close()


def _walk(tools: Tools, cluster: dict[str, Any], folder: Path) -> None:
    config = ("--config", "min.insync.replicas=2")
    created = tools("TopicCommand", "--create", "--topic", TOPIC, "--partitions", 3, "--replication-factor", 3, *config)
    assert f"Created topic {TOPIC}." in created
    tools.await_partitions(lambda _, replicas, isr: replicas == isr == {1, 2, 3}, "all are in sync")
    tools.write(0)

    (pid,) = [node["pid"] for node in cluster["nodes"] if (node["kind"], node["id"]) == ("broker", KILLED)]
    os.kill(pid, signal.SIGKILL)
    tools.write(RECORDS)
    tools.await_partitions(lambda leader, _, isr: leader in (1, 3) and isr == {1, 3}, "others lead")
    assert sorted(tools.read()) == sorted(f"value-{number}" for number in range(2 * RECORDS))

    plan = folder / "plan.json"
    moves = [
        {"topic": TOPIC, "partition": number, "replicas": (1, 3) if number % 2 else (3, 1)}
        for number in range(PARTITIONS)
    ]
    plan.write_text(json.dumps({"version": 1, "partitions": moves}))
    reassign = ("reassign.ReassignPartitionsCommand", "--reassignment-json-file", plan)
    assert "Successfully started partition reassignments" in tools(*reassign, "--execute")
    tools.await_partitions(lambda _, replicas, isr: replicas == isr == {1, 3}, "the replicas of the broker are gone")
    assert tools(*reassign, "--verify").count("is completed") == PARTITIONS
    assert "No partition reassignments found" in tools("reassign.ReassignPartitionsCommand", "--list")

    tools("LeaderElectionCommand", "--election-type", "preferred", "--topic", TOPIC, "--partition", 0)
    tools("LeaderElectionCommand", "--election-type", "preferred", "--all-topic-partitions")
    assert [leader for leader, _, _ in tools.partitions()] == [3, 1, 3]

    for at_controllers in (False, True):
        status = tools("MetadataQuorumCommand", "describe", "--status", at_controllers=at_controllers)
        (leader,) = re.findall(r"LeaderId:\s+(\d+)", status)
        assert leader in ("101", "102")
        rows = tools("MetadataQuorumCommand", "describe", "--replication", at_controllers=at_controllers)
        assert re.search(rf"(?m)^{leader}\s.*Leader", rows)

    assert sorted(tools.read()) == sorted(f"value-{number}" for number in range(2 * RECORDS))
    tools("TopicCommand", "--delete", "--topic", TOPIC)
    wait_for(lambda: TOPIC not in tools("TopicCommand", "--list"), "it is gone")
