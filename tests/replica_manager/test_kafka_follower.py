"""A broker of ours beside a real Kafka node: taken into its cluster and its ISRs, and let go again."""

from __future__ import annotations

import os
import random
import socket
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from confluent_kafka import Producer, TopicCollection
from confluent_kafka.admin import NewTopic

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.protocol.node_connector import NodeConnector
from kraftlake.records.offset_and_epoch import OffsetAndEpoch
from kraftlake.records.uuid import Uuid
from kraftlake.replica_manager.errors import ReplicationError
from kraftlake.replica_manager.fetch.fetch_session import FetchSession
from kraftlake.replica_manager.fetch.fetcher import BrokerEndPoint
from kraftlake.replica_manager.fetch.leader_end_point import EpochEndOffset, FetchedPartition, FetchRequest
from kraftlake.replica_manager.fetch.remote_end_point import RemoteLeaderEndPoint
from kraftlake.replica_manager.lifecycle.broker_lifecycle import LifecycleState
from kraftlake.replica_manager.partition.leader import FetchParams, FetchPartition
from tests.at_least_one import at_least_one
from tests.kafka_node import KafkaNode, started_node
from tests.replica_manager.kafka_follower import ID, PATIENCE, KafkaFollower, forwarding
from tests.waiting import wait_for

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(
        os.environ.get("KRAFTLAKE_TESTS") != "long",
        reason="make test-long: a node more; tests/server/broker has such a broker",
    ),
]
ORDERS, OURS, KEPT, ASKED = (TopicPartition(name, 0) for name in ("orders", "ours", "kept", "asked"))


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaNode]:
    with started_node(tmp_path_factory.mktemp("kafka")) as node:
        yield node


def create(node: KafkaNode, name: str, replicas: list[int]) -> None:
    node.admin.create_topics([NewTopic(name, 1, replica_assignment=[replicas])])[name].result(timeout=PATIENCE)


def isr(node: KafkaNode, name: TopicPartition) -> set[int]:
    described = node.admin.describe_topics(TopicCollection([name.topic]))[name.topic].result(timeout=PATIENCE)
    return {replica.id for replica in described.partitions[name.partition].isr}


def produce(node: KafkaNode, name: TopicPartition, count: int, **options: Any) -> None:
    """Records in batches of at most some kilobytes, all of them acknowledged."""
    producer = Producer({"bootstrap.servers": node.bootstrap, "acks": "all", "batch.size": 4000, **options})
    faults: list[object] = []
    for number in range(count):
        value = f"{name} {number} ".encode() * 10
        producer.produce(
            name.topic, value, partition=name.partition, on_delivery=lambda fault, _: fault and faults.append(fault)
        )
    assert producer.flush(PATIENCE) == 0
    assert not faults


def segment(node: KafkaNode, name: TopicPartition) -> bytes:
    return (node.log_directory / str(name) / f"{0:020}.log").read_bytes()


