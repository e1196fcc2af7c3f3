"""A broker's view of the cluster: answers for request handlers, from the latest image."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from random import Random

from kraftlake.image.features_image import KRAFT_VERSION, METADATA_VERSION
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.topics.partition_registration import PartitionRegistration
from kraftlake.publisher.metadata_responses import (
    DescribedTopics,
    FinalizedFeatures,
    Node,
    TopicMetadata,
)
from kraftlake.publisher.partition_metadata import describe_topics, node_of, topic_metadata
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

    def update(self, new_image: MetadataImage) -> None:
        """Switch to `new_image`.

        Logs an error if live brokers have different listeners: clients of a listener can't reach brokers without it.
        """
        self._image = new_image
        self._check_listeners(new_image)

    def _check_listeners(self, image: MetadataImage) -> None:
        alive = {
            broker.id: frozenset(broker.listeners) for broker in image.cluster.brokers.values() if not broker.fenced
        }
        if alive == self._listeners:
            return
        self._listeners = alive
        if len(set(alive.values())) > 1:
            shown = {str(broker): sorted(listeners) for broker, listeners in sorted(alive.items())}
            self._log.error("listeners_differ", listeners=shown, offset=image.offset)

    # topics

    def all_topics(self) -> Collection[str]:
        """The names of all topics."""
        return self._image.topics.topics_by_name().keys()

    def topic_name(self, topic_id: Uuid) -> str | None:
        """The name of a topic."""
        topic = self._image.topics.get_topic_by_id(topic_id)
        return None if topic is None else topic.name

    def contains(self, topic: str) -> bool:
        """Whether the topic exists."""
        return self._image.topics.get_topic(topic) is not None

    def partition(self, topic: str, number: int) -> PartitionRegistration | None:
        """The state of a partition."""
        return _partition_of(self._image, topic, number)

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

    # other parts

    def features(self) -> FinalizedFeatures:
        """All finalized levels, with kraft.version if it is above 0.

        Raises UnwritableMetadataError without a metadata.version.
        """
        image, level = self._image, self._kraft_version()
        version = image.features.metadata_version
        if version is None:
            raise UnwritableMetadataError(f"The image at offset {image.offset} has no metadata.version yet.")
        levels = {**dict(image.features.finalized_versions.items()), METADATA_VERSION: version.level}
        if level > 0:
            levels[KRAFT_VERSION] = level
        return FinalizedFeatures(levels=levels, epoch=image.offset)


def _partition_of(image: MetadataImage, topic: str, partition: int) -> PartitionRegistration | None:
    found = image.topics.get_topic(topic)
    return None if found is None else found.partitions.get(partition)
