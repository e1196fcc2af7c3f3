"""Archives the classes of a Kafka node as a JVM has them loaded: `make test` runs this once for a `.venv`.

A JVM that begins with the archive starts in half the time; the tests start dozens of nodes. An archive is of one Java
and of the jars of `.venv`: a JVM with others leaves it aside.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KAFKA_CLASSES = ROOT / "build" / "kafka-classes.jsa"


def archived(archive: Path) -> tuple[str, ...]:
    """The options of a JVM that begins with an archive, where there is one."""
    return ("-Xlog:disable", f"-XX:SharedArchiveFile={archive}") if archive.exists() else ()


def main() -> int:
    """Make the archive; a Java that makes none is no fault."""
    print("archiving the classes of Kafka's nodes, which start sooner then (once)", file=sys.stderr, flush=True)
    KAFKA_CLASSES.parent.mkdir(exist_ok=True)
    KAFKA_CLASSES.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(dir=KAFKA_CLASSES.parent) as folder:
        made = Path(folder) / KAFKA_CLASSES.name
        run_node(Path(folder) / "node", ("-Xlog:disable", f"-XX:ArchiveClassesAtExit={made}"))
        if made.exists():
            made.rename(KAFKA_CLASSES)
    return 0


def run_node(folder: Path, options: tuple[str, ...]) -> None:
    """Start a node, have it keep a record and give it back, and end it."""
    from confluent_kafka import Consumer, Producer, TopicPartition

    from tests.kafka_node import new_nodes

    (node,) = new_nodes(folder, {1: "broker,controller"}).values()
    node.java_options += options
    node.start()
    producer = Producer({"bootstrap.servers": node.bootstrap, "transactional.id": "archive", "log_level": 0})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce("archive", b"record")
    producer.commit_transaction()
    consumer = Consumer({"bootstrap.servers": node.bootstrap, "group.id": "archive", "log_level": 0})
    consumer.assign([TopicPartition("archive", 0, 0)])
    assert consumer.consume(1, timeout=60)
    consumer.close()
    node.stop()


if __name__ == "__main__":
    sys.exit(main())
