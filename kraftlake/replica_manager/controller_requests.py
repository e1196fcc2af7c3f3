"""The requests of a broker to the active controller in Kafka's protocol.

Source: org.apache.kafka.server.partition.DefaultAlterPartitionManager, org.apache.kafka.server.AssignmentsManager,
org.apache.kafka.server.BrokerLifecycleManager.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Final

from kraftlake.delta.topics.local_replica_changes import TopicIdPartition
from kraftlake.image.topics.partition_registration import LeaderRecoveryState
from kraftlake.protocol.broker_requests import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    end_points_as,
    feature_levels_as,
)
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.protocol.ids import kafka_id, wire_id
from kraftlake.protocol.observer.quorum_observer import QuorumObserver
from kraftlake.records.uuid import Uuid
from kraftlake.replica_manager.alter_partition_manager import AlterPartitionRequest, AlterPartitionResponse
from kraftlake.replica_manager.assignments_manager import AssignReplicasRequest, AssignReplicasResponse
from kraftlake.replica_manager.controller_channel import AlterPartitionAnswer, BrokerState, LeaderAndIsr

_HEARTBEAT_WITH_CORDONED: Final = 2


def register_broker(
    quorum: QuorumObserver, request: BrokerRegistrationRequest, *, timeout: float
) -> BrokerRegistrationResponse:
    """Register; version 4, of Kafka 3.9 and later. `timeout` in seconds; raises as QuorumObserver.ask_controller."""

    def make(module: Any) -> Any:
        return module.BrokerRegistrationRequest(
            broker_id=request.broker_id, cluster_id=request.cluster_id, incarnation_id=wire_id(request.incarnation_id),
            listeners=end_points_as(module.Listener, request.listeners),
            features=feature_levels_as(module.Feature, request.features), rack=request.rack,
            log_dirs=tuple(map(wire_id, request.log_dirs)),
            previous_broker_epoch=request.previous_broker_epoch,
        )  # fmt: skip

    answer = quorum.ask_controller("broker_registration", range(4, 5), make, timeout=timeout)
    return BrokerRegistrationResponse(error=ErrorCode.of(answer.error_code), broker_epoch=int(answer.broker_epoch))


def send_heartbeat(
    quorum: QuorumObserver, request: BrokerHeartbeatRequest, *, timeout: float
) -> BrokerHeartbeatResponse:
    """Send a heartbeat; version 1, which has the log directories, or 2, which also has the cordoned ones.

    Raises as `register_broker`, and NodeError if the controllers are too old for cordoned directories.
    """

    def make(module: Any) -> Any:
        kind, more = module.BrokerHeartbeatRequest, {}
        if request.cordoned_log_dirs is not None and kind.__version__ >= _HEARTBEAT_WITH_CORDONED:
            more["cordoned_log_dirs"] = tuple(map(wire_id, request.cordoned_log_dirs))
        return kind(
            broker_id=request.broker_id, broker_epoch=request.broker_epoch,
            current_metadata_offset=request.current_metadata_offset, want_fence=request.want_fence,
            want_shut_down=request.want_shut_down,
            offline_log_dirs=tuple(map(wire_id, request.offline_log_dirs)), **more,
        )  # fmt: skip

    oldest = _HEARTBEAT_WITH_CORDONED if request.cordoned_log_dirs else 1
    versions = range(oldest, _HEARTBEAT_WITH_CORDONED + 1)
    answer = quorum.ask_controller("broker_heartbeat", versions, make, timeout=timeout)
    return BrokerHeartbeatResponse(
        error=ErrorCode.of(answer.error_code), is_caught_up=answer.is_caught_up, is_fenced=answer.is_fenced,
        should_shut_down=answer.should_shut_down,
    )  # fmt: skip


def alter_partition(
    quorum: QuorumObserver, request: AlterPartitionRequest, *, timeout: float
) -> AlterPartitionResponse:
    """Propose ISRs; version 3, which has the brokers' epochs (KIP-903). Raises as `register_broker`."""
    by_topic: dict[Uuid, list[tuple[int, LeaderAndIsr]]] = defaultdict(list)
    for name, proposal in request.partitions.items():
        by_topic[name.topic_id].append((name.topic_partition.partition, proposal))

    def make(module: Any) -> Any:
        def partition(index: int, proposal: LeaderAndIsr) -> Any:
            isr = [module.BrokerState(broker_id=one.broker_id, broker_epoch=one.broker_epoch) for one in proposal.isr]
            return module.PartitionData(
                partition_index=index, leader_epoch=proposal.leader_epoch, new_isr_with_epochs=tuple(isr),
                leader_recovery_state=int(proposal.leader_recovery_state), partition_epoch=proposal.partition_epoch,
            )  # fmt: skip

        topics = tuple(
            module.TopicData(topic_id=wire_id(id_), partitions=tuple(partition(*one) for one in partitions))
            for id_, partitions in by_topic.items()
        )
        return module.AlterPartitionRequest(
            broker_id=request.broker_id, broker_epoch=request.broker_epoch, topics=topics
        )

    answer = quorum.ask_controller("alter_partition", range(3, 4), make, timeout=timeout)
    names = {(name.topic_id, name.topic_partition.partition): name for name in request.partitions}
    answers: dict[TopicIdPartition, AlterPartitionAnswer] = {}
    for topic in answer.topics:
        for one in topic.partitions:
            key = (kafka_id(topic.topic_id), one.partition_index)
            if key in names:
                error = ErrorCode.of(one.error_code)
                answers[names[key]] = _decided(one) if error is ErrorCode.NONE else error
    return AlterPartitionResponse(error=ErrorCode.of(answer.error_code), partitions=answers)


