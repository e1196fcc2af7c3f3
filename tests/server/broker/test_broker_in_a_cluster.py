"""A broker of ours in a real cluster: what it copies, and that its directories and those of Kafka are one format."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import ElectionType
from confluent_kafka import TopicPartition as ClientPartition

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from tests.interop.restored_nodes import consumed, produced
from tests.kafka_node import KafkaNode
from tests.server.broker.cluster import SETTINGS, Cluster, started_cluster
from tests.server.broker.load import Load, write, write_transactions
from tests.server.broker.on_disk import (
    aborted_of,
    bytes_of,
    check_with_kafka,
    folder_of,
    newest_values,
    segments_of,
    state_of,
)
from tests.waiting import wait_for

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(os.environ.get("KRAFTLAKE_TESTS") != "long", reason="make test-long: a cluster of five nodes"),
]
SMALL = 1024 * 1024
"""The smallest segment.bytes that Kafka takes."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with started_cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


def await_same(cluster: Cluster, directories: list[Path], *names: TopicPartition) -> None:
    """Wait until replicas in `directories` have the bytes of their leaders."""
    for name in names:
        leader = [cluster.nodes[cluster.leader(name)].log_directory]
        wait_for(lambda: bytes_of(directories, name) == bytes_of(leader, name) != b"", f"{name} has its leader's bytes")  # noqa: B023


def test_reassigned_replicas_are_copied_byte_for_byte(cluster: Cluster) -> None:
    codecs = {"plain": "none", "fast": "lz4", "dense": "zstd"}
    names = [name for topic in codecs for name in cluster.create(topic, [1, 2], [2, 1], segment_bytes=SMALL)]
    names += cluster.create("settled", [1, 2], segment_bytes=SMALL)
    (settled,) = names[-1:]
    for name in names[:-1]:
        write(cluster.bootstrap, name, 5_000, compression_type=codecs[name.topic])
    write_transactions(cluster.bootstrap, settled, 60, id_="settled")
    broker = cluster.ours(7)
    broker.start()
    broker.await_event("logs_loaded")
    with Load(cluster.bootstrap, names[:2]) as load:
        wanted = {name: [*cluster.partition(name).replicas, 7] for name in names}  # type: ignore[union-attr]
        cluster.reassign(wanted, throttle=100_000_000)
        cluster.await_isr({1, 2, 7}, *names)
        load.await_more()
    for name in names[:-1]:
        write(cluster.bootstrap, name, 500, compression_type=codecs[name.topic], enable_idempotence=True)
    write_transactions(cluster.bootstrap, settled, 10, id_="settled")
    await_same(cluster, broker.paths, *names)
    assert len(segments_of(broker.paths, settled)) > 1
    assert {folder_of(broker.paths, name).parent for name in names} == set(broker.paths)  # type: ignore[union-attr]
    assert broker.stop() == 0
    cluster.await_isr({1, 2}, *names)
    leader = [cluster.nodes[cluster.leader(settled)].log_directory]
    assert aborted_of(broker.paths, settled) == aborted_of(leader, settled) != b""
    check_with_kafka(cluster, broker.paths, names)
    # it goes on where it was
    write(cluster.bootstrap, names[0], 500)
    broker.start()
    cluster.await_isr({1, 2, 7}, *names)
    await_same(cluster, broker.paths, *names)
    assert broker.stop() == 0
    broker.check_sound()


