"""The rows of `local_changes/` as columns: what changes of partitions mean to brokers. Imports numpy."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraftlake.image.topics.partition_rows import ISR
from kraftlake.kernels.aot.compiled import run
from kraftlake.kernels.columns.broker_changes import DELETE, HAS, changes_of_brokers, most_changes
from kraftlake.kernels.columns.change_columns import fill_change_columns, sort_changes
from kraftlake.tables.changes.delta_boundaries import DeltaBoundaries
from kraftlake.tables.changes.partition_changes import PartitionChanges
from kraftlake.tables.history.columns import times_of
from kraftlake.tables.local_changes.table import CHANGES_BY_NAME, ENCODED_SCHEMA
from kraftlake.tables.row_lists import LISTS

_CHANGES: Final = pa.array(CHANGES_BY_NAME, pa.string())
_BROKERS_APART: Final = 1 << 10
"""Ids of brokers that lie further apart than this are numbered before they are sorted."""


def local_change_table(changes: PartitionChanges, boundaries: DeltaBoundaries) -> pa.Table:
    """The rows of `local_changes/` of deltas, in order: ENCODED_SCHEMA.

    By delta, broker, topic's name, partition and change. `changes` may have several changes of a partition in a delta.
    """
    changes = changes.by_delta()
    used = np.zeros(len(changes.names.topics), np.bool_)
    used[changes.topics] = True
    numbers = np.flatnonzero(used)
    topics = (np.cumsum(used, dtype=np.int32) - np.int32(1))[changes.topics]
    names, ids = (array.take(pa.array(numbers)) for array in (changes.names.topics, changes.names.ids))
    told = _told(changes, topics, _order(changes, _ranks(names)[topics]), boundaries)
    deleted = told.kinds == DELETE
    gone = deleted if deleted.any() else None
    topic = pa.array(told.topics)
    columns = {
        "offset": pa.array(told.offsets),
        "epoch": pa.array(told.epochs),
        "timestamp": times_of(told.times),
        "broker": pa.array(told.brokers),
        "change": pa.DictionaryArray.from_arrays(pa.array(told.kinds), _CHANGES),
        "topic": pa.DictionaryArray.from_arrays(topic, names),
        "topic_id": pa.DictionaryArray.from_arrays(topic, ids),
        "partition": pa.array(told.partitions),
        "leader": pa.array(told.leaders, mask=gone),
        "leader_epoch": pa.array(told.leader_epochs, mask=gone),
        "partition_epoch": pa.array(told.partition_epochs, mask=gone),
        "replicas": _lists(told.replica_bounds, told.replicas, gone),
        "isr": _lists(told.isr_bounds, told.isr, gone),
        "directory": pa.DictionaryArray.from_arrays(
            pa.array(told.directories, mask=told.directories < 0), changes.names.directories
        ),
    }
    return pa.table([columns[name] for name in ENCODED_SCHEMA.names], schema=ENCODED_SCHEMA)


class _Told(NamedTuple):
    """Room for what brokers are told: see `changes_of_brokers`."""

    changed: Any
    brokers: Any
    kinds: Any
    directories: Any


class _Lists(NamedTuple):
    """Memory that `changes_of_brokers` works in."""

    lists: Any
    lengths: Any
    before: Any
    before_lengths: Any

    @classmethod
    def of(cls, longest: int) -> _Lists:
        """For lists up to a length."""
        lists, lengths = np.empty((2, len(LISTS), longest), np.int32), np.empty((2, len(LISTS)), np.int32)
        return cls(lists[0], lengths[0], lists[1], lengths[1])


class _Changed(NamedTuple):
    """What `fill_change_columns` takes of changed partitions."""

    rows: Any
    deltas: Any
    topics: Any
    partitions: Any


class _Heads(NamedTuple):
    """What `fill_change_columns` takes of deltas."""

    offsets: Any
    epochs: Any
    times: Any


class _Columns(NamedTuple):
    """What brokers are told, as columns: see `fill_change_columns`."""

    offsets: Any
    times: Any
    epochs: Any
    brokers: Any
    kinds: Any
    directories: Any
    topics: Any
    partitions: Any
    leaders: Any
    leader_epochs: Any
    partition_epochs: Any
    replica_bounds: Any
    replicas: Any
    isr_bounds: Any
    isr: Any

    @classmethod
    def room(cls, rows: int, replicas: int, members: int) -> _Columns:
        """Room for so many rows, replicas and members of the ISR."""
        sizes = (*[rows] * 9, rows + 1, replicas, rows + 1, members)
        return cls(np.empty(rows, np.int64), np.empty(rows, np.int64), *(np.empty(size, np.int32) for size in sizes))


def _told(changes: PartitionChanges, topics: Any, order: Any, boundaries: DeltaBoundaries) -> _Columns:
    """What brokers are told, by delta and broker, then in an order of the changes, which is by delta.

    `topics` (int32) are the partitions' topics as the columns name them.
    """
    compiled = changes.compiled
    states = (changes.before, changes.after, changes.flags, *changes.heaps)
    most, longest = run(most_changes, compiled, *states)
    room = _Told(np.empty(most, np.int64), np.empty(most, np.int32), np.empty(most, np.uint8), np.empty(most, np.int32))
    lists = _Lists.of(max(int(longest), ISR))
    count, replicas, members = run(changes_of_brokers, compiled, order, *states, lists, room)
    told, columns = _Told(*(array[:count] for array in room)), _Columns.room(count, replicas + 3, members + 3)
    places = np.empty(count, np.int64)
    numbers, brokers = told.brokers.astype(np.int64), 0
    if count:
        numbers -= int(numbers.min())
        brokers = int(numbers.max()) + 1
    if brokers > _BROKERS_APART:
        ids, numbers = np.unique(told.brokers, return_inverse=True)
        numbers, brokers = numbers.reshape(-1).astype(np.int64), len(ids)
    run(sort_changes, compiled, told.changed, changes.deltas, numbers, np.empty(brokers + 1, np.int64), places)
    changed = _Changed(changes.after, changes.deltas, topics, changes.partitions)
    of_deltas = _Heads(*map(np.ascontiguousarray, (boundaries.offsets, boundaries.epochs, boundaries.times)))
    run(fill_change_columns, compiled, told, places, changed, of_deltas, *changes.heaps, columns)
    return columns._replace(replicas=columns.replicas[:replicas], isr=columns.isr[:members])


def _order(changes: PartitionChanges, topics: Any) -> Any:
    """By delta, topic's name and partition; of two topics of one name in a delta the removed one comes first."""
    count = len(changes)
    has = ((changes.flags & HAS) != 0).astype(np.int64)
    numbers = changes.partitions.astype(np.int64)
    sizes = [int(each.max(initial=0)) + 1 for each in (changes.deltas, topics, numbers)]
    if 2 * sizes[0] * sizes[1] * sizes[2] >= 1 << 63:
        return np.lexsort((has, numbers, topics, changes.deltas))
    keys = ((changes.deltas * sizes[1] + topics) * sizes[2] + numbers) * 2 + has
    return np.arange(count) if (keys[1:] >= keys[:-1]).all() else np.argsort(keys)


def _ranks(names: pa.Array) -> Any:
    """Where each name stands among all in order; equal names stand at the same place."""
    return pc.rank(names, tiebreaker="dense").to_numpy().astype(np.int64)


def _lists(bounds: Any, members: Any, gone: Any) -> pa.Array:
    """Lists of numbers, a null where `gone` (bool, None for nowhere)."""
    mask = None if gone is None else pa.array(gone)
    return pa.ListArray.from_arrays(pa.array(bounds), pa.array(members), mask=mask)
