"""What metadata and fetching cost a broker with many partitions: python -m benchmarks.replica_manager [--kafka]

In CPU time, the least of all runs, so that a busy machine says the same as an idle one. One delta makes all partitions
followers, then a fetcher goes round with all of them, first with answers of which each brings a batch, then with empty
ones, as an idle cluster has them; the next delta makes them leaders, and the next one followers again.

With --kafka the ReplicaManager of Kafka 4.4 does the same in turn with ours (tests/interop/KafkaReplicas.java), on the
thread that calls it, in a JVM that has done it before. Two things are not the same: its logs are files, in memory where
/dev/shm is there, and ours are lists; a ratio says something of creating logs, of becoming leaders (each writes its
epoch down) and of appending only with that in mind.
"""

from __future__ import annotations

import argparse
import logging
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import structlog

from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.provenance import MetadataProvenance
from kraftlake.records import metadata_records as r
from kraftlake.records.uuid import Uuid
from kraftlake.replica_manager.broker_context import BrokerContext
from kraftlake.replica_manager.config import ReplicaManagerConfig
from kraftlake.replica_manager.delta_application import apply_delta
from kraftlake.replica_manager.fetch.fetcher import BrokerEndPoint
from kraftlake.replica_manager.fetch.leader_end_point import FetchedPartition, FetchRequest, FetchResponse
from kraftlake.replica_manager.fetch.replica_fetcher import ReplicaFetcher
from kraftlake.replica_manager.logs.log_batch import log_batches
from kraftlake.replica_manager.logs.memory_log import MemoryLogManager
from kraftlake.replica_manager.metadata_view import MetadataView
from kraftlake.replica_manager.replay.replayed_broker import StillFetcher
from kraftlake.replica_manager.replica_manager import ReplicaManager
from kraftlake.replica_manager.requests.delayed_requests import DelayedRequests
from kraftlake.runtime.clock import ManualClock
from simulator.data_batches import batch
from tests.interop.kafka_classes import KafkaClasses
from tests.interop.kafka_replicas import kafka_replicas

TOPIC, DIRECTORY = Uuid((77_777).to_bytes(16, "big")), Uuid((7_777).to_bytes(16, "big"))
IN_MEMORY = Path("/dev/shm")
STEPS = {
    "created": "one delta creates all as followers, with their logs",
    "led": "one delta makes all leaders",
    "followed": "one delta makes all followers of another leader",
    "full": "a round of fetching, a batch for each",
    "idle": "a round of fetching, nothing new",
}


class Leader:
    """Answers every fetch with `data`."""

    def __init__(self, end_point: BrokerEndPoint) -> None:
        self.broker_end_point = end_point
        self.data = b""

    def fetch(self, request: FetchRequest) -> FetchResponse:
        (made,) = log_batches(self.data) if self.data else (None,)
        answers = {}
        for name, wanted in request.partitions.items():
            data = b"" if made is None else made.placed(wanted.fetch_offset, 0).data
            answers[name] = FetchedPartition(data=data, high_watermark=wanted.fetch_offset, log_start_offset=0)
        return FetchResponse(partitions=answers)

    def close(self) -> None: ...


class Nobody:
    def submit(self, *_: object) -> None: ...

    def handle_assignment(self, *_: object) -> None: ...

    def handle_failure(self, *_: object) -> None: ...


