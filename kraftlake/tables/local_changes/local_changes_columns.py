"""The rows of `local_changes/`, made of changes of partitions. Imports numpy."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraftlake.delta.topics.broker_changes import changes_of_brokers
from kraftlake.kernels import compiled
from kraftlake.kernels.columns.change_buffers import DELETE, HAS, ChangeColumns
from kraftlake.replay.log.delta_chunk import DeltaBoundaries
from kraftlake.replay.log.partition_changes import PartitionChanges
from kraftlake.tables.history.history_columns import times_of
from kraftlake.tables.local_changes.local_changes_table import CHANGES_BY_NAME, ENCODED_SCHEMA

_CHANGES: Final = pa.array(CHANGES_BY_NAME, pa.string())
_BROKERS_APART: Final = 1 << 10
"""If broker ids span more than this, they are numbered before they are sorted."""


def local_change_table(changes: PartitionChanges, boundaries: DeltaBoundaries) -> pa.Table:
    """The rows of `local_changes/` of deltas, in order: ENCODED_SCHEMA.

    Rows are sorted by delta, broker, topic's name, partition and change. `changes` may have several changes of a
    partition in a delta.
    """
    changes = changes.by_delta()
    used = np.zeros(len(changes.names.topics), np.bool_)
    used[changes.topics] = True
    numbers = np.flatnonzero(used)
    topics = (np.cumsum(used, dtype=np.int32) - np.int32(1))[changes.topics]
    names, ids = (array.take(pa.array(numbers)) for array in (changes.names.topics, changes.names.ids))
    rows = _columns(changes, topics, _order(changes, _ranks(names)[topics]), boundaries)
    deleted = rows.kinds == DELETE
    gone = deleted if deleted.any() else None
    topic = pa.array(rows.topics)
    columns = {
        "offset": pa.array(rows.offsets),
        "epoch": pa.array(rows.epochs),
        "timestamp": times_of(rows.times),
        "broker": pa.array(rows.brokers),
        "change": pa.DictionaryArray.from_arrays(pa.array(rows.kinds), _CHANGES),
        "topic": pa.DictionaryArray.from_arrays(topic, names),
        "topic_id": pa.DictionaryArray.from_arrays(topic, ids),
        "partition": pa.array(rows.partitions),
        "leader": pa.array(rows.leaders, mask=gone),
        "leader_epoch": pa.array(rows.leader_epochs, mask=gone),
        "partition_epoch": pa.array(rows.partition_epochs, mask=gone),
        "replicas": _lists(rows.replica_bounds, rows.replicas, gone),
        "isr": _lists(rows.isr_bounds, rows.isr, gone),
        "directory": pa.DictionaryArray.from_arrays(
            pa.array(rows.directories, mask=rows.directories < 0), changes.names.directories
        ),
    }
    return pa.table([columns[name] for name in ENCODED_SCHEMA.names], schema=ENCODED_SCHEMA)


def _column_room(rows: int, replicas: int, members: int) -> ChangeColumns:
    """Arrays for a number of rows, of replicas in all and of ISR members in all."""
    sizes = (*[rows] * 9, rows + 1, replicas, rows + 1, members)
    return ChangeColumns._make([*np.empty((2, rows), np.int64), *(np.empty(size, np.int32) for size in sizes)])


def _columns(changes: PartitionChanges, topics: Any, order: Any, boundaries: DeltaBoundaries) -> ChangeColumns:
    """The changes of brokers, by delta and broker, then in the `order` of the changes, which is by delta.

    `topics` (int32) are the numbers of the partitions' topics in the columns.
    """
    found, replicas, members = changes_of_brokers(order, changes.before, changes.after, changes.flags, changes.heaps)
    changed, ids = found.changed, found.brokers
    count = len(changed)
    columns = _column_room(count, replicas + 3, members + 3)
    places = np.empty(count, np.int64)
    numbers, brokers = ids.astype(np.int64), 0
    if count:
        numbers -= int(numbers.min())
        brokers = int(numbers.max()) + 1
    if brokers > _BROKERS_APART:
        known, numbers = np.unique(ids, return_inverse=True)
        numbers, brokers = numbers.reshape(-1).astype(np.int64), len(known)
    compiled.sort_changes(changed, changes.deltas, numbers, np.empty(brokers + 1, np.int64), places)
    partitions = compiled.ChangedPartitions(changes.after, changes.deltas, topics, changes.partitions)
    deltas = map(np.ascontiguousarray, (boundaries.offsets, boundaries.epochs, boundaries.times))
    heads, into = compiled.DeltaHeads(*deltas), compiled.ChangeColumns(*columns)
    compiled.fill_change_columns(compiled.BrokerChanges(*found), places, partitions, heads, *changes.heaps, into)
    return columns._replace(replicas=columns.replicas[:replicas], isr=columns.isr[:members])


def _order(changes: PartitionChanges, topics: Any) -> Any:
    """The order by delta, topic's name and partition; of two topics with one name the removed one is first."""
    count = len(changes)
    has = ((changes.flags & HAS) != 0).astype(np.int64)
    numbers = changes.partitions.astype(np.int64)
    sizes = [int(each.max(initial=0)) + 1 for each in (changes.deltas, topics, numbers)]
    if 2 * sizes[0] * sizes[1] * sizes[2] >= 1 << 63:
        return np.lexsort((has, numbers, topics, changes.deltas))
    keys = ((changes.deltas * sizes[1] + topics) * sizes[2] + numbers) * 2 + has
    return np.arange(count) if (keys[1:] >= keys[:-1]).all() else np.argsort(keys)


def _ranks(names: pa.Array) -> Any:
    """The rank of each name; equal names have the same rank."""
    return pc.rank(names, tiebreaker="dense").to_numpy().astype(np.int64)


def _lists(bounds: Any, members: Any, gone: Any) -> pa.Array:
    """Lists of numbers; null where `gone` (bool, None: nowhere)."""
    mask = None if gone is None else pa.array(gone)
    return pa.ListArray.from_arrays(pa.array(bounds), pa.array(members), mask=mask)
