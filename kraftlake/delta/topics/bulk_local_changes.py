"""The local changes of one broker from a bulk change, as mappings that make entries on access. Imports numpy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np

from kraftlake.delta.topics.broker_changes import changes_of_brokers
from kraftlake.delta.topics.bulk_change import BulkChange
from kraftlake.delta.topics.local_replica_changes import (
    LocalReplicaChanges,
    PartitionInfo,
    TopicIdPartition,
    TopicPartition,
)
from kraftlake.image.topics.partition_rows import COLUMNS, SHAPE, registration_of
from kraftlake.kernels.columns.change_buffers import DELETE, ELECTED, FOLLOWER, HAD, HAS, LEADING, WRITTEN
from kraftlake.kernels.replay.change_state import (
    ABSENT,
    AGAIN,
    ALIVE,
    DIRECTORIES_WRITTEN,
    GONE,
    N_FRESH,
    N_TOUCHED,
    TOUCHED,
    State,
)
from kraftlake.records.uuid import Uuid

K = TypeVar("K")
V = TypeVar("V")


def bulk_local_changes(bulk: BulkChange, broker: int) -> LocalReplicaChanges:
    """Kafka's `TopicsDelta.localChanges` of a bulk change; see `TopicsDelta.local_changes`."""
    places, before, after, flags = _rows_around(bulk)
    heaps = (bulk.base.heap, bulk.state.heap)
    found, *_ = changes_of_brokers(np.arange(len(places)), before, after, flags, heaps, broker=broker)
    view = _View(bulk, places[found.changed], after[found.changed], found.directories)
    kinds = found.kinds
    followed = np.zeros(bulk.topic_total, np.bool_)
    followed[view.topics[kinds >= FOLLOWER]] = True
    return LocalReplicaChanges(
        deletes={*map(view.key, np.flatnonzero(kinds == DELETE).tolist())},
        elected_leaders=LazyMap(np.flatnonzero(kinds == ELECTED), view.key, view.info),
        leaders=LazyMap(np.flatnonzero(kinds >= LEADING), view.key, view.info),
        followers=LazyMap(np.flatnonzero(kinds == FOLLOWER), view.key, view.info),
        topic_ids=LazyMap(np.flatnonzero(followed), view.name, bulk.topic_id),
        directory_ids=LazyMap(np.flatnonzero(found.directories >= 0), view.id_key, view.directory),
    )


def _rows_around(bulk: BulkChange) -> tuple[Any, Any, Any, Any]:
    """Partitions by places of a journal, their rows before and after, and the flags of `change_buffers`.

    They are those of the base that records have changed, those of removed topics, and the new ones, which have no row
    before.
    """
    arrays = {name: np.asarray(array) for name, array in vars(bulk.gathered()).items()}
    state, packed = State(**arrays), bulk.packed
    touched, fresh = int(state.counts[N_TOUCHED]), int(state.counts[N_FRESH])
    removed, places = _removed_rows(bulk), np.arange(packed.partition_count, packed.partition_count + fresh)
    after, noted = state.fresh_rows[:fresh], state.fresh_info[:fresh, 0]
    before = packed.rows[:0]
    if touched or len(removed):
        places = np.concatenate((state.touched[:touched], removed, places))
        before = np.concatenate(
            (
                np.asarray(packed.patches),
                packed.rows[places[len(packed.patched) : touched]],
                packed.merged_rows()[removed],
            )
        )
        none = np.zeros((len(removed), COLUMNS), np.int32)
        after = np.concatenate((state.touched_rows[:touched], none, after))
        noted = np.concatenate((state.touched_info[:touched, 0], none[:, 0], noted))
    lives = np.asarray(bulk.lives)[bulk.topics_at(places)]
    flags = np.where(noted & DIRECTORIES_WRITTEN, np.uint8(HAS | WRITTEN), np.uint8(HAS))
    flags[:touched][lives[:touched] == ALIVE] |= HAD
    flags[(noted & TOUCHED == 0) | (lives == GONE) | (after[:, SHAPE] == ABSENT)] = 0
    flags[touched : touched + len(removed)] = HAD
    return places, before, after, flags


def _removed_rows(bulk: BulkChange) -> Any:
    """The numbers of the rows of the base whose topics were removed."""
    table = bulk.packed.table
    is_removed = np.isin(bulk.lives[: table.topic_count], (GONE, AGAIN))
    return np.flatnonzero(np.repeat(is_removed, np.diff(table.starts))) if is_removed.any() else np.empty(0, np.int64)


class LazyMap(Mapping[K, V], Generic[K, V]):
    """A mapping over the numbers in an array; `key` and `value` make the entry of a number."""

    def __init__(self, numbers: Any, key: Callable[[int], K], value: Callable[[int], V]) -> None:
        self._numbers = numbers
        self._key = key
        self._value = value

    @cached_property
    def _by_key(self) -> dict[K, int]:
        return {self._key(number): number for number in self._numbers.tolist()}

    def __getitem__(self, key: K) -> V:
        return self._value(self._by_key[key])

    def __iter__(self) -> Iterator[K]:
        return iter(self._by_key)

    def __len__(self) -> int:
        return len(self._numbers)

    def __repr__(self) -> str:
        return f"LazyMap({dict(self)!r})"


class _View:
    """Makes keys and values of the changes of a broker, by number."""

    def __init__(self, bulk: BulkChange, places: Any, rows: Any, directories: Any) -> None:
        self.bulk = bulk
        self.topics = bulk.topics_at(places)
        self._partitions = bulk.partitions_at(places)
        self._rows = rows
        self._directories = directories

    @cached_property
    def names(self) -> list[str]:
        return self.bulk.packed.table.names + self.bulk.new_names

    @cached_property
    def _heap(self) -> Any:
        return self.bulk.heap()

    @cached_property
    def _ids(self) -> tuple[Uuid, ...]:
        return self.bulk.directory_ids()

    def name(self, topic: int) -> str:
        return self.names[topic]

    def key(self, number: int) -> TopicPartition:
        return TopicPartition(self.names[self.topics[number]], int(self._partitions[number]))

    def id_key(self, number: int) -> TopicIdPartition:
        return TopicIdPartition(self.bulk.topic_id(int(self.topics[number])), self.key(number))

    def info(self, number: int) -> PartitionInfo:
        state = registration_of(tuple(self._rows[number].tolist()), self._heap, self._ids)
        return PartitionInfo(self.bulk.topic_id(int(self.topics[number])), state)

    def directory(self, number: int) -> Uuid:
        return self._ids[int(self._directories[number])]
