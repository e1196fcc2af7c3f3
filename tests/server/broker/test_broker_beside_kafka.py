"""`kraftlake broker` in the cluster of a real node: a process of its own, its logs on disk, its clients real."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewTopic,
    ResourceType,
)

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.protocol.address import Address
from kraftlake.protocol.node_connector import NodeConnector
from tests.kafka_node import FEW_PARTITIONS, SMALL_LOG, KafkaNode, started_node
from tests.replica_manager.kafka_follower import PATIENCE
from tests.server.broker.broker_process import (
    BrokerProcess,
    image_of,
    partition_of,
    segments,
)
from tests.waiting import wait_for

pytestmark = pytest.mark.spark
LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"
KILLS = 15 if LONG else 1
SESSION = {"broker.session.timeout.ms": "2000", "broker.heartbeat.interval.ms": "100"}
NODE = {
    "log.segment.bytes": "1048576",
    "log.initial.task.delay.ms": "1000",
    "auto.leader.rebalance.enable": "false",  # the broker is elected when a test has it so, not after five minutes
}
PLAIN, LZ4, ZSTD, TXN = (TopicPartition(name, 0) for name in ("plain", "lz4", "zstd", "txn"))


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaNode]:
    with started_node(tmp_path_factory.mktemp("kafka"), settings=SMALL_LOG | FEW_PARTITIONS | SESSION | NODE) as node:
        produce(
            node, create(node, "first", [1]), 1, **{"transactional.id": "first"}
        )  # their topic is on this node alone
        yield node


@pytest.fixture
def broker(node: KafkaNode, tmp_path: Path) -> Iterator[BrokerProcess]:
    settings = SESSION | {"replica.fetch.backoff.ms": "100", "log.segment.bytes": "1048576"}
    broker = BrokerProcess(controllers=node.controller, folder=tmp_path, settings=settings)
    yield broker
    broker.kill()


def create(node: KafkaNode, name: str, replicas: list[int], **configs: str) -> TopicPartition:
    topic = NewTopic(
        name, 1, replica_assignment=[replicas], config={k.replace("_", "."): v for k, v in configs.items()}
    )
    known = frozenset[int]()
    while True:
        try:
            node.admin.create_topics([topic])[name].result(timeout=PATIENCE)
            return TopicPartition(name, 0)
        except KafkaException as fault:
            code = fault.args[0].code()
            if code in known:
                return TopicPartition(name, 0)
            # the client waits for the broker that it takes for the controller, and that may have gone
            if code not in (KafkaError._TIMED_OUT, KafkaError._TRANSPORT):
                raise
            known = frozenset({KafkaError.TOPIC_ALREADY_EXISTS})


def produce(node: KafkaNode, name: TopicPartition, count: int, *, length: int = 300, **options: Any) -> None:
    """Records of about a length in batches of some kilobytes, all of them acknowledged."""
    transactional = "transactional.id" in options
    config = {"bootstrap.servers": node.bootstrap, "acks": "all", "batch.size": 8000, **options}
    producer = Producer(config)
    faults: list[object] = []
    if transactional:
        producer.init_transactions(PATIENCE)
    for start in range(0, count, 200):
        if transactional:
            producer.begin_transaction()
        for number in range(start, min(count, start + 200)):
            value = f"{name} {number} {random.random()} ".encode() * (length // 30)
            producer.produce(
                name.topic, value, key=str(number % 50), on_delivery=lambda fault, _: fault and faults.append(fault)
            )
        if transactional:
            try:
                producer.abort_transaction(PATIENCE) if start % 400 else producer.commit_transaction(PATIENCE)
            except KafkaException as fault:
                # on a busy machine Kafka may say so of a transaction that the client has ended twice: it begins anew
                if fault.args[0].code() != KafkaError.INVALID_TXN_STATE:
                    raise
                producer = Producer(config)
                producer.init_transactions(PATIENCE)
    assert producer.flush(PATIENCE) == 0
    assert transactional or not faults


def theirs(node: KafkaNode, name: TopicPartition) -> bytes:
    return segments(node.log_directory / str(name))


def in_sync(node: KafkaNode, *names: TopicPartition) -> bool:
    topics = image_of(node.controller).topics
    found = [topics.get_topic(name.topic) for name in names]
    return all(topic is not None and set(topic.partitions[0].isr) == {1, 7} for topic in found)


def directory_sizes(broker: BrokerProcess) -> dict[TopicPartition, int]:
    """The sizes of replicas in bytes, as the broker describes them to clients."""
    with NodeConnector()(Address("127.0.0.1", broker.port)) as client:
        answer = client.ask("describe_log_dirs", range(1, 6), lambda module: module.DescribeLogDirsRequest(topics=None))
    return {
        TopicPartition(topic.name, int(one.partition_index)): int(one.partition_size)
        for result in answer.results
        for topic in result.topics
        for one in topic.partitions
    }


def test_it_copies_all_kinds_of_topics_and_goes_on_after_a_restart(node: KafkaNode, broker: BrokerProcess) -> None:
    broker.start()
    broker.await_running()
    names = [create(node, name.topic, [1, 7]) for name in (PLAIN, LZ4, ZSTD, TXN)]
    for number in range(2):
        produce(node, PLAIN, 500, length=1_500, **{"enable.idempotence": False})
        produce(node, LZ4, 1000, **{"compression.type": "lz4", "enable.idempotence": True})
        produce(node, ZSTD, 1000, **{"compression.type": "zstd"})
        produce(node, TXN, 600, **{"transactional.id": f"t{number}"})
        wait_for(lambda: in_sync(node, *names), "the leader has taken it into all ISRs")
        for name in names:
            wait_for(lambda name=name: broker.log_of(name) == theirs(node, name), f"{name} is a copy")  # type: ignore[misc]
        sizes = directory_sizes(broker)
        assert {name: sizes[name] for name in names} == {name: len(theirs(node, name)) for name in names}
        if number == 0 or LONG:
            assert broker.stop() == 0
            assert not in_sync(node, PLAIN), "it has left in a controlled way"
            produce(node, PLAIN, 100)
            broker.start()
            broker.await_running()
    assert len(theirs(node, PLAIN)) > 1_000_000
    for name in names:
        for file in ("leader-epoch-checkpoint", "partition.metadata"):
            (ours,) = broker.folder.glob(f"d*/{name}/{file}")
            assert ours.read_bytes() == (node.log_directory / str(name) / file).read_bytes()
    assert not broker.events("fault")


def test_nothing_is_lost_when_it_is_killed_again_and_again(node: KafkaNode, broker: BrokerProcess) -> None:
    broker.start()
    broker.await_running()
    name = create(node, "killed", [1, 7], min_insync_replicas="1")
    for round_ in range(KILLS):
        produce(node, name, 200 + 37 * round_ % 300, **{"enable.idempotence": True})
        broker.kill()
        produce(node, name, 50)
        broker.start()
        broker.await_running()
    produce(node, name, 100)
    wait_for(lambda: in_sync(node, name), "it is in the ISR again")
    wait_for(lambda: broker.log_of(name) == theirs(node, name), "its log is a copy")
    assert not broker.events("fault")
    # a second signal does not wait for controllers that say nothing, and leaves logs that need no recovery
    node.signal(signal.SIGSTOP)
    try:
        broker.signal(signal.SIGTERM)
        wait_for(lambda: "PENDING_CONTROLLED_SHUTDOWN" in broker.plan.log_file.read_text(), "it asks to leave")
        time.sleep(0.6)  # at once it would be taken for the first one
        assert broker.stop() == 1
    finally:
        node.signal(signal.SIGCONT)
    assert "a second signal has cut its controlled shutdown short" in broker.plan.log_file.read_text()
    assert len(list(broker.folder.glob("d*/.kafka_cleanshutdown"))) == 2


def test_topics_that_change_and_go(node: KafkaNode, broker: BrokerProcess) -> None:
    broker.start()
    broker.await_running()
    name = create(node, "short", [1, 7])
    produce(node, name, 2_400, length=1_500)
    wait_for(lambda: broker.log_of(name) == theirs(node, name), "its log is a copy")
    (folder,) = broker.folder.glob("d*/short-0")
    before = len(list(folder.glob("*.log")))
    # a topic config reaches the log at once
    entry = ConfigEntry("segment.bytes", "104857600", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, "short", incremental_configs=[entry])
    node.admin.incremental_alter_configs([resource])[resource].result(timeout=PATIENCE)
    wait_for(lambda: broker.events("configs_updated"), "it has heard of the config")
    produce(node, name, 600, length=1_500)
    wait_for(lambda: broker.log_of(name) == theirs(node, name), "its log is a copy")
    assert before >= 3, before
    assert len(list(folder.glob("*.log"))) <= before + 1, "segments are larger now"
    # a deleted topic's folder is renamed, and one of the same name is another
    node.admin.delete_topics(["short"])["short"].result(timeout=PATIENCE)
    wait_for(lambda: list(broker.folder.glob("d*/short-0.*-delete")), "its folder is to be deleted")
    name = create(node, "short", [1, 7])
    produce(node, name, 50)
    wait_for(lambda: len(theirs(node, name)) > 0 and broker.log_of(name) == theirs(node, name), "it is the new one")
    assert not broker.events("fault")
    # a replica with two logs is not served, and no log is taken for checked
    assert broker.stop() == 0
    (folder,) = broker.folder.glob("d*/short-0")
    other = broker.folder / ("d2" if folder.parent.name == "d1" else "d1")
    shutil.copytree(folder, other / folder.name)
    broker.start()
    assert broker.wait() == 1
    assert f"{folder.name} are logs of one replica" in broker.plan.log_file.read_text().splitlines()[-1]
    assert not list(broker.folder.glob("d*/.kafka_cleanshutdown"))


def test_elected_it_leaves_and_alone_it_stays(node: KafkaNode, broker: BrokerProcess) -> None:
    broker.start()
    broker.await_running()
    name = create(node, "led", [7, 1])
    assert broker.wait() == 1
    assert "Broker 7 has ended: it was elected leader of led-0" in broker.plan.log_file.read_text()
    wait_for(lambda: partition_of(node.controller, name).leader == 1, "the other one leads")
    broker.start()
    broker.await_running()
    alone = create(node, "alone", [7])
    (said,) = wait_for(lambda: broker.events("unavailable"), "it says that it stays")
    assert said["partitions"] == ["alone-0"]
    assert broker.events("started")
    # what a client asks it for
    with NodeConnector()(Address("127.0.0.1", broker.port)) as client:
        answer = client.ask(
            "metadata", range(9, 13),
            lambda module: module.MetadataRequest(
                topics=None, allow_auto_topic_creation=False, include_topic_authorized_operations=False
            ),
        )  # fmt: skip
        assert {one.node_id for one in answer.brokers} == {1, 7}
        assert "alone" in {one.name for one in answer.topics}
    with closing(Refused(broker.port)) as refused:
        assert refused.codes("alone") == ["not_leader_or_follower"]
    # it describes its own configs itself, beside what the client asks of the others in the same request
    admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{broker.port}"})
    mine, topic = ConfigResource(ResourceType.BROKER, "7"), ConfigResource(ResourceType.TOPIC, "led")
    entry = ConfigEntry("log.retention.ms", "7000000", incremental_operation=AlterConfigOpType.SET)
    change = ConfigResource(ResourceType.BROKER, "7", incremental_configs=[entry])
    admin.incremental_alter_configs([change])[change].result(timeout=PATIENCE)

    def described() -> dict[str, tuple[str, int]]:
        answers = admin.describe_configs([mine, topic])
        assert "retention.ms" in answers[topic].result(timeout=PATIENCE)
        return {name: (one.value, one.source) for name, one in answers[mine].result(timeout=PATIENCE).items()}

    dynamic, static = ConfigSource.DYNAMIC_BROKER_CONFIG.value, ConfigSource.STATIC_BROKER_CONFIG.value
    wait_for(lambda: described()["log.retention.ms"] == ("7000000", dynamic), "it has heard of the change")
    assert described()["log.segment.bytes"] == ("1048576", static)
    assert broker.stop() == 0
    assert [one["partitions"] for one in broker.events("leaves_unavailable")] == [["alone-0"]]
    # with cordoned directories it keeps its replicas, and gets no new ones
    broker.plan.settings["cordoned.log.dirs"] = "*"
    broker.start()
    broker.await_running()
    mine = wait_for(lambda: image_of(node.controller).cluster.brokers[7], "it is registered")
    assert set(mine.cordoned_directories or ()) == set(mine.directories)
    with pytest.raises(KafkaException, match="INVALID_REPLICA_ASSIGNMENT"):
        create(node, "refused", [1, 7])
    node.admin.delete_topics([alone.topic])[alone.topic].result(timeout=PATIENCE)


class Refused:
    """A client that asks for data."""

    def __init__(self, port: int) -> None:
        self._node = NodeConnector()(Address("127.0.0.1", port))

    def codes(self, topic: str) -> list[str]:
        def ask(module: Any) -> Any:
            partition = module.ListOffsetsPartition(partition_index=0, timestamp=-1)
            asked = module.ListOffsetsTopic(name=topic, partitions=(partition,))
            return module.ListOffsetsRequest(replica_id=-1, isolation_level=0, topics=(asked,))

        answer = self._node.ask("list_offsets", range(6, 8), ask)
        return [one.error_code.name for each in answer.topics for one in each.partitions]

    def close(self) -> None:
        self._node.close()


def test_it_is_not_unfenced_where_no_leader_has_a_listener_of_its_name(node: KafkaNode, tmp_path: Path) -> None:
    broker = BrokerProcess(controllers=node.controller, folder=tmp_path, broker_id=8, settings=SESSION, listener="NOPE")
    broker.start()
    assert broker.wait() == 1
    assert (
        "no other broker has a listener NOPE (they have PLAINTEXT): give --listener" in broker.plan.log_file.read_text()
    )
    assert image_of(node.controller).cluster.brokers[8].fenced
    assert not any(event["state"] == "RUNNING" for event in broker.events("broker_state_changed"))


@pytest.mark.skipif(not LONG, reason="make test-long: a node of another release")
def test_it_joins_a_cluster_of_kafka_3_9(tmp_path: Path) -> None:
    with started_node(tmp_path / "kafka", release="3.9.1", settings=SESSION) as older:
        broker = BrokerProcess(controllers=older.controller, folder=tmp_path / "ours", settings=SESSION)
        try:
            broker.start()
            broker.await_running()
            name = create(older, "older", [1, 7])
            produce(older, name, 3000)
            wait_for(lambda: in_sync(older, name), "it is in the ISR")
            wait_for(lambda: broker.log_of(name) == theirs(older, name), "its log is a copy")
            assert broker.stop() == 0
        finally:
            broker.kill()
