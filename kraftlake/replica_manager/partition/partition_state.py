"""The assignment and the ISR of a partition as its leader sees them. Source: org.apache.kafka.server.partition."""

from __future__ import annotations

from typing import TypeAlias

import attrs

from kraftlake.image import LeaderRecoveryState
from kraftlake.replica_manager.controller_channel import LeaderAndIsr


@attrs.frozen(kw_only=True, weakref_slot=False)
class Assignment:
    """Who is to have a replica; `adding` and `removing` are those of a reassignment that is under way."""

    replicas: tuple[int, ...] = ()
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()

    @property
    def is_reassigning(self) -> bool:
        """Whether a reassignment is under way."""
        return bool(self.adding or self.removing)

    @property
    def replication_factor(self) -> int:
        """How many replicas there are to be; during a reassignment those of before."""
        return len(set(self.replicas) - set(self.adding)) if self.is_reassigning else len(self.replicas)


@attrs.frozen(kw_only=True, weakref_slot=False)
class CommittedIsr:
    """The ISR that the controller knows, and no proposal is on its way."""

    isr: frozenset[int]
    leader_recovery_state: LeaderRecoveryState = LeaderRecoveryState.RECOVERED
    is_inflight = False

    @property
    def maximal_isr(self) -> frozenset[int]:
        """What the high watermark has to wait for."""
        return self.isr


@attrs.frozen(kw_only=True, weakref_slot=False, eq=False)
class _PendingIsr:
    """A proposal is on its way: it was `sent` when `last_committed` was what the controller knew."""

    sent: LeaderAndIsr
    last_committed: CommittedIsr
    is_inflight = True
    leader_recovery_state = LeaderRecoveryState.RECOVERED

    @property
    def isr(self) -> frozenset[int]:
        """The ISR that is committed."""
        return self.last_committed.isr


@attrs.frozen(kw_only=True, weakref_slot=False, eq=False)
class PendingExpandIsr(_PendingIsr):
    """A follower was proposed. It counts at once: waiting for one more replica can do no harm."""

    new_in_sync_replica: int

    @property
    def maximal_isr(self) -> frozenset[int]:
        """The committed ISR and the follower."""
        return self.last_committed.isr | {self.new_in_sync_replica}


@attrs.frozen(kw_only=True, weakref_slot=False, eq=False)
class PendingShrinkIsr(_PendingIsr):
    """Replicas were proposed to leave. They count until the controller agrees: it may not."""

    out_of_sync_replicas: frozenset[int]

    @property
    def maximal_isr(self) -> frozenset[int]:
        """The committed ISR."""
        return self.last_committed.isr


PendingIsrChange: TypeAlias = PendingExpandIsr | PendingShrinkIsr
IsrState: TypeAlias = CommittedIsr | PendingIsrChange

NO_ISR = CommittedIsr(isr=frozenset())
NO_ASSIGNMENT = Assignment()
