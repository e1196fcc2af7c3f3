"""How long a log takes to be replayed for one broker: python -m benchmarks.replay [RECORDS]

A made log: topics whose replicas lie on twelve brokers, then changes of their leaders and ISRs, each a batch of its
own, which is the hardest a log can be cut. It is replayed for one broker by `kraftlake replay`'s own classes, and
beside it by the fold alone (images and nothing else), in turn in one run, in CPU time; the ratio says what the
ReplicaManager costs.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Iterator

from kraftlake.api import Source
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.kafka_files.sniffing.source_kind import SourceKind
from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.records.uuid import Uuid
from kraftlake.replay.loader.batch_loader import MetadataBatchLoader
from kraftlake.replica_manager.replay.broker_replay import BrokerReplay

BROKERS = 12
REPLICAS = 3
PARTITIONS = 5
BROKER = 1
RUNS = 3


class MadeLog:
    """A log in memory, as a `LogReader`."""

    name = "a made log"
    cluster_id = None
    start_offset = 0
    snapshots = ()

    def __init__(self, batches: list[RecordBatch]) -> None:
        self._batches = batches
        self.end_offset = batches[-1].last_offset + 1

    def batches(self, from_offset: int = 0, to_offset: int | None = None) -> Iterator[RecordBatch]:
        for batch in self._batches:
            if batch.last_offset >= from_offset and (to_offset is None or batch.base_offset <= to_offset):
                yield batch


def made_log(records: int, topics: int, seed: int = 1) -> MadeLog:
    """`records` changes after the creation of `topics`."""
    chance = random.Random(seed)
    batches: list[RecordBatch] = []

    def append(*messages: object) -> None:
        offset = batches[-1].last_offset + 1 if batches else 0
        versioned = [ApiMessageAndVersion(message, 1 if hasattr(message, "directories") else 0) for message in messages]
        batches.append(RecordBatch.of(offset, 1, 1_700_000_000_000 + offset, versioned))

    append(r.FeatureLevelRecord(name="metadata.version", feature_level=20))
    for broker in range(BROKERS):
        append(
            r.RegisterBrokerRecord(
                broker_id=broker, incarnation_id=Uuid((1000 + broker).to_bytes(16, "big")), broker_epoch=broker,
                end_points=(r.BrokerEndpoint(name="PLAINTEXT", host=f"b{broker}", port=9092, security_protocol=0),),
                features=(), fenced=False,
            )
        )  # fmt: skip
    places: list[tuple[Uuid, int, tuple[int, ...]]] = []
    for topic in range(topics):
        topic_id = Uuid((10_000 + topic).to_bytes(16, "big"))
        created: list[object] = [r.TopicRecord(name=f"topic-{topic}", topic_id=topic_id)]
        for partition in range(PARTITIONS):
            replicas = tuple(chance.sample(range(BROKERS), REPLICAS))
            places.append((topic_id, partition, replicas))
            created.append(
                r.PartitionRecord(
                    partition_id=partition, topic_id=topic_id, replicas=replicas, isr=replicas, leader=replicas[0],
                    leader_epoch=0, partition_epoch=0, directories=(Uuid.ZERO,) * REPLICAS,
                )
            )  # fmt: skip
        append(*created)
    for _ in range(records):
        topic_id, partition, replicas = chance.choice(places)
        isr = tuple(chance.sample(replicas, chance.randint(1, REPLICAS)))
        leader = chance.choice((-2, -2, isr[0]))
        append(r.PartitionChangeRecord(partition_id=partition, topic_id=topic_id, isr=isr, leader=leader))
    return MadeLog(batches)


def fold_alone(log: MadeLog) -> None:
    """What every replay has to do: one delta and one image a batch."""
    loader = MetadataBatchLoader(MetadataImage.EMPTY, publish=lambda *_: None)
    for batch in log.batches():
        loader.load_batch(batch)
        loader.flush()


def with_broker(log: MadeLog) -> int:
    """The replay of one broker; gives how much it did."""
    replay = BrokerReplay(Source(log, SourceKind.DIRECTORY, "made", None), BROKER)
    return sum(len(step.transitions) for step in replay.steps())


def seconds(run: Callable[[], object]) -> float:
    """How long a run takes, in CPU time."""
    start = time.process_time()
    run()
    return time.process_time() - start


def main(records: int) -> None:
    for topics in (400, 25_000):
        log = made_log(records, topics)
        done = with_broker(log)
        pairs = [(seconds(lambda: fold_alone(log)), seconds(lambda: with_broker(log))) for _ in range(RUNS)]  # noqa: B023
        fold, replay = min(pair[0] for pair in pairs), min(pair[1] for pair in pairs)
        print(
            f"{records:,} changes of {topics * PARTITIONS:,} partitions, one a batch: broker {BROKER} does {done:,} "
            f"things in {replay:.1f} CPU s, {replay / fold:.2f} times what the images alone take"
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
