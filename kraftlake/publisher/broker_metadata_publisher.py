"""Updates the parts of a broker for each new image, in Kafka's order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.delta.topics.topics_delta import TopicsDelta
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.publisher.driven import LogManager, ReplicaManager
from kraftlake.publisher.metadata_cache import MetadataCache
from kraftlake.records.uuid import Uuid
from kraftlake.replay.loader.manifest import LoaderManifest, SnapshotManifest
from kraftlake.replay.loader.metadata_publisher import MetadataPublisher
from kraftlake.runtime.fault_handler import FaultHandler
from kraftlake.runtime.log import get_logger


@attrs.frozen(kw_only=True)
class BrokerParts:
    """The parts that the publisher updates.

    `apply_delta` applies changes of topics to the replicas. `followers` are updated after that, in this order: dynamic
    configs, client quotas, SCRAM credentials, delegation tokens, ACLs.
    """

    log_manager: LogManager
    replica_manager: ReplicaManager
    apply_delta: Callable[[TopicsDelta, MetadataImage], None]
    followers: Sequence[MetadataPublisher] = ()


class BrokerMetadataPublisher(MetadataPublisher):
    """Passes each new image to the parts of one broker.

    The first image initialises the managers: the log manager recovers logs and separates strays, the replica manager
    starts its tasks; high watermarks are checkpointed after that first update. A fault during
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
            self._cache.update(new_image)
            if first:
                self._log.info("initial_metadata_published", offset=new_image.offset)
                self._initialize_managers(new_image)
            parts = self._parts
            if not first and isinstance(manifest, SnapshotManifest):
                what = f"stopping replicas that are on other brokers by {where}"
                self._guard(what, parts.replica_manager.stop_reassigned, new_image)
            if delta.topics_delta is not None:
                what = f"applying the topics delta of {where}"
                self._guard(what, parts.apply_delta, delta.topics_delta, new_image)
            for part in parts.followers:
                self._guard(f"updating {part.name} with {where}", part.on_metadata_update, delta, new_image, manifest)
            if first:
                start = parts.replica_manager.start_high_watermark_check_point_thread
                self._guard("starting the high watermark checkpoints", start)
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

    def _guard(self, what: str, function: Callable[..., object], *arguments: object, fatal: bool = False) -> None:
        """Call a part; a fault goes to the fault handler."""
        try:
            function(*arguments)
        except Exception as fault:
            (self._fatal_fault_handler if fatal else self._fault_handler).handle_fault(what, fault)


def is_stray_replica(broker_id: int, topics: TopicsImage, topic_id: Uuid | None, partition: int) -> bool:
    """Whether a log on a broker's disk belongs to no partition that it hosts: its topic or assignment was removed.

    Source: org.apache.kafka.storage.internals.log.LogManager.isStrayReplica.
    """
    state = None if topic_id is None else topics.get_partition(topic_id, partition)
    return state is None or broker_id not in state.replicas
