"""The partitions of one topic in a packed image, as a mapping that makes its objects on access."""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, Mapping, ValuesView
from typing import TYPE_CHECKING, Any, TypeAlias

from rpds import HashTrieMap

from kraftlake.image.topics.layered_map import LayeredMap
from kraftlake.image.topics.partition_registration import PartitionRegistration

if TYPE_CHECKING:
    from kraftlake.image.topics.packed_topics import PackedTopics

_Rows: TypeAlias = LayeredMap[PartitionRegistration]
_new: Any = object.__new__


class PackedPartitions(Mapping[int, PartitionRegistration]):
    """Partition id → state, in the order of ids: the topic's rows of `base`, replaced by those in `changed`.

    `_ids` is None if the partition ids are 0, 1, 2, …
    """

    __slots__ = ("_all", "_changed", "_ids", "_made", "base", "size", "start")

    def __init__(self, base: PackedTopics, topic: int, changed: _Rows = LayeredMap.EMPTY) -> None:
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
        state = self._changed.get(self.start + place)
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
            if known is None:
                known = self._changed.get(self.start + place)
            made[partition_id] = state if known is None else known
        self._made = made
        self._all = True
        return made

    def with_state(self, partition_id: int, state: PartitionRegistration) -> PackedPartitions:
        """The partitions with another state of one of them."""
        made: PackedPartitions = _new(PackedPartitions)
        made.base, made.start, made.size, made._ids = self.base, self.start, self.size, self._ids
        made._changed = self._changed.changed({self.start + self.place(partition_id): state})
        made._made, made._all = {}, False
        return made

    def changed_rows(self) -> Iterator[tuple[int, PartitionRegistration]]:
        """The partitions whose states replace those of the base, by row."""
        for row in range(self.start, self.start + self.size):
            state = self._changed.get(row)
            if state is not None:
                yield row, state

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
    start, ids = one.start, one._ids
    places = [row - start for row in one._changed.unlike(two._changed) if start <= row < start + one.size]
    return places if ids is None else [ids[place] for place in places]
