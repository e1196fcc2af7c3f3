"""A replica that this broker hosts: its role, epochs and logs."""

from __future__ import annotations

from threading import RLock

from kraftlake.delta import TopicPartition
from kraftlake.image import LeaderRecoveryState, PartitionRegistration
from kraftlake.image.topics.directory_id import UNASSIGNED
from kraftlake.records.uuid import Uuid
from kraftlake.replica_manager.errors import NotLeaderOrFollowerError
from kraftlake.replica_manager.logs.partition_log import PartitionLog
from kraftlake.replica_manager.partition.in_sync_replicas import InSyncReplicas
from kraftlake.replica_manager.partition.partition_context import PartitionContext
from kraftlake.replica_manager.partition.replica import Replica
from kraftlake.replica_manager.transitions import Transition, TransitionKind
from kraftlake.runtime.log import get_logger

_log = get_logger(__name__)


class Partition:
    """A partition on this broker, as leader or follower.

    `leader_id` is None before the first change of metadata, and −1 for a partition without a leader.
    `leader_epoch_start_offset` is where this broker's leadership began, None on followers. `log` is None before it is
    made, and after the partition is deleted or its directory has failed; `future_log` is the copy in the directory that
    the replica is being moved to. `lock` may be taken while holding the replica manager's, never the other way round;
    delayed operations are completed and the controller is called without it. Source: kafka.cluster.Partition.
    """

    __slots__ = (
        "context", "future_log", "in_sync", "leader_epoch", "leader_epoch_start_offset", "leader_id", "lock", "log",
        "partition_epoch", "topic_id", "topic_partition",
    )  # fmt: skip

    def __init__(self, topic_partition: TopicPartition, topic_id: Uuid, context: PartitionContext) -> None:
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.context = context
        self.lock = RLock()
        self.leader_id: int | None = None
        self.leader_epoch = -1
        self.partition_epoch = -1
        self.leader_epoch_start_offset: int | None = None
        self.log: PartitionLog | None = None
        self.future_log: PartitionLog | None = None
        self.in_sync = InSyncReplicas(self)

    def __repr__(self) -> str:
        return f"<Partition {self.topic_partition} leader {self.leader_id} epoch {self.leader_epoch}>"

    @property
    def is_leader(self) -> bool:
        """Whether this broker leads it."""
        return self.leader_id == self.context.broker_id

    @property
    def leader_log(self) -> PartitionLog | None:
        """The log, if this broker leads it."""
        return self.log if self.leader_id == self.context.broker_id else None

    @property
    def local_log(self) -> PartitionLog:
        """The log; NotLeaderOrFollowerError when there is none."""
        if self.log is None:
            raise NotLeaderOrFollowerError(f"Broker {self.context.broker_id} has no log of {self.topic_partition}.")
        return self.log

    def replica(self, broker_id: int) -> Replica | None:
        """A follower, where this broker leads."""
        return self.in_sync.remote_replicas.get(broker_id)

    def make_leader(self, registration: PartitionRegistration, *, is_new: bool, directory_id: Uuid | None) -> bool:
        """Lead the partition from now on, or go on leading it; whether this broker did not lead it before.

        A new leader epoch starts at the end of the log, and with it what is known of followers; the same leader epoch
        brings assignment and ISR only. A partition epoch below the known one is ignored. Raises KafkaStorageError.
        """
        now = self.context.clock.milliseconds()
        with self.lock:
            if self._is_stale(registration):
                return False
            is_new_leader = not self.is_leader
            # an unclean leader has nothing to recover from: it says so with its first change of the ISR
            self.in_sync.update(registration, is_leader=True, recovery=LeaderRecoveryState.RECOVERED)
            self._create_log(is_new=is_new, directory_id=directory_id)
            log = self.local_log
            if registration.leader_epoch > self.leader_epoch:
                start = log.log_end_offset
                log.assign_epoch_start_offset(registration.leader_epoch, start)
                for id_, replica in self.in_sync.remote_replicas.items():
                    replica.reset(
                        now_ms=now,
                        leader_end_offset=start,
                        is_new_leader=is_new_leader,
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
        """Follow the leader, if there is one; whether the leader epoch is new, so that fetching starts afresh.

        The log is made in any case. A partition epoch below the known one is ignored. Raises KafkaStorageError.
        """
        with self.lock:
            if self._is_stale(registration):
                return False
            is_new_epoch = registration.leader_epoch > self.leader_epoch
            self.leader_id = registration.leader
            self.leader_epoch = registration.leader_epoch
            self.leader_epoch_start_offset = None
            self.partition_epoch = registration.partition_epoch
            self.in_sync.update(registration, is_leader=False, recovery=registration.leader_recovery_state)
            self._create_log(is_new=is_new, directory_id=directory_id)
            _ = self.local_log
            return is_new_epoch

    def _is_stale(self, registration: PartitionRegistration) -> bool:
        # an equal epoch is no news, but right: the answer to an AlterPartition may have come before the metadata
        if registration.partition_epoch >= self.partition_epoch:
            return False
        _log.info(
            "stale_partition_epoch_ignored",
            partition=str(self.topic_partition),
            partition_epoch=registration.partition_epoch,
            known=self.partition_epoch,
        )
        listener = self.context.listener
        if listener is not None:
            listener(
                Transition(
                    kind=TransitionKind.STALE_EPOCH_IGNORED,
                    partition=self.topic_partition,
                    topic_id=self.topic_id,
                    after=registration,
                    reason=f"partition epoch {registration.partition_epoch} is older than {self.partition_epoch}",
                )
            )
        return True

    def _create_log(self, *, is_new: bool, directory_id: Uuid | None) -> None:
        """Make the log where there is none, unless it may lie in a directory that is offline."""
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
        self.log = self._loaded(is_new=is_new, is_future=False, directory_id=directory_id)

    def _loaded(self, *, is_new: bool, is_future: bool, directory_id: Uuid | None) -> PartitionLog:
        """The log, with its high watermark set to what was checkpointed, or 0, within the log."""
        logs, listener = self.context.log_manager, self.context.listener
        existed = logs.get_log(self.topic_partition, is_future=is_future) is not None
        log = logs.get_or_create_log(
            self.topic_partition,
            is_new=is_new,
            is_future=is_future,
            topic_id=self.topic_id,
            target_directory_id=directory_id,
        )
        log.update_high_watermark(logs.checkpointed_high_watermark(log.directory, self.topic_partition) or 0)
        if listener is not None and not existed:
            listener(
                Transition(
                    kind=TransitionKind.LOG_CREATED,
                    partition=self.topic_partition,
                    topic_id=self.topic_id,
                    directory=log.directory,
                )
            )
        return log

    def maybe_create_future_log(self, directory: str) -> bool:
        """Begin to move the replica to `directory`; False when it lies there, or is being moved there already."""
        with self.lock:
            if self.local_log.directory == directory:
                return False
            if self.future_log is not None:
                assert self.future_log.directory == directory, "a replica moves to one directory at a time"
                return False
            self.future_log = self._loaded(is_new=False, is_future=True, directory_id=None)
            return True

    @property
    def is_future_caught_up(self) -> bool:
        """Whether the copy has all that the replica has."""
        log, future = self.log, self.future_log
        return log is not None and future is not None and log.log_end_offset == future.log_end_offset

    def maybe_replace_current_with_future(self) -> bool:
        """Have the copy take the replica's place, if it is caught up; whether it has.

        A leader's copy is told where the leader epoch began: where nothing was appended since, no batch tells.
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
        """Give up moving the replica, or note that it has been moved."""
        with self.lock:
            self.future_log = None
            if delete:
                self.context.log_manager.delete_future_log(self.topic_partition)

    def delete(self) -> None:
        """The broker hosts it no longer, or its directory has failed: let go of everything. Deletes no log."""
        with self.lock:
            self.in_sync.clear()
            self.log = self.future_log = None
            self.leader_id = self.leader_epoch_start_offset = None

    def complete_delayed_operations(self) -> None:
        """The high or low watermark has moved: somebody may have waited for that. Not with the lock held."""
        self.context.delayed_operations.check_and_complete_all(self.topic_partition)
