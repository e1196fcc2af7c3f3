"""What a broker's partitions tell the controller, and what it answers; over a network or within one process."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeAlias

import attrs

from kraftlake.delta import TopicIdPartition
from kraftlake.image import LeaderRecoveryState
from kraftlake.records.uuid import Uuid
from kraftlake.replica_manager.errors import ErrorCode


class BrokerState(NamedTuple):
    """A replica in an ISR and the epoch of its broker, −1 where it is not known (KIP-903)."""

    broker_id: int
    broker_epoch: int


@attrs.frozen(kw_only=True)
class LeaderAndIsr:
    """A partition's leader and ISR, as a leader proposes them or the controller has made them so."""

    leader: int
    leader_epoch: int
    isr: tuple[BrokerState, ...]
    leader_recovery_state: LeaderRecoveryState = LeaderRecoveryState.RECOVERED
    partition_epoch: int

    @property
    def isr_ids(self) -> frozenset[int]:
        """The brokers of the ISR."""
        return frozenset(state.broker_id for state in self.isr)


AlterPartitionAnswer: TypeAlias = LeaderAndIsr | ErrorCode
"""The state after a successful change, or why there was none."""


class AlterPartitionManager(Protocol):
    """Brings a leader's proposals to the controller.

    Source: org.apache.kafka.server.partition.AlterPartitionManager.
    """

    def submit(
        self,
        partition: TopicIdPartition,
        leader_and_isr: LeaderAndIsr,
        on_answer: Callable[[AlterPartitionAnswer], None],
    ) -> None:
        """Propose a state. `on_answer` is called once, now or later; never for what was lost with its channel.

        OPERATION_NOT_ATTEMPTED when an earlier proposal for the partition has not been answered.
        """


class DirectoryEventHandler(Protocol):
    """Tells the controller where replicas lie (KIP-858).

    Source: org.apache.kafka.server.common.DirectoryEventHandler.
    """

    def handle_assignment(
        self,
        partition: TopicIdPartition,
        directory_id: Uuid,
        reason: str,
        on_accepted: Callable[[], None] | None = None,
    ) -> None:
        """The replica lies in that directory: the controller is to note it (AssignReplicasToDirs).

        `on_accepted` is called, now or later, when it has, even if another directory was named meanwhile.
        """

    def handle_failure(self, directory_id: Uuid) -> None:
        """The directory has failed: the controller is to take it for offline."""