def test_a_topic_is_copied_while_kafka_and_our_broker_compact_it(cluster: Cluster) -> None:
    (name,) = cluster.create(
        "compacted", [1, 2], cleanup_policy="compact", segment_bytes=SMALL, min_cleanable_dirty_ratio=0.01,
        min_compaction_lag_ms=0, delete_retention_ms=0,
    )  # fmt: skip
    leader = [cluster.nodes[1].log_directory]
    written = 20_000

    def is_compacted(records: int) -> bool:
        return len(bytes_of(leader, name)) < records * 400 // 2

    write(cluster.bootstrap, name, written, keys=700, batch_size=4000)
    wait_for(lambda: is_compacted(written), "Kafka's cleaner has compacted it")
    cleaner = {name: SETTINGS[name] for name in SETTINGS if name.startswith("log.")}
    broker = cluster.ours(8, **{name.replace(".", "_"): value for name, value in cleaner.items()})
    broker.start()
    broker.await_event("logs_loaded")
    cluster.reassign({name: [1, 2, 8]})
    write(cluster.bootstrap, name, written, first=written, keys=700, batch_size=4000)
    cluster.await_isr({1, 2, 8}, name)
    wait_for(lambda: is_compacted(2 * written), "Kafka's cleaner has compacted it again")
    events = wait_for(lambda: broker.events("log_cleaned"), "our cleaner has, too")
    assert {event["partition"] for event in events} == {str(name)}
    write(cluster.bootstrap, name, 3_000, first=2 * written, keys=700, batch_size=4000)
    assert broker.stop() == 0
    check_with_kafka(cluster, broker.paths, [name])
    values, count = newest_values(cluster, broker.paths, name)
    assert values == newest_values(cluster, leader, name)[0]
    assert len(values) == 700
    assert count < 2 * written + 3_000, "it has got compacted segments"
    # a leader's segments lack offsets which ours has, and the other way round
    write(cluster.bootstrap, name, 3_000, first=2 * written + 3_000, keys=700)
    broker.start()
    cluster.await_isr({1, 2, 8}, name)
    assert broker.stop() == 0
    assert newest_values(cluster, broker.paths, name)[0] == newest_values(cluster, leader, name)[0]
    assert not broker.events("log_is_uncleanable")
    broker.check_sound()


@pytest.mark.parametrize("ends", ["stopped", "killed"])
def test_kafka_goes_on_with_our_directories(cluster: Cluster, ends: str) -> None:
    id_ = {"stopped": 11, "killed": 12}[ends]
    broker = cluster.ours(id_)
    broker.start()
    broker.await_event("logs_loaded")
    orders, settled = (
        cluster.create(f"{topic}-{ends}", [1, 2, id_], segment_bytes=SMALL)[0] for topic in ("orders", "settled")
    )
    acked = produced(cluster.bootstrap, orders.topic, [b"order %d " % number * 100 for number in range(4_000)])
    write_transactions(cluster.bootstrap, settled, 60, id_=settled.topic)
    cluster.await_isr({1, 2, id_}, orders, settled)
    await_same(cluster, broker.paths, orders, settled)
    if ends == "stopped":
        assert broker.stop() == 0
    else:
        broker.kill()
    acked += produced(cluster.bootstrap, orders.topic, [b"later %d" % number for number in range(500)])
    node = cluster.theirs(id_, directories=2)
    paths = [node.folder / "data", node.folder / "data1"]
    for ours, theirs in zip(broker.paths, paths, strict=True):
        shutil.rmtree(theirs)
        shutil.copytree(ours, theirs)
    node.start()
    cluster.await_isr({1, 2, id_}, orders, settled)
    await_same(cluster, paths, orders, settled)
    said = (node.folder / "server.log").read_text("utf-8")
    of_logs = [
        line for line in said.splitlines() if "LogLoader" in line or "LogManager" in line or "UnifiedLog" in line
    ]
    assert not [line for line in of_logs if " WARN " in line or " ERROR " in line]
    if ends == "stopped":
        assert "Recovering unflushed segment" not in said
    # it leads, and serves
    cluster.reassign({orders: [id_, 1, 2]})
    cluster.administer(
        lambda admin: {0: admin.elect_leaders(ElectionType.PREFERRED, [ClientPartition(orders.topic, 0)])}
    )
    wait_for(lambda: cluster.leader(orders) == id_, "it leads")
    assert consumed(cluster.bootstrap, orders.topic, acked) == set(acked)
    acked += produced(cluster.bootstrap, orders.topic, [b"at last %d" % number for number in range(100)])
    cluster.await_isr({1, 2, id_}, orders)
    node.stop()
    broker.check_sound()