def _decided(one: Any) -> LeaderAndIsr:
    """Return a partition's state from the controller's answer, which does not repeat the brokers' epochs."""
    return LeaderAndIsr(
        leader=int(one.leader_id),
        leader_epoch=int(one.leader_epoch),
        isr=tuple(BrokerState(int(broker_id), -1) for broker_id in one.isr),
        leader_recovery_state=LeaderRecoveryState(int(one.leader_recovery_state)),
        partition_epoch=int(one.partition_epoch),
    )


def assign_replicas_to_dirs(
    quorum: QuorumObserver, request: AssignReplicasRequest, *, timeout: float
) -> AssignReplicasResponse:
    """Report the directories of replicas (KIP-858). Raises as `register_broker`."""
    tree: dict[Uuid, dict[Uuid, list[int]]] = defaultdict(lambda: defaultdict(list))
    for name, directory in request.directories.items():
        tree[directory][name.topic_id].append(name.topic_partition.partition)

    def make(module: Any) -> Any:
        def topic(id_: Uuid, indexes: list[int]) -> Any:
            partitions = tuple(module.PartitionData(partition_index=index) for index in indexes)
            return module.TopicData(topic_id=wire_id(id_), partitions=partitions)

        directories = tuple(
            module.DirectoryData(id_=wire_id(directory), topics=tuple(topic(*one) for one in topics.items()))
            for directory, topics in tree.items()
        )
        return module.AssignReplicasToDirsRequest(
            broker_id=request.broker_id, broker_epoch=request.broker_epoch, directories=directories
        )

    answer = quorum.ask_controller("assign_replicas_to_dirs", range(1), make, timeout=timeout)
    codes = {
        (kafka_id(directory.id_), kafka_id(topic.topic_id), int(one.partition_index)): ErrorCode.of(one.error_code)
        for directory in answer.directories
        for topic in directory.topics
        for one in topic.partitions
    }
    keys = {
        name: (directory, name.topic_id, name.topic_partition.partition)
        for name, directory in request.directories.items()
    }
    results = {name: codes[key] for name, key in keys.items() if key in codes}
    return AssignReplicasResponse(error=ErrorCode.of(answer.error_code), results=results)
