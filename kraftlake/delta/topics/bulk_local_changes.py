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
from kraftlake.kernels.columns.change_buffers import DELETE, ELECTED, FOLLOWER, LEADING

K = TypeVar("K")
V = TypeVar("V")


def bulk_local_changes(change: BulkChange, broker: int) -> LocalReplicaChanges:
    """Kafka's `TopicsDelta.localChanges` of a bulk change; see `TopicsDelta.local_changes`."""
    rows = change.changed_rows()
    topics, partitions, before, after, flags, _ = rows.columns
    heaps = (change.base.heap, change.state.heap)
    found, *_ = changes_of_brokers(np.arange(len(rows)), before, after, flags, heaps, broker=broker)
    changed, kinds, directories = found.changed, found.kinds, change.directory_ids()

    def key(at: int) -> TopicPartition:
        return TopicPartition(change.topic_name(topics[at]), partitions[at])

    def info(at: int) -> PartitionInfo:
        state = rows.after(at)
        assert state is not None, "the broker hosts it"
        return PartitionInfo(change.topic_id(topics[at]), state)

    followed = np.flatnonzero(np.bincount(np.asarray(topics)[changed[kinds >= FOLLOWER]]))
    return LocalReplicaChanges(
        deletes={*map(key, changed[kinds == DELETE].tolist())},
        elected_leaders=LazyMap(changed[kinds == ELECTED], key, info),
        leaders=LazyMap(changed[kinds >= LEADING], key, info),
        followers=LazyMap(changed[kinds == FOLLOWER], key, info),
        topic_ids=LazyMap(followed, change.topic_name, change.topic_id),
        directory_ids=LazyMap(
            np.flatnonzero(found.directories >= 0),
            lambda number: TopicIdPartition(change.topic_id(topics[changed[number]]), key(changed[number])),
            lambda number: directories[found.directories[number]],
        ),
    )


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
