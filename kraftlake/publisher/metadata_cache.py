"""A broker's view of the cluster: answers for request handlers, from the latest image."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from random import Random

from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.image.broker_registration import BrokerRegistration
from kraftlake.image.client_quotas_image import ClientQuotaEntity
from kraftlake.image.configurations_image import ConfigResource
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.topics.partition_registration import PartitionRegistration
from kraftlake.image.topics.topic_image import TopicImage
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.publisher.cluster_view import Cluster, cluster_of
from kraftlake.publisher.metadata_responses import (
    DescribedTopics,
    FinalizedFeatures,
    LeaderAndIsr,
    Node,
    ScramDescription,
    TopicMetadata,
)
from kraftlake.publisher.partition_metadata import describe_topics, node_of, topic_metadata
from kraftlake.publisher.quota_filter import QuotaFilter, describe_client_quotas
from kraftlake.records.metadata_version import MetadataVersion
from kraftlake.records.uuid import Uuid
from kraftlake.runtime.errors import UnwritableMetadataError
from kraftlake.runtime.log import get_logger


class MetadataCache:
    """Queries on the latest image. An update replaces the whole image, so that readers take no lock.

    For several consistent answers, read `image` once, or use one query for all of them. `kraft_version` returns the
    level of that feature, which no image holds; `random` chooses a broker where any is suitable.

    Source: org.apache.kafka.metadata.KRaftMetadataCache.
    """

    def __init__(
        self, broker_id: int, *, kraft_version: Callable[[], int] = lambda: 0, random: Random | None = None
    ) -> None:
        self.broker_id = broker_id
        self._kraft_version = kraft_version
        self._random = random or Random()  # noqa: S311 - any broker will do
        self._image = MetadataImage.EMPTY
        self._listeners: Mapping[int, frozenset[str]] = {}
        self._log = get_logger(__name__).bind(broker=broker_id)

    @property
    def image(self) -> MetadataImage:
        """The image that all queries read."""
        return self._image

    def update(self, new_image: MetadataImage, delta: MetadataDelta | None = None) -> list[TopicPartition]:
        """Switch to `new_image`; returns the partitions that `delta` has deleted.

        Logs an error if live brokers have different listeners: clients of a listener can't reach brokers without it.
        """
        deleted = [] if delta is None else deleted_partitions(delta)
        self._image = new_image
        self._check_listeners(new_image)
        return deleted

    def _check_listeners(self, image: MetadataImage) -> None:
        alive = {
            broker.id: frozenset(broker.listeners) for broker in image.cluster.brokers.values() if not broker.fenced
        }
        if alive == self._listeners:
            return
        self._listeners = alive
        if len(set(alive.values())) > 1:
            shown = {str(broker): sorted(listeners) for broker, listeners in sorted(alive.items())}
            self._log.error("listeners are not identical across brokers", listeners=shown, offset=image.offset)

    # topics

    def all_topics(self) -> Collection[str]:
        """The names of all topics."""
        return self._image.topics.topics_by_name().keys()

    def topic_id(self, name: str) -> Uuid:
        """The id of a topic, all zeros if there is none."""
        topic = self._image.topics.get_topic(name)
        return Uuid.ZERO if topic is None else topic.id

    def topic_name(self, topic_id: Uuid) -> str | None:
        """The name of a topic."""
        topic = self._image.topics.get_topic_by_id(topic_id)
        return None if topic is None else topic.name

    def number_of_partitions(self, topic: str) -> int | None:
        """The number of partitions of a topic; None for an unknown topic."""
        image = self._image.topics.get_topic(topic)
        return None if image is None else len(image.partitions)

    def contains(self, what: str | TopicPartition) -> bool:
        """Whether the topic or partition exists."""
        if isinstance(what, str):
            return self._image.topics.get_topic(what) is not None
        return self._partition(what.topic, what.partition) is not None

    def leader_and_isr(self, topic: str, partition: int) -> LeaderAndIsr | None:
        """A partition's leader, ISR and epochs."""
        state = self._partition(topic, partition)
        if state is None:
            return None
        return LeaderAndIsr(
            leader=state.leader,
            leader_epoch=state.leader_epoch,
            isr=state.isr,
            leader_recovery_state=state.leader_recovery_state,
            partition_epoch=state.partition_epoch,
        )

    def topic_metadata(
        self,
        topics: Iterable[str],
        listener: str,
        *,
        error_unavailable_endpoints: bool = False,
        error_unavailable_listeners: bool = False,
    ) -> list[TopicMetadata]:
        """The topics for a Metadata response, each once, without topics that have no partitions or don't exist.

        `error_unavailable_endpoints`: unreachable replicas are omitted and cause an error, for clients of the first
        versions. `error_unavailable_listeners`: a leader without the listener has its own error.
        """
        image = self._image
        answers = (
            topic_metadata(
                image,
                topic,
                listener,
                error_endpoints=error_unavailable_endpoints,
                error_listeners=error_unavailable_listeners,
            )
            for topic in dict.fromkeys(topics)
        )
        return [answer for answer in answers if answer is not None]

    def describe_topics(
        self,
        topics: Iterable[str],
        listener: str,
        *,
        start_index: Callable[[str], int] = lambda _: 0,
        limit: int = 2_000,
        ignore_errors: bool = False,
    ) -> DescribedTopics:
        """The topics for a DescribeTopicPartitions response, at most `limit` partitions, from `start_index` on."""
        return describe_topics(
            self._image, topics, listener, start_index=start_index, limit=limit, ignore_errors=ignore_errors
        )

    # brokers

    def has_alive_broker(self, broker_id: int) -> bool:
        """Whether a broker is registered and not fenced."""
        broker = self._broker(broker_id)
        return broker is not None and not broker.fenced

    def is_broker_fenced(self, broker_id: int) -> bool:
        """Whether a broker is registered and fenced."""
        broker = self._broker(broker_id)
        return broker is not None and broker.fenced

    def is_broker_shutting_down(self, broker_id: int) -> bool:
        """Whether a registered broker is in controlled shutdown."""
        broker = self._broker(broker_id)
        return broker is not None and broker.in_controlled_shutdown

    def alive_broker_epoch(self, broker_id: int) -> int | None:
        """The epoch of a broker that is registered and not fenced."""
        broker = self._broker(broker_id)
        return None if broker is None or broker.fenced else broker.epoch

    def random_alive_broker_id(self) -> int | None:
        """A random broker that is not fenced."""
        alive = sorted(broker.id for broker in self._image.cluster.brokers.values() if not broker.fenced)
        return self._random.choice(alive) if alive else None

    def alive_broker_nodes(self, listener: str) -> list[Node]:
        """The brokers that are not fenced and have the listener, by id."""
        return [node for node in self.broker_nodes(listener) if not node.is_fenced]

    def broker_nodes(self, listener: str) -> list[Node]:
        """All brokers that have the listener, by id."""
        brokers = sorted(self._image.cluster.brokers.items())
        nodes = (node_of(broker, listener) for _, broker in brokers)
        return [node for node in nodes if node is not None]

    def partition_leader_endpoint(self, topic: str, partition: int, listener: str) -> Node | None:
        """The address of a partition's leader: NO_NODE without the listener, None without a leader."""
        image = self._image
        state = _partition_of(image, topic, partition)
        broker = None if state is None else image.cluster.brokers.get(state.leader)
        return None if broker is None else node_of(broker, listener) or Node.NO_NODE

    def partition_replica_endpoints(self, partition: TopicPartition, listener: str) -> dict[int, Node]:
        """The addresses of a partition's reachable replicas, by broker id."""
        image = self._image
        state = _partition_of(image, partition.topic, partition.partition)
        endpoints: dict[int, Node] = {}
        for replica in () if state is None else state.replicas:
            broker = image.cluster.brokers.get(replica)
            node = None if broker is None or broker.fenced else node_of(broker, listener)
            if node is not None and node.host and node.port >= 0:
                endpoints[replica] = node
        return endpoints

    def to_cluster(self, cluster_id: str) -> Cluster:
        """The cluster from a client's view."""
        return cluster_of(self._image, cluster_id, self._random)

    # other parts

    def config(self, resource: ConfigResource) -> Mapping[str, str]:
        """The dynamic configs of a resource alone, without those of its defaults."""
        return self._image.configs.config_map(resource)

    def describe_client_quotas(self, wanted: QuotaFilter) -> dict[ClientQuotaEntity, Mapping[str, float]]:
        """The quotas of the matching entities. Source: org.apache.kafka.image.ClientQuotasImage.describe."""
        return describe_client_quotas(self._image.client_quotas, wanted)

    def describe_scram_credentials(self, users: Sequence[str] | None = None) -> list[ScramDescription]:
        """The mechanisms of users, sorted by name; all users if `users` is empty."""
        mechanisms = self._image.scram.mechanisms
        names = users or sorted({user for credentials in mechanisms.values() for user in credentials})
        descriptions = []
        for user in dict.fromkeys(names):
            found = {m: c[user].iterations for m, c in sorted(mechanisms.items()) if user in c}
            if names.count(user) > 1:
                message = f"User {user!r} is named twice in one request."
                descriptions.append(ScramDescription(user, {}, ErrorCode.DUPLICATE_RESOURCE, message))
            elif found:
                descriptions.append(ScramDescription(user, found))
            else:
                message = f"User {user!r} has no SCRAM credentials."
                descriptions.append(ScramDescription(user, {}, ErrorCode.RESOURCE_NOT_FOUND, message))
        return descriptions

    def metadata_version(self) -> MetadataVersion:
        """The finalized metadata.version; raises UnwritableMetadataError without one."""
        return metadata_version_of(self._image)

    def features(self) -> FinalizedFeatures:
        """All finalized levels, with kraft.version if it is above 0."""
        image, level = self._image, self._kraft_version()
        levels = dict(image.features.finalized_versions.items())
        if level > 0:
            levels["kraft.version"] = level
        return finalized_features(image, levels)

    def _broker(self, broker_id: int) -> BrokerRegistration | None:
        return self._image.cluster.brokers.get(broker_id)

    def _partition(self, topic: str, partition: int) -> PartitionRegistration | None:
        return _partition_of(self._image, topic, partition)


