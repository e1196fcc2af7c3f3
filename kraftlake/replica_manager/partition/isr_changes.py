"""Proposals of another ISR to the controller, and its answers. Source: kafka.cluster.Partition.

`maybe_expand` and `maybe_shrink` call the controller, and must be called without the partition's lock.
"""

from __future__ import annotations

from kraftlake.delta.topics.local_replica_changes import TopicIdPartition
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.replica_manager.controller_channel import AlterPartitionAnswer, BrokerState, LeaderAndIsr
from kraftlake.replica_manager.partition.partition import Partition
from kraftlake.replica_manager.partition.partition_state import (
    CommittedIsr,
    PendingExpandIsr,
    PendingIsrChange,
    PendingShrinkIsr,
)
from kraftlake.replica_manager.partition.replica import NO_BROKER_EPOCH, Replica
from kraftlake.runtime.log import get_logger

_log = get_logger(__name__)

_NOT_APPLIED = (ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA)
"""Errors of a refused proposal with the right partition epoch: return to the committed ISR."""
_WAIT_FOR_METADATA = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.INVALID_UPDATE_VERSION,
    ErrorCode.INVALID_REQUEST,
    ErrorCode.NEW_LEADER_ELECTED,
)
"""Errors that mean outdated metadata on this broker: the proposal stays pending until newer metadata arrives."""


def maybe_expand(partition: Partition, replica: Replica) -> None:
    """Propose to add a follower that has all committed records and has reached this leader epoch."""
    with partition.lock:
        state, id_ = partition.in_sync.state, replica.broker_id
        if not isinstance(state, CommittedIsr) or not _may_join(partition, replica):
            return
        pending = PendingExpandIsr(
            new_in_sync_replica=id_, sent=_proposal(partition, state.isr | {id_}), last_committed=state
        )
        partition.in_sync.state, partition.in_sync.may_be_applied = pending, True
    _submit(partition, pending)


def _may_join(partition: Partition, replica: Replica) -> bool:
    log, epoch_start = partition.leader_log, partition.leader_epoch_start_offset
    if log is None or epoch_start is None or replica.broker_id in partition.in_sync.state.isr:
        return False
    end = replica.state.log_end_offset
    return end >= log.high_watermark and end >= epoch_start and partition.in_sync.is_isr_eligible(replica.broker_id)


def maybe_shrink(partition: Partition) -> None:
    """Propose to remove the followers that were not caught up within `replica.lag.time.max.ms`."""
    with partition.lock:
        state, out_of_sync = partition.in_sync.state, _out_of_sync(partition)
        if not isinstance(state, CommittedIsr) or not out_of_sync:
            return
        pending = PendingShrinkIsr(
            out_of_sync_replicas=out_of_sync, sent=_proposal(partition, state.isr - out_of_sync), last_committed=state
        )
        partition.in_sync.state, partition.in_sync.may_be_applied = pending, True
    _submit(partition, pending)


def _out_of_sync(partition: Partition) -> frozenset[int]:
    """The ISR members that lag; none while a proposal is in flight, or if this broker does not lead."""
    log = partition.leader_log
    if partition.in_sync.state.is_inflight or log is None:
        return frozenset()
    context = partition.context
    now, max_lag, end = context.clock.milliseconds(), context.config.replica_lag_time_max_ms, log.log_end_offset
    followers = partition.in_sync.state.isr - {context.broker_id}
    return frozenset(id_ for id_ in followers if not _is_caught_up(partition, id_, end, now, max_lag))


def _is_caught_up(partition: Partition, broker_id: int, end: int, now_ms: int, max_lag_ms: int) -> bool:
    replica = partition.in_sync.remote_replicas.get(broker_id)
    return replica is not None and replica.state.is_caught_up(end, now_ms, max_lag_ms)


def _proposal(partition: Partition, isr: frozenset[int]) -> LeaderAndIsr:
    context = partition.context
    states: list[BrokerState] = []
    for id_ in sorted(isr):
        if id_ == context.broker_id:
            epoch: int | None = context.broker_epoch()
        else:
            replica = partition.in_sync.remote_replicas.get(id_)
            epoch = None if replica is None else replica.state.broker_epoch
        # a member without a fetch in this epoch is in the ISR already: the controller watches it
        states.append(BrokerState(id_, NO_BROKER_EPOCH if epoch is None else epoch))
    return LeaderAndIsr(
        leader=context.broker_id,
        leader_epoch=partition.leader_epoch,
        isr=tuple(states),
        leader_recovery_state=partition.in_sync.state.leader_recovery_state,
        partition_epoch=partition.partition_epoch,
    )


def _submit(partition: Partition, pending: PendingIsrChange) -> None:
    partition.context.alter_partition_manager.submit(
        TopicIdPartition(partition.topic_id, partition.topic_partition),
        pending.sent,
        lambda answer: _answered(partition, pending, answer),
    )


def _answered(partition: Partition, pending: PendingIsrChange, answer: AlterPartitionAnswer) -> None:
    moved = retry = False
    with partition.lock:
        if partition.in_sync.state is not pending:
            return  # metadata has replaced the proposal, so the answer is outdated
        if isinstance(answer, LeaderAndIsr):
            moved = _committed(partition, pending, answer)
        else:
            retry = _refused(partition, pending, answer)
    if moved:
        partition.complete_delayed_operations()
    if retry:
        _submit(partition, pending)


def _committed(partition: Partition, pending: PendingIsrChange, answer: LeaderAndIsr) -> bool:
    metrics = partition.context.metrics
    if answer.leader_epoch != partition.leader_epoch or answer.partition_epoch < partition.partition_epoch:
        metrics.failed_isr_updates += 1
        return False
    partition.in_sync.state = CommittedIsr(isr=answer.isr_ids, leader_recovery_state=answer.leader_recovery_state)
    partition.in_sync.may_be_applied = False
    partition.partition_epoch = answer.partition_epoch
    if isinstance(pending, PendingExpandIsr):
        metrics.isr_expands += 1
    else:
        metrics.isr_shrinks += 1
    log = partition.leader_log
    return log is not None and partition.in_sync.maybe_increment_high_watermark(
        log, partition.context.clock.milliseconds()
    )


def _refused(partition: Partition, pending: PendingIsrChange, error: ErrorCode) -> bool:
    """Handle a refusal; returns whether the proposal has to be sent again.

    A refusal because of an epoch or an unknown topic may answer a repeated request whose first copy was applied. In
    any case, metadata of a later partition epoch or the deletion of the partition follows.
    """
    partition.context.metrics.failed_isr_updates += 1
    if error in _NOT_APPLIED:
        partition.in_sync.state, partition.in_sync.may_be_applied = pending.last_committed, False
        return False
    if error in _WAIT_FOR_METADATA:
        # with this error the controller refuses an ISR of the right epoch, whose metadata may be still to come
        partition.in_sync.may_be_applied = error is not ErrorCode.INVALID_REQUEST
        return False
    _log.warning("alter_partition_retried", partition=str(partition.topic_partition), error=error.name)
    return True
