"""Changes of one topic's partitions."""

from __future__ import annotations

from kraftlake.image.topics.partition_registration import PartitionRegistration
from kraftlake.image.topics.topic_image import TopicImage
from kraftlake.records.uuid import Uuid


class TopicDelta:
    """`partition_changes` has the new state by partition id, also if it equals the old one.

    A topic that is new in the delta, or that comes from a snapshot, has an `image` without partitions.
    `elr_elections` and `unclean_elections` count elections by partition, for metrics.
    """

    def __init__(self, image: TopicImage) -> None:
        self.image = image
        self.partition_changes: dict[int, PartitionRegistration] = {}
        self.elr_elections: dict[int, int] = {}
        self.unclean_elections: dict[int, int] = {}

    @property
    def name(self) -> str:
        """The topic's name."""
        return self.image.name

    @property
    def id(self) -> Uuid:
        """The topic's id."""
        return self.image.id

    def partition(self, partition_id: int) -> PartitionRegistration | None:
        """The current state of a partition."""
        return self.partition_changes.get(partition_id) or self.image.partitions.get(partition_id)
