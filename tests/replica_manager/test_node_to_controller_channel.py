"""The channel to the active controller: what is sent, how the controller is found, and what becomes of faults."""

from __future__ import annotations

import queue
import threading
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import Any

import pytest
from kio.schema.describe_cluster.v1.response import DescribeClusterResponse
from kio.schema.errors import ErrorCode as KioError
from kio.schema.types import BrokerId
from kio.static.primitive import i32, i64

from kraftlake.delta.topics.local_replica_changes import TopicIdPartition, TopicPartition
from kraftlake.image.endpoint import VersionRange, feature_levels_of
from kraftlake.image.topics.partition_registration import LeaderRecoveryState
from kraftlake.protocol.address import Address
from kraftlake.protocol.broker_requests import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.protocol.node_connector import NodeConnector
from kraftlake.records.metadata_records import BrokerEndpoint, BrokerFeature
from kraftlake.records.uuid import Uuid
from kraftlake.replica_manager.alter_partition_manager import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BatchingAlterPartitionManager,
)
from kraftlake.replica_manager.assignments_manager import AssignReplicasRequest
from kraftlake.replica_manager.controller_channel import BrokerState, LeaderAndIsr
from kraftlake.replica_manager.node_to_controller_channel import NodeToControllerChannel
from tests.replica_manager.scripted_node import (
    ALTER_PARTITION,
    ASSIGN_REPLICAS,
    AT_ONCE,
    DESCRIBE_CLUSTER,
    FETCH,
    HEARTBEAT,
    REGISTRATION,
    ScriptedNode,
)

CLUSTER = "kraftlakeTestClusterAA"
FOO, D1, D2 = Uuid(b"foo".ljust(16)), Uuid(b"d1".ljust(16)), Uuid(b"d2".ljust(16))
FOO0, FOO1 = (TopicIdPartition(FOO, TopicPartition("foo", number)) for number in range(2))
BEAT = BrokerHeartbeatRequest(
    broker_id=7, broker_epoch=40, current_metadata_offset=100, want_fence=True, want_shut_down=False,
    offline_log_dirs=(D2,),
)  # fmt: skip


class Quorum:
    """Three controllers, of which `active` answers, and the others say NOT_CONTROLLER and who leads."""

    def __init__(self) -> None:
        self.nodes: list[ScriptedNode] = []
        self.addresses: list[Address] = []
        self.active: int | None = 0
        self.epoch = 1
        self._stack = ExitStack()
        newest = {
            FETCH: 17, DESCRIBE_CLUSTER: 1, REGISTRATION: 4, HEARTBEAT: 1, ALTER_PARTITION: 3, ASSIGN_REPLICAS: 0
        }  # fmt: skip
        for id_ in range(3):
            node = ScriptedNode(newest)
            node.answers = {
                FETCH: self._leader,
                DESCRIBE_CLUSTER: lambda m, request: DescribeClusterResponse(
                    throttle_time=AT_ONCE, error_code=KioError.none, cluster_id=CLUSTER, controller_id=BrokerId(-1),
                    brokers=(),
                ),
                HEARTBEAT: lambda m, request, id_=id_: m.BrokerHeartbeatResponse(  # type: ignore[misc]
                    throttle_time=AT_ONCE, error_code=self._error(id_), is_caught_up=True, is_fenced=False,
                    should_shut_down=False,
                ),
            }  # fmt: skip
            self.nodes.append(node)
            self.addresses.append(self._stack.enter_context(node.serving()))

    def _error(self, id_: int) -> KioError:
        return KioError.none if id_ == self.active else KioError.not_controller

    def _leader(self, m: Any, request: Any) -> Any:
        leader = -1 if self.active is None else self.active
        where = () if self.active is None else (self.addresses[self.active],)
        partition = m.PartitionData(
            partition_index=i32(0), error_code=KioError.not_leader_or_follower, high_watermark=i64(-1),
            aborted_transactions=(), records=b"",
            current_leader=m.LeaderIdAndEpoch(leader_id=BrokerId(leader), leader_epoch=i32(self.epoch)),
        )  # fmt: skip
        topic = m.FetchableTopicResponse(topic_id=uuid.UUID(int=1), partitions=(partition,))
        endpoints = tuple(m.NodeEndpoint(node_id=BrokerId(leader), host=one.host, port=i32(one.port)) for one in where)
        return m.FetchResponse(
            throttle_time=AT_ONCE, error_code=KioError.none, responses=(topic,), node_endpoints=endpoints
        )

    def requests(self, id_: int, kind: str) -> list[Any]:
        return [one for one in self.nodes[id_].requests if type(one).__name__ == kind]

    def close(self) -> None:
        self._stack.close()


