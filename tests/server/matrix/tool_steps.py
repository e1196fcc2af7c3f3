"""What is done with Kafka's command-line tools, step by step, on both sides."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import attrs

from tests.interop.kafka_tools import KafkaTools, run_tool
from tests.server.matrix.sides import LONG, Side

_TOOLS: Final = "org.apache.kafka.tools."
_WRITTEN: Final = "".join(f"key-{number}:value-{number}\n" for number in range(20))


@attrs.frozen
class Step:
    """A tool with its words; `at_controller` asks the controller, None no node at all.

    Some tools say all only at the end of their JVM: `own_jvm`.
    """

    label: str
    tool: str
    words: tuple[object, ...]
    stdin: str = ""
    at_controller: bool | None = False
    own_jvm: bool = False

    def run(self, tools: KafkaTools, side: Side) -> list[str]:
        """What the tool says on a side, without what differs between any two clusters; its code first."""
        node: tuple[str, ...] = ("--bootstrap-server", side.bootstrap)
        if self.at_controller is None:
            node = ()
        elif self.at_controller:
            node = ("--bootstrap-controller", side.controller)
        run = run_tool if self.own_jvm else tools.run
        said = run(_TOOLS + self.tool, *node, *self.words, stdin=self.stdin)
        return [f"ends with {said.code}", *normal(side, said.out + said.err)]


_QUICK: Final = frozenset({
    "create, placed and with configs", "create, placed", "describe tools-1", "alter a topic", "describe a topic",
    "write", "read 0", "offsets at -1", "dump the log of 1", "move", "verify", "elect, preferred", "quorum, --status",
    "delete",
})  # fmt: skip
"""One step or two of each tool."""


def steps(side: Side, folder: Path) -> Iterator[Step]:
    """The steps, each made when the one before it is done; in the quick run those alone that show each tool."""
    return (step for step in _all_steps(side, folder) if LONG or step.label in _QUICK)


def _all_steps(side: Side, folder: Path) -> Iterator[Step]:
    yield from _topics()
    yield from _configs()
    yield from _records(side)
    yield from _reassignment(side, folder)
    yield from _cluster()
    yield Step("delete", "TopicCommand", ("--delete", "--topic", "tools-1"))
    yield Step("delete again", "TopicCommand", ("--delete", "--topic", "tools-1"))


def _topics() -> Iterator[Step]:
    def topics(label: str, *words: object) -> Step:
        return Step(label, "TopicCommand", words)

    config = ("--config", "retention.ms=100000")
    placed = ("--replica-assignment", "1:2:3,2:3:1")
    yield topics("create", "--create", "--topic", "tools-0", "--partitions", 2, "--replication-factor", 3, *config)
    yield topics("create, placed and with configs", "--create", "--topic", "tools-1", *placed, *config)
    yield topics("create again", "--create", "--topic", "tools-1", "--partitions", 2, "--replication-factor", 3)
    yield topics("create, maybe", "--create", "--if-not-exists", "--topic", "tools-1", "--partitions", 2)
    yield topics("create, placed", "--create", "--topic", "tools-2", "--replica-assignment", "1:2,2:3")
    yield topics("create, wrong", "--create", "--topic", "tools-3", "--replication-factor", 9)
    for topic in ("tools-1", "tools-2", "tools-9"):
        yield topics(f"describe {topic}", "--describe", "--topic", topic)
    placed = ("--replica-assignment", "1:2,2:3,3:1,1:2")
    yield topics("more partitions", "--alter", "--topic", "tools-2", "--partitions", 4, *placed)
    yield topics("fewer partitions", "--alter", "--topic", "tools-2", "--partitions", 1)
    for kind in (
        "--under-replicated-partitions", "--unavailable-partitions", "--under-min-isr-partitions",
        "--at-min-isr-partitions", "--topics-with-overrides",
    ):  # fmt: skip
        yield topics(kind, "--describe", "--topic", "tools-[12]", kind)
    yield topics("list", "--list", "--topic", "tools-.*")


def _configs() -> Iterator[Step]:
    def configs(label: str, kind: str, name: str, *words: object) -> Step:
        return Step(label, "ConfigCommand", ("--entity-type", kind, "--entity-name", name, *words))

    set_ = "segment.ms=60000,cleanup.policy=[compact,delete]"
    yield configs("alter a topic", "topics", "tools-1", "--alter", "--add-config", set_)
    yield configs("alter it wrongly", "topics", "tools-1", "--alter", "--add-config", "segment.ms=x")
    yield configs("alter none", "topics", "tools-9", "--alter", "--add-config", set_)
    yield configs("describe a topic", "topics", "tools-1", "--describe")
    yield configs("describe all of it", "topics", "tools-1", "--describe", "--all")
    yield configs("delete of a topic", "topics", "tools-1", "--alter", "--delete-config", "segment.ms,cleanup.policy")
    yield configs("describe it again", "topics", "tools-1", "--describe")
    retention = "log.retention.ms=500000000"
    yield configs("alter a broker", "brokers", "1", "--alter", "--add-config", retention)
    yield configs("alter it wrongly, too", "brokers", "1", "--alter", "--add-config", "log.dirs=/x")
    yield configs("describe a broker", "brokers", "1", "--describe")
    yield configs("delete of a broker", "brokers", "1", "--alter", "--delete-config", "log.retention.ms")
    yield Step("describe brokers", "ConfigCommand", ("--entity-type", "brokers", "--describe", "--entity-default"))


def _records(side: Side) -> Iterator[Step]:
    yield Step(
        "write", "ConsoleProducer",
        ("--topic", "tools-1", "--reader-property", "parse.key=true", "--reader-property", "key.separator=:"),
        stdin=_WRITTEN,
    )  # fmt: skip
    for partition, count in ((0, 9), (1, 11)):
        yield Step(
            f"read {partition}", "consumer.ConsoleConsumer",
            (
                "--topic", "tools-1", "--partition", partition, "--offset", "earliest", "--max-messages", count,
                "--timeout-ms", 10_000, "--formatter-property", "print.key=true",
                "--formatter-property", "print.offset=true",
            ),
        )  # fmt: skip
    yield Step("read some", "consumer.ConsoleConsumer", (
        "--topic", "tools-1", "--partition", 0, "--offset", 3, "--max-messages", 2,
    ))  # fmt: skip
    for time in (-1, -2, 0):
        yield Step(f"offsets at {time}", "GetOffsetShell", ("--topic", "tools-1", "--time", time))
    yield Step("create for one", "TopicCommand", ("--create", "--topic", "tools-4", "--replica-assignment", "1:2"))
    verifiable = ("--topic", "tools-4", "--max-messages", 30, "--acks", "-1")
    yield Step("write verifiably", "VerifiableProducer", verifiable, own_jvm=True)
    yield Step("perform", "ProducerPerformance", (
        "--topic", "tools-4", "--num-records", 500, "--record-size", 100, "--throughput", "-1",
    ))  # fmt: skip
    yield Step("offsets of all", "GetOffsetShell", ("--topic", "tools-.*"))
    for broker in (1, 2, 3):
        file = side.logs[broker] / "tools-1-0" / f"{0:020d}.log"
        words = ("--files", file, "--print-data-log", "--deep-iteration")
        yield Step(f"dump the log of {broker}", "DumpLogSegments", words, at_controller=None)


def _reassignment(side: Side, folder: Path) -> Iterator[Step]:
    topics, plan, deletion = (folder / f"{side.name}-{name}.json" for name in ("topics", "plan", "deletion"))
    topics.write_text(json.dumps({"version": 1, "topics": [{"topic": "tools-2"}]}))
    moves = [{"topic": "tools-2", "partition": 0, "replicas": [2, 3]}]
    plan.write_text(json.dumps({"version": 1, "partitions": moves}))
    deletion.write_text(json.dumps({"partitions": [{"topic": "tools-1", "partition": 0, "offset": 2}], "version": 1}))

    def reassign(label: str, *words: object) -> Step:
        return Step(label, "reassign.ReassignPartitionsCommand", words)

    yield reassign("reassign nothing", "--list")
    yield reassign("plan", "--generate", "--topics-to-move-json-file", topics, "--broker-list", "1,2")
    yield reassign("move", "--reassignment-json-file", plan, "--execute", "--throttle", 50_000_000)
    side.await_replicas("tools-2", 0, (2, 3))
    yield reassign("verify", "--reassignment-json-file", plan, "--verify")
    yield reassign("cancel", "--reassignment-json-file", plan, "--cancel")
    yield Step("describe what was moved", "TopicCommand", ("--describe", "--topic", "tools-2"))
    yield Step("delete records", "DeleteRecordsCommand", ("--offset-json-file", deletion))
    yield Step("what is left", "GetOffsetShell", ("--topic", "tools-1", "--time", -2))


def _cluster() -> Iterator[Step]:
    for kind in ("preferred", "unclean"):
        yield Step(f"elect, {kind}", "LeaderElectionCommand", (
            "--election-type", kind, "--topic", "tools-2", "--partition", 1,
        ))  # fmt: skip
    yield Step("elect, all", "LeaderElectionCommand", ("--election-type", "preferred", "--all-topic-partitions"))
    for at_controller in (False, True):
        for what in ("--status", "--replication"):
            label = f"quorum, {what}{', of the controller' * at_controller}"
            yield Step(label, "MetadataQuorumCommand", ("describe", what), at_controller=at_controller)
    yield Step("log directories", "LogDirsCommand", ("--describe", "--topic-list", "tools-1,tools-2"))
    yield Step("features", "FeatureCommand", ("describe",))
    yield Step("versions", "BrokerApiVersionsCommand", ())


_PATTERNS: Final = (
    (r"(Error while executing [a-z ]+|org\.apache\.kafka\.\S+Exception): .*", r"\1"),  # each side has its own words
    (r"(Topic|Cluster)I[dD]: +\S{22}", r"\1Id"),
    (r', "directoryId": "[^"]+"', ""),
    (r"(?m)^(\d+) +\t\S{22}\t\d+ +\t.*\t(\w+ *)\t$", r"\1 \2"),  # of kafka-metadata-quorum --replication
    (r"(?m)^(HighWatermark|LeaderEpoch|MaxFollowerLag|MaxFollowerLagTimeMs):.*", r"\1"),
    (r"Epoch: \d+", "Epoch"),
    (r"[\d.]+ (records/sec|MB/sec|ms)", r"\1"),
    (r"\([^()]*MB/sec\)", ""),
    (r'"(timestamp|time_millis|logDir)":("[^"]*"|\d+)', r'"\1"'),
    (r'"avg_throughput":[\d.]+', '"avg_throughput"'),
    (r"(CreateTime|baseOffset|crc|LogAppendTime|producerId): ?\d+", r"\1"),
    (r'(?m)^.*"log_dirs":\["any".*$', "a proposal, which is a random one"),
    (r'"log_dirs":\[[^]]*\]', '"log_dirs"'),
    (r"(?m)^Dumping .*", "Dumping"),
    (r'"size":\d+', '"size"'),
)  # fmt: skip


def normal(side: Side, said: str) -> list[str]:
    """The lines of what a tool says, sorted, without what differs between any two clusters."""
    for port, node in side.normalizer.nodes.items():
        said = said.replace(f"127.0.0.1:{port}", f"node-{node}")
    for pattern, instead in _PATTERNS:
        said = re.sub(pattern, instead, said)
    if said.startswith("Querying brokers for log directories"):
        said = "\n".join(_sorted_json(line) for line in said.splitlines())
    said = re.sub(r"CurrentObservers: .*", lambda found: " ".join(sorted(re.findall(r"\d+", found[0]))), said)
    return sorted(line.rstrip() for line in said.splitlines() if line.strip())


def _sorted_json(line: str) -> str:
    return "".join(sorted(re.findall(r"[\w-]+", line))) if line.startswith("{") else line
