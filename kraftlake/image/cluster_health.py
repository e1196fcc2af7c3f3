"""The partitions and directories of a cluster that are not as they should be, counted on an image."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Final

import attrs

from kraftlake.image.broker_partitions import min_insync_replicas, min_insync_replicas_column
from kraftlake.image.cluster_image import ClusterImage
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.partition_health import is_under_min_isr
from kraftlake.image.topics.partition_registration import LeaderRecoveryState
from kraftlake.image.topics.topic_image import TopicImage
from kraftlake.records.uuid import Uuid

HEALTH_COUNTS: Final = {
    "under_min_isr_partitions": "Partitions with an ISR below min.insync.replicas.",
    "under_replicated_partitions": "Partitions with a replica that is not in the ISR.",
    "led_by_fenced_partitions": "Partitions whose leader is a fenced broker.",
    "reassigning_partitions": "Partitions with replicas to be added or removed.",
    "recovering_partitions": "Partitions whose leader recovers from an unclean election.",
    "offline_directories": "Log directories with replicas that their registered broker does not have online.",
}
"""The names of the counts, with their meanings; the last is of directories, all others are of partitions."""


@attrs.frozen(kw_only=True)
class ClusterHealth:
    """The counts of HEALTH_COUNTS. Kafka has most of them for each broker, of the partitions that it leads."""

    under_min_isr_partitions: int = 0
    under_replicated_partitions: int = 0
    led_by_fenced_partitions: int = 0
    reassigning_partitions: int = 0
    recovering_partitions: int = 0
    offline_directories: int = 0


@attrs.frozen
class TopicHealth:
    """The share of a topic: its partitions in the order of HEALTH_COUNTS, and its offline directories by broker."""

    partitions: tuple[int, int, int, int, int] = (0, 0, 0, 0, 0)
    directories: frozenset[tuple[int, Uuid]] = frozenset()


HEALTHY: Final = TopicHealth()


def health_of_topic(image: MetadataImage, topic: TopicImage) -> TopicHealth:
    """The share of one topic of an image."""
    min_isr, brokers = min_insync_replicas(image, topic.name), image.cluster.brokers
    is_offline = _is_offline(image.cluster)
    counts, directories = [0] * len(HEALTHY.partitions), set[tuple[int, Uuid]]()
    for one in topic.partitions.values():
        leader = brokers.get(one.leader)
        kinds = (
            is_under_min_isr(len(one.isr), len(one.replicas), min_isr),
            len(one.isr) < len(one.replicas),
            leader is not None and leader.fenced,
            bool(one.adding_replicas or one.removing_replicas),
            one.leader_recovery_state is LeaderRecoveryState.RECOVERING,
        )
        for number, counts_ in enumerate(kinds):
            counts[number] += counts_
        for id_, directory in zip(one.replicas, one.directories, strict=True):
            if is_offline(id_, directory):
                directories.add((id_, directory))
    under, out, led, moving, recovering = counts
    return TopicHealth((under, out, led, moving, recovering), frozenset(directories))


def sum_health(topics: Collection[TopicHealth]) -> ClusterHealth:
    """The counts of a cluster, of the shares of its topics."""
    sums = [sum(column) for column in zip(*(topic.partitions for topic in topics), strict=True)]
    directories = frozenset[tuple[int, Uuid]]().union(*(topic.directories for topic in topics))
    return _health([*sums] or HEALTHY.partitions, len(directories))


def count_health(image: MetadataImage) -> ClusterHealth:
    """The counts of an image."""
    if image.topics.is_large:
        from kraftlake.image.topics.row_health import count_unhealthy_rows

        fenced, offline = fenced_brokers(image.cluster), _is_offline(image.cluster)
        counts, directories = count_unhealthy_rows(
            image.topics.rows(), min_insync_replicas_column(image), fenced, offline
        )
        return _health(counts, directories)
    return sum_health([health_of_topic(image, topic) for topic in image.topics.topics_by_id().values()])


def fenced_brokers(cluster: ClusterImage) -> frozenset[int]:
    """The ids of the fenced brokers."""
    return frozenset(id_ for id_, broker in cluster.brokers.items() if broker.fenced)


def _is_offline(cluster: ClusterImage) -> Callable[[int, Uuid], bool]:
    brokers = cluster.brokers
    return lambda id_, directory: id_ in brokers and not brokers[id_].has_online_dir(directory)


def _health(partitions: Iterable[int], directories: int) -> ClusterHealth:
    return ClusterHealth(**dict(zip(HEALTH_COUNTS, (*partitions, directories), strict=True)))
