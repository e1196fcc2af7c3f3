"""Updates the parts of a broker for each new image, in Kafka's order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import attrs

from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.delta.topics.changed_partition import local_changes_of
from kraftlake.delta.topics.topic_delta import TopicDelta
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.topics.topic_image import TopicImage
from kraftlake.image.topics.topic_names import GROUP_METADATA_TOPIC, SHARE_GROUP_STATE_TOPIC, TRANSACTION_STATE_TOPIC
from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.publisher.driven import Coordinator, GroupCoordinator, LogManager, ReplicaManager, ShareCoordinator
from kraftlake.publisher.metadata_cache import MetadataCache
from kraftlake.records.uuid import Uuid
from kraftlake.replay.loader.manifest import LoaderManifest, SnapshotManifest
from kraftlake.replay.loader.metadata_publisher import MetadataPublisher
from kraftlake.runtime.fault_handler import FaultHandler
from kraftlake.runtime.log import get_logger

SHARE_VERSION: Final = "share.version"
"""The feature that turns share groups on."""
DEFAULT_STATE_TOPIC_PARTITIONS: Final = 50
"""Kafka's default of offsets.topic.num.partitions and similar configs."""


@attrs.frozen(kw_only=True)
class BrokerParts:
    """The parts that the publisher updates.

    A coordinator is None if the broker has none: `share_coordinator` if share groups are off, all of them if the broker
    serves no clients. `on_share_version` is called with the level of feature share.version when it changes.

    `followers` are updated after topics and coordinators, in this order: dynamic configs, client quotas, SCRAM
    credentials, delegation tokens, ACLs, features. `state_topic_partitions` has the partition counts of state topics
    that do not exist yet, by name.
    """

    log_manager: LogManager
    replica_manager: ReplicaManager
    group_coordinator: GroupCoordinator | None = None
    transaction_coordinator: Coordinator | None = None
    share_coordinator: ShareCoordinator | None = None
    on_share_version: Callable[[int], None] | None = None
    followers: Sequence[MetadataPublisher] = ()
    state_topic_partitions: dict[str, int] = attrs.field(factory=dict)


