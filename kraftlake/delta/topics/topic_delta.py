"""Changes of one topic's partitions."""

from __future__ import annotations

from collections.abc import Iterator

from kraftlake.delta.topics.changed_partition import ChangedPartition
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
        self._directories_rewritten: set[int] = set()
        """The partitions whose directories a record has written since the base image, even if with the same ids."""

    @property
    def name(self) -> str:
        """The topic's name."""
        return self.image.name

    @property
    def id(self) -> Uuid:
        """The topic's id."""
        return self.image.id

    def new_partitions(self) -> dict[int, PartitionRegistration]:
        """The partitions that the base image does not have."""
        return {id_: p for id_, p in self.partition_changes.items() if id_ not in self.image.partitions}

    def partition(self, partition_id: int) -> PartitionRegistration | None:
        """The current state of a partition."""
        return self.partition_changes.get(partition_id) or self.image.partitions.get(partition_id)

    def take_over(
        self, partition_id: int, state: PartitionRegistration, *, rewritten: bool, unclean: int, eligible: int
    ) -> None:
        """Set the state that records have made of a partition; `rewritten`: they wrote directories."""
        self.partition_changes[partition_id] = state
        if rewritten:
            self._directories_rewritten.add(partition_id)
        if unclean:
            self.unclean_elections[partition_id] = unclean
        if eligible:
            self.elr_elections[partition_id] = eligible

    def changed_partitions(self) -> Iterator[ChangedPartition]:
        """The partitions that records have changed."""
        for number, state in self.partition_changes.items():
            rewritten = number in self._directories_rewritten
            yield ChangedPartition(self.name, self.id, number, self.image.partitions.get(number), state, rewritten)
