"""The reports of a broker's partitions to the controller, and its answers; over a network or in one process."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeAlias

import attrs

from kraftlake.delta.topics.local_replica_changes import TopicIdPartition
from kraftlake.image.topics.partition_registration import LeaderRecoveryState
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.records.uuid import Uuid


class BrokerState(NamedTuple):
    """A replica in an ISR and the epoch of its broker, −1 if the epoch is unknown (KIP-903)."""

    broker_id: int
    broker_epoch: int


@attrs.frozen(kw_only=True)
class LeaderAndIsr:
    """A partition's leader and ISR, as proposed by a leader or decided by the controller."""

    leader: int
    leader_epoch: int
    isr: tuple[BrokerState, ...]
    leader_recovery_state: LeaderRecoveryState = LeaderRecoveryState.RECOVERED
    partition_epoch: int

    @property
    def isr_ids(self) -> frozenset[int]:
        """The broker ids of the ISR."""
        return frozenset(state.broker_id for state in self.isr)


AlterPartitionAnswer: TypeAlias = LeaderAndIsr | ErrorCode
"""The state after a successful change, or the error."""


class AlterPartitionManager(Protocol):
    """Sends a leader's proposals to the controller.

    Source: org.apache.kafka.server.partition.AlterPartitionManager.
    """

    def submit(
        self,
        partition: TopicIdPartition,
        leader_and_isr: LeaderAndIsr,
        on_answer: Callable[[AlterPartitionAnswer], None],
    ) -> None:
        """Propose a state. Calls `on_answer` at most once, and never for a proposal that was lost with its channel.

        Answers OPERATION_NOT_ATTEMPTED while an earlier proposal for the partition is not answered.
        """


class DirectoryEventHandler(Protocol):
    """Reports the log directories of replicas to the controller (KIP-858).

    Source: org.apache.kafka.server.common.DirectoryEventHandler.
    """

    def handle_assignment(
        self,
        partition: TopicIdPartition,
        directory_id: Uuid,
        reason: str,
        on_accepted: Callable[[], None] | None = None,
    ) -> None:
        """Report the log directory of a replica (AssignReplicasToDirs).

        Calls `on_accepted` when the controller has accepted it, even if another directory was reported meanwhile.
        """

    def handle_failure(self, directory_id: Uuid) -> None:
        """Report a failed directory, which the controller has to treat as offline."""
