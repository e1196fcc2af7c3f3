"""The assignment and the ISR state of a partition on its leader. Source: org.apache.kafka.server.partition."""

from __future__ import annotations

from typing import TypeAlias

import attrs

from kraftlake.image.topics.partition_registration import LeaderRecoveryState
from kraftlake.replica_manager.controller_channel import LeaderAndIsr


@attrs.frozen(kw_only=True, weakref_slot=False)
class Assignment:
    """The assigned replicas; `adding` and `removing` are those of a reassignment in progress."""

    replicas: tuple[int, ...] = ()
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()

    @property
    def is_reassigning(self) -> bool:
        """Whether a reassignment is in progress."""
        return bool(self.adding or self.removing)

    @property
    def replication_factor(self) -> int:
        """The number of replicas; during a reassignment, the number before it."""
        return len(set(self.replicas) - set(self.adding)) if self.is_reassigning else len(self.replicas)


@attrs.frozen(kw_only=True, weakref_slot=False)
class CommittedIsr:
    """The ISR of the controller, without a proposal in flight."""

    isr: frozenset[int]
    leader_recovery_state: LeaderRecoveryState = LeaderRecoveryState.RECOVERED
    is_inflight = False

    @property
    def maximal_isr(self) -> frozenset[int]:
        """The replicas that the high watermark waits for."""
        return self.isr


@attrs.frozen(kw_only=True, weakref_slot=False, eq=False)
class _PendingIsr:
    """A proposal in flight: the proposed state `sent`, and the controller's ISR at that time, `last_committed`."""

    sent: LeaderAndIsr
    last_committed: CommittedIsr
    is_inflight = True
    leader_recovery_state = LeaderRecoveryState.RECOVERED

    @property
    def isr(self) -> frozenset[int]:
        """The committed ISR."""
        return self.last_committed.isr


@attrs.frozen(kw_only=True, weakref_slot=False, eq=False)
class PendingExpandIsr(_PendingIsr):
    """The proposal to add a follower, which counts at once: waiting for one more replica is safe."""

    new_in_sync_replica: int

    @property
    def maximal_isr(self) -> frozenset[int]:
        """The committed ISR and the follower."""
        return self.last_committed.isr | {self.new_in_sync_replica}


@attrs.frozen(kw_only=True, weakref_slot=False, eq=False)
class PendingShrinkIsr(_PendingIsr):
    """The proposal to remove replicas, which count until the controller agrees, because it may refuse."""

    out_of_sync_replicas: frozenset[int]

    @property
    def maximal_isr(self) -> frozenset[int]:
        """The committed ISR."""
        return self.last_committed.isr


PendingIsrChange: TypeAlias = PendingExpandIsr | PendingShrinkIsr
IsrState: TypeAlias = CommittedIsr | PendingIsrChange

NO_ISR = CommittedIsr(isr=frozenset())
NO_ASSIGNMENT = Assignment()