@pytest.fixture
def quorum() -> Iterator[Quorum]:
    with closing(Quorum()) as made:
        yield made


def channel_to(*addresses: Address, **options: Any) -> closing[NodeToControllerChannel]:
    return closing(NodeToControllerChannel("test", addresses, NodeConnector(timeout=30.0), **options))


def answer_to(channel: NodeToControllerChannel, request: Any, method: str = "send") -> Any:
    answers: queue.Queue[Any] = queue.Queue()
    getattr(channel, method)(request, answers.put)
    return answers.get(timeout=60)


def test_a_heartbeat_reaches_the_active_controller_through_another_one(quorum: Quorum) -> None:
    quorum.active = 2
    with channel_to(quorum.addresses[0], cluster_id=CLUSTER) as channel:
        for _ in range(2):
            assert answer_to(channel, BEAT) == BrokerHeartbeatResponse(is_caught_up=True, is_fenced=False)
    first, second = quorum.requests(2, "BrokerHeartbeatRequest")
    assert first == second
    assert (first.broker_id, first.broker_epoch, first.current_metadata_offset) == (7, 40, 100)
    assert (first.want_fence, first.want_shut_down) == (True, False)
    assert [id_.bytes for id_ in first.offline_log_dirs] == [D2]
    assert quorum.nodes[2].connections == 1


def test_a_request_waits_for_an_election_and_follows_the_controller(quorum: Quorum) -> None:
    with channel_to(*quorum.addresses) as channel:
        answer_to(channel, BEAT)
        quorum.active = None
        answers: queue.Queue[Any] = queue.Queue()
        channel.send(BEAT, answers.put)
        with pytest.raises(queue.Empty):
            answers.get(timeout=0.3)
        quorum.active, quorum.epoch = 1, 2
        assert answers.get(timeout=60).error == ErrorCode.NONE
    assert len(quorum.requests(1, "BrokerHeartbeatRequest")) >= 1


def test_a_controller_that_was_replaced_is_not_waited_for_where_it_is_known_who_leads(quorum: Quorum) -> None:
    end = threading.Event()
    with channel_to(
        *quorum.addresses, active=lambda: None if quorum.active is None else quorum.addresses[quorum.active]
    ) as channel:
        assert answer_to(channel, BEAT).error == ErrorCode.NONE
        quorum.nodes[0].answers |= {
            kind: lambda m, request: end.wait() and None for kind in (HEARTBEAT, DESCRIBE_CLUSTER)
        }
        quorum.active, quorum.epoch = 1, 2
        assert answer_to(channel, BEAT).error == ErrorCode.NONE
        assert len(quorum.requests(0, "BrokerHeartbeatRequest")) == 1
        quorum.active = None  # nobody is known to lead: the one that was is asked on
        quorum.nodes[1].answers[HEARTBEAT] = lambda m, request: m.BrokerHeartbeatResponse(
            throttle_time=AT_ONCE, error_code=KioError.none, is_caught_up=True, is_fenced=True, should_shut_down=False
        )
        assert answer_to(channel, BEAT).is_fenced
    end.set()


def test_a_broken_connection_and_a_broken_answer_are_tried_again(quorum: Quorum) -> None:
    active, turns = quorum.nodes[0], [b"\0\0\0\0", b"\x7f\xff\xff\xff", b"\0\0\0\x01x"]
    with channel_to(*quorum.addresses) as channel:
        answer_to(channel, BEAT)
        active.spoil = lambda data: turns.pop() if turns else data
        assert answer_to(channel, BEAT).error == ErrorCode.NONE
    assert not turns


