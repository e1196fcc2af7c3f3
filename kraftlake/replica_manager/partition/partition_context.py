"""What all partitions of a broker share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import attrs

from kraftlake.delta import TopicPartition
from kraftlake.replica_manager.config import ReplicaManagerConfig
from kraftlake.replica_manager.controller_channel import AlterPartitionManager
from kraftlake.replica_manager.logs.log_manager import LogManager
from kraftlake.replica_manager.metadata_view import MetadataView
from kraftlake.replica_manager.replication_metrics import ReplicationMetrics
from kraftlake.replica_manager.transitions import TransitionListener
from kraftlake.runtime.clock import Clock


class DelayedOperations(Protocol):
    """The requests that wait for something to happen to a partition. Never called with a partition's lock held."""

    def check_and_complete_all(self, topic_partition: TopicPartition) -> None:
        """High or low watermark have moved: complete what waited for it (fetch, then produce, then delete records)."""

    def complete_when_not_leader(self, topic_partition: TopicPartition) -> None:
        """The broker leads the partition no longer: nobody is to wait for it until a timeout (produce, then fetch)."""

    def has_delayed_deletes(self) -> bool:
        """Whether a DeleteRecords request waits for any low watermark."""


@attrs.define(kw_only=True)
class PartitionContext:
    """The broker around its partitions: who it is, its clock, logs, metadata, and whom it tells what.

    `broker_epoch` gives the epoch of its registration, −1 while it has none. `listener` is told of transitions, None:
    nobody is.
    """

    broker_id: int
    broker_epoch: Callable[[], int]
    config: ReplicaManagerConfig
    clock: Clock
    log_manager: LogManager
    metadata: MetadataView
    alter_partition_manager: AlterPartitionManager
    delayed_operations: DelayedOperations
    metrics: ReplicationMetrics
    listener: TransitionListener | None = None
