"""The replicas that one broker hosts, leads and follows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from threading import RLock
from typing import Final

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.topics.directory_id import UNASSIGNED
from kraftlake.records.uuid import Uuid
from kraftlake.replica_manager.broker_context import BrokerContext
from kraftlake.replica_manager.errors import (
    InconsistentTopicIdError,
    KafkaStorageError,
    NotLeaderOrFollowerError,
    UnknownTopicOrPartitionError,
)
from kraftlake.replica_manager.fetch.fetcher import FetcherFactory
from kraftlake.replica_manager.fetch.fetcher_manager import FetcherManager
from kraftlake.replica_manager.partition.isr_changes import maybe_shrink
from kraftlake.replica_manager.partition.partition import HostedPartition, OfflinePartition, Partition
from kraftlake.replica_manager.stop_partition import StopPartition
from kraftlake.replica_manager.transitions import TransitionKind
from kraftlake.runtime.log import get_logger
from kraftlake.runtime.scheduler import ScheduledTask, Scheduler

_log = get_logger(__name__)

IDLE_CHECK_MS: Final = 10_000
"""The interval at which idle log directory fetchers are ended: a fetcher drops each replica that has been moved."""


class ReplicaManager:
    """Applies metadata changes to a broker's replicas. Source: kafka.server.ReplicaManager.

    Pure except for its locks: `context` has the clock, the logs and the controller; `fetchers` makes the fetchers of
    other brokers' leaders, `log_dir_fetchers` those that copy replicas to another log directory. `scheduler` runs the
    periodic tasks; only `startup` and `start_high_watermark_check_point_thread` need it.
    """

    def __init__(
        self,
        context: BrokerContext,
        *,
        fetchers: FetcherFactory,
        log_dir_fetchers: FetcherFactory,
        scheduler: Scheduler | None = None,
    ) -> None:
        config, listener = context.config, context.listener
        self.context = context
        self.in_controlled_shutdown = False
        self.producer_id_expiration_ms = config.producer_id_expiration_ms
        """The time in ms after its last records at which a producer is forgotten; may be set at any time."""
        self.replica_fetchers = FetcherManager(fetchers, config.num_replica_fetchers, listener)
        self.log_dir_fetchers = FetcherManager(log_dir_fetchers, config.num_replica_alter_log_dirs_threads, listener)
        self.lock = RLock()
        self._scheduler = scheduler
        self._tasks: dict[str, ScheduledTask] = {}
        self._partitions: dict[TopicPartition, HostedPartition] = {}
        self._failed_directories: set[str] = set()

    # periodic tasks

    def startup(self) -> None:
        """Start the periodic tasks: ISR expiration, the end of idle log directory fetchers, producer expiration.

        Without a scheduler, the owner of the replica manager calls the same methods itself.
        """
        config = self.context.config
        self._schedule("isr-expiration", self.maybe_shrink_isr, config.replica_lag_time_max_ms / 2)
        self._schedule(
            "shutdown-idle-replica-alter-log-dirs-thread", self.log_dir_fetchers.shutdown_idle_fetchers, IDLE_CHECK_MS
        )
        self._schedule(
            "PeriodicProducerExpirationCheck",
            self.remove_expired_producers,
            config.producer_id_expiration_check_interval_ms,
        )

    def start_high_watermark_check_point_thread(self) -> None:
        """Start to checkpoint the high watermarks, once the first metadata has set them up."""
        self._schedule(
            "highwatermark-checkpoint",
            self.checkpoint_high_watermarks,
            self.context.config.replica_high_watermark_checkpoint_interval_ms,
        )

    def _schedule(self, name: str, task: Callable[[], None], period_ms: float) -> None:
        assert self._scheduler is not None, "a replica manager without a scheduler is driven by its owner"
        if name not in self._tasks:
            self._tasks[name] = self._scheduler.schedule(name, task, period_ms=period_ms)

    # metadata

    def stop_reassigned(self, new_image: MetadataImage) -> None:
        """Stop replicas of existing topics that the image does not place on this broker, and delete their logs.

        For an image from a snapshot: in its delta all partitions are new, and no replica is removed. Kafka 4.4
        continues such replicas until its restart, even as the leader of an old epoch.
        """
        me = self.context.broker_id
        with self.lock:
            stops = []
            for partition in self.online_partitions():
                name = partition.topic_partition
                known = new_image.topics.get_partition(partition.topic_id, name.partition)
                if known is not None and me not in known.replicas:
                    reason = f"broker {me} is no longer one of its replicas"
                    stops.append(StopPartition(partition=name, delete_local_log=True, reason=reason))
            self.stop_partitions(stops)

    # hosted partitions

    def hosted(self, partition: TopicPartition) -> HostedPartition | None:
        """A partition that the broker hosts, online or offline; None for any other."""
        return self._partitions.get(partition)

    def hosted_partitions(self) -> dict[TopicPartition, HostedPartition]:
        """A copy of all hosted partitions."""
        return dict(self._partitions)

    def online_partition(self, partition: TopicPartition) -> Partition | None:
        """A partition, if it is hosted and online."""
        hosted = self._partitions.get(partition)
        return hosted if isinstance(hosted, Partition) else None

    def online_partitions(self) -> Iterator[Partition]:
        """All online partitions; changes during the iteration may or may not show."""
        for hosted in list(self._partitions.values()):
            if isinstance(hosted, Partition):
                yield hosted

    def leader_partitions(self) -> Iterator[Partition]:
        """All online partitions that this broker leads."""
        return (partition for partition in self.online_partitions() if partition.leader_log is not None)

    def partition_or_raise(self, topic_partition: TopicPartition) -> Partition:
        """Return the online partition.

        Raises KafkaStorageError if it is offline, NotLeaderOrFollowerError if only other brokers host it,
        UnknownTopicOrPartitionError if it does not exist.
        """
        hosted = self._partitions.get(topic_partition)
        if isinstance(hosted, Partition):
            return hosted
        if isinstance(hosted, OfflinePartition):
            raise KafkaStorageError(f"{topic_partition} lies in a log directory that is offline.")
        if self.context.metadata.contains(topic_partition):
            raise NotLeaderOrFollowerError(f"Broker {self.context.broker_id} has no replica of {topic_partition}.")
        raise UnknownTopicOrPartitionError(f"There is no partition {topic_partition}.")

    def get_or_create_partition(self, topic_partition: TopicPartition, topic_id: Uuid) -> tuple[Partition, bool] | None:
        """Return the partition, and whether it is new to the broker; None while its log directory is offline.

        Raises InconsistentTopicIdError if the broker hosts a partition of another topic of the same name.
        """
        hosted = self._partitions.get(topic_partition)
        if isinstance(hosted, Partition):
            if hosted.topic_id != topic_id:
                raise InconsistentTopicIdError(
                    f"{topic_partition} is hosted with topic id {hosted.topic_id}, not {topic_id}."
                )
            return hosted, False
        if isinstance(hosted, OfflinePartition):
            known = hosted.partition
            if known is not None and known.topic_id == topic_id:
                _log.warning("offline_partition_stays", partition=str(topic_partition), topic_id=str(topic_id))
                return None
        partition = Partition(topic_partition, topic_id, self.context)
        self._partitions[topic_partition] = partition
        return partition, True

    def stop_partitions(self, stops: Iterable[StopPartition]) -> dict[TopicPartition, Exception]:
        """Stop replicas: first their fetchers, which rely on the partitions, then the partitions, then the logs.

        Returns the failures. Requests that wait for one of the partitions are completed.
        """
        context = self.context
        stops = list(stops)
        names = [stop.partition for stop in stops]
        self.replica_fetchers.remove_fetcher_for_partitions(names)
        self.log_dir_fetchers.remove_fetcher_for_partitions(names)
        to_delete: dict[TopicPartition, StopPartition] = {}
        for stop in stops:
            if stop.delete_local_log:
                online = self.online_partition(stop.partition)
                if online is not None:
                    del self._partitions[stop.partition]
                    online.delete()
                to_delete[stop.partition] = stop
            else:
                context.report(TransitionKind.REPLICA_STOPPED, stop.partition, reason=stop.reason)
            context.delayed_operations.complete_when_not_leader(stop.partition)
        errors: dict[TopicPartition, Exception] = {}
        if to_delete:
            had_log = [name for name in to_delete if context.log_manager.get_log(name) is not None]
            context.log_manager.delete_logs(to_delete, errors.__setitem__)
            for name in had_log:
                if name not in errors:
                    context.report(TransitionKind.LOG_DELETED, name, reason=to_delete[name].reason)
        return errors

    # calls of fetchers

    def complete_delayed_fetches(self, partitions: Iterable[TopicPartition]) -> None:
        """Complete the requests that waited for a higher high watermark of followed partitions."""
        for partition in partitions:
            self.context.delayed_operations.check_and_complete_all(partition)

    def mark_future_for_truncation(self, topic_partition: TopicPartition, offset: int) -> None:
        """Truncate the future log of a replica, if any: the replica itself was truncated to `offset`."""
        fetcher = self.log_dir_fetchers.fetcher_of(self.context.broker_id, topic_partition)
        if fetcher is not None:
            fetcher.mark_for_truncation(topic_partition, offset)

    # log directories and shutdown

    def mark_partition_offline(
        self, topic_partition: TopicPartition, reason: str, directory: str | None = None
    ) -> None:
        """Take a replica offline: its log directory has failed."""
        with self.lock:
            partition = self.online_partition(topic_partition)
            self._partitions[topic_partition] = OfflinePartition(partition)
            if partition is not None:
                partition.delete()
            self.context.report(TransitionKind.PARTITION_OFFLINE, topic_partition, reason=reason, directory=directory)

    def handle_log_dir_failure(self, directory: str) -> None:
        """Take the replicas in a failed log directory offline, and report the directory to the controller, once.

        Raises LogDirNotFoundError if the broker has no such directory.
        """
        logs = self.context.log_manager
        is_online = logs.is_log_dir_online(directory)
        with self.lock:
            if not is_online and directory in self._failed_directories:
                return  # else the call that failed has taken it offline, and here nothing is done yet
            self._failed_directories.add(directory)
            self.context.report(TransitionKind.DIRECTORY_FAILED, directory=directory)
            hit = [p for p in self.online_partitions() if any(log.directory == directory for log in p.logs())]
            self.log_dir_fetchers.remove_fetcher_for_partitions([p.topic_partition for p in hit])
            # until then, a copy may have replaced its log, in the failed directory or in another one
            gone = [p.topic_partition for p in hit if p.log is not None and p.log.directory == directory]
            moving = [p for p in hit if p.future_log is not None and p.future_log.directory == directory]
            self.replica_fetchers.remove_fetcher_for_partitions(gone)
            for partition in moving:
                partition.remove_future_log(delete=False)
            for name in gone:
                self.mark_partition_offline(name, "its log directory has failed", directory)
        directory_id = logs.handle_log_dir_failure(directory)
        _log.warning("log_directory_failed", directory=directory, partitions=len(gone))
        if directory_id != UNASSIGNED:
            self.context.directory_events.handle_failure(directory_id)

    @contextmanager
    def guarding(self, topic_partition: TopicPartition) -> Iterator[None]:
        """Block metadata changes and fetchers of a replica during work on its logs."""
        with self.lock:
            partition = self.online_partition(topic_partition)
            with nullcontext() if partition is None else partition.lock:
                yield

    def begin_controlled_shutdown(self) -> None:
        """Begin to stop followers whose partition has no leader, and followers outside the ISR."""
        if not self.in_controlled_shutdown:
            self.in_controlled_shutdown = True
            self.context.report(TransitionKind.SHUTDOWN_BEGUN)

    def maybe_shrink_isr(self) -> None:
        """Propose to remove lagging followers from ISRs; due every half `replica.lag.time.max.ms` (isr-expiration)."""
        for partition in self.leader_partitions():
            maybe_shrink(partition)

    def remove_expired_producers(self) -> None:
        """Remove from all logs the producers without writes for `producer.id.expiration.ms`."""
        now = self.context.clock.milliseconds()
        for partition in self.online_partitions():
            with partition.lock:
                for log in partition.logs():
                    log.remove_expired_producers(now, self.producer_id_expiration_ms)

    def checkpoint_high_watermarks(self) -> None:
        """Write the high watermarks of all logs, one file per directory; the failure of a directory is logged."""
        by_directory: dict[str, dict[TopicPartition, int]] = {}
        for partition in self.online_partitions():
            for log in partition.logs():
                by_directory.setdefault(log.directory, {})[log.topic_partition] = log.high_watermark
        for directory, high_watermarks in by_directory.items():
            try:
                self.context.log_manager.write_high_watermarks(directory, high_watermarks)
            except KafkaStorageError as error:
                _log.error("high_watermarks_not_checkpointed", directory=directory, error=str(error))

    def shutdown(self, *, checkpoint: bool = True) -> None:
        """End the tasks and fetchers; `checkpoint` also writes the high watermarks."""
        for task in self._tasks.values():
            task.cancel()
        self._tasks.clear()
        self.replica_fetchers.close()
        self.log_dir_fetchers.close()
        if checkpoint:
            self.checkpoint_high_watermarks()
