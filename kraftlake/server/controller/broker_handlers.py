"""Handlers of brokers' requests to the active controller. Source: kafka.server.ControllerApis."""

from __future__ import annotations

from concurrent.futures import Future
from itertools import groupby
from typing import Any, Final

from kraftlake.controller.cluster.brokers import BrokerHeartbeatReply, register_broker, unregister_broker
from kraftlake.controller.cluster.producer_ids import allocate_producer_ids
from kraftlake.controller.replication.alter_partition import IsrChange, alter_partition
from kraftlake.controller.replication.directories import assign_replicas_to_dirs
from kraftlake.image.kafka_names import AclOperation
from kraftlake.protocol.broker_requests import (
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    end_points_as,
    feature_levels_as,
)
from kraftlake.protocol.ids import kafka_id, wire_id
from kraftlake.records.metadata_records import BrokerEndpoint, BrokerFeature
from kraftlake.records.uuid import Uuid
from kraftlake.server.controller.controller_node import ControllerNode, Handlers
from kraftlake.server.requests.dispatcher import Request
from kraftlake.server.requests.handlers import response_to, then


def _register(node: ControllerNode, request: Request) -> Future[Any]:
    node.check_cluster(request, AclOperation.CLUSTER_ACTION)
    asked = request.body
    registration = BrokerRegistrationRequest(
        broker_id=int(asked.broker_id),
        cluster_id=asked.cluster_id,
        incarnation_id=kafka_id(asked.incarnation_id),
        listeners=end_points_as(BrokerEndpoint, asked.listeners),
        features=feature_levels_as(BrokerFeature, asked.features),
        rack=asked.rack,
        log_dirs=tuple(map(kafka_id, getattr(asked, "log_dirs", ()))),
        previous_broker_epoch=int(getattr(asked, "previous_broker_epoch", -1)),
        is_migrating_zk_broker=bool(getattr(asked, "is_migrating_zk_broker", False)),
    )
    return node.run(
        lambda state: register_broker(state, registration),
        lambda reply: response_to(request, broker_epoch=reply.broker_epoch),
    )


def _heartbeat(node: ControllerNode, request: Request) -> Future[Any]:
    node.check_cluster(request, AclOperation.CLUSTER_ACTION)
    asked = request.body
    cordoned = getattr(asked, "cordoned_log_dirs", None)
    beat = BrokerHeartbeatRequest(
        broker_id=int(asked.broker_id),
        broker_epoch=int(asked.broker_epoch),
        current_metadata_offset=int(asked.current_metadata_offset),
        want_fence=asked.want_fence,
        want_shut_down=asked.want_shut_down,
        offline_log_dirs=tuple(map(kafka_id, getattr(asked, "offline_log_dirs", ()))),
        cordoned_log_dirs=None if cordoned is None else tuple(map(kafka_id, cordoned)),
    )

    def answer(reply: BrokerHeartbeatReply) -> Any:
        end_offset = node.controller.metrics.last_committed_offset + 1
        node.progress.note(beat.broker_id, beat.current_metadata_offset + 1, end_offset=end_offset)
        return response_to(
            request, is_caught_up=reply.is_caught_up, is_fenced=reply.is_fenced,
            should_shut_down=reply.should_shut_down,
        )  # fmt: skip

    return then(node.controller.heartbeat(beat, timeout_ms=node.heartbeat_timeout_ms), answer)


def _unregister(node: ControllerNode, request: Request) -> Future[Any]:
    node.check_cluster(request, AclOperation.ALTER)
    broker_id = int(request.body.broker_id)
    return node.run(
        lambda state: unregister_broker(state, broker_id),
        lambda _: response_to(request, error_message=None),
    )