def test_a_broker_joins_a_cluster_replicates_leads_and_leaves(node: KafkaNode) -> None:
    with forwarding(node.bootstrap) as advertised, closing(KafkaFollower(node, advertised)) as broker:
        broker.start()
        # it registers, and catches up with the metadata
        assert broker.lifecycle.await_state(LifecycleState.RECOVERY, PATIENCE) is LifecycleState.RECOVERY
        brokers = lambda: broker.view.image.cluster.brokers  # noqa: E731
        wait_for(lambda: ID in brokers() and brokers()[ID].epoch == broker.lifecycle.broker_epoch, "it is in the log")
        mine = brokers()[ID]
        assert (mine.fenced, mine.rack) == (True, "east")
        assert set(mine.directories) == set(broker.directories.values())
        # a fenced replica is outside of the ISR; unfenced, it is taken in once it has fetched up to the leader's end
        create(node, "orders", [1, ID])
        produce(node, ORDERS, 300)
        produce(node, ORDERS, 300, **{"compression.type": "lz4", "enable.idempotence": True})
        assert isr(node, ORDERS) == {1}
        broker.lifecycle.set_ready_to_unfence()
        assert broker.lifecycle.await_state(LifecycleState.RUNNING, PATIENCE) is LifecycleState.RUNNING
        wait_for(lambda: isr(node, ORDERS) == {1, ID}, "the leader takes it into the ISR")
        # acks=all waits for our fetches from now on
        produce(node, ORDERS, 300, **{"compression.type": "zstd"})
        wait_for(lambda: broker.log_of(ORDERS) == segment(node, ORDERS), "its log has the leader's bytes")
        assert len(segment(node, ORDERS)) > 40_000
        log = broker.manager.partition_or_raise(ORDERS).local_log
        assert log.log_end_offset == 900
        wait_for(lambda: log.high_watermark == 900, "the high watermark follows")
        (fetcher,) = broker.manager.replica_fetchers.fetchers().values()
        assert fetcher.fetcher._session.epoch > 1, "within a session"
        # a broken connection is made again
        (end_point,) = broker.end_points
        connection = end_point._node._connection._socket
        connection.shutdown(socket.SHUT_RDWR)
        produce(node, ORDERS, 100)
        wait_for(lambda: broker.log_of(ORDERS) == segment(node, ORDERS), "it fetches on")
        assert end_point._node._connection._socket is not connection
        # the controller has assigned no directory to a replica on a broker with two: the broker reports its choice
        registration = lambda name: broker.view.image.topics.get_topic(name.topic).partitions[name.partition]  # noqa: E731
        directory = broker.directories[log.directory]
        wait_for(lambda: registration(ORDERS).directories[1] == directory, "its directory is in the log")
        # as a leader whose follower does not fetch, it takes the follower out of the ISR
        create(node, "ours", [ID, 1])
        wait_for(lambda: broker.manager.online_partition(OURS), "it hosts what it leads")
        assert registration(OURS).leader == ID
        wait_for(lambda: isr(node, OURS) == {ID}, "AlterPartition has taken the follower out")
        wait_for(
            lambda: broker.manager.partition_or_raise(OURS).in_sync.state.isr == {ID}, "the leader knows the answer"
        )
        node.admin.delete_topics(["ours"])["ours"].result(timeout=PATIENCE)
        # controlled shutdown
        broker.lifecycle.begin_controlled_shutdown()
        assert broker.lifecycle.await_state(LifecycleState.SHUTTING_DOWN, PATIENCE) is LifecycleState.SHUTTING_DOWN
        assert broker.lifecycle.fault is None
        wait_for(lambda: isr(node, ORDERS) == {1}, "it is out of the ISR")
        produce(node, ORDERS, 1)
        assert broker.faults.faults == 0


def test_a_broker_outlives_kills_of_its_leader_and_controller(node: KafkaNode) -> None:
    """It is fenced, because it would be elected otherwise, and it serves nobody."""
    with forwarding(node.bootstrap) as advertised, closing(KafkaFollower(node, advertised)) as broker:
        broker.start()
        assert broker.lifecycle.await_state(LifecycleState.RECOVERY, PATIENCE) is LifecycleState.RECOVERY
        epoch = broker.lifecycle.broker_epoch
        create(node, "kept", [1, ID])
        for _ in range(2):
            produce(node, KEPT, 200)
            wait_for(lambda: broker.log_of(KEPT) == segment(node, KEPT), "its log has the leader's bytes")
            node.kill()
            node.start()
        produce(node, KEPT, 200)
        wait_for(lambda: broker.log_of(KEPT) == segment(node, KEPT), "it fetches on")
        assert (broker.lifecycle.state, broker.lifecycle.broker_epoch) == (LifecycleState.RECOVERY, epoch)
        broker.lifecycle.set_ready_to_unfence()
        wait_for(lambda: isr(node, KEPT) == {1, ID}, "the new controller unfences it, and the leader takes it in")
        broker.lifecycle.begin_controlled_shutdown()
        assert broker.lifecycle.await_state(LifecycleState.SHUTTING_DOWN, PATIENCE) is LifecycleState.SHUTTING_DOWN
        assert broker.faults.faults == 0


