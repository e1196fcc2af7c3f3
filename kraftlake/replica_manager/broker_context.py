"""The context shared by a broker's replica manager, partitions and fetchers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import attrs

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.image.topics.partition_registration import PartitionRegistration
from kraftlake.records.uuid import Uuid
from kraftlake.replica_manager.config import ReplicaManagerConfig
from kraftlake.replica_manager.controller_channel import AlterPartitionManager, DirectoryEventHandler
from kraftlake.replica_manager.logs.log_manager import LogManager
from kraftlake.replica_manager.logs.partition_log import PartitionLog
from kraftlake.replica_manager.metadata_view import MetadataView
from kraftlake.replica_manager.transitions import Transition, TransitionKind, TransitionListener
from kraftlake.runtime.clock import Clock


class DelayedOperations(Protocol):
    """The requests that wait for an event of a partition.

    The methods are never called while a partition's lock is held.
    """

    def check_and_complete_all(self, topic_partition: TopicPartition) -> None:
        """Complete the requests that waited for a higher high or low watermark: fetch, produce, delete records."""

    def complete_when_not_leader(self, topic_partition: TopicPartition) -> None:
        """Complete the requests that wait for a partition that this broker no longer leads: produce, then fetch."""


@attrs.define(kw_only=True)
class ReplicationMetrics:
    """Counters since the start; a rate is the difference of two readings.

    Source: the metrics IsrExpandsPerSec, IsrShrinksPerSec and FailedIsrUpdatesPerSec of kafka.server.ReplicaManager.
    """

    isr_expands: int = 0
    isr_shrinks: int = 0
    failed_isr_updates: int = 0


@attrs.frozen(kw_only=True, eq=False, repr=False)
class BrokerContext:
    """The broker's id, its clock, its logs, its view of the metadata, and the parties that it reports to.

    `metadata` answers from the newest image, which is set before `apply_delta` is called.
    `broker_epoch` returns the epoch of the broker's registration, −1 without one. `listener` receives every
    transition.
    """

    broker_id: int
    config: ReplicaManagerConfig = attrs.field(factory=ReplicaManagerConfig)
    clock: Clock
    log_manager: LogManager[PartitionLog]
    metadata: MetadataView
    alter_partition_manager: AlterPartitionManager
    directory_events: DirectoryEventHandler
    delayed_operations: DelayedOperations
    broker_epoch: Callable[[], int] = lambda: -1
    listener: TransitionListener | None = None
    metrics: ReplicationMetrics = attrs.field(factory=ReplicationMetrics)

    def report(
        self,
        kind: TransitionKind,
        partition: TopicPartition | None = None,
        *,
        topic_id: Uuid | None = None,
        after: PartitionRegistration | None = None,
        directory: str | None = None,
        reason: str = "",
    ) -> None:
        """Report a transition to the listener, if any."""
        if self.listener is not None:
            self.listener(
                Transition(
                    kind=kind, partition=partition, topic_id=topic_id, after=after, directory=directory, reason=reason
                )
            )
