"""Changes of one topic's partitions."""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter

import attrs
from rpds import HashTrieMap

from kraftlake.delta.changes import with_changes
from kraftlake.delta.topics.changed_partition import ChangedPartition
from kraftlake.image.topics.partition_registration import LeaderRecoveryState, PartitionRegistration, epoch_after
from kraftlake.image.topics.topic_image import TopicImage
from kraftlake.records.metadata_records import PartitionChangeRecord, PartitionRecord
from kraftlake.records.uuid import Uuid
from kraftlake.runtime import ReplayError


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

    def replay_partition(self, record: PartitionRecord) -> None:
        """Set the whole state; ReplayError if the record contradicts itself."""
        registration = PartitionRegistration.from_record(record)
        previous = self.partition(record.partition_id)
        if previous is not None:
            self._count_elections(record.partition_id, previous, record.leader, record.leader_recovery_state)
        self.partition_changes[record.partition_id] = registration
        self._directories_rewritten.add(record.partition_id)

    def replay_partition_change(self, record: PartitionChangeRecord) -> None:
        """Change a partition; ReplayError if it does not exist or the change contradicts it."""
        previous = self.partition(record.partition_id)
        if previous is None:
            raise ReplayError(f"topic {self.name!r} has no partition {record.partition_id}.")
        registration = previous.merge(record)
        self._count_elections(record.partition_id, previous, record.leader, record.leader_recovery_state)
        self.partition_changes[record.partition_id] = registration
        if record.directories is not None:
            self._directories_rewritten.add(record.partition_id)

    def take_over(
        self, partition_id: int, state: PartitionRegistration, flags: int, unclean_elections: int, elr_elections: int
    ) -> None:
        """Set the result of a bulk replay of a partition; bit 1 of `flags`: directories were written."""
        self.partition_changes[partition_id] = state
        if flags & 2:
            self._directories_rewritten.add(partition_id)
        if unclean_elections:
            self.unclean_elections[partition_id] = unclean_elections
        if elr_elections:
            self.elr_elections[partition_id] = elr_elections

    def clear_elr(self) -> None:
        """Clear the eligible leader replicas of all partitions that have some: one change each."""
        for partition_id, partition in sorted(self._current(), key=itemgetter(0)):
            if partition.elr or partition.last_known_elr:
                self.partition_changes[partition_id] = attrs.evolve(
                    partition, elr=(), last_known_elr=(), partition_epoch=epoch_after(partition.partition_epoch)
                )

    def has_elr(self) -> bool:
        """Whether `clear_elr` would change a partition."""
        return any(partition.elr or partition.last_known_elr for _, partition in self._current())

    def apply(self) -> TopicImage:
        """The topic after the changes; the same object if there are none."""
        before = self.image.partitions
        if not isinstance(before, HashTrieMap):  # a packed topic that gets new partitions
            before = HashTrieMap({**before})
        partitions = with_changes(before, self.partition_changes)
        if partitions is before:
            return self.image
        return TopicImage(name=self.name, id=self.id, partitions=partitions)

    def changed_partitions(self) -> Iterator[ChangedPartition]:
        """The partitions that records have changed."""
        for number, state in self.partition_changes.items():
            rewritten = number in self._directories_rewritten
            yield ChangedPartition(self.name, self.id, number, self.image.partitions.get(number), state, rewritten)

    def _current(self) -> list[tuple[int, PartitionRegistration]]:
        untouched = [(id_, p) for id_, p in self.image.partitions.items() if id_ not in self.partition_changes]
        return [*self.partition_changes.items(), *untouched]

    def _count_elections(
        self, partition_id: int, previous: PartitionRegistration, leader: int, recovery_state: int
    ) -> None:
        if recovery_state == LeaderRecoveryState.RECOVERING:
            self.unclean_elections[partition_id] = self.unclean_elections.get(partition_id, 0) + 1
        if leader in previous.elr:
            self.elr_elections[partition_id] = self.elr_elections.get(partition_id, 0) + 1
