"""The parts of a broker's process and their assembly."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from random import SystemRandom
from typing import Final

from kraftlake.controller.cluster.supported_features import SUPPORTED
from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.image.endpoint import Endpoint, end_points_of
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.protocol.address import Address
from kraftlake.protocol.broker_requests import BrokerRegistrationRequest
from kraftlake.protocol.node_connector import NodeConnector
from kraftlake.publisher.authorizer import StandardAuthorizer
from kraftlake.publisher.broker_metadata_publisher import BrokerMetadataPublisher, BrokerParts
from kraftlake.publisher.driven import DynamicConfigHandler
from kraftlake.publisher.dynamic_broker_config import DynamicBrokerConfig
from kraftlake.publisher.dynamic_configs import ConfigType, DynamicConfigPublisher
from kraftlake.publisher.metadata_cache import MetadataCache
from kraftlake.records.metadata_records import BrokerEndpoint, BrokerFeature
from kraftlake.records.uuid import Uuid
from kraftlake.replay.loader.metadata_loader import MetadataLoader
from kraftlake.replay.loader.metadata_publisher import MetadataPublisher
from kraftlake.replica_manager.alter_partition_manager import BatchingAlterPartitionManager
from kraftlake.replica_manager.assignments_manager import AssignmentsManager
from kraftlake.replica_manager.broker_context import BrokerContext
from kraftlake.replica_manager.delta_application import apply_delta
from kraftlake.replica_manager.fetch.fetcher_threads import FetcherThreads
from kraftlake.replica_manager.lifecycle.broker_lifecycle import BrokerLifecycle
from kraftlake.replica_manager.lifecycle.broker_lifecycle_manager import BrokerLifecycleManager
from kraftlake.replica_manager.logs.cleaning.log_cleaner import LogCleaner
from kraftlake.replica_manager.logs.disk.disk_log_manager import DiskLogManager, open_log_manager
from kraftlake.replica_manager.metadata_view import MetadataView
from kraftlake.replica_manager.node_to_controller_channel import NodeToControllerChannel
from kraftlake.replica_manager.replica_manager import ReplicaManager
from kraftlake.replica_manager.replication_quota import ReplicationQuota
from kraftlake.replica_manager.requests.delayed_requests import DelayedRequests
from kraftlake.replica_manager.topic_config_handler import TopicConfigHandler
from kraftlake.runtime.clock import Clock
from kraftlake.runtime.event_queue import KafkaEventQueue
from kraftlake.runtime.fault_handler import LoggingFaultHandler
from kraftlake.runtime.log import get_logger
from kraftlake.runtime.scheduler import Scheduler
from kraftlake.server.broker.broker_config import (
    CHECKPOINT,
    FIRST_UPKEEP,
    FOLLOWER_RATE,
    LEADER_RATE,
    LOG_DIRS_RATE,
    LOG_DIRS_WINDOWS,
    REPLICATION_WINDOWS,
    RETENTION_CHECK,
    BrokerConfig,
    cordoned_log_dirs,
)
from kraftlake.server.broker.broker_config_handler import (
    BrokerConfigHandler,
    reconfigure_cleaner,
    reconfigure_logs,
    reconfigure_quotas,
    reconfigure_replicas,
)
from kraftlake.server.broker.broker_registration_tracker import BrokerRegistrationTracker
from kraftlake.server.broker.lake_metadata_feed import LakeMetadataFeed
from kraftlake.server.broker.led_partitions import LedPartitions
from kraftlake.server.broker.log_cleaning import ENABLED, CleaningThreads, cleaner_config
from kraftlake.server.broker.metadata_feed import MetadataFeed
from kraftlake.server.broker.serving_brokers import NO_LEVELS, SERVES_NOBODY

_FLUSH_MS: Final = 3_000
_DELETION_MS: Final = 10_000


class CachedView(MetadataView):
    """The image of the metadata cache as a view."""

    def __init__(self, cache: MetadataCache) -> None:
        self._cache = cache

    @property
    def image(self) -> MetadataImage:  # type: ignore[override]
        """The newest image."""
        return self._cache.image


class Broker:
    """The lifecycle, the metadata feed, the logs and the replica manager of one broker, from `start` to `close`.

    `to_brokers` and `to_controllers` make the connections to other nodes; `controllers` returns the addresses at which
    the active controller is searched. `followers` follow the image besides. `end` gets the reason if the broker has to
    end without a request to stop. The constructor raises as `open_log_manager`.
    """

    def __init__(
        self,
        config: BrokerConfig,
        *,
        cluster_id: str,
        listeners: Mapping[str, Endpoint],
        to_brokers: NodeConnector,
        to_controllers: NodeConnector,
        followers: Sequence[MetadataPublisher] = (),
        feed: MetadataFeed | LakeMetadataFeed,
        controllers: Callable[[], Sequence[Address]],
        clock: Clock,
        end: Callable[[str], object],
    ) -> None:
        self._config, self._clock, self._end = config, clock, end
        self._faults = LoggingFaultHandler("broker")
        self._closing = ExitStack()
        self._log = get_logger(__name__).bind(broker_id=config.broker_id)
        self._scheduler = Scheduler(KafkaEventQueue(clock, "scheduler"))
        self._upkeep = Scheduler(KafkaEventQueue(clock, "log-upkeep"))
        self._follower_quota = ReplicationQuota(clock, config.windows(REPLICATION_WINDOWS))
        self.leader_quota = ReplicationQuota(clock, config.windows(REPLICATION_WINDOWS))
        self._log_dirs_quota = ReplicationQuota(clock, config.windows(LOG_DIRS_WINDOWS))
        self.authorizer = None if config.authorizer is None else StandardAuthorizer(config.authorizer)
        self._could_start = True
        self._manager: ReplicaManager | None = None
        self.cache = MetadataCache(config.broker_id)
        self.view = CachedView(self.cache)
        self.logs = self._open_logs(cluster_id)
        self._feed = feed
        self.cluster_id = cluster_id
        self._controllers = controllers
        self._to_brokers, self._to_controllers = to_brokers, to_controllers
        self._followers = followers
        self.loader = MetadataLoader(clock=clock, fault_handler=self._faults, high_watermark=self._feed.high_watermark)

        registration = BrokerRegistrationRequest(
            broker_id=config.broker_id, cluster_id=cluster_id, incarnation_id=Uuid.random(), rack=config.rack,
            listeners=end_points_of(listeners, BrokerEndpoint),
            features=tuple(
                BrokerFeature(name=name, min_supported_version=levels.min, max_supported_version=levels.max)
                for name, levels in (SUPPORTED if config.serves else {**SUPPORTED, SERVES_NOBODY: NO_LEVELS}).items()
            ),
            log_dirs=tuple(self.logs.directories.values()),
            previous_broker_epoch=self.logs.previous_broker_epoch,
        )  # fmt: skip
        self.cordoned_log_dirs = config.cordoned_log_dirs
        """The log directories that get no new replicas (KIP-1066)."""
        lifecycle = BrokerLifecycle(
            registration, lambda: self.loader.applied_offset, config.lifecycle, cordoned=self._cordoned_ids
        )
        heartbeats = self.to_controller("heartbeat", config.lifecycle.channel_retry_timeout_ms)
        self.lifecycle = BrokerLifecycleManager(lifecycle, heartbeats, clock)
        self.led_partitions = LedPartitions(lambda look: self._scheduler.after(0, look), self._leave_as_leader)
        self.cleaner = LogCleaner(
            manager=self.logs, clock=clock, random=SystemRandom(), config=cleaner_config(config.value)
        )
        self._cleaning = CleaningThreads(self.cleaner, clock)
        self.delayed = DelayedRequests(clock)
        self.manager = self._manager = self._replica_manager()
        self.settings = BrokerConfigHandler(
            config.static_settings, reconfigure_logs(self.logs),
            reconfigure_quotas(
                {
                    LEADER_RATE: self.leader_quota, FOLLOWER_RATE: self._follower_quota,
                    LOG_DIRS_RATE: self._log_dirs_quota,
                }
            ),
            reconfigure_replicas(self.manager), reconfigure_cleaner(self._cleaning), self._reconfigure_cordons,
        )  # fmt: skip
        """The handler of the settings that are changed while the broker runs."""
        self.publisher = self._publisher()

    @property
    def controller(self) -> Address | None:
        """The address of the active controller; None while unknown."""
        return self._feed.controller

    @property
    def is_replaced(self) -> bool:
        """Whether another process has registered with the broker's id after this one, so that this one's epoch is over.

        The current registration may be a late copy of the broker's own request, whose epoch the broker was not sent.
        """
        registered, epoch = self.loader.image.cluster.brokers.get(self._config.broker_id), self.lifecycle.broker_epoch
        return registered is not None and 0 <= epoch < registered.epoch

    def to_controller(self, name: str, retry_timeout_ms: int | None = None) -> NodeToControllerChannel:
        """Return a separate channel to the active controller, which ends with the broker."""
        made = NodeToControllerChannel(
            name,
            self._controllers,
            self._to_controllers,
            active=lambda: self._feed.controller,
            cluster_id=self.cluster_id,
            retry_timeout_ms=retry_timeout_ms,
            clock=self._clock,
        )
        self._closing.callback(made.close)
        return made

    def _open_logs(self, cluster_id: str) -> DiskLogManager:
        config = self._config
        try:
            return open_log_manager(
                config.log_dirs, cluster_id=cluster_id, node_id=config.broker_id, clock=self._clock,
                defaults=config.log_defaults, topic_configs=self.view.topic_configs, on_failure=self._directory_failed,
            )  # fmt: skip
        except BaseException:
            self._scheduler.shutdown()
            self._upkeep.shutdown()
            raise

    def _directory_failed(self, directory: str, fault: OSError) -> None:
        """Handle the failure later: the calling thread holds the lock of a partition."""
        self._log.error("log_directory_failed", directory=directory, cause=str(fault))
        if self._manager is not None:
            self._scheduler.after(0, lambda: self._take_offline(directory))

    def _take_offline(self, directory: str) -> None:
        self.manager.handle_log_dir_failure(directory)
        if not self.logs.directories:
            self._end(f"no log directory is left: {', '.join(sorted(self.logs.offline))}")

    def _replica_manager(self) -> ReplicaManager:
        config, later = self._config, self._scheduler.after
        broker_epoch = lambda: self.lifecycle.broker_epoch  # noqa: E731
        context = BrokerContext(
            broker_id=config.broker_id, clock=self._clock, metadata=self.view, broker_epoch=broker_epoch,
            config=config.replication, log_manager=self.logs, listener=None if config.serves else self.led_partitions,
            directory_events=AssignmentsManager(
                config.broker_id, broker_epoch, lambda: self.view.image, self.to_controller("directory-assignments"),
                schedule=later, on_failure=self.lifecycle.directory_failed,
            ),
            alter_partition_manager=BatchingAlterPartitionManager(
                config.broker_id, broker_epoch, self.to_controller("alter-partition"), later
            ),
            delayed_operations=self.delayed,
        )  # fmt: skip
        fetchers = FetcherThreads(
            manager=lambda: manager, connect=self._to_brokers, fault_handler=self._faults,
            follower_quota=self._follower_quota, log_dirs_quota=self._log_dirs_quota,
        )  # fmt: skip
        manager = ReplicaManager(
            context, fetchers=fetchers.of_leader, log_dir_fetchers=fetchers.of_log_dirs, scheduler=self._scheduler
        )
        self.led_partitions.manager = manager
        self.logs.guard = manager.guarding
        return manager

    def _leave_as_leader(self, led: Sequence[TopicPartition]) -> None:
        more = f" and {len(led) - 1} more" if len(led) > 1 else ""
        self._end(
            f"it was elected leader of {led[0]}{more}, which it can't serve, and has left so that another replica "
            f"leads; put it last in the lists of replicas"
        )

    @property
    def _cordoned_ids(self) -> list[Uuid]:
        return [id_ for path, id_ in self.logs.directories.items() if path in self.cordoned_log_dirs]

    def _reconfigure_cordons(self, settings: DynamicBrokerConfig) -> None:
        cordoned = cordoned_log_dirs(settings.effective["cordoned.log.dirs"], self._config.log_dirs)
        if cordoned != self.cordoned_log_dirs:
            self.cordoned_log_dirs = cordoned
            self.lifecycle.cordon(self._cordoned_ids)

    def _publisher(self) -> BrokerMetadataPublisher:
        broker_id = self._config.broker_id
        quotas = {"leader_quota": self.leader_quota, "follower_quota": self._follower_quota}
        handlers: dict[ConfigType, DynamicConfigHandler] = {
            ConfigType.TOPIC: TopicConfigHandler(broker_id, self.logs, **quotas),
            ConfigType.BROKER: self.settings,
        }
        parts = BrokerParts(
            log_manager=self.logs,
            replica_manager=self.manager,
            apply_delta=partial(apply_delta, self.manager),
            followers=(
                DynamicConfigPublisher(broker_id, handlers, self._faults),
                BrokerRegistrationTracker(broker_id, self.lifecycle.resend_registration),
                *self._followers,
                *(() if self.authorizer is None else (self.authorizer,)),
            ),
        )
        return BrokerMetadataPublisher(
            broker_id, self.cache, parts, fault_handler=self._faults, fatal_fault_handler=self
        )

    def start(self) -> None:
        """Observe the quorum, and register."""
        self._feed.start(self.loader)
        self.lifecycle.start()

    def install(self) -> None:
        """Publish the metadata from now on: the first image loads the logs and starts the replica manager."""
        self.loader.install_publishers([self.publisher])
        value = self._config.value
        first_ms = value(FIRST_UPKEEP)
        for task, delay_ms, period_ms in (
            (self.logs.flush_logs, _FLUSH_MS, _FLUSH_MS),
            (self.logs.delete_files, _DELETION_MS, _DELETION_MS),
            (self.logs.checkpoint, first_ms, value(CHECKPOINT)),
            (self.logs.clean_logs, first_ms, value(RETENTION_CHECK)),
        ):
            self._upkeep.schedule(task.__name__, task, delay_ms=delay_ms, period_ms=max(1, period_ms))
        if value(ENABLED):
            self._cleaning.start(first_ms)

    def close(self) -> None:
        """End all threads, and close the logs; if all logs were loaded, they need no recovery at the next start."""
        self._feed.close()
        self.loader.close()
        are_loaded = self.publisher.first_publish_done and self._could_start
        self.manager.shutdown(checkpoint=are_loaded)
        self._cleaning.shutdown()
        self._upkeep.shutdown()
        self._scheduler.shutdown()
        if self._could_start:
            self.logs.shutdown(self.lifecycle.broker_epoch)
        else:
            self.logs.abandon()
        self.lifecycle.close()
        self._closing.close()

    def handle_fault(self, what: str, cause: BaseException | None = None) -> None:
        """End, because the logs or the replica manager can't be started."""
        self._could_start = False
        self._faults.handle_fault(what, cause)
        self._end(f"{what} has failed: {str(cause).rstrip('.')}")