class BrokerMetadataPublisher(MetadataPublisher):
    """Passes each new image to the parts of one broker.

    The first image initialises the managers: the log manager recovers logs and separates strays, the replica manager
    starts its tasks, the coordinators start; high watermarks are checkpointed after that first update. A fault during
    initialisation goes to `fatal_fault_handler`, a later fault of a part to `fault_handler`, with the part's name and
    the image; the other parts are still updated. `cache` is always updated first.

    Source: kafka.server.metadata.BrokerMetadataPublisher.
    """

    name = "BrokerMetadataPublisher"
    """Kafka's name of the publisher."""

    def __init__(
        self,
        broker_id: int,
        cache: MetadataCache,
        parts: BrokerParts,
        *,
        fault_handler: FaultHandler,
        fatal_fault_handler: FaultHandler | None = None,
    ) -> None:
        self.broker_id = broker_id
        self.first_publish_done = False
        """Whether an image was published; before, no request can be answered."""
        self._share_version = 0
        self._cache = cache
        self._parts = parts
        self._fault_handler = fault_handler
        self._fatal_fault_handler = fatal_fault_handler or fault_handler
        self._log = get_logger(__name__).bind(broker=broker_id)

    def on_metadata_update(self, delta: MetadataDelta, new_image: MetadataImage, manifest: LoaderManifest) -> None:
        """Update all parts; the first call starts them."""
        first = not self.first_publish_done
        where = f"{'initial ' if first else ''}MetadataDelta up to {new_image.offset}"
        try:
            deleted = self._cache.update(new_image, delta)
            if first:
                self._log.info("publishing initial metadata", offset=new_image.offset)
                self._initialize_managers(new_image)
            parts = self._parts
            if not first and isinstance(manifest, SnapshotManifest):
                what = f"stopping replicas that are on other brokers by {where}"
                self._guard(what, parts.replica_manager.stop_reassigned, new_image)
            if delta.topics_delta is not None:
                what = f"applying the topics delta of {where}"
                self._guard(what, parts.replica_manager.apply_delta, delta.topics_delta, new_image)
                for kind, topic, coordinator in self._coordinators():
                    what = f"updating the {kind} coordinator with local changes of {where}"
                    self._guard(what, self._update_coordinator, topic, coordinator, delta, new_image)
                if deleted and parts.group_coordinator is not None:
                    what = f"updating the group coordinator with deleted partitions of {where}"
                    self._guard(what, parts.group_coordinator.on_partitions_deleted, deleted)
            for part in parts.followers:
                self._guard(f"updating {part.name} with {where}", part.on_metadata_update, delta, new_image, manifest)
            if parts.group_coordinator is not None:
                what = f"giving the group coordinator the new image of {where}"
                self._guard(what, parts.group_coordinator.on_metadata_update, delta, new_image)
            if parts.share_coordinator is not None:
                what = f"giving the share coordinator the new image of {where}"
                self._guard(what, parts.share_coordinator.on_metadata_update, delta, new_image)
            if first:
                start = parts.replica_manager.start_high_watermark_check_point_thread
                self._guard("starting the high watermark checkpoints", start)
            if delta.features_delta is not None:
                self._guard(f"telling of share.version in {where}", self._update_share_version, new_image)
        except Exception as fault:
            self._fault_handler.handle_fault(f"publishing broker metadata of {where}", fault)
        finally:
            self.first_publish_done = True

    def _initialize_managers(self, image: MetadataImage) -> None:
        parts = self._parts

        def start_logs() -> None:
            parts.log_manager.startup(
                self._cache.all_topics(),
                lambda topic_id, partition: is_stray_replica(self.broker_id, image.topics, topic_id, partition),
            )
            parts.log_manager.recover_abandoned_future_logs(self.broker_id, image.topics)

        self._guard("starting the log manager", start_logs, fatal=True)
        self._guard("starting the replica manager", parts.replica_manager.startup, fatal=True)
        for kind, topic, coordinator in self._coordinators():
            partition_count = partial(self._partition_count, topic)
            self._guard(f"starting the {kind} coordinator", coordinator.startup, partition_count, fatal=True)

    def _update_share_version(self, image: MetadataImage) -> None:
        level = image.features.finalized_versions.get(SHARE_VERSION, 0)
        if level != self._share_version and self._parts.on_share_version is not None:
            self._share_version = level
            self._parts.on_share_version(level)

    def _partition_count(self, state_topic: str) -> int:
        existing = self._cache.number_of_partitions(state_topic)
        if existing is not None:
            return existing
        return self._parts.state_topic_partitions.get(state_topic, DEFAULT_STATE_TOPIC_PARTITIONS)

    def _coordinators(self) -> list[tuple[str, str, Coordinator]]:
        parts = self._parts
        coordinators: list[tuple[str, str, Coordinator | None]] = [
            ("group", GROUP_METADATA_TOPIC, parts.group_coordinator),
            ("transaction", TRANSACTION_STATE_TOPIC, parts.transaction_coordinator),
            ("share", SHARE_GROUP_STATE_TOPIC, parts.share_coordinator),
        ]
        return [(kind, topic, one) for kind, topic, one in coordinators if one is not None]

    def _update_coordinator(
        self, topic: str, coordinator: Coordinator, delta: MetadataDelta, new_image: MetadataImage
    ) -> None:
        """Notify a coordinator of the partitions of its state topic that this broker gains and loses as leader."""
        assert delta.topics_delta is not None
        before_empty = delta.topics_delta.image.is_empty()
        if not before_empty and delta.topics_delta.topic_was_deleted(topic):
            deleted = delta.topics_delta.image.get_topic(topic)
            assert deleted is not None
            for number, partition in deleted.partitions.items():
                if partition.leader == self.broker_id:
                    coordinator.on_resignation(number, partition.leader_epoch)
        changed = topic_delta_of(topic, new_image, delta)
        if changed is None:
            return
        changes = local_changes_of(self.broker_id, changed.changed_partitions())
        for gone in sorted(changes.deletes):
            coordinator.on_resignation(gone.partition, None)
        for elected, info in changes.elected_leaders.items():
            coordinator.on_election(elected.partition, info.partition.leader_epoch)
        for follower, info in changes.followers.items():
            coordinator.on_resignation(follower.partition, info.partition.leader_epoch)

    def _guard(self, what: str, function: Callable[..., object], *arguments: object, fatal: bool = False) -> None:
        """Call a part; a fault goes to the fault handler."""
        try:
            function(*arguments)
        except Exception as fault:
            (self._fatal_fault_handler if fatal else self._fault_handler).handle_fault(what, fault)


def topic_delta_of(topic: str, new_image: MetadataImage, delta: MetadataDelta) -> TopicDelta | None:
    """Return the changes of the topic that now has the name.

    An earlier topic of that name is among the deleted ones.
    """
    image = new_image.topics.get_topic(topic)
    if image is None or delta.topics_delta is None:
        return None
    if not delta.topics_delta.image.is_empty():
        return delta.topics_delta.changed_topic(image.id)
    everything = TopicDelta(TopicImage(name=topic, id=image.id))  # a whole log may be in the delta, still as bytes
    everything.partition_changes.update(image.partitions.items())
    return everything


def is_stray_replica(broker_id: int, topics: TopicsImage, topic_id: Uuid | None, partition: int) -> bool:
    """Whether a log on a broker's disk belongs to no partition that it hosts: its topic or assignment was removed.

    Source: org.apache.kafka.storage.internals.log.LogManager.isStrayReplica.
    """
    state = None if topic_id is None else topics.get_partition(topic_id, partition)
    return state is None or broker_id not in state.replicas
