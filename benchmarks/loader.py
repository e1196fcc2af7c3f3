"""The metadata loader beside Kafka 4.4's own, in turn in one run: `python -m benchmarks.loader`.

Catch-up: from a log of --records records (topics of ten partitions) to the first update of a publisher. Kafka's loader
is handed the segment file, ours reads the lake that holds the same batches. Latency, one record at a time: from handing
it to the loader to the publisher's update, in memory on both sides; and with ours through a lake: from `append`, which
commits with fsync, until a publisher that follows the lake from another thread gets it.

A ratio below 1 is faster than Kafka. Both sides run once before anything counts.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.kafka_files.file_names import segment_name
from kraftlake.kafka_files.writer import write_segment
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.records.batch import RecordBatch
from kraftlake.records.metadata_records import FeatureLevelRecord, PartitionRecord, TopicRecord
from kraftlake.records.schema import Message
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.records.uuid import Uuid
from kraftlake.replay.loader.lake_feed import LakeFeed
from kraftlake.replay.loader.manifest import LeaderAndEpoch, LoaderManifest
from kraftlake.replay.loader.metadata_loader import MetadataLoader
from kraftlake.runtime.clock import SystemClock
from kraftlake.runtime.fault_handler import LoggingFaultHandler
from tests.interop.kafka_classes import KafkaClasses

TIME = 1_700_000_000_000
PARTITIONS = 10
RECORDS_PER_BATCH = 1_024


class Published:
    """A publisher that passes each image on."""

    name = "published"

    def __init__(self) -> None:
        self.images: SimpleQueue[MetadataImage] = SimpleQueue()

    def on_metadata_update(self, delta: MetadataDelta, new_image: MetadataImage, manifest: LoaderManifest) -> None:
        self.images.put(new_image)

    def on_controller_change(self, leader_and_epoch: LeaderAndEpoch) -> None: ...

    def close(self) -> None: ...


def uuid_of(number: int) -> Uuid:
    return Uuid((2**64 + number).to_bytes(16, "big"))


def batches_of(records: int) -> Iterator[RecordBatch]:
    """metadata.version, then topics of ten partitions."""
    gathered, offset = [ApiMessageAndVersion(FeatureLevelRecord(name="metadata.version", feature_level=25), 0)], 0
    for message in messages(records - 1):
        gathered.append(ApiMessageAndVersion(message, 1 if isinstance(message, PartitionRecord) else 0))
        if len(gathered) == RECORDS_PER_BATCH:
            yield RecordBatch.of(offset, 1, TIME, gathered)
            gathered, offset = [], offset + RECORDS_PER_BATCH
    if gathered:
        yield RecordBatch.of(offset, 1, TIME, gathered)


def messages(count: int) -> Iterator[Message]:
    for number in range(count):
        topic, place = divmod(number, PARTITIONS + 1)
        if place == 0:
            yield TopicRecord(name=f"topic{topic}", topic_id=uuid_of(topic))
            continue
        replicas = tuple((number + k) % 270 for k in range(3))
        yield PartitionRecord(
            partition_id=place - 1,
            topic_id=uuid_of(topic),
            replicas=replicas,
            isr=replicas,
            leader=replicas[0],
            leader_epoch=0,
            partition_epoch=0,
            directories=tuple(uuid_of(replica) for replica in replicas),
        )


def followed(lake: Path, published: Published) -> MetadataLoader:
    clock, faults = SystemClock(), LoggingFaultHandler("benchmark")
    feed = LakeFeed(MetadataLog.open(lake), clock, faults)
    loader = MetadataLoader(clock=clock, fault_handler=faults, high_watermark=lambda: feed.end_at_start)
    loader.install_publishers([published]).result()
    feed.start(loader)
    return loader


def catch_up(lake: Path) -> tuple[int, int]:
    published = Published()
    start = time.perf_counter_ns()
    loader = followed(lake, published)
    image = published.images.get()
    taken = time.perf_counter_ns() - start
    loader.close()
    return taken, image.topics.topic_count


def first_batch() -> RecordBatch:
    version = FeatureLevelRecord(name="metadata.version", feature_level=25)
    return RecordBatch.of(0, 1, TIME, [ApiMessageAndVersion(version, 0)])


def topic_batch(offset: int) -> RecordBatch:
    topic = TopicRecord(name=f"t{offset}", topic_id=uuid_of(offset))
    return RecordBatch.of(offset, 1, TIME, [ApiMessageAndVersion(topic, 0)])


def latency_in_memory(count: int) -> list[int]:
    published, taken = Published(), []
    loader = MetadataLoader(
        clock=SystemClock(), fault_handler=LoggingFaultHandler("benchmark"), high_watermark=lambda: 1
    )
    loader.install_publishers([published]).result()
    loader.handle_commit([first_batch()])
    published.images.get()
    for offset in range(1, count + 1):
        batch = topic_batch(offset)
        start = time.perf_counter_ns()
        loader.handle_commit([batch])
        published.images.get()
        taken.append(time.perf_counter_ns() - start)
    loader.close()
    return taken


def latency_through_a_lake(lake: Path, count: int) -> tuple[list[int], list[int]]:
    """From the call of append, and from its return (the commit is durable), to the publisher's update."""
    log = MetadataLog.create(lake)
    log.append([first_batch()])
    published, from_call, from_commit = Published(), [], []
    loader = followed(lake, published)
    published.images.get()
    for offset in range(1, count + 1):
        batch = topic_batch(offset)
        start = time.perf_counter_ns()
        log.append([batch])
        committed = time.perf_counter_ns()
        published.images.get()
        updated = time.perf_counter_ns()
        from_call.append(updated - start)
        from_commit.append(updated - committed)
    loader.close()
    return from_call, from_commit


