"""Running brokers of a lake clean a compacted topic: what consumers read, and followers have."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import NewTopic

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.replica_manager.logs.cleaning.log_cleaner import CleanerConfig, LogCleaner
from kraftlake.replica_manager.logs.disk.disk_log import DiskPartitionLog
from kraftlake.replica_manager.logs.disk.disk_log_manager import DiskLogManager
from kraftlake.replica_manager.logs.disk.log_directory import CLEANED_TO
from kraftlake.replica_manager.logs.log_batch import log_batches
from kraftlake.runtime.clock import SystemClock
from kraftlake.runtime.free_ports import free_ports
from kraftlake.runtime.log import without_logs
from kraftlake.server.broker.broker import Broker
from kraftlake.server.broker.log_cleaning import CleaningThreads
from tests.controller.controlled_cluster import CLUSTER_ID
from tests.kafka_node import FEW_PARTITIONS, KafkaNode
from tests.replica_manager.logs.cleaning.cleaned import Record, latest_values, records_in, records_of_log
from tests.replica_manager.logs.cleaning.test_log_cleaner import managed
from tests.server.broker.lake_cluster import SHORT_SESSION, LakeCluster, lake_cluster
from tests.server.broker.on_disk import bytes_of, checkpoint
from tests.waiting import PATIENCE, wait_for

NAME = TopicPartition("states", 0)
CLEANING = {
    "log.cleaner.backoff.ms": "100",
    "log.cleaner.dedupe.buffer.size": "2097152",
    "log.initial.task.delay.ms": "0",
    "replica.high.watermark.checkpoint.interval.ms": "200",
}
TOPIC = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.ms": "1000"}
long = pytest.mark.skipif(os.environ.get("KRAFTLAKE_TESTS") != "long", reason="make test-long: ten seconds")
KEYS = 7
BATCHES = 20


def write(cluster: LakeCluster, first: int) -> dict[bytes, bytes | None]:
    """Write batches, each of which begins a segment by its time; returns the last value of each key."""
    last: dict[bytes, bytes | None] = {}
    producer = Producer({"bootstrap.servers": cluster.brokers, "acks": "all", "enable.idempotence": True})
    for number in range(first, first + BATCHES):
        for at in range(5):
            key = b"key-%d" % ((number + at * at) % KEYS)
            last[key] = None if key == b"key-3" else b"value-%d-%d" % (number, at)
            producer.produce(NAME.topic, last[key], key, partition=0, timestamp=1_700_000_000_000 + 2_000 * number)
        assert producer.flush(PATIENCE) == 0
    return last


def read(cluster: LakeCluster) -> list[tuple[int, bytes, bytes | None]]:
    """All records from the beginning to the end."""
    config = {"group.id": "none", "enable.auto.commit": False, "enable.partition.eof": True}
    consumer = Consumer({"bootstrap.servers": cluster.brokers, **config})
    consumer.assign([ClientPartition(NAME.topic, 0, OFFSET_BEGINNING)])
    found: list[tuple[int, bytes, bytes | None]] = []
    while (message := consumer.poll(PATIENCE)) is not None and message.error() is None:
        found.append((message.offset(), message.key(), message.value()))
    assert message is not None
    consumer.close()
    return found


def broker_of(cluster: LakeCluster, id_: int) -> Broker:
    broker = cluster.members[id_].server.broker
    assert isinstance(broker, Broker)
    return broker


def log_of(cluster: LakeCluster, id_: int) -> DiskPartitionLog:
    return broker_of(cluster, id_).logs.logs()[NAME]


def await_clean(cluster: LakeCluster, *ids: int) -> None:
    """Wait until the brokers have cleaned all that they can."""

    def is_clean(id_: int) -> bool:
        log = log_of(cluster, id_)
        return broker_of(cluster, id_).logs.cleaned_to(log) == log.active.base_offset > 0

    ends = {log_of(cluster, id_).log_end_offset for id_ in ids}
    assert len(ends) == 1
    cluster.wait_for(lambda: all(map(is_clean, ids)), "the logs are clean")


def create(cluster: LakeCluster, *replicas: int) -> None:
    """Make the compacted topic, which the first replica leads."""
    new, admin = NewTopic(NAME.topic, 1, replica_assignment=[list(replicas)], config=TOPIC), cluster.admin()
    admin.create_topics([new])[NAME.topic].result(PATIENCE)


@contextmanager
def cleaning_cluster(folder: Path, *brokers: int) -> Iterator[LakeCluster]:
    """A cluster with the compacted topic on all brokers."""
    with lake_cluster(folder, brokers=(), settings=SHORT_SESSION) as cluster:
        for id_ in brokers:
            cluster.start_broker(id_, CLEANING)
        cluster.await_unfenced(*brokers)
        create(cluster, *brokers)
        yield cluster


def test_a_broker_cleans_and_consumers_read_the_last_value_of_each_key(tmp_path: Path) -> None:
    with cleaning_cluster(tmp_path, 1) as cluster:
        last = write(cluster, 0)
        await_clean(cluster, 1)
        found = read(cluster)
        assert {key: value for _, key, value in found} == last
        assert len(found) < 5 * BATCHES // 2
        assert broker_of(cluster, 1).cleaner.last_cleanings[0].bytes_before > 0


@long
def test_a_follower_that_was_away_catches_up_behind_a_leader_that_has_cleaned(tmp_path: Path) -> None:
    with cleaning_cluster(tmp_path, 1, 2) as cluster:
        last = write(cluster, 0)
        await_clean(cluster, 1, 2)
        cluster.members.pop(2).stop()
        last |= write(cluster, BATCHES)
        await_clean(cluster, 1)
        cluster.start_broker(2, CLEANING)
        cluster.await_unfenced(1, 2)
        cluster.wait_for(
            lambda: NAME in broker_of(cluster, 2).logs.logs() and log_of(cluster, 2).log_end_offset == 10 * BATCHES,
            "the follower has caught up",
        )
        await_clean(cluster, 1, 2)
        found = read(cluster)
        assert {key: value for _, key, value in found} == last
        kept = {key: (offset, value) for offset, key, value in found}
        assert latest_values(records_of_log(log_of(cluster, 1))) == kept
        assert latest_values(records_of_log(log_of(cluster, 2))) == kept
        assert [broker_of(cluster, id_).cleaner.uncleanable for id_ in (1, 2)] == [{}, {}]


@long
@pytest.mark.spark
def test_a_follower_of_kafka_cleans_behind_our_leader_and_has_the_same_values(tmp_path: Path) -> None:
    with lake_cluster(tmp_path, brokers=(), settings=SHORT_SESSION) as cluster, ExitStack() as stack:
        cluster.start_broker(1, CLEANING)
        cluster.await_unfenced(1)
        controller = f"127.0.0.1:{cluster.members[101].server.listeners[0].port}"
        node = KafkaNode(
            folder=tmp_path / "kafka", node_id=9, cluster_id=CLUSTER_ID, broker_port=free_ports(1)[0],
            controller_port=0, voters=(f"101@{controller}",), roles="broker",
            settings=FEW_PARTITIONS | CLEANING,
        )  # fmt: skip
        node.format()
        stack.callback(node.kill)
        node.start()
        create(cluster, 1, 9)

        def theirs() -> list[Record]:
            data = bytes_of([node.log_directory], NAME)
            return [record for batch in log_batches(data) for record in records_in(batch)]

        def is_equal() -> bool:
            return latest_values(theirs()) == latest_values(records_of_log(log_of(cluster, 1)))

        def has_cleaned(beyond: int) -> bool:
            return checkpoint([node.log_directory], CLEANED_TO).get(NAME, 0) > beyond

        last = write(cluster, 0)
        await_clean(cluster, 1)
        cluster.wait_for(lambda: has_cleaned(0), "Kafka's follower cleans")
        cluster.wait_for(is_equal, "Kafka's follower has the values of our leader")
        assert len(theirs()) < 5 * BATCHES // 2
        node.stop()
        last |= write(cluster, BATCHES)
        await_clean(cluster, 1)
        node.start()
        cluster.wait_for(lambda: has_cleaned(5 * BATCHES), "Kafka's follower cleans again")
        cluster.wait_for(is_equal, "Kafka's follower has caught up")
        assert {key: value for key, (_, value) in latest_values(theirs()).items()} == last
        assert {key: value for _, key, value in read(cluster)} == last


class NotedCleaner(LogCleaner):
    """A cleaner that knows which threads have looked for a log, and where they may fail."""

    def __init__(self, manager: DiskLogManager) -> None:
        super().__init__(manager=manager, clock=SystemClock(), random=Random(1), config=CleanerConfig(backoff_ms=1))
        self.looks: list[int] = []
        self.is_broken = False

    def clean_next(self, thread: int = 0) -> Iterator[float] | None:
        self.looks.append(thread)
        if self.is_broken:
            raise MemoryError
        return super().clean_next(thread)


def test_threads_are_as_many_as_the_setting_says_and_others_follow_dead_ones(tmp_path: Path) -> None:
    manager = managed(tmp_path)
    cleaner = NotedCleaner(manager)
    looks, cleaning = cleaner.looks, CleaningThreads(cleaner, SystemClock())
    cleaning.reconfigure(cleaner.config)
    assert not looks
    with without_logs():
        cleaning.start(0)
        wait_for(lambda: len(looks) > 3, "one thread looks")
        assert {*looks} == {0}
        cleaning.reconfigure(CleanerConfig(threads=3, backoff_ms=1))
        wait_for(lambda: {*looks} == {0, 1, 2}, "three threads look")
        cleaner.is_broken = True
        wait_for(lambda: cleaner.dead_threads == {0, 1, 2}, "all threads have ended")
        cleaner.is_broken = False
        cleaning.reconfigure(CleanerConfig(threads=2, backoff_ms=1))
        assert not cleaner.dead_threads
        looks.clear()
        wait_for(lambda: looks.count(0) > 3 and looks.count(1) > 3, "two threads look again")
        assert {*looks} == {0, 1}
        cleaning.shutdown()
    manager.abandon()
