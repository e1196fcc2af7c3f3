"""The counts of partitions and directories that are not as they should be, updated by each change."""

from __future__ import annotations

from collections.abc import Iterable

from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.image.cluster_health import (
    HEALTH_COUNTS,
    HEALTHY,
    ClusterHealth,
    TopicHealth,
    health_of_topic,
    sum_health,
)
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.partition_health import MIN_ISR
from kraftlake.image.topics.topic_image import TopicImage
from kraftlake.records.uuid import Uuid
from kraftlake.replay.loader.manifest import LoaderManifest, SnapshotManifest
from kraftlake.replay.loader.metadata_publisher import MetadataPublisher
from kraftlake.runtime.metrics import MetricName, MetricsRegistry


class HealthCounter(MetadataPublisher):
    """A publisher that keeps the counts of `ClusterHealth`.

    An update recounts the topics that it changes. It recounts all of them if it changes the cluster's
    min.insync.replicas, or which brokers are fenced and which directories they have.
    """

    name = "HealthCounter"

    def __init__(self, image: MetadataImage = MetadataImage.EMPTY) -> None:
        """Start with the counts of the image before the first change."""
        self._by_topic: dict[Uuid, TopicHealth] = {}
        self._count(image, image.topics.topics_by_id().values())
        self.health: ClusterHealth = sum_health(self._by_topic.values())

    def on_metadata_update(self, delta: MetadataDelta, new_image: MetadataImage, manifest: LoaderManifest) -> None:
        """Update the counts."""
        everything = isinstance(manifest, SnapshotManifest) or _changes_all(delta)
        if everything:
            self._by_topic = {}
        self._count(new_image, _changed(delta, new_image, everything=everything))
        if delta.topics_delta is not None:
            for topic_id in delta.topics_delta.deleted_topic_ids:
                self._by_topic.pop(topic_id, None)
        self.health = sum_health(self._by_topic.values())

    def register(self, registry: MetricsRegistry) -> None:
        """Register the counts as gauges."""
        for name, text in HEALTH_COUNTS.items():
            registry.gauge(MetricName("kraftlake", "cluster", name), text, lambda n=name: getattr(self.health, n))  # type: ignore[misc]

    def _count(self, image: MetadataImage, topics: Iterable[TopicImage]) -> None:
        for topic in topics:
            found = health_of_topic(image, topic)
            if found == HEALTHY:
                self._by_topic.pop(topic.id, None)
            else:
                self._by_topic[topic.id] = found


def _changes_all(delta: MetadataDelta) -> bool:
    """Whether a change of brokers or of the cluster's configs may change the counts of every topic."""
    configs = {} if delta.configs_delta is None else delta.configs_delta.changes
    if any(resource.name == "" and MIN_ISR in change.changes for resource, change in configs.items()):
        return True
    cluster = delta.cluster_delta
    if cluster is None:
        return False
    before = cluster.image.brokers
    return any(
        broker is None
        or (was := before.get(id_)) is None
        or (was.fenced, was.directories) != (broker.fenced, broker.directories)
        for id_, broker in cluster.changed_brokers.items()
    )


def _changed(delta: MetadataDelta, image: MetadataImage, *, everything: bool) -> Iterable[TopicImage]:
    """The topics of `image` whose counts may have changed."""
    if everything:
        return image.topics.topics_by_id().values()
    configs = {} if delta.configs_delta is None else delta.configs_delta.changes
    resources = [resource.name for resource, change in configs.items() if MIN_ISR in change.changes]
    changed = [] if delta.topics_delta is None else delta.topics_delta.changed_topics
    found = [image.topics.get_topic_by_id(id_) for id_ in changed] + [image.topics.get_topic(n) for n in resources]
    return [topic for topic in found if topic is not None]