def test_a_request_that_no_controller_answers_in_time_is_given_up(quorum: Quorum) -> None:
    quorum.active = None
    with channel_to(*quorum.addresses, retry_timeout_ms=300) as channel:
        assert answer_to(channel, BEAT) is None
        request = AlterPartitionRequest(broker_id=7, broker_epoch=40, partitions={})
        for node in quorum.nodes:
            node.answers |= {ALTER_PARTITION: lambda m, request: None, ASSIGN_REPLICAS: lambda m, request: None}
        response = answer_to(channel, request, "alter_partition")
        assert response == AlterPartitionResponse(error=ErrorCode.NETWORK_EXCEPTION)
        response = answer_to(
            channel, AssignReplicasRequest(broker_id=7, broker_epoch=40, directories={}), "assign_replicas_to_dirs"
        )
        assert response.error == ErrorCode.NETWORK_EXCEPTION


def test_a_controller_of_another_cluster_is_not_asked(quorum: Quorum) -> None:
    with channel_to(*quorum.addresses, cluster_id="another") as channel:
        assert answer_to(channel, BEAT) is None
    assert not quorum.requests(0, "BrokerHeartbeatRequest")


def test_close_ends_a_request_in_flight_and_calls_nobody_back(quorum: Quorum) -> None:
    asked, end = threading.Event(), threading.Event()

    def never(module: Any, request: Any) -> None:
        asked.set()
        end.wait()

    quorum.nodes[0].answers[HEARTBEAT] = never
    answers: list[Any] = []
    with channel_to(*quorum.addresses) as channel:
        for _ in range(3):
            channel.send(BEAT, answers.append)
        assert asked.wait(60)
    end.set()
    channel.send(BEAT, answers.append)
    assert not answers


def test_a_registration_says_everything_that_the_controller_records(quorum: Quorum) -> None:
    request = BrokerRegistrationRequest(
        broker_id=7, cluster_id=CLUSTER, incarnation_id=FOO, rack="east", log_dirs=(D1, D2), previous_broker_epoch=30,
        listeners=(BrokerEndpoint(name="SSL", host="h", port=65535, security_protocol=1),),
        features=feature_levels_of(
            {"metadata.version": VersionRange(7, 30), "group.version": VersionRange(0, 1)}, BrokerFeature
        ),
    )  # fmt: skip
    errors = [KioError.none, KioError.duplicate_broker_registration, KioError.unsupported_version]
    quorum.nodes[0].answers[REGISTRATION] = lambda m, request: m.BrokerRegistrationResponse(
        throttle_time=AT_ONCE, error_code=errors.pop(0), broker_epoch=i64(41)
    )
    with channel_to(*quorum.addresses) as channel:
        assert answer_to(channel, request) == BrokerRegistrationResponse(broker_epoch=41)
        assert answer_to(channel, request).error == ErrorCode.DUPLICATE_BROKER_REGISTRATION
        assert answer_to(channel, request).error == ErrorCode.UNSUPPORTED_VERSION
    sent = quorum.requests(0, "BrokerRegistrationRequest")[0]
    assert (sent.broker_id, sent.cluster_id, sent.rack, sent.previous_broker_epoch) == (7, CLUSTER, "east", 30)
    assert sent.incarnation_id.bytes == FOO
    assert [id_.bytes for id_ in sent.log_dirs] == [D1, D2]
    assert [(one.name, one.host, one.port, one.security_protocol) for one in sent.listeners] == [("SSL", "h", 65535, 1)]
    levels = {one.name: (one.min_supported_version, one.max_supported_version) for one in sent.features}
    assert levels == {"metadata.version": (7, 30), "group.version": (0, 1)}


