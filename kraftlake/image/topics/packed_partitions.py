"""The partitions of one topic in a packed image, as a mapping that makes its objects on access."""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, Mapping, ValuesView
from typing import TYPE_CHECKING, Any

from rpds import HashTrieMap

from kraftlake.image.topics.partition_registration import PartitionRegistration

if TYPE_CHECKING:
    from kraftlake.image.topics.packed_topics import PackedTopics

_new: Any = object.__new__


class PackedPartitions(Mapping[int, PartitionRegistration]):
    """Partition id → state, in the order of ids: the topic's rows of `base`, replaced by those in `changed`.

    `_ids` is None if the partition ids are 0, 1, 2, …
    """

    __slots__ = ("_all", "_changed", "_ids", "_made", "base", "size", "start")

    def __init__(self, base: PackedTopics, topic: int, changed: HashTrieMap[int, PartitionRegistration] | None) -> None:
        bounds = base.table.bounds
        self.base = base
        self.start: int = bounds[topic]
        self.size: int = bounds[topic + 1] - self.start
        self._ids = base.table.sparse.get(topic)
        self._changed = changed
        self._made: dict[int, PartitionRegistration] = {}
        self._all = False

    def __getitem__(self, partition_id: int) -> PartitionRegistration:
        made: PartitionRegistration | None = self.get(partition_id)
        if made is None:
            raise KeyError(partition_id)
        return made

    def get(self, partition_id: int, default: Any = None) -> Any:
        """The state of a partition, or `default`."""
        made = self._made.get(partition_id)
        if made is not None:
            return made
        place = self.place(partition_id)
        if place < 0:
            return default
        state = None if self._changed is None else self._changed.get(self.start + place)
        if state is None:
            state = self.base.registration(self.start + place)
        self._made[partition_id] = state
        return state

    def place(self, partition_id: int) -> int:
        """The position of a partition among the topic's rows; -1 if there is none."""
        if self._ids is not None:
            return self._ids.index(partition_id) if partition_id in self._ids else -1
        return partition_id if 0 <= partition_id < self.size else -1

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.size) if self._ids is None else self._ids)

    def __contains__(self, partition_id: object) -> bool:
        return isinstance(partition_id, int) and self.place(partition_id) >= 0

    def items(self) -> ItemsView[int, PartitionRegistration]:
        """The pairs, by id."""
        return (self._made if self._all else self._make_all()).items()

    def values(self) -> ValuesView[PartitionRegistration]:
        """The states, by id."""
        return (self._made if self._all else self._make_all()).values()

    def _make_all(self) -> dict[int, PartitionRegistration]:
        made: dict[int, PartitionRegistration] = {}
        states = self.base.registrations(self.start, self.start + self.size)
        for place, (partition_id, state) in enumerate(zip(self, states, strict=True)):
            known = self._made.get(partition_id)
            if known is None and self._changed is not None:
                known = self._changed.get(self.start + place)
            made[partition_id] = state if known is None else known
        self._made = made
        self._all = True
        return made

    def with_states(self, states: Mapping[int, PartitionRegistration]) -> PackedPartitions:
        """The partitions with other states of some of them."""
        changed: HashTrieMap[int, PartitionRegistration] = HashTrieMap() if self._changed is None else self._changed
        for partition_id, state in states.items():
            changed = changed.insert(self.start + self.place(partition_id), state)
        made: PackedPartitions = _new(PackedPartitions)
        made.base, made.start, made.size, made._ids = self.base, self.start, self.size, self._ids
        made._changed, made._made, made._all = changed, {}, False
        return made

    def changed_rows(self) -> Iterable[tuple[int, PartitionRegistration]]:
        """The partitions whose states replace those of the base, by row."""
        changed, stop = self._changed, self.start + self.size
        if changed is None:
            return
        if len(changed) > self.size:
            yield from ((row, changed[row]) for row in range(self.start, stop) if row in changed)
        else:
            yield from ((row, state) for row, state in changed.items() if self.start <= row < stop)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Mapping | HashTrieMap) or len(self) != len(other):
            return False
        return all(other.get(key) == value for key, value in self.items())

    def __hash__(self) -> int:
        return hash(len(self))

    def __repr__(self) -> str:
        return f"PackedPartitions({dict(self.items())!r})"


def ids_that_may_differ(
    one: Mapping[int, PartitionRegistration], two: Mapping[int, PartitionRegistration]
) -> Iterable[int] | None:
    """The ids of the partitions in which two states of a topic may differ; None if that is unknown."""
    if not (isinstance(one, PackedPartitions) and isinstance(two, PackedPartitions)) or one.base is not two.base:
        return None
    mine, theirs = one._changed, two._changed
    if mine is theirs:
        return ()
    return [
        partition_id
        for row, partition_id in enumerate(one, one.start)
        if (None if mine is None else mine.get(row)) is not (None if theirs is None else theirs.get(row))
    ]
