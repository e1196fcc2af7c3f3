"""One broker's replicas: what it hosts, leads and follows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from threading import RLock
from typing import Final

from kraftlake.delta import TopicPartition, TopicsDelta
from kraftlake.image import MetadataImage
from kraftlake.records.uuid import Uuid
from kraftlake.replica_manager.config import ReplicaManagerConfig
from kraftlake.replica_manager.controller_channel import AlterPartitionManager, DirectoryEventHandler
from kraftlake.replica_manager.delta_application import DeltaApplication
from kraftlake.replica_manager.errors import (
    InconsistentTopicIdError,
    KafkaStorageError,
    NotLeaderOrFollowerError,
    UnknownTopicOrPartitionError,
)
from kraftlake.replica_manager.fetch.fetcher import FetcherFactory
from kraftlake.replica_manager.fetch.fetcher_manager import FetcherManager
from kraftlake.replica_manager.logs.log_manager import LogManager
from kraftlake.replica_manager.metadata_view import MetadataView
from kraftlake.replica_manager.partition.hosted_partition import HostedPartition, OfflinePartition, OnlinePartition
from kraftlake.replica_manager.partition.partition import Partition
from kraftlake.replica_manager.partition.partition_context import DelayedOperations, PartitionContext
from kraftlake.replica_manager.replication_metrics import ReplicationMetrics
from kraftlake.replica_manager.stop_partition import StopPartition
from kraftlake.replica_manager.transitions import Transition, TransitionKind, TransitionListener
from kraftlake.runtime.clock import Clock
from kraftlake.runtime.log import get_logger
from kraftlake.runtime.scheduler import ScheduledTask, Scheduler

_log = get_logger(__name__)

IDLE_CHECK_MS: Final = 10_000
"""How often fetchers of replicas on the move are looked at: they take out what has arrived by themselves."""


class ReplicaManager:
    """What a broker does with its replicas as metadata changes. Source: kafka.server.ReplicaManager.

    Pure but for its locks: time (`clock`), disk (`log_manager`), network (`fetchers`, and `log_dir_fetchers` for
    replicas that move between directories) and the controller (`alter_partition_manager`, `directory_events`) are
    passed in; so is the `scheduler` of its own tasks, which only `startup` asks for. `metadata` answers from the newest
    image, which is set before `apply_delta` is called. `listener` is told of every transition.
    """

    def __init__(
        self,
        broker_id: int,
        config: ReplicaManagerConfig,
        clock: Clock,
        *,
        log_manager: LogManager,
        metadata: MetadataView,
        fetchers: FetcherFactory,
        log_dir_fetchers: FetcherFactory,
        alter_partition_manager: AlterPartitionManager,
        directory_events: DirectoryEventHandler,
        delayed_operations: DelayedOperations,
        broker_epoch: Callable[[], int] = lambda: -1,
        scheduler: Scheduler | None = None,
        listener: TransitionListener | None = None,
    ) -> None:
        self.broker_id = broker_id
        self.config = config
        self.log_manager = log_manager
        self.directory_events = directory_events
        self.delayed_operations = delayed_operations
        self.metrics = ReplicationMetrics()
        self.listener = listener
        self.in_controlled_shutdown = False
        self.replica_fetchers = FetcherManager(fetchers, config.num_replica_fetchers, listener)
        self.log_dir_fetchers = FetcherManager(log_dir_fetchers, config.num_replica_alter_log_dirs_threads, listener)
        self.context = PartitionContext(
            broker_id=broker_id,
            broker_epoch=broker_epoch,
            config=config,
            clock=clock,
            log_manager=log_manager,
            metadata=metadata,
            alter_partition_manager=alter_partition_manager,
            delayed_operations=delayed_operations,
            metrics=self.metrics,
            listener=listener,
        )
        self.lock = RLock()
        self._scheduler = scheduler
        self._tasks: dict[str, ScheduledTask] = {}
        self._partitions: dict[TopicPartition, OnlinePartition | OfflinePartition] = {}

    # tasks of its own

    def startup(self) -> None:
        """Begin to look for followers that lag, fetchers of moved replicas with nothing left to do, old producers.

        Needs a scheduler, as `start_high_watermark_check_point_thread` does; without one whoever drives the replica
        manager calls the same methods itself.
        """
        self._again_and_again("isr-expiration", self.maybe_shrink_isr, self.config.replica_lag_time_max_ms / 2)
        self._again_and_again(
            "shutdown-idle-replica-alter-log-dirs-thread", self.log_dir_fetchers.shutdown_idle_fetchers, IDLE_CHECK_MS
        )
        self._again_and_again(
            "PeriodicProducerExpirationCheck",
            self.remove_expired_producers,
            self.config.producer_id_expiration_check_interval_ms,
        )

    def start_high_watermark_check_point_thread(self) -> None:
        """Begin to write down the high watermarks: once the first metadata has given each partition its own."""
        self._again_and_again(
            "highwatermark-checkpoint",
            self.checkpoint_high_watermarks,
            self.config.replica_high_watermark_checkpoint_interval_ms,
        )

    def _again_and_again(self, name: str, task: Callable[[], None], period_ms: float) -> None:
        assert self._scheduler is not None, "a replica manager without a scheduler is driven by its owner"
        if name not in self._tasks:
            self._tasks[name] = self._scheduler.schedule(name, task, period_ms=period_ms)

    # metadata

    def apply_delta(self, topics_delta: TopicsDelta, new_image: MetadataImage) -> None:
        """Do what a change of the topics means to this broker.

        Deletes come first, then leaders, then followers, then replicas on the move; what can't be done is told to the
        listener and logged, and the rest goes on.
        """
        changes = topics_delta.local_changes(self.broker_id)
        with self.lock:
            DeltaApplication(self, topics_delta, new_image, changes).run()

    # what is hosted

    def hosted(self, partition: TopicPartition) -> HostedPartition:
        """Whether and how the broker hosts a partition."""
        return self._partitions.get(partition)

    def hosted_partitions(self) -> dict[TopicPartition, OnlinePartition | OfflinePartition]:
        """All that it hosts, as of now."""
        return dict(self._partitions)

    def online_partition(self, partition: TopicPartition) -> Partition | None:
        """A partition that is hosted and online."""
        hosted = self._partitions.get(partition)
        return hosted.partition if isinstance(hosted, OnlinePartition) else None

    def online_partitions(self) -> Iterator[Partition]:
        """All that are online; what changes meanwhile may or may not show."""
        for hosted in list(self._partitions.values()):
            if isinstance(hosted, OnlinePartition):
                yield hosted.partition

    def leader_partitions(self) -> Iterator[Partition]:
        """All that are online and led by this broker."""
        return (partition for partition in self.online_partitions() if partition.leader_log is not None)

    def partition_or_raise(self, topic_partition: TopicPartition) -> Partition:
        """The online partition.

        KafkaStorageError when it is offline, NotLeaderOrFollowerError when only other brokers host it,
        UnknownTopicOrPartitionError when nobody does.
        """
        hosted = self._partitions.get(topic_partition)
        if isinstance(hosted, OnlinePartition):
            return hosted.partition
        if isinstance(hosted, OfflinePartition):
            raise KafkaStorageError(f"{topic_partition} lies in a log directory that is offline.")
        if self.context.metadata.contains(topic_partition):
            raise NotLeaderOrFollowerError(f"Broker {self.broker_id} has no replica of {topic_partition}.")
        raise UnknownTopicOrPartitionError(f"There is no partition {topic_partition}.")

    def get_or_create_partition(self, topic_partition: TopicPartition, topic_id: Uuid) -> tuple[Partition, bool] | None:
        """The partition, and whether it is new to the broker; None while its directory is offline.

        InconsistentTopicIdError when it is hosted for another topic of that name.
        """
        hosted = self._partitions.get(topic_partition)
        if isinstance(hosted, OnlinePartition):
            if hosted.partition.topic_id != topic_id:
                raise InconsistentTopicIdError(
                    f"{topic_partition} is hosted with topic id {hosted.partition.topic_id}, not {topic_id}."
                )
            return hosted.partition, False
        if isinstance(hosted, OfflinePartition):
            known = hosted.partition
            if known is not None and known.topic_id == topic_id:
                _log.warning("offline_partition_stays", partition=str(topic_partition), topic_id=str(topic_id))
                return None
        partition = Partition(topic_partition, topic_id, self.context)
        self._partitions[topic_partition] = OnlinePartition(partition)
        return partition, True

    def stop_partitions(self, stops: Iterable[StopPartition]) -> dict[TopicPartition, Exception]:
        """Stop replicas: fetchers first, which rely on the partitions, then the partitions, at last the logs.

        Gives what failed. Whoever waits for one of them is answered.
        """
        stops = list(stops)
        names = [stop.partition for stop in stops]
        self.replica_fetchers.remove_fetcher_for_partitions(names)
        self.log_dir_fetchers.remove_fetcher_for_partitions(names)
        to_delete: dict[TopicPartition, StopPartition] = {}
        for stop in stops:
            if stop.delete_local_log:
                hosted = self._partitions.get(stop.partition)
                if isinstance(hosted, OnlinePartition):
                    del self._partitions[stop.partition]
                    hosted.partition.delete()
                to_delete[stop.partition] = stop
            else:
                self.tell(TransitionKind.REPLICA_STOPPED, stop.partition, reason=stop.reason)
            self.delayed_operations.complete_when_not_leader(stop.partition)
        errors: dict[TopicPartition, Exception] = {}
        if to_delete:
            had_log = [name for name in to_delete if self.log_manager.get_log(name) is not None]
            self.log_manager.delete_logs(to_delete, errors.__setitem__)
            for name in had_log if self.listener is not None else ():
                if name not in errors:
                    self.tell(TransitionKind.LOG_DELETED, name, reason=to_delete[name].reason)
        return errors

    # what fetchers ask for

    def add_failed_partition(self, topic_partition: TopicPartition) -> None:
        """A fetcher can't go on with a partition."""
        self.replica_fetchers.add_failed_partition(topic_partition)

    def complete_delayed_fetches(self, partitions: Iterable[TopicPartition]) -> None:
        """The high watermarks of followed partitions have moved."""
        for partition in partitions:
            self.delayed_operations.check_and_complete_all(partition)

    def mark_future_for_truncation(self, topic_partition: TopicPartition, offset: int) -> None:
        """A replica was truncated: its copy on the move is to be, too."""
        fetcher = self.log_dir_fetchers.fetcher_of(self.broker_id, topic_partition)
        if fetcher is not None:
            fetcher.mark_for_truncation(topic_partition, offset)

    # directories and the end

    def mark_partition_offline(
        self, topic_partition: TopicPartition, reason: str, directory: str | None = None
    ) -> None:
        """The replica's directory has failed."""
        with self.lock:
            hosted = self._partitions.get(topic_partition)
            partition = hosted.partition if isinstance(hosted, OnlinePartition) else None
            self._partitions[topic_partition] = OfflinePartition(partition)
            if partition is not None:
                partition.delete()
            self.tell(TransitionKind.PARTITION_OFFLINE, topic_partition, reason=reason, directory=directory)

    def handle_log_dir_failure(self, directory: str) -> None:
        """A log directory has failed: its replicas go offline, and the controller is told."""
        if not self.log_manager.is_log_dir_online(directory):
            return
        directory_id = self.log_manager.directory_id(directory)
        with self.lock:
            self.tell(TransitionKind.DIRECTORY_FAILED, None, directory=directory)
            online = list(self.online_partitions())
            gone = [p.topic_partition for p in online if p.log is not None and p.log.directory == directory]
            moving = [p for p in online if p.future_log is not None and p.future_log.directory == directory]
            self.replica_fetchers.remove_fetcher_for_partitions(gone)
            self.log_dir_fetchers.remove_fetcher_for_partitions([*gone, *(p.topic_partition for p in moving)])
            for partition in moving:
                partition.remove_future_log(delete=False)
            for name in gone:
                self.mark_partition_offline(name, "its log directory has failed", directory)
        self.log_manager.handle_log_dir_failure(directory)
        _log.warning("log_directory_failed", directory=directory, partitions=len(gone))
        if directory_id is not None:
            self.directory_events.handle_failure(directory_id)

    def begin_controlled_shutdown(self) -> None:
        """From now on followers without a leader, or out of the ISR, are stopped."""
        if not self.in_controlled_shutdown:
            self.in_controlled_shutdown = True
            self.tell(TransitionKind.SHUTDOWN_BEGUN, None)

    def maybe_shrink_isr(self) -> None:
        """Look for followers that lag; to be called every half `replica.lag.time.max.ms` (Kafka's isr-expiration)."""
        for partition in self.leader_partitions():
            partition.in_sync.maybe_shrink()

    def remove_expired_producers(self) -> None:
        """Have all logs forget producers that wrote nothing for `producer.id.expiration.ms`."""
        now = self.context.clock.milliseconds()
        for partition in self.online_partitions():
            with partition.lock:
                for log in (partition.log, partition.future_log):
                    if log is not None:
                        log.remove_expired_producers(now, self.config.producer_id_expiration_ms)

    def checkpoint_high_watermarks(self) -> None:
        """Write down the high watermarks of all logs, a file a directory; a directory that fails is logged."""
        by_directory: dict[str, dict[TopicPartition, int]] = {}
        for partition in self.online_partitions():
            for log in (partition.log, partition.future_log):
                if log is not None:
                    by_directory.setdefault(log.directory, {})[log.topic_partition] = log.high_watermark
        for directory, high_watermarks in by_directory.items():
            try:
                self.log_manager.write_high_watermarks(directory, high_watermarks)
            except KafkaStorageError as error:
                _log.error("high_watermarks_not_checkpointed", directory=directory, error=str(error))

    def shutdown(self, *, checkpoint: bool = True) -> None:
        """End tasks and fetchers, and write down the high watermarks."""
        for task in self._tasks.values():
            task.cancel()
        self._tasks.clear()
        self.replica_fetchers.close()
        self.log_dir_fetchers.close()
        if checkpoint:
            self.checkpoint_high_watermarks()

    def tell(
        self, kind: TransitionKind, partition: TopicPartition | None, *, reason: str = "", directory: str | None = None
    ) -> None:
        """Tell the listener, if there is one, of what has happened."""
        if self.listener is not None:
            self.listener(Transition(kind=kind, partition=partition, reason=reason, directory=directory))