def percentiles(ns: list[int]) -> dict[str, float]:
    ordered = sorted(ns)
    return {
        "p50_ms": round(statistics.median(ordered) / 1e6, 3),
        "p99_ms": round(ordered[int(len(ordered) * 0.99)] / 1e6, 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=5, help="catch-ups of each side")
    parser.add_argument("--count", type=int, default=2_000, help="records whose latency is measured")
    parser.add_argument("--heap", default="4g", help="the JVM's -Xmx")
    arguments = parser.parse_args()
    java = KafkaClasses(Path(__file__).with_name("LoaderBench.java"), heap=arguments.heap)
    with tempfile.TemporaryDirectory() as scratch:
        report = {**compare_catch_up(java, Path(scratch), arguments.records, arguments.runs)}
        report |= compare_latency(java, Path(scratch), arguments.count)
    java.close()
    print(json.dumps(report, indent=1))


def compare_catch_up(java: KafkaClasses, scratch: Path, records: int, runs: int) -> dict[str, Any]:
    segment = scratch / segment_name(0)
    write_segment(segment, batches_of(records))
    log = MetadataLog.create(scratch / "large")
    log.append(batches_of(records))
    assert log.end_offset == records
    theirs, ours = [], []
    for run in range(runs + 1):
        answer = java.ask("catchup", segment, records)
        taken, topics = catch_up(scratch / "large")
        assert topics == answer["topics"]
        if run:
            theirs.append(answer["ns"])
            ours.append(taken)
    return {
        "catch-up, records": records,
        "catch-up, Kafka, records a second": round(records / min(theirs) * 1e9),
        "catch-up, ours, records a second": round(records / min(ours) * 1e9),
        "catch-up, ours / Kafka, least": round(min(ours) / min(theirs), 3),
        "catch-up, ours / Kafka, median": round(statistics.median(ours) / statistics.median(theirs), 3),
    }


def compare_latency(java: KafkaClasses, scratch: Path, count: int) -> dict[str, Any]:
    java.ask("latency", count)
    latency_in_memory(count)
    theirs, ours = percentiles(java.ask("latency", count)["ns"]), percentiles(latency_in_memory(count))
    from_call, from_commit = latency_through_a_lake(scratch / "small", min(count, 1_000))
    return {
        "handed over → published, Kafka": theirs,
        "handed over → published, ours": ours,
        "handed over → published, ours / Kafka, p50": round(ours["p50_ms"] / theirs["p50_ms"], 2),
        "append called (fsync) → published, ours": percentiles(from_call),
        "commit acknowledged → published, ours": percentiles(from_commit),
    }


if __name__ == "__main__":
    main()