def _alter_partition(node: ControllerNode, request: Request) -> Future[Any]:
    node.check_cluster(request, AclOperation.CLUSTER_ACTION)
    asked, module = request.body, request.module
    changes = [
        IsrChange(
            topic_id=kafka_id(topic.topic_id), partition_id=int(one.partition_index),
            leader_epoch=int(one.leader_epoch), partition_epoch=int(one.partition_epoch), new_isr=_isr(one),
            leader_recovery_state=int(one.leader_recovery_state),
        )
        for topic in asked.topics
        for one in topic.partitions
    ]  # fmt: skip

    def answer(answers: Any) -> Any:
        def partition(one: Any) -> Any:
            made, error = one.partition, one.error
            if made is None:
                return module.PartitionData(
                    partition_index=one.partition_id, error_code=error, leader_id=0, leader_epoch=0, isr=(),
                    partition_epoch=0,
                )  # fmt: skip
            return module.PartitionData(
                partition_index=one.partition_id, error_code=error, leader_id=made.leader,
                leader_epoch=made.leader_epoch, isr=tuple(made.isr),
                leader_recovery_state=int(made.leader_recovery_state), partition_epoch=made.partition_epoch,
            )  # fmt: skip

        topics = tuple(
            module.TopicData(topic_id=wire_id(topic_id), partitions=tuple(map(partition, group)))
            for topic_id, group in groupby(answers, key=lambda one: one.topic_id)
        )
        return response_to(request, topics=topics)

    broker_id, epoch = int(asked.broker_id), int(asked.broker_epoch)
    return node.run(lambda state: alter_partition(state, broker_id, epoch, changes), answer)


def _isr(partition: Any) -> tuple[tuple[int, int], ...]:
    """Return the proposed ISR with the brokers' epochs; −1 in the version without epochs."""
    with_epochs = getattr(partition, "new_isr_with_epochs", None)
    if with_epochs is None:
        return tuple((int(broker), -1) for broker in partition.new_isr)
    return tuple((int(one.broker_id), int(one.broker_epoch)) for one in with_epochs)


def _assign_directories(node: ControllerNode, request: Request) -> Future[Any]:
    node.check_cluster(request, AclOperation.CLUSTER_ACTION)
    asked, module = request.body, request.module
    directories: dict[Uuid, list[tuple[Uuid, int]]] = {}
    for directory in asked.directories:  # one may be named twice
        directories.setdefault(kafka_id(directory.id_), []).extend(
            (kafka_id(topic.topic_id), int(one.partition_index))
            for topic in directory.topics
            for one in topic.partitions
        )

    def answer(errors: Any) -> Any:
        def partitions(directory: Any, topic: Any) -> Any:
            return tuple(
                module.PartitionData(
                    partition_index=one.partition_index,
                    error_code=errors[directory, (kafka_id(topic.topic_id), int(one.partition_index))],
                )
                for one in topic.partitions
            )

        directories = tuple(
            module.DirectoryData(
                id_=directory.id_,
                topics=tuple(
                    module.TopicData(topic_id=topic.topic_id, partitions=partitions(kafka_id(directory.id_), topic))
                    for topic in directory.topics
                ),
            )
            for directory in asked.directories
        )
        return response_to(request, directories=directories)

    broker_id, epoch = int(asked.broker_id), int(asked.broker_epoch)
    return node.run(lambda state: assign_replicas_to_dirs(state, broker_id, epoch, directories), answer)


def _allocate_producer_ids(node: ControllerNode, request: Request) -> Future[Any]:
    node.check_cluster(request, AclOperation.CLUSTER_ACTION)
    broker_id, epoch = int(request.body.broker_id), int(request.body.broker_epoch)
    return node.run(
        lambda state: allocate_producer_ids(state, broker_id, epoch),
        lambda block: response_to(request, producer_id_start=block.first, producer_id_len=block.size),
    )


BROKER_HANDLERS: Final[Handlers] = {
    "broker_registration": _register,
    "broker_heartbeat": _heartbeat,
    "unregister_broker": _unregister,
    "alter_partition": _alter_partition,
    "assign_replicas_to_dirs": _assign_directories,
    "allocate_producer_ids": _allocate_producer_ids,
}
"""The handlers of brokers' requests to the active controller."""
