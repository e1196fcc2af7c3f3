"""The local changes of one broker from a bulk change, as mappings that make entries on access. Imports numpy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np

from kraftlake.delta.topics.bulk_change import BulkChange
from kraftlake.delta.topics.local_replica_changes import (
    LocalReplicaChanges,
    PartitionInfo,
    TopicIdPartition,
    TopicPartition,
)
from kraftlake.records.uuid import Uuid

K = TypeVar("K")
V = TypeVar("V")


def bulk_local_changes(bulk: BulkChange, broker: int) -> LocalReplicaChanges:
    """Kafka's `TopicsDelta.localChanges` of a bulk change; see `TopicsDelta.local_changes`."""
    places = bulk.local_places(broker)
    view = _View(bulk, broker)
    followed = (places["leaders"], places["followers"])
    return LocalReplicaChanges(
        deletes={*map(view.key, places["deletes"].tolist()), *map(view.row_key, places["deleted_rows"].tolist())},
        elected_leaders=LazyMap(places["elected_leaders"], view.key, view.info),
        leaders=LazyMap(places["leaders"], view.key, view.info),
        followers=LazyMap(places["followers"], view.key, view.info),
        topic_ids=LazyMap(view.first_of_topics(*followed), view.name, view.topic_id),
        directory_ids=LazyMap(places["directory_ids"], view.id_key, view.directory),
    )


class LazyMap(Mapping[K, V], Generic[K, V]):
    """A mapping over the places in an int32 array; `key` and `value` make the entry of a place."""

    def __init__(self, places: Any, key: Callable[[int], K], value: Callable[[int], V]) -> None:
        self._places = places
        self._key = key
        self._value = value

    @cached_property
    def _by_key(self) -> dict[K, int]:
        return {self._key(place): place for place in self._places.tolist()}

    def __getitem__(self, key: K) -> V:
        return self._value(self._by_key[key])

    def __iter__(self) -> Iterator[K]:
        return iter(self._by_key)

    def __len__(self) -> int:
        return len(self._places)

    def __repr__(self) -> str:
        return f"LazyMap({dict(self)!r})"


class _View:
    """Makes keys and values of places of the change."""

    def __init__(self, bulk: BulkChange, broker: int) -> None:
        self.bulk = bulk
        self._broker = broker

    @cached_property
    def _tables(self) -> tuple[Any, tuple[Uuid, ...], list[str]]:
        bulk = self.bulk
        return bulk.heap(), bulk.directory_ids(), bulk.packed.table.names + bulk.new_names

    def key(self, place: int) -> TopicPartition:
        topic, partition = self.bulk.partition_at(place)
        return TopicPartition(self._tables[2][topic], partition)

    def name(self, place: int) -> str:
        return self._tables[2][self.bulk.topic_at(place)]

    def topic_id(self, place: int) -> Uuid:
        return self.bulk.topic_id(self.bulk.topic_at(place))

    def id_key(self, place: int) -> TopicIdPartition:
        return TopicIdPartition(self.topic_id(place), self.key(place))

    def info(self, place: int) -> PartitionInfo:
        heap, directories, _ = self._tables
        return PartitionInfo(self.topic_id(place), self.bulk.state_at(place, heap, directories))

    def directory(self, place: int) -> Uuid:
        directory = self.info(place).partition.directory(self._broker)
        assert directory is not None, "the broker is one of the replicas"
        return directory

    def row_key(self, row: int) -> TopicPartition:
        """The partition of a row of the base."""
        table = self.bulk.packed.table
        topic = int(np.searchsorted(table.starts, row, side="right")) - 1
        place = row - int(table.starts[topic])
        ids = table.sparse.get(topic)
        return TopicPartition(table.name_of(topic), place if ids is None else ids[place])

    def first_of_topics(self, *places: Any) -> Any:
        """One place of each topic."""
        bulk = self.bulk
        at = np.concatenate(places)
        touched = int(bulk.gathered().counts[0])
        fresh = at >= touched
        topics = np.empty(len(at), np.int64)
        topics[~fresh] = np.searchsorted(bulk.base.starts, bulk.gathered().touched[at[~fresh]], side="right") - 1
        topics[fresh] = bulk.state.fresh_topics[at[fresh] - touched]
        _, first = np.unique(topics, return_index=True)
        return at[first]
