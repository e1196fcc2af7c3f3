"""A coordinator that only records its calls, for replays and tests without groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.image.metadata_image import MetadataImage


@attrs.frozen
class Started:
    """The start, for a state topic of `partition_count` partitions."""

    partition_count: int


@attrs.frozen
class Elected:
    """The election as leader of a partition of the state topic."""

    partition: int
    leader_epoch: int


@attrs.frozen
class Resigned:
    """The resignation as leader of a partition; without an epoch the replica was removed."""

    partition: int
    leader_epoch: int | None


@attrs.frozen
class PartitionsDeleted:
    """The deletion of partitions, with the offsets of groups in them."""

    partitions: tuple[TopicPartition, ...]


@attrs.frozen
class NewImage:
    """A new image up to `offset`."""

    offset: int


Call = Started | Elected | Resigned | PartitionsDeleted | NewImage


class CoordinatorRecorder:
    """Records its calls in order in `calls`; `leading` has the leader epochs of the partitions that it leads."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.leading: dict[int, int] = {}

    def startup(self, partition_count: Callable[[], int]) -> None:
        """Record the count."""
        self.calls.append(Started(partition_count()))

    def on_election(self, partition: int, leader_epoch: int) -> None:
        """Record the epoch."""
        self.calls.append(Elected(partition, leader_epoch))
        self.leading[partition] = leader_epoch

    def on_resignation(self, partition: int, leader_epoch: int | None) -> None:
        """Remove the epoch."""
        self.calls.append(Resigned(partition, leader_epoch))
        self.leading.pop(partition, None)

    def on_partitions_deleted(self, partitions: Sequence[TopicPartition]) -> None:
        """Record the partitions."""
        self.calls.append(PartitionsDeleted(tuple(partitions)))

    def on_metadata_update(self, delta: MetadataDelta, new_image: MetadataImage) -> None:
        """Record the offset."""
        self.calls.append(NewImage(new_image.offset))
