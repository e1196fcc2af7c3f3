"""The counts of partitions and directories that are not as they should be, updated by each change."""

from __future__ import annotations

from collections.abc import Collection

from kraftlake.delta.health_effects import HealthEffects
from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.image.cluster_health import HEALTH_COUNTS, ClusterHealth, HealthTally
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.replay.loader.manifest import LoaderManifest, SnapshotManifest
from kraftlake.replay.loader.metadata_publisher import MetadataPublisher
from kraftlake.runtime.metrics import MetricName, MetricsRegistry


class HealthCounter(MetadataPublisher):
    """A publisher that keeps the counts of `ClusterHealth`.

    An update costs as much as the change. One that changes the min.insync.replicas of a topic costs as much as the
    topic; one that changes the cluster's, or which brokers are fenced or have which directories, as much as the image.
    """

    name = "HealthCounter"

    def __init__(self, image: MetadataImage = MetadataImage.EMPTY) -> None:
        """Start with the counts of the image before the first change."""
        self._tally = HealthTally.of(image)
        self.health: ClusterHealth = self._tally.health

    def on_metadata_update(self, delta: MetadataDelta, new_image: MetadataImage, manifest: LoaderManifest) -> None:
        """Update the counts."""
        effects = HealthEffects.of(delta)
        if isinstance(manifest, SnapshotManifest) or effects.brokers or effects.all_topics:
            self._tally = HealthTally.of(new_image)
        else:
            self._count_change(delta, new_image, effects.topics)
        self.health = self._tally.health

    def register(self, registry: MetricsRegistry) -> None:
        """Register the counts as gauges."""
        for name, text in HEALTH_COUNTS.items():
            registry.gauge(MetricName("kraftlake", "cluster", name), text, lambda n=name: getattr(self.health, n))  # type: ignore[misc]

    def _count_change(self, delta: MetadataDelta, new_image: MetadataImage, configured: Collection[str]) -> None:
        before, tally, topics = delta.image, self._tally, delta.topics_delta
        for name in configured:
            for image, sign in ((before, -1), (new_image, 1)):
                topic = image.topics.get_topic(name)
                if topic is not None:
                    tally.add(image, name, topic.partitions.values(), sign)
        if topics is None:
            return
        for topic_id in topics.deleted_topic_ids:
            was = before.topics.get_topic_by_id(topic_id)
            if was is not None and was.name not in configured:
                tally.add(before, was.name, was.partitions.values(), -1)
        for change in topics.changed_topics.values():
            if change.name in configured:
                continue
            was = before.topics.get_topic_by_id(change.id)
            had = {} if was is None else was.partitions
            gone = [had[number] for number in change.partition_changes if number in had]
            tally.add(before, change.name, gone, -1)
            tally.add(new_image, change.name, change.partition_changes.values(), 1)
