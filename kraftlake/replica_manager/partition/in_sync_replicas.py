"""The followers of a partition that this broker leads, the ISR, and the high watermark that follows from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from kraftlake.delta.topics.local_replica_changes import TopicIdPartition
from kraftlake.image.topics.partition_registration import LeaderRecoveryState, PartitionRegistration
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.replica_manager.controller_channel import AlterPartitionAnswer, BrokerState, LeaderAndIsr
from kraftlake.replica_manager.logs.partition_log import PartitionLog
from kraftlake.replica_manager.partition.partition_state import (
    NO_ASSIGNMENT,
    NO_ISR,
    Assignment,
    CommittedIsr,
    IsrState,
    PendingExpandIsr,
    PendingIsrChange,
    PendingShrinkIsr,
)
from kraftlake.replica_manager.partition.replica import NO_BROKER_EPOCH, Replica
from kraftlake.runtime.log import get_logger

if TYPE_CHECKING:
    from kraftlake.replica_manager.partition.partition import Partition

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


@attrs.define(eq=False, repr=False, weakref_slot=False)
class InSyncReplicas:
    """The leader's part of a partition: assignment, followers, ISR. Empty on followers.

    The methods need the partition's lock, except `maybe_expand` and `maybe_shrink`, which call the controller and must
    be called without it. Source: kafka.cluster.Partition.
    """

    partition: Partition
    assignment: Assignment = NO_ASSIGNMENT
    state: IsrState = NO_ISR
    remote_replicas: dict[int, Replica] = attrs.field(factory=dict)
    may_be_applied: bool = False
    """Whether the controller may have applied the proposal in `state`, or may still apply it."""

    def clear(self) -> None:
        """Clear the state: the partition is deleted or offline."""
        self.assignment, self.state, self.remote_replicas = NO_ASSIGNMENT, NO_ISR, {}
        self.may_be_applied = False

    def update(self, registration: PartitionRegistration, *, is_leader: bool, recovery: LeaderRecoveryState) -> None:
        """Take the assignment and the ISR from metadata, which replaces a pending proposal.

        A proposal that may be applied stays pending if the metadata has the partition epoch on which the proposal was
        based (known from the answer to the previous proposal). Kafka 4.4 drops the proposal then: until the next
        metadata, the high watermark does not wait for a follower that the controller may have added to the ISR, and
        records committed meanwhile are lost if that follower is elected.

        A follower keeps only the assignment; its ISR is empty.
        """
        if is_leader:
            local, known = self.partition.context.broker_id, self.remote_replicas
            self.remote_replicas = {
                id_: known.get(id_) or Replica(id_) for id_ in registration.replicas if id_ != local
            }
        else:
            self.remote_replicas = {}
        self.assignment = Assignment(
            replicas=registration.replicas,
            adding=registration.adding_replicas,
            removing=registration.removing_replicas,
        )
        if is_leader and registration.partition_epoch == self.partition.partition_epoch and self.may_be_applied:
            return
        self.may_be_applied = False
        for id_ in self.state.isr - frozenset(registration.isr):
            if id_ in self.remote_replicas:
                self.remote_replicas[id_].left_isr()
        self.state = CommittedIsr(
            isr=frozenset(registration.isr) if is_leader else frozenset(), leader_recovery_state=recovery
        )

    def effective_min_isr(self, log: PartitionLog) -> int:
        """min.insync.replicas, limited to the number of replicas."""
        return min(log.config.min_insync_replicas, len(self.remote_replicas) + 1)

    @property
    def is_under_min_isr(self) -> bool:
        """Whether this broker leads the partition with an ISR below the minimum."""
        log = self.partition.leader_log
        return log is not None and len(self.state.isr) < self.effective_min_isr(log)

    @property
    def is_at_min_isr(self) -> bool:
        """Whether this broker leads the partition with an ISR of the minimal size."""
        log = self.partition.leader_log
        return log is not None and len(self.state.isr) == self.effective_min_isr(log)

    @property
    def is_under_replicated(self) -> bool:
        """Whether this broker leads the partition and a replica is not in the ISR."""
        return self.partition.is_leader and self.assignment.replication_factor > len(self.state.isr)

    def maybe_increment_high_watermark(self, log: PartitionLog, now_ms: int) -> bool:
        """Raise the high watermark to the lowest end of the replicas that count; returns whether it moved.

        The maximal ISR counts, and caught-up followers that may join the ISR: otherwise a follower could never catch up
        with a leader that is alone in the ISR. The high watermark does not move while the ISR is below its minimum. Due
        whenever the ISR or the end of a replica has changed.
        """
        if self.is_under_min_isr:
            return False
        end = lowest = log.log_end_offset
        maximal = self.state.maximal_isr
        max_lag = self.partition.context.config.replica_lag_time_max_ms
        for id_, replica in self.remote_replicas.items():
            state = replica.state
            if state.log_end_offset < lowest and (
                id_ in maximal or (state.is_caught_up(end, now_ms, max_lag) and self.is_isr_eligible(id_))
            ):
                lowest = state.log_end_offset
        return lowest >= 0 and log.maybe_increment_high_watermark(lowest) is not None

    def is_isr_eligible(self, broker_id: int) -> bool:
        """Whether a follower may be in the ISR.

        The broker must be neither fenced nor shutting down, and its fetches must have the registered broker epoch or
        none.
        """
        replica = self.remote_replicas.get(broker_id)
        if replica is None:
            return False
        metadata = self.partition.context.metadata
        if metadata.is_broker_fenced(broker_id) or metadata.is_broker_shutting_down(broker_id):
            return False
        fetched_as, registered_as = replica.state.broker_epoch, metadata.alive_broker_epoch(broker_id)
        if fetched_as is None or registered_as is None:
            return False
        return fetched_as in (NO_BROKER_EPOCH, registered_as)

    def maybe_expand(self, replica: Replica) -> None:
        """Propose to add a follower that has all committed records and has reached this leader epoch."""
        with self.partition.lock:
            state, id_ = self.state, replica.broker_id
            if not isinstance(state, CommittedIsr) or not self._may_join(replica):
                return
            pending = PendingExpandIsr(
                new_in_sync_replica=id_, sent=self._proposal(state.isr | {id_}), last_committed=state
            )
            self.state, self.may_be_applied = pending, True
        self._submit(pending)

    def _may_join(self, replica: Replica) -> bool:
        log, epoch_start = self.partition.leader_log, self.partition.leader_epoch_start_offset
        if log is None or epoch_start is None or replica.broker_id in self.state.isr:
            return False
        end = replica.state.log_end_offset
        return end >= log.high_watermark and end >= epoch_start and self.is_isr_eligible(replica.broker_id)

    def maybe_shrink(self) -> None:
        """Propose to remove the followers that were not caught up within `replica.lag.time.max.ms`."""
        with self.partition.lock:
            state, out_of_sync = self.state, self.out_of_sync_replicas()
            if not isinstance(state, CommittedIsr) or not out_of_sync:
                return
            pending = PendingShrinkIsr(
                out_of_sync_replicas=out_of_sync, sent=self._proposal(state.isr - out_of_sync), last_committed=state
            )
            self.state, self.may_be_applied = pending, True
        self._submit(pending)

    def out_of_sync_replicas(self) -> frozenset[int]:
        """The ISR members that lag; none while a proposal is in flight, or if this broker does not lead."""
        log = self.partition.leader_log
        if self.state.is_inflight or log is None:
            return frozenset()
        context = self.partition.context
        now, max_lag, end = context.clock.milliseconds(), context.config.replica_lag_time_max_ms, log.log_end_offset
        followers = self.state.isr - {context.broker_id}
        return frozenset(id_ for id_ in followers if not self._is_caught_up(id_, end, now, max_lag))

    def _is_caught_up(self, broker_id: int, end: int, now_ms: int, max_lag_ms: int) -> bool:
        replica = self.remote_replicas.get(broker_id)
        return replica is not None and replica.state.is_caught_up(end, now_ms, max_lag_ms)

    def _proposal(self, isr: frozenset[int]) -> LeaderAndIsr:
        context = self.partition.context
        states: list[BrokerState] = []
        for id_ in sorted(isr):
            if id_ == context.broker_id:
                epoch: int | None = context.broker_epoch()
            else:
                replica = self.remote_replicas.get(id_)
                epoch = None if replica is None else replica.state.broker_epoch
            # a member without a fetch in this epoch is in the ISR already: the controller watches it
            states.append(BrokerState(id_, NO_BROKER_EPOCH if epoch is None else epoch))
        return LeaderAndIsr(
            leader=context.broker_id,
            leader_epoch=self.partition.leader_epoch,
            isr=tuple(states),
            leader_recovery_state=self.state.leader_recovery_state,
            partition_epoch=self.partition.partition_epoch,
        )

    def _submit(self, pending: PendingIsrChange) -> None:
        partition = self.partition
        partition.context.alter_partition_manager.submit(
            TopicIdPartition(partition.topic_id, partition.topic_partition),
            pending.sent,
            lambda answer: self._answered(pending, answer),
        )

    def _answered(self, pending: PendingIsrChange, answer: AlterPartitionAnswer) -> None:
        moved = retry = False
        with self.partition.lock:
            if self.state is not pending:
                return  # metadata has replaced the proposal, so the answer is outdated
            if isinstance(answer, LeaderAndIsr):
                moved = self._committed(pending, answer)
            else:
                retry = self._refused(pending, answer)
        if moved:
            self.partition.complete_delayed_operations()
        if retry:
            self._submit(pending)

    def _committed(self, pending: PendingIsrChange, answer: LeaderAndIsr) -> bool:
        partition, metrics = self.partition, self.partition.context.metrics
        if answer.leader_epoch != partition.leader_epoch or answer.partition_epoch < partition.partition_epoch:
            metrics.failed_isr_updates += 1
            return False
        self.state = CommittedIsr(isr=answer.isr_ids, leader_recovery_state=answer.leader_recovery_state)
        self.may_be_applied = False
        partition.partition_epoch = answer.partition_epoch
        if isinstance(pending, PendingExpandIsr):
            metrics.isr_expands += 1
        else:
            metrics.isr_shrinks += 1
        log = partition.leader_log
        return log is not None and self.maybe_increment_high_watermark(log, partition.context.clock.milliseconds())

    def _refused(self, pending: PendingIsrChange, error: ErrorCode) -> bool:
        """Handle a refusal; returns whether the proposal has to be sent again.

        A refusal because of an epoch or an unknown topic may answer a repeated request whose first copy was applied. In
        any case, metadata of a later partition epoch or the deletion of the partition follows.
        """
        self.partition.context.metrics.failed_isr_updates += 1
        if error in _NOT_APPLIED:
            self.state, self.may_be_applied = pending.last_committed, False
            return False
        if error in _WAIT_FOR_METADATA:
            # with this error the controller refuses an ISR of the right epoch, whose metadata may be still to come
            self.may_be_applied = error is not ErrorCode.INVALID_REQUEST
            return False
        _log.warning("alter_partition_retried", partition=str(self.partition.topic_partition), error=error.name)
        return True