class Bench:
    """A broker, and deltas about all of its partitions at once."""

    def __init__(self, partitions: int) -> None:
        self.partitions = partitions
        self.view = MetadataView()
        clock, config = ManualClock(1_000), ReplicaManagerConfig()
        self.leader: Leader | None = None
        context = BrokerContext(
            broker_id=1, config=config, clock=clock, log_manager=MemoryLogManager({"d": DIRECTORY}), metadata=self.view,
            alter_partition_manager=Nobody(), directory_events=Nobody(), broker_epoch=lambda: 1,
            delayed_operations=DelayedRequests(clock),
        )  # fmt: skip
        self.manager = ReplicaManager(
            context,
            fetchers=lambda id_, end: ReplicaFetcher(id_, self._leader(end), self.manager),
            log_dir_fetchers=StillFetcher,
        )
        self._delta(self._cluster())

    def _leader(self, end: BrokerEndPoint) -> Leader:
        self.leader = Leader(end)
        return self.leader

    def _cluster(self) -> Iterable[object]:
        yield r.FeatureLevelRecord(name="metadata.version", feature_level=20)
        for id_ in (1, 2, 3):
            end = r.BrokerEndpoint(name="PLAINTEXT", host="h", port=9090 + id_, security_protocol=0)
            yield r.RegisterBrokerRecord(
                broker_id=id_, broker_epoch=1, incarnation_id=Uuid((50 + id_).to_bytes(16, "big")), end_points=(end,),
                features=(), fenced=False, log_dirs=(DIRECTORY,),
            )  # fmt: skip

    def _delta(self, records: Iterable[object]) -> tuple[MetadataDelta, MetadataImage]:
        delta = MetadataDelta(self.view.image)
        for record in records:
            delta.replay(record)  # type: ignore[arg-type]
        self.view.image = delta.apply(MetadataProvenance(offset=self.view.image.offset + 1, epoch=1))
        return delta, self.view.image

    def creation(self) -> tuple[MetadataDelta, MetadataImage]:
        partitions = (
            r.PartitionRecord(
                partition_id=number, topic_id=TOPIC, replicas=(2, 1, 3), isr=(2, 1, 3), leader=2, leader_epoch=0,
                partition_epoch=0, directories=(DIRECTORY,) * 3,
            )
            for number in range(self.partitions)
        )  # fmt: skip
        return self._delta([r.TopicRecord(name="foo", topic_id=TOPIC), *partitions])

    def election(self, leader: int) -> tuple[MetadataDelta, MetadataImage]:
        return self._delta(
            r.PartitionChangeRecord(partition_id=number, topic_id=TOPIC, leader=leader)
            for number in range(self.partitions)
        )

    def apply(self, change: tuple[MetadataDelta, MetadataImage]) -> float:
        delta, image = change
        assert delta.topics_delta is not None
        return cpu(lambda: apply_delta(self.manager, delta.topics_delta, image))  # type: ignore[arg-type]

    def fetch_rounds(self) -> tuple[float, float]:
        (fetcher,) = self.manager.replica_fetchers.fetchers().values()
        assert isinstance(fetcher, ReplicaFetcher)
        assert self.leader is not None
        fetcher.do_work()
        self.leader.data = batch(b"x" * 100)
        full = cpu(fetcher.do_work)
        self.leader.data = b""
        fetcher.do_work()
        idle = cpu(fetcher.do_work)
        assert self.manager.partition_or_raise(TopicPartition("foo", 0)).local_log.log_end_offset == 1
        return full, idle


def cpu(run: Callable[[], object]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def one_run(partitions: int) -> dict[str, float]:
    bench = Bench(partitions)
    seconds = {"created": bench.apply(bench.creation())}
    seconds["full"], seconds["idle"] = bench.fetch_rounds()
    seconds["led"] = bench.apply(bench.election(1))
    seconds["followed"] = bench.apply(bench.election(3))
    return seconds


def one_run_of_kafka(jvm: KafkaClasses, partitions: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory(dir=IN_MEMORY if IN_MEMORY.is_dir() else None) as folder:
        answer = jvm.ask("bench", partitions, folder)
    assert (answer["leads"], answer["fetched"], answer["end"]) == (True, partitions, 1), answer
    return {step: answer[step] / 1e9 for step in STEPS}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=3, help="runs of each side that count")
    parser.add_argument("--kafka", action="store_true", help="Kafka's own beside it")
    arguments = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    partitions, kafka = arguments.partitions, kafka_replicas(heap="2g") if arguments.kafka else None
    ours: list[dict[str, float]] = []
    theirs: list[dict[str, float]] = []
    if kafka is not None:
        one_run_of_kafka(kafka, partitions)
    for _ in range(arguments.runs):
        ours.append(one_run(partitions))
        if kafka is not None:
            theirs.append(one_run_of_kafka(kafka, partitions))
    if kafka is not None:
        kafka.close()
    print(f"{partitions:,} partitions, CPU time" + ("; Kafka's; ours / Kafka's" if theirs else ""))
    for step, name in STEPS.items():
        least = min(run[step] for run in ours)
        line = f"  {name:52} {least * 1000:7.0f} ms {least / partitions * 1e6:6.1f} µs a partition"
        if theirs:
            peer = min(run[step] for run in theirs)
            line += f" {peer * 1000:7.0f} ms {least / peer:6.2f}"
        print(line)


if __name__ == "__main__":
    main()
