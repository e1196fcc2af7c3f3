"""AlterPartition: a leader requests a new ISR. Source: ReplicationControlManager.alterPartition of Kafka 4.4."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from kraftlake.controller.replication.leader_and_isr import change_context, election_of
from kraftlake.controller.replication.partition_change import TargetState, build_partition_change
from kraftlake.controller.result import ControllerResult
from kraftlake.controller.state import ControllerState
from kraftlake.image.topics.partition_registration import NO_LEADER_CHANGE, LeaderRecoveryState, PartitionRegistration
from kraftlake.image.topics.topic_image import TopicImage
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.records.metadata_records import PartitionChangeRecord
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.records.uuid import Uuid

ANY_EPOCH = -1


@attrs.frozen(kw_only=True)
class IsrChange:
    """The request for one partition: the new ISR as pairs of broker id and broker epoch (-1: any)."""

    topic_id: Uuid
    partition_id: int
    leader_epoch: int
    partition_epoch: int
    new_isr: Sequence[tuple[int, int]]
    leader_recovery_state: int = 0


@attrs.frozen(kw_only=True)
class IsrAnswer:
    """The answer for one partition: an error, or the new state of the partition."""

    topic_id: Uuid
    partition_id: int
    error: ErrorCode = ErrorCode.NONE
    partition: PartitionRegistration | None = None


def alter_partition(
    state: ControllerState, broker_id: int, broker_epoch: int, changes: Sequence[IsrChange]
) -> ControllerResult[list[IsrAnswer]]:
    """Change ISRs at the request of their leader, a broker with that broker epoch.

    A request with an old epoch or from another broker is refused, as is a replica whose broker is fenced, shutting down
    or in another broker epoch. NEW_LEADER_ELECTED means that the change completed a reassignment and moved the leader.
    """
    state.check_broker_epoch(broker_id, broker_epoch)
    records: list[ApiMessageAndVersion] = []
    answers = []
    for change in changes:
        topic = None if change.topic_id == Uuid.ZERO else state.image.topics.get_topic_by_id(change.topic_id)
        if topic is None:
            answers.append(_refused(change, ErrorCode.UNKNOWN_TOPIC_ID))
            continue
        partition = topic.partitions.get(change.partition_id)
        error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if partition is not None:
            error = _problem(state, broker_id, partition, change)
        if partition is None or error is not ErrorCode.NONE:
            answers.append(_refused(change, error))
            continue
        record, answer = _alter(state, broker_id, topic, partition, change)
        answers.append(answer)
        if record is not None:
            records.append(record)
    return ControllerResult(records, answers)


def _refused(change: IsrChange, error: ErrorCode) -> IsrAnswer:
    return IsrAnswer(topic_id=change.topic_id, partition_id=change.partition_id, error=error)


def _alter(
    state: ControllerState, broker_id: int, topic: TopicImage, partition: PartitionRegistration, change: IsrChange
) -> tuple[ApiMessageAndVersion | None, IsrAnswer]:
    target = TargetState(
        isr=tuple(replica for replica, _ in change.new_isr),
        recovery=LeaderRecoveryState.of(change.leader_recovery_state),
        election=election_of(state, topic.name),
    )
    context = change_context(state, topic, change.partition_id, partition)
    record = build_partition_change(partition, context, target)
    if record is not None:
        assert isinstance(record.message, PartitionChangeRecord)
        partition = partition.merge(record.message)
        if record.message.leader not in (broker_id, NO_LEADER_CHANGE):
            return record, _refused(change, ErrorCode.NEW_LEADER_ELECTED)
    return record, IsrAnswer(topic_id=change.topic_id, partition_id=change.partition_id, partition=partition)


def _problem(state: ControllerState, broker_id: int, partition: PartitionRegistration, change: IsrChange) -> ErrorCode:
    if change.leader_epoch > partition.leader_epoch or change.partition_epoch > partition.partition_epoch:
        return ErrorCode.NOT_CONTROLLER  # the leader knows a later controller
    if change.leader_epoch < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if broker_id != partition.leader:
        return ErrorCode.INVALID_REQUEST
    if change.partition_epoch < partition.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    isr = [replica for replica, _ in change.new_isr]
    is_valid = len(set(isr)) == len(isr) and set(isr) <= set(partition.replicas) and partition.leader in isr
    if not is_valid or change.leader_recovery_state not in (0, 1):
        return ErrorCode.INVALID_REQUEST
    if change.leader_recovery_state == LeaderRecoveryState.RECOVERING and (
        len(isr) > 1 or partition.leader_recovery_state is LeaderRecoveryState.RECOVERED
    ):
        return ErrorCode.INVALID_REQUEST
    if all(_is_eligible(state, replica, epoch) for replica, epoch in change.new_isr):
        return ErrorCode.NONE
    return ErrorCode.INELIGIBLE_REPLICA


def _is_eligible(state: ControllerState, replica: int, epoch: int) -> bool:
    registration = state.registration(replica)
    return registration is not None and state.is_active(replica) and epoch in (ANY_EPOCH, registration.epoch)
