"""The number of partitions under min ISR, updated by each change."""

from __future__ import annotations

from collections.abc import Iterable

from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.image.broker_partitions import min_insync_replicas
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.partition_health import MIN_ISR, is_under_min_isr
from kraftlake.image.topics.topic_image import TopicImage
from kraftlake.records.uuid import Uuid
from kraftlake.replay.loader.manifest import LoaderManifest, SnapshotManifest
from kraftlake.replay.loader.metadata_publisher import MetadataPublisher


class UnderMinIsrCounter(MetadataPublisher):
    """A publisher that counts the partitions whose ISR is smaller than their topic's min.insync.replicas.

    An update recounts the topics that it changes, and all topics if it changes the cluster's min.insync.replicas. Kafka
    has this count for each broker, of the partitions that it leads
    (kafka.server:type=ReplicaManager,name=UnderMinIsrPartitionCount).
    """

    name = "UnderMinIsrCounter"

    def __init__(self) -> None:
        self.count = 0
        self._by_topic: dict[Uuid, int] = {}

    def on_metadata_update(self, delta: MetadataDelta, new_image: MetadataImage, manifest: LoaderManifest) -> None:
        """Update the count."""
        if isinstance(manifest, SnapshotManifest):
            self._by_topic = {}
        self._count_topics(new_image, _changed(delta, new_image, everything=isinstance(manifest, SnapshotManifest)))
        if delta.topics_delta is not None:
            for topic_id in delta.topics_delta.deleted_topic_ids:
                self._by_topic.pop(topic_id, None)
        self.count = sum(self._by_topic.values())

    def _count_topics(self, image: MetadataImage, topics: Iterable[TopicImage]) -> None:
        for topic in topics:
            min_isr = min_insync_replicas(image, topic.name)
            partitions = topic.partitions.values()
            count = sum(is_under_min_isr(len(one.isr), len(one.replicas), min_isr) for one in partitions)
            if count:
                self._by_topic[topic.id] = count
            else:
                self._by_topic.pop(topic.id, None)


def _changed(delta: MetadataDelta, image: MetadataImage, *, everything: bool) -> Iterable[TopicImage]:
    """The topics of `image` whose counts may have changed."""
    configs = {} if delta.configs_delta is None else delta.configs_delta.changes
    resources = [resource.name for resource, change in configs.items() if MIN_ISR in change.changes]
    if everything or "" in resources:
        return image.topics.topics_by_id().values()
    changed = [] if delta.topics_delta is None else delta.topics_delta.changed_topics
    found = [image.topics.get_topic_by_id(id_) for id_ in changed] + [image.topics.get_topic(n) for n in resources]
    return [topic for topic in found if topic is not None]
