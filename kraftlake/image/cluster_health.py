"""The partitions and directories of a cluster that are not as they should be, counted on an image."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

import attrs

from kraftlake.image.broker_partitions import min_insync_replicas, min_insync_replicas_column
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.partition_health import is_under_min_isr
from kraftlake.image.topics.partition_registration import LeaderRecoveryState, PartitionRegistration
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

_OF_PARTITIONS: Final = len(HEALTH_COUNTS) - 1

Directory: TypeAlias = tuple[int, Uuid]
"""A broker, and one of its log directories."""


@attrs.frozen(kw_only=True)
class ClusterHealth:
    """The counts of HEALTH_COUNTS. Kafka has most of them for each broker, of the partitions that it leads."""

    under_min_isr_partitions: int = 0
    under_replicated_partitions: int = 0
    led_by_fenced_partitions: int = 0
    reassigning_partitions: int = 0
    recovering_partitions: int = 0
    offline_directories: int = 0


class HealthTally:
    """The counts of partitions in the order of HEALTH_COUNTS, and the replicas in each offline directory."""

    def __init__(self) -> None:
        self.partitions = [0] * _OF_PARTITIONS
        self.replicas: Counter[Directory] = Counter()

    @classmethod
    def of(cls, image: MetadataImage) -> HealthTally:
        """The tally of an image."""
        made = cls()
        if image.topics.is_large:
            from kraftlake.image.topics.row_health import count_unhealthy_rows

            fenced = [id_ for id_, broker in image.cluster.brokers.items() if broker.fenced]
            made.partitions, made.replicas = count_unhealthy_rows(
                image.topics.rows(), min_insync_replicas_column(image), fenced, _is_offline(image)
            )
        else:
            for name, topic in image.topics.topics_by_name().items():
                made.add(image, name, topic.partitions.values(), 1)
        return made

    def add(self, image: MetadataImage, topic: str, partitions: Iterable[PartitionRegistration], sign: int) -> None:
        """Add partitions of a topic as they are in an image, or take them away: `sign` is 1 or -1."""
        min_isr, brokers, is_offline = min_insync_replicas(image, topic), image.cluster.brokers, _is_offline(image)
        for one in partitions:
            leader = brokers.get(one.leader)
            kinds = (
                is_under_min_isr(len(one.isr), len(one.replicas), min_isr),
                len(one.isr) < len(one.replicas),
                leader is not None and leader.fenced,
                bool(one.adding_replicas or one.removing_replicas),
                one.leader_recovery_state is LeaderRecoveryState.RECOVERING,
            )
            for number, is_so in enumerate(kinds):
                self.partitions[number] += sign * is_so
            for pair in zip(one.replicas, one.directories, strict=True):
                if is_offline(*pair):
                    self.replicas[pair] += sign

    @property
    def health(self) -> ClusterHealth:
        """The counts."""
        directories = sum(count > 0 for count in self.replicas.values())
        return ClusterHealth(**dict(zip(HEALTH_COUNTS, (*self.partitions, directories), strict=True)))


def count_health(image: MetadataImage) -> ClusterHealth:
    """The counts of an image."""
    return HealthTally.of(image).health


def _is_offline(image: MetadataImage) -> Callable[[int, Uuid], bool]:
    brokers = image.cluster.brokers
    return lambda id_, directory: id_ in brokers and not brokers[id_].has_online_dir(directory)
