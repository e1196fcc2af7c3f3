"""The followers of a partition that this broker leads, the ISR, and the high watermark that follows from them."""

from __future__ import annotations

import attrs

from kraftlake.image.topics.partition_registration import LeaderRecoveryState, PartitionRegistration
from kraftlake.replica_manager.broker_context import BrokerContext
from kraftlake.replica_manager.logs.partition_log import PartitionLog
from kraftlake.replica_manager.partition.partition_state import (
    NO_ASSIGNMENT,
    NO_ISR,
    Assignment,
    CommittedIsr,
    IsrState,
)
from kraftlake.replica_manager.partition.replica import NO_BROKER_EPOCH, Replica


@attrs.define(eq=False, repr=False, weakref_slot=False)
class InSyncReplicas:
    """The leader's part of a partition: assignment, followers, ISR. Empty on followers.

    The methods need the partition's lock; `isr_changes` has the proposals of another ISR. Source:
    kafka.cluster.Partition.
    """

    context: BrokerContext
    assignment: Assignment = NO_ASSIGNMENT
    state: IsrState = NO_ISR
    remote_replicas: dict[int, Replica] = attrs.field(factory=dict)
    may_be_applied: bool = False
    """Whether the controller may have applied the proposal in `state`, or may still apply it."""

    def clear(self) -> None:
        """Clear the state: the partition is deleted or offline."""
        self.assignment, self.state, self.remote_replicas = NO_ASSIGNMENT, NO_ISR, {}
        self.may_be_applied = False

    def update(
        self,
        registration: PartitionRegistration,
        *,
        is_leader: bool,
        recovery: LeaderRecoveryState,
        known_epoch: int,
    ) -> None:
        """Take the assignment and the ISR from metadata, which replaces a pending proposal.

        A proposal that may be applied stays pending if the metadata has the partition epoch on which the proposal was
        based (known from the answer to the previous proposal). Kafka 4.4 drops the proposal then: until the next
        metadata, the high watermark does not wait for a follower that the controller may have added to the ISR, and
        records committed meanwhile are lost if that follower is elected.

        A follower keeps only the assignment; its ISR is empty. `known_epoch` is the partition epoch until now.
        """
        if is_leader:
            local, known = self.context.broker_id, self.remote_replicas
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
        if is_leader and registration.partition_epoch == known_epoch and self.may_be_applied:
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

    def is_under_min_isr(self, log: PartitionLog) -> bool:
        """Whether the ISR is below the minimum."""
        return len(self.state.isr) < self.effective_min_isr(log)

    def maybe_increment_high_watermark(self, log: PartitionLog, now_ms: int) -> bool:
        """Raise the high watermark to the lowest end of the replicas that count; returns whether it moved.

        The maximal ISR counts, and caught-up followers that may join the ISR: otherwise a follower could never catch up
        with a leader that is alone in the ISR. The high watermark does not move while the ISR is below its minimum. Due
        whenever the ISR or the end of a replica has changed.
        """
        if self.is_under_min_isr(log):
            return False
        end = lowest = log.log_end_offset
        maximal = self.state.maximal_isr
        max_lag = self.context.config.replica_lag_time_max_ms
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
        metadata = self.context.metadata
        if metadata.is_broker_fenced(broker_id) or metadata.is_broker_shutting_down(broker_id):
            return False
        fetched_as, registered_as = replica.state.broker_epoch, metadata.alive_broker_epoch(broker_id)
        if fetched_as is None or registered_as is None:
            return False
        return fetched_as in (NO_BROKER_EPOCH, registered_as)