@pytest.mark.parametrize("ends", ["stopped", "killed"])
def test_our_broker_goes_on_with_directories_of_kafka(cluster: Cluster, ends: str) -> None:
    id_ = {"stopped": 13, "killed": 14}[ends]
    node: KafkaNode = cluster.theirs(id_)
    node.start()
    names = [
        cluster.create(f"{topic}-{ends}", [1, 2, id_], segment_bytes=SMALL)[0] for topic in ("written", "promised")
    ]
    write(cluster.bootstrap, names[0], 4_000)
    write_transactions(cluster.bootstrap, names[1], 60, id_=names[1].topic)
    await_same(cluster, [node.log_directory], *names)
    cluster.await_isr({1, 2, id_}, *names)
    if ends == "stopped":
        node.stop()
    else:
        node.kill()
    write(cluster.bootstrap, names[0], 500)
    broker = cluster.ours(id_, [node.log_directory])
    broker.start()
    cluster.await_isr({1, 2, id_}, *names)
    write_transactions(cluster.bootstrap, names[1], 10, id_=names[1].topic)
    await_same(cluster, [node.log_directory], *names)
    assert broker.stop() == 0
    check_with_kafka(cluster, [node.log_directory], names)
    broker.check_sound()
    assert not broker.events("log_is_cut")


def test_topics_are_deleted_and_configs_take_effect(cluster: Cluster) -> None:
    broker = cluster.ours(
        9, log_segment_delete_delay_ms=1_000, log_retention_check_interval_ms=1_000, log_initial_task_delay_ms=1_000
    )
    directories = broker.paths
    broker.start()
    broker.await_event("logs_loaded")
    # deleted, and created again under the same name
    (again,) = cluster.create("again", [1, 2, 9])
    write(cluster.bootstrap, again, 2_000)
    cluster.await_isr({1, 2, 9}, again)
    await_same(cluster, directories, again)
    cluster.administer(lambda admin: admin.delete_topics(["again"], request_timeout=20))
    wait_for(lambda: cluster.partition(again) is None, "the topic is gone")
    wait_for(lambda: folder_of(directories, again) is None, "its folder is renamed")
    cluster.create("again", [2, 1, 9])
    write(cluster.bootstrap, again, 300)
    cluster.await_isr({1, 2, 9}, again)
    await_same(cluster, directories, again)
    wait_for(lambda: not [one for path in directories for one in path.glob("again-0.*-delete")], "its folder is gone")
    # min.insync.replicas
    cluster.configure("topic", "again", min_insync_replicas=3)
    write(cluster.bootstrap, again, 100)
    await_same(cluster, directories, again)
    # segment.bytes, retention.ms
    (short,) = cluster.create("short", [1, 2, 9])
    cluster.await_isr({1, 2, 9}, short)
    write(cluster.bootstrap, short, 4_000)
    await_same(cluster, directories, short)
    assert len(segments_of(directories, short)) == 1
    cluster.configure("topic", "short", segment_bytes=SMALL)
    write(cluster.bootstrap, short, 6_000)
    await_same(cluster, directories, short)
    wait_for(lambda: len(segments_of(directories, short)) > 2, "it has small segments")
    cluster.configure("topic", "short", retention_ms=1)
    leader = [cluster.nodes[1].log_directory]
    for replica in (leader, directories):
        wait_for(
            lambda: (found := segments_of(replica, short)) and int(found[0].stem) == 10_000,  # noqa: B023
            "retention has deleted the old segments",
        )
    cluster.configure("topic", "short", retention_ms=None)
    write(cluster.bootstrap, short, 500)
    await_same(cluster, directories, short)
    # deletion of records, which is done when the last replica has done it
    before = ClientPartition("short", 0, 10_200)
    cluster.administer(lambda admin: admin.delete_records([before], request_timeout=20))
    # follower.replication.throttled.*
    (slow,) = cluster.create("slow", [1, 2])
    (quick,) = cluster.create("quick", [1, 2])
    for name in (slow, quick):
        write(cluster.bootstrap, name, 10_000)
    cluster.configure("topic", "slow", follower_replication_throttled_replicas="*")
    cluster.configure("broker", "9", follower_replication_throttled_rate=1000)
    cluster.reassign({slow: [1, 2, 9], quick: [1, 2, 9]})
    cluster.await_isr({1, 2, 9}, quick)
    await_same(cluster, directories, quick)
    assert len(bytes_of(directories, slow)) < len(bytes_of(leader, slow)) // 2
    assert cluster.isr(slow) == {1, 2}
    cluster.configure("broker", "9", follower_replication_throttled_rate=None)
    cluster.await_isr({1, 2, 9}, slow)
    await_same(cluster, directories, slow)
    assert broker.stop() == 0
    assert state_of(directories, short).log_start_offset == 10_200
    broker.check_sound()
