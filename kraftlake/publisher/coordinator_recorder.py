"""A coordinator that only remembers what it was told: for replays and tests, where there are no groups to run."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from kraftlake.delta import MetadataDelta, TopicPartition
from kraftlake.image import MetadataImage


@attrs.frozen
class Started:
    """It was started, for a state topic of so many partitions."""

    partition_count: int


@attrs.frozen
class Elected:
    """It leads a partition of its state topic."""

    partition: int
    leader_epoch: int


@attrs.frozen
class Resigned:
    """It leads a partition no longer; without an epoch the replica is gone."""

    partition: int
    leader_epoch: int | None


@attrs.frozen
class PartitionsDeleted:
    """Partitions are gone, and the offsets of groups in them."""

    partitions: tuple[TopicPartition, ...]


@attrs.frozen
class NewImage:
    """There is an image up to that offset."""

    offset: int


Told = Started | Elected | Resigned | PartitionsDeleted | NewImage


class CoordinatorRecorder:
    """Remembers in `told`, in order; `leading` holds the leader epochs of the partitions that it leads."""

    def __init__(self) -> None:
        self.told: list[Told] = []
        self.leading: dict[int, int] = {}

    def startup(self, partition_count: Callable[[], int]) -> None:
        """Note the count."""
        self.told.append(Started(partition_count()))

    def on_election(self, partition: int, leader_epoch: int) -> None:
        """Note the epoch."""
        self.told.append(Elected(partition, leader_epoch))
        self.leading[partition] = leader_epoch

    def on_resignation(self, partition: int, leader_epoch: int | None) -> None:
        """Forget the epoch."""
        self.told.append(Resigned(partition, leader_epoch))
        self.leading.pop(partition, None)

    def on_partitions_deleted(self, partitions: Sequence[TopicPartition]) -> None:
        """Note the partitions."""
        self.told.append(PartitionsDeleted(tuple(partitions)))

    def on_metadata_update(self, delta: MetadataDelta, new_image: MetadataImage) -> None:
        """Note the offset."""
        self.told.append(NewImage(new_image.offset))
