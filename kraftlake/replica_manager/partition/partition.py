"""A replica that this broker hosts: its role, epochs and logs."""

from __future__ import annotations

from collections.abc import Iterator
from threading import RLock
from typing import TypeAlias

import attrs

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.image.topics.directory_id import UNASSIGNED
from kraftlake.image.topics.partition_registration import LeaderRecoveryState, PartitionRegistration
from kraftlake.records.uuid import Uuid
from kraftlake.replica_manager.broker_context import BrokerContext
from kraftlake.replica_manager.errors import NotLeaderOrFollowerError
from kraftlake.replica_manager.logs.partition_log import PartitionLog
from kraftlake.replica_manager.partition.in_sync_replicas import InSyncReplicas
from kraftlake.replica_manager.partition.replica import Replica
from kraftlake.replica_manager.transitions import TransitionKind
from kraftlake.runtime.log import get_logger

_log = get_logger(__name__)


@attrs.define(eq=False, repr=False, weakref_slot=False)
class Partition:
    """A partition on this broker, as leader or follower. Source: kafka.cluster.Partition.

    `leader_id` is None before the first metadata, and −1 for a partition without a leader.
    `leader_epoch_start_offset` is the log end offset when this broker became leader, None on followers. `log` is None
    before its creation, and after the partition is deleted or its log directory has failed; `future_log` is the copy in
    the directory that the replica moves to. `lock` may be taken while the replica manager's lock is held, never the
    other way round; delayed operations are completed and the controller is called without `lock`.
    """

    topic_partition: TopicPartition
    topic_id: Uuid
    context: BrokerContext
    lock: RLock = attrs.field(factory=RLock, init=False)
    leader_id: int | None = attrs.field(default=None, init=False)
    leader_epoch: int = attrs.field(default=-1, init=False)
    partition_epoch: int = attrs.field(default=-1, init=False)
    leader_epoch_start_offset: int | None = attrs.field(default=None, init=False)
    log: PartitionLog | None = attrs.field(default=None, init=False)
    future_log: PartitionLog | None = attrs.field(default=None, init=False)
    in_sync: InSyncReplicas = attrs.field(
        default=attrs.Factory(lambda self: InSyncReplicas(self.context), takes_self=True), init=False
    )

    def __repr__(self) -> str:
        return f"<Partition {self.topic_partition} leader {self.leader_id} epoch {self.leader_epoch}>"

    @property
    def is_leader(self) -> bool:
        """Whether this broker is the leader."""
        return self.leader_id == self.context.broker_id

    @property
    def leader_log(self) -> PartitionLog | None:
        """The log, if this broker is the leader."""
        return self.log if self.leader_id == self.context.broker_id else None

    @property
    def local_log(self) -> PartitionLog:
        """The log. Raises NotLeaderOrFollowerError without one."""
        if self.log is None:
            raise NotLeaderOrFollowerError(f"Broker {self.context.broker_id} has no log of {self.topic_partition}.")
        return self.log

    def replica(self, broker_id: int) -> Replica | None:
        """The leader's state of the replica on another broker; None if that broker has no replica."""
        return self.in_sync.remote_replicas.get(broker_id)

    def logs(self) -> Iterator[PartitionLog]:
        """The existing ones of log and future log."""
        for log in (self.log, self.future_log):
            if log is not None:
                yield log

    def make_leader(self, registration: PartitionRegistration, *, is_new: bool, directory_id: Uuid | None) -> bool:
        """Become the leader, or remain it with a new state; returns whether this broker was not the leader before.

        A new leader epoch starts at the log end offset and resets the leader's state of its followers. The same leader
        epoch changes only the assignment and the ISR. A partition epoch below the known one is ignored. A leader that
        has missed leader epochs, skipped by one delta, forgets its followers' offsets like a new leader: a leader in
        between may have truncated the followers. Kafka 4.4 keeps the offsets, and may acknowledge records that no
        follower has. With `is_new`, the broker did not host the partition before; `directory_id` is its assigned log
        directory. Raises KafkaStorageError.
        """
        now = self.context.clock.milliseconds()
        with self.lock:
            if self._is_stale(registration):
                return False
            is_new_leader = not self.is_leader
            # an unclean leader has nothing to recover from: its first change of the ISR says RECOVERED
            self.in_sync.update(
                registration, is_leader=True, recovery=LeaderRecoveryState.RECOVERED, known_epoch=self.partition_epoch
            )
            self._create_log(is_new=is_new, directory_id=directory_id)
            log = self.local_log
            if registration.leader_epoch > self.leader_epoch:
                start = log.log_end_offset
                keeps_offsets = not is_new_leader and registration.leader_epoch == self.leader_epoch + 1
                log.assign_epoch_start_offset(registration.leader_epoch, start)
                for id_, replica in self.in_sync.remote_replicas.items():
                    replica.reset(
                        now_ms=now,
                        leader_end_offset=start,
                        keeps_offsets=keeps_offsets,
                        in_sync=id_ in registration.isr,
                    )
                self.leader_epoch = registration.leader_epoch
                self.leader_epoch_start_offset = start
            self.partition_epoch = registration.partition_epoch
            self.leader_id = self.context.broker_id
            moved = self.in_sync.maybe_increment_high_watermark(log, now)
        if moved:
            self.complete_delayed_operations()
        return is_new_leader

    def make_follower(self, registration: PartitionRegistration, *, is_new: bool, directory_id: Uuid | None) -> bool:
        """Become a follower; returns whether the leader epoch is new, so that fetching has to restart.

        The log is created even if the partition has no leader. A partition epoch below the known one is ignored. Raises
        KafkaStorageError.
        """
        with self.lock:
            if self._is_stale(registration):
                return False
            is_new_epoch = registration.leader_epoch > self.leader_epoch
            self.leader_id = registration.leader
            self.leader_epoch = registration.leader_epoch
            self.leader_epoch_start_offset = None
            self.partition_epoch = registration.partition_epoch
            self.in_sync.update(
                registration,
                is_leader=False,
                recovery=registration.leader_recovery_state,
                known_epoch=self.partition_epoch,
            )
            self._create_log(is_new=is_new, directory_id=directory_id)
            _ = self.local_log
            return is_new_epoch

    def _is_stale(self, registration: PartitionRegistration) -> bool:
        # an equal epoch is not stale: the answer to an AlterPartition request may arrive before the metadata
        if registration.partition_epoch >= self.partition_epoch:
            return False
        _log.info(
            "stale_partition_epoch_ignored",
            partition=str(self.topic_partition),
            partition_epoch=registration.partition_epoch,
            known=self.partition_epoch,
        )
        self.context.report(
            TransitionKind.STALE_EPOCH_IGNORED,
            self.topic_partition,
            topic_id=self.topic_id,
            after=registration,
            reason=f"partition epoch {registration.partition_epoch} is older than {self.partition_epoch}",
        )
        return True

    def _create_log(self, *, is_new: bool, directory_id: Uuid | None) -> None:
        """Open or create the log, unless its directory may be offline."""
        if self.log is not None:
            return
        logs = self.context.log_manager
        if (
            directory_id is not None
            and directory_id != UNASSIGNED
            and logs.has_offline_directories()
            and not logs.is_directory_online(directory_id)
        ):
            _log.warning(
                "log_not_created", partition=str(self.topic_partition), directory=str(directory_id),
                reason="a log directory is offline, and the log may lie in it",
            )  # fmt: skip
            return
        self.log = self._open_log(is_new=is_new, is_future=False, directory_id=directory_id)

    def _open_log(self, *, is_new: bool, is_future: bool, directory_id: Uuid | None) -> PartitionLog:
        """Open or create a log, with the checkpointed high watermark, or 0, limited to the log's range."""
        logs, name = self.context.log_manager, self.topic_partition
        existed = logs.get_log(name, is_future=is_future) is not None
        log = logs.get_or_create_log(
            name, is_new=is_new, is_future=is_future, topic_id=self.topic_id, target_directory_id=directory_id
        )
        log.update_high_watermark(logs.checkpointed_high_watermark(log.directory, name) or 0)
        if not existed:
            self.context.report(TransitionKind.LOG_CREATED, name, topic_id=self.topic_id, directory=log.directory)
        return log

    def maybe_create_future_log(self, directory: str) -> bool:
        """Start to move the replica to `directory`; False if it is already there or moving there."""
        with self.lock:
            if self.local_log.directory == directory:
                return False
            if self.future_log is not None:
                assert self.future_log.directory == directory, "a replica moves to one directory at a time"
                return False
            self.future_log = self._open_log(is_new=False, is_future=True, directory_id=None)
            return True

    @property
    def is_future_caught_up(self) -> bool:
        """Whether the future log ends where the log ends."""
        log, future = self.log, self.future_log
        return log is not None and future is not None and log.log_end_offset == future.log_end_offset

    def maybe_replace_current_with_future(self) -> bool:
        """Replace the log by a caught-up future log; returns whether it was replaced.

        On a leader the future log gets the start of the leader epoch, which no batch contains if nothing was appended
        in that epoch.
        """
        with self.lock:
            future = self.future_log
            if future is None or not self.is_future_caught_up:
                return False
            if self.leader_epoch_start_offset is not None:
                future.assign_epoch_start_offset(self.leader_epoch, self.leader_epoch_start_offset)
            self.context.log_manager.replace_current_with_future(self.topic_partition)
            self.log = future
            self.remove_future_log(delete=False)
            return True

    def remove_future_log(self, *, delete: bool = True) -> None:
        """End the move of the replica; `delete` the future log, or only forget it."""
        with self.lock:
            self.future_log = None
            if delete:
                self.context.log_manager.delete_future_log(self.topic_partition)

    def delete(self) -> None:
        """Release the logs and the role: the broker no longer hosts the partition. The logs are not deleted."""
        with self.lock:
            self.in_sync.clear()
            self.log = self.future_log = None
            self.leader_id = self.leader_epoch_start_offset = None

    def complete_delayed_operations(self) -> None:
        """Complete requests that waited for the high or low watermark. Not to be called with the lock held."""
        self.context.delayed_operations.check_and_complete_all(self.topic_partition)


@attrs.frozen(weakref_slot=False)
class OfflinePartition:
    """A partition whose log directory has failed; `partition` is the partition that was online before, if any.

    Source: org.apache.kafka.server.HostedPartition.
    """

    partition: Partition | None = None


HostedPartition: TypeAlias = Partition | OfflinePartition
"""A partition that the broker hosts: online, with a usable log, or offline."""
