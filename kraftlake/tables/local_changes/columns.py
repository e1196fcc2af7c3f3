"""The rows of `local_changes/` as columns: what changes of partitions mean to brokers. Imports numpy and numba."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraftlake.kernels.columns.broker_changes import DELETE, HAS, TOO_LONG, changes_of_brokers, most_changes
from kraftlake.kernels.columns.change_columns import fill_change_columns, sort_changes
from kraftlake.kernels.replay.change_state import Base, State
from kraftlake.tables.changes.delta_boundaries import DeltaBoundaries
from kraftlake.tables.history.columns import times_of
from kraftlake.tables.local_changes.table import CHANGES_BY_NAME, ENCODED_SCHEMA
from kraftlake.tables.row_lists import RowLists

_CHANGES: Final = pa.array(CHANGES_BY_NAME, pa.string())
_BROKERS_APART: Final = 1 << 10
"""Ids of brokers that lie further apart than this are numbered before they are sorted."""


@attrs.frozen(kw_only=True, eq=False)
class ChangedPartitions:
    """n partitions, each as it was before a metadata delta and as it is after it.

    `before` and `after` (int32[n, 14]) are rows (see `image.topics.partition_rows`); `flags` (uint8[n]) are those of
    `kernels.columns.broker_changes`; `deltas` (int64[n]) says which of the heads it is of. `topics` are the numbers
    of the topics, `partitions` (int32[n]) those of the partitions. `base` and `state` have the rows' lists.
    """

    before: Any
    after: Any
    flags: Any
    deltas: Any
    topics: Any
    partitions: Any
    base: Base
    state: State

    def part(self, some: slice) -> ChangedPartitions:
        """Some of them."""
        return attrs.evolve(
            self,
            before=self.before[some],
            after=self.after[some],
            flags=self.flags[some],
            deltas=self.deltas[some],
            topics=self.topics[some],
            partitions=self.partitions[some],
        )

    def has_long_lists(self) -> bool:
        """Whether a partition has a list that is too long for compiled code."""
        return any(self.lists(rows).some_too_long() for rows in (self.before, self.after))

    def lists(self, rows: Any) -> RowLists:
        """The lists of rows, `before` or `after`."""
        return RowLists(rows, self.base.heap, self.state.heap)


@attrs.frozen(kw_only=True, eq=False)
class Strings:
    """Names and ids (string arrays) of topics by their numbers, and the ids of directories (one) by theirs."""

    names: Callable[[Any], pa.Array]
    ids: Callable[[Any], pa.Array]
    directories: pa.Array


def local_change_table(partitions: ChangedPartitions, heads: DeltaBoundaries, strings: Strings) -> pa.Table:
    """The rows that `local_change_rows` makes, of each delta after the one before: ENCODED_SCHEMA.

    No partition has a list that is too long for compiled code.
    """
    used = np.zeros(int(partitions.topics.max(initial=-1)) + 1, np.bool_)
    used[partitions.topics] = True
    numbers = np.flatnonzero(used)
    topics = (np.cumsum(used, dtype=np.int32) - np.int32(1))[partitions.topics]
    names, ids = strings.names(numbers), strings.ids(numbers)
    told = _told(partitions, topics, _order(partitions, _ranks(names)[topics]), heads)
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
            pa.array(told.directories, mask=told.directories < 0), strings.directories
        ),
    }
    return pa.table([columns[name] for name in ENCODED_SCHEMA.names], schema=ENCODED_SCHEMA)


class _Told(NamedTuple):
    """Room for what brokers are told: see `changes_of_brokers`."""

    changed: Any
    brokers: Any
    kinds: Any
    directories: Any


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


def _told(partitions: ChangedPartitions, topics: Any, order: Any, heads: DeltaBoundaries) -> _Columns:
    """What brokers are told, by delta and broker, then in an order of the partitions, which is by delta.

    `topics` (int32) are the partitions' topics as the columns name them.
    """
    heaps = partitions.base.heap, partitions.state.heap
    states = (partitions.before, partitions.after, partitions.flags, *heaps)
    most = most_changes(*states)
    assert most != TOO_LONG, "those are for objects to do"
    room = _Told(np.empty(most, np.int64), np.empty(most, np.int32), np.empty(most, np.uint8), np.empty(most, np.int32))
    count, replicas, members = changes_of_brokers(order, *states, partitions.state, room)
    told, columns = _Told(*(array[:count] for array in room)), _Columns.room(count, replicas + 3, members + 3)
    places = np.empty(count, np.int64)
    numbers, brokers = told.brokers.astype(np.int64), 0
    if count:
        numbers -= int(numbers.min())
        brokers = int(numbers.max()) + 1
    if brokers > _BROKERS_APART:
        ids, numbers = np.unique(told.brokers, return_inverse=True)
        numbers, brokers = numbers.reshape(-1).astype(np.int64), len(ids)
    sort_changes(told.changed, partitions.deltas, numbers, np.empty(brokers + 1, np.int64), places)
    changed = _Changed(partitions.after, partitions.deltas, topics, partitions.partitions)
    of_deltas = _Heads(*map(np.ascontiguousarray, (heads.offsets, heads.epochs, heads.times)))
    fill_change_columns(told, places, changed, of_deltas, *heaps, columns)
    return columns._replace(replicas=columns.replicas[:replicas], isr=columns.isr[:members])


def _order(partitions: ChangedPartitions, topics: Any) -> Any:
    """By delta, topic's name and partition; of two that are the same, for the topic is another, first what is gone."""
    count = len(partitions.flags)
    has = ((partitions.flags & HAS) != 0).astype(np.int64)
    numbers = partitions.partitions.astype(np.int64)
    sizes = [int(each.max(initial=0)) + 1 for each in (partitions.deltas, topics, numbers)]
    if 2 * sizes[0] * sizes[1] * sizes[2] >= 1 << 63:
        return np.lexsort((has, numbers, topics, partitions.deltas))
    keys = ((partitions.deltas * sizes[1] + topics) * sizes[2] + numbers) * 2 + has
    return np.arange(count) if (keys[1:] >= keys[:-1]).all() else np.argsort(keys)


def _ranks(names: pa.Array) -> Any:
    """Where each name stands among all in order; equal names stand at the same place."""
    return pc.rank(names, tiebreaker="dense").to_numpy().astype(np.int64)


def _lists(bounds: Any, members: Any, gone: Any) -> pa.Array:
    """Lists of numbers, a null where `gone` (bool, None for nowhere)."""
    mask = None if gone is None else pa.array(gone)
    return pa.ListArray.from_arrays(pa.array(bounds), pa.array(members), mask=mask)