def deleted_partitions(delta: MetadataDelta) -> list[TopicPartition]:
    """The partitions of the topics that a delta deletes."""
    if delta.topics_delta is None or delta.topics_delta.image.is_empty():
        return []
    topics: Mapping[Uuid, TopicImage] = delta.topics_delta.image.topics_by_id()
    deleted = (topics[topic_id] for topic_id in delta.topics_delta.deleted_topic_ids)
    return sorted(TopicPartition(topic.name, number) for topic in deleted for number in topic.partitions)


def metadata_version_of(image: MetadataImage) -> MetadataVersion:
    """The finalized metadata.version; raises UnwritableMetadataError if the image has none."""
    if image.features.metadata_version is None:
        raise UnwritableMetadataError(f"The image at offset {image.offset} has no metadata.version yet.")
    return image.features.metadata_version


def finalized_features(image: MetadataImage, levels: Mapping[str, int]) -> FinalizedFeatures:
    """The features with the metadata.version among the levels."""
    version = metadata_version_of(image)
    return FinalizedFeatures(
        metadata_version=version, levels={**levels, "metadata.version": version.level}, epoch=image.offset
    )


def _partition_of(image: MetadataImage, topic: str, partition: int) -> PartitionRegistration | None:
    found = image.topics.get_topic(topic)
    return None if found is None else found.partitions.get(partition)
