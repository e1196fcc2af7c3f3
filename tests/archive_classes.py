"""Archives the classes of a program as a JVM has them loaded: `make test` runs this once for a `.venv`.

A JVM that begins with the archive starts in half the time; the tests start dozens, of Spark with Delta Lake and of
Kafka's nodes. An archive is of one Java and of the jars of `.venv`: a JVM with others leaves it aside.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SPARK_CLASSES, KAFKA_CLASSES = (ROOT / "build" / f"{name}-classes.jsa" for name in ("spark", "kafka"))
SAMPLE = ROOT / "samples" / "kafka-4.4"


def archived(archive: Path) -> tuple[str, ...]:
    """The options of a JVM that begins with an archive, where there is one."""
    return ("-Xlog:disable", f"-XX:SharedArchiveFile={archive}") if archive.exists() else ()


def main(archive: Path) -> int:
    """Make an archive; a Java that makes none is no fault."""
    print(f"archiving {archive.stem}, for JVMs that start sooner (half a minute, once)", file=sys.stderr, flush=True)
    archive.parent.mkdir(exist_ok=True)
    archive.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(dir=archive.parent) as folder:
        made = Path(folder) / archive.name
        options = ("-Xlog:disable", f"-XX:ArchiveClassesAtExit={made}")
        if archive == SPARK_CLASSES:
            os.environ["SPARK_SUBMIT_OPTS"] = " ".join(options)
            run_jobs(Path(folder) / "lake")
        else:
            run_node(Path(folder) / "node", options)
        if made.exists():
            made.rename(archive)
    return 0


def run_jobs(lake: Path) -> None:
    """Run jobs over a lake, and queries of their tables, in a session, and wait until its JVM has ended."""
    from pyspark import SparkContext

    from kraftlake.replay.imports.import_log import import_source
    from kraftlake.spark_jobs import read_records, run_job, spark_session

    import_source(SAMPLE, lake)
    spark = spark_session("classes to archive")
    for job in ("records", "events"):
        run_job(job, str(lake), spark=spark)
    read_records(spark, str(lake), "TopicRecord").groupBy("name").count().collect()
    spark.read.format("delta").load(str(lake / "events")).groupBy("kind").count().collect()
    gateway = SparkContext._gateway
    spark.stop()
    assert gateway is not None
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()


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
    sys.exit(main({"spark": SPARK_CLASSES, "kafka": KAFKA_CLASSES}[sys.argv[1]]))