def test_proposals_of_isrs_are_answered_one_by_one(quorum: Quorum) -> None:
    def answer(m: Any, request: Any) -> Any:
        done = m.PartitionData(
            partition_index=i32(0), error_code=KioError.none, leader_id=BrokerId(7), leader_epoch=i32(3),
            isr=(BrokerId(7), BrokerId(1)), partition_epoch=i32(9),
        )  # fmt: skip
        refused = m.PartitionData(
            partition_index=i32(1), error_code=KioError.ineligible_replica, leader_id=BrokerId(-1),
            leader_epoch=i32(-1), partition_epoch=i32(-1),
        )  # fmt: skip
        topic = m.TopicData(topic_id=uuid.UUID(bytes=bytes(FOO)), partitions=(done, refused))
        other = m.TopicData(topic_id=uuid.UUID(int=5), partitions=(done,))
        return m.AlterPartitionResponse(throttle_time=AT_ONCE, error_code=errors.pop(0), topics=(topic, other))

    errors = [KioError.stale_broker_epoch, KioError.none]
    quorum.nodes[0].answers[ALTER_PARTITION] = answer
    proposal = LeaderAndIsr(
        leader=7, leader_epoch=3, isr=(BrokerState(7, 40), BrokerState(1, 20)), partition_epoch=8,
        leader_recovery_state=LeaderRecoveryState.RECOVERING,
    )  # fmt: skip
    answers: queue.Queue[Any] = queue.Queue()
    with channel_to(*quorum.addresses) as channel:
        manager = BatchingAlterPartitionManager(7, lambda: 40, channel, lambda delay, action: action())
        manager.submit(FOO0, proposal, lambda one: answers.put((FOO0, one)))
        manager.submit(FOO1, proposal, lambda one: answers.put((FOO1, one)))
        got = dict(answers.get(timeout=60) for _ in range(1))
        sent = quorum.requests(0, "AlterPartitionRequest")
        assert (sent[0].broker_id, sent[0].broker_epoch) == (7, 40)
        (one, *_) = sent[0].topics[0].partitions
        assert (one.partition_index, one.leader_epoch, one.partition_epoch, one.leader_recovery_state) == (0, 3, 8, 1)
        assert [(b.broker_id, b.broker_epoch) for b in one.new_isr_with_epochs] == [(7, 40), (1, 20)]
        assert got[FOO0] == LeaderAndIsr(
            leader=7, leader_epoch=3, isr=(BrokerState(7, -1), BrokerState(1, -1)), partition_epoch=9
        )
        errors[:] = [KioError.none]
        request = AlterPartitionRequest(broker_id=7, broker_epoch=40, partitions={FOO0: proposal, FOO1: proposal})
        answered = answer_to(channel, request, "alter_partition")
        assert answered.partitions == {FOO0: got[FOO0], FOO1: ErrorCode.INELIGIBLE_REPLICA}


def test_directories_are_reported_for_each_replica(quorum: Quorum) -> None:
    def answer(m: Any, request: Any) -> Any:
        def partition(index: int) -> Any:
            error = KioError.none if index == 0 else KioError.unknown_topic_id
            return m.PartitionData(partition_index=i32(index), error_code=error)

        directories = tuple(
            m.DirectoryData(
                id_=directory.id_,
                topics=tuple(
                    m.TopicData(
                        topic_id=topic.topic_id,
                        partitions=tuple(partition(int(one.partition_index)) for one in topic.partitions),
                    )
                    for topic in directory.topics
                ),
            )
            for directory in request.directories
        )
        return m.AssignReplicasToDirsResponse(throttle_time=AT_ONCE, error_code=KioError.none, directories=directories)

    quorum.nodes[0].answers[ASSIGN_REPLICAS] = answer
    request = AssignReplicasRequest(broker_id=7, broker_epoch=40, directories={FOO0: D1, FOO1: D2})
    with channel_to(*quorum.addresses) as channel:
        response = answer_to(channel, request, "assign_replicas_to_dirs")
    assert response.results == {FOO0: ErrorCode.NONE, FOO1: ErrorCode.UNKNOWN_TOPIC_ID}
    (sent,) = quorum.requests(0, "AssignReplicasToDirsRequest")
    assigned = {
        (directory.id_.bytes, topic.topic_id.bytes, int(one.partition_index))
        for directory in sent.directories
        for topic in directory.topics
        for one in topic.partitions
    }
    assert assigned == {(D1, FOO, 0), (D2, FOO, 1)}
    assert (sent.broker_id, sent.broker_epoch) == (7, 40)