def test_a_leader_answers_each_question_of_a_follower(node: KafkaNode) -> None:
    create(node, "asked", [1])
    produce(node, ASKED, 50)
    described = node.admin.describe_topics(TopicCollection(["asked"]))["asked"].result(timeout=PATIENCE)
    topic_id = Uuid.from_string(str(described.topic_id))
    connect = NodeConnector(timeout=PATIENCE)

    def fetch(offset: int, **options: int) -> FetchedPartition:
        wanted = FetchPartition(topic_id=topic_id, fetch_offset=offset, **options)  # type: ignore[arg-type]
        response = end_point.fetch(FetchRequest(params=FetchParams(max_wait_ms=0), partitions={ASKED: wanted}))
        assert response.error is ErrorCode.NONE
        return response.partitions[ASKED]

    leader = BrokerEndPoint(node.node_id, "127.0.0.1", node.broker_port)
    with closing(RemoteLeaderEndPoint(leader, connect, replica_id=-1, timeout_s=PATIENCE)) as end_point:
        assert (end_point.earliest_offset(ASKED, 0), end_point.latest_offset(ASKED, 0)) == (0, 50)
        assert fetch(0, last_fetched_epoch=0, current_leader_epoch=0).data == segment(node, ASKED)
        assert fetch(50).data == b""
        assert fetch(50).high_watermark == 50
        ends = end_point.epoch_end_offsets({ASKED: (0, 0), TopicPartition("none", 0): (0, 0)})
        assert ends[ASKED] == EpochEndOffset(end=OffsetAndEpoch(50, 0))
        assert ends[TopicPartition("none", 0)].error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert fetch(70, last_fetched_epoch=0).diverging_epoch == OffsetAndEpoch(50, 0)
        assert fetch(70).error is ErrorCode.OFFSET_OUT_OF_RANGE
        assert fetch(0, current_leader_epoch=5).error is ErrorCode.UNKNOWN_LEADER_EPOCH
        with pytest.raises(ReplicationError) as fault:
            end_point.latest_offset(ASKED, 5)
        assert fault.value.code is ErrorCode.UNKNOWN_LEADER_EPOCH
        gone = FetchRequest(
            params=FetchParams(), partitions={ASKED: FetchPartition(topic_id=Uuid.random(), fetch_offset=0)}
        )
        assert end_point.fetch(gone).partitions[ASKED].error is ErrorCode.UNKNOWN_TOPIC_ID
        unknown = FetchRequest(params=FetchParams(), partitions={}, session_id=12345, session_epoch=3)
        assert end_point.fetch(unknown).error is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_session_with_a_leader_holds_what_the_follower_wants(node: KafkaNode) -> None:
    names = [TopicPartition(f"session-{number}", 0) for number in range(4)]

    def id_of(name: TopicPartition) -> Uuid:
        topics = node.admin.describe_topics(TopicCollection([name.topic]))
        return Uuid.from_string(str(topics[name.topic].result(timeout=PATIENCE).topic_id))

    for name in at_least_one(names):
        create(node, name.topic, [1])
        produce(node, name, 5)
    wanted = {name: FetchPartition(topic_id=id_of(name), fetch_offset=0) for name in names}
    chance, session, rounds = random.Random(9), FetchSession(), 40
    leader = BrokerEndPoint(node.node_id, "127.0.0.1", node.broker_port)
    with closing(RemoteLeaderEndPoint(leader, NodeConnector(), replica_id=-1, timeout_s=PATIENCE)) as end_point:
        for number in range(rounds):
            if number == rounds // 2:  # in the middle of the session, a topic becomes another one of the same name
                node.admin.delete_topics([names[0].topic])[names[0].topic].result(timeout=PATIENCE)
                create(node, names[0].topic, [1])
                produce(node, names[0], 7)
                wanted[names[0]] = FetchPartition(topic_id=id_of(names[0]), fetch_offset=0)
            chosen = {name: wanted[name] for name in chance.sample(names, chance.randrange(1, 4))}
            changed, forgotten = session.build(chosen)
            request = FetchRequest(
                params=FetchParams(max_wait_ms=0), partitions=changed, forgotten=forgotten,
                session_id=session.session_id, session_epoch=session.epoch,
            )  # fmt: skip
            response = end_point.fetch(request)
            assert response.error is ErrorCode.NONE
            assert session.handle_response(response)
            assert session.epoch == number + 1, "one session all the time"
            for name, fetched in response.partitions.items():
                assert (fetched.error, fetched.data) == (ErrorCode.NONE, segment(node, name))
            assert response.partitions.keys() == chosen.keys(), "each has data, as long as its offset is 0"
