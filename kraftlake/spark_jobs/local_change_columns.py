"""The rows of `local_changes/` as columns: what changes of partitions mean to brokers. Imports numpy and numba."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraftlake.image.partition_rows import LEADER, LEADER_EPOCH, PARTITION_EPOCH
from kraftlake.kernels.broker_changes import TOO_LONG, changes_of_brokers
from kraftlake.kernels.change_state import Base, State
from kraftlake.spark_jobs.delta_heads import DeltaHeads
from kraftlake.spark_jobs.local_changes import CHANGES_BY_NAME, SCHEMA
from kraftlake.spark_jobs.row_lists import RowLists


@attrs.frozen(kw_only=True, eq=False)
class ChangedPartitions:
    """n partitions, each as it was before a metadata delta and as it is after it.

    `before` and `after` (int32[n, 14]) are rows (see `kraftlake.image.partition_rows`); `flags` (uint8[n]) are those of
    `kraftlake.kernels.broker_changes`; `deltas` (int64[n]) says which of the heads it is of. `topics` are the numbers
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


def local_change_table(partitions: ChangedPartitions, heads: DeltaHeads, strings: Strings) -> pa.Table:
    """The rows that `local_change_rows` makes, of each delta after the one before.

    No partition has a list that is too long for compiled code.
    """
    told = _Told.of(partitions)
    numbers, which = np.unique(partitions.topics, return_inverse=True)
    topics = which.reshape(-1)
    names, ids = strings.names(numbers), strings.ids(numbers)
    told = told.take(_order(told, partitions, _ranks(names)[topics]))
    changed, deleted = told.changed, told.kinds == 0
    state = pa.array(changed, mask=deleted)
    deltas, after = partitions.deltas[changed], partitions.after
    times = heads.times[deltas]
    columns = {
        "offset": pa.array(heads.offsets[deltas]),
        "epoch": pa.array(heads.epochs[deltas].astype(np.int32, copy=False)),
        "timestamp": pa.array(times * 1000, mask=times < 0).cast(SCHEMA.field("timestamp").type),
        "broker": pa.array(told.brokers),
        "change": pa.array(CHANGES_BY_NAME, pa.string()).take(pa.array(told.kinds)),
        "topic": names.take(pa.array(topics[changed])),
        "topic_id": ids.take(pa.array(topics[changed])),
        "partition": pa.array(partitions.partitions[changed]),
        "leader": pa.array(after[changed, LEADER], mask=deleted),
        "leader_epoch": pa.array(after[changed, LEADER_EPOCH], mask=deleted),
        "partition_epoch": pa.array(after[changed, PARTITION_EPOCH], mask=deleted),
        **{name: lists.take(state) for name, lists in _lists(partitions).items()},
        "directory": strings.directories.take(pa.array(told.directories, mask=told.directories < 0)),
    }
    return pa.table([columns[name] for name in SCHEMA.names], schema=SCHEMA)


@attrs.frozen(kw_only=True, eq=False)
class _Told:
    """What brokers are told: see `changes_of_brokers`."""

    changed: Any
    brokers: Any
    kinds: Any
    directories: Any

    @classmethod
    def of(cls, partitions: ChangedPartitions) -> _Told:
        given = (
            partitions.before, partitions.after, partitions.flags,
            partitions.base.heap, partitions.state.heap, partitions.state,
        )  # fmt: skip
        count = changes_of_brokers(*given, *_room(0))
        assert count != TOO_LONG, "those are for objects to do"
        room = _room(count)
        if count:
            changes_of_brokers(*given, *room)
        changed, brokers, kinds, directories = room
        return cls(changed=changed, brokers=brokers, kinds=kinds, directories=directories)

    def take(self, order: Any) -> _Told:
        """The same in another order."""
        return _Told(
            changed=self.changed[order],
            brokers=self.brokers[order],
            kinds=self.kinds[order],
            directories=self.directories[order],
        )


def _room(count: int) -> tuple[Any, Any, Any, Any]:
    return np.empty(count, np.int64), np.empty(count, np.int32), np.empty(count, np.uint8), np.empty(count, np.int32)


def _order(told: _Told, partitions: ChangedPartitions, topics: Any) -> Any:
    """By delta, broker, topic's name, partition, and the word for the change."""
    if not len(told.changed):
        return told.changed
    width = int(partitions.partitions.max()) + 1
    places = topics * width + partitions.partitions
    of_place, of_delta = places[told.changed], partitions.deltas[told.changed]
    lowest = int(told.brokers.min())
    sizes = (
        int(of_delta.max()) + 1, int(told.brokers.max()) - lowest + 1, int(of_place.max()) + 1, len(CHANGES_BY_NAME),
    )  # fmt: skip
    if sizes[0] * sizes[1] * sizes[2] * sizes[3] >= 1 << 63:
        return np.lexsort((told.kinds, of_place, told.brokers, of_delta))
    keys = ((of_delta * sizes[1] + (told.brokers - lowest)) * sizes[2] + of_place) * sizes[3] + told.kinds
    return np.argsort(keys)


def _ranks(names: pa.Array) -> Any:
    """Where each name stands among all in order; equal names stand at the same place."""
    return pc.rank(names, tiebreaker="dense").to_numpy().astype(np.int64)


def _lists(partitions: ChangedPartitions) -> dict[str, pa.Array]:
    lists = partitions.lists(partitions.after)
    return {name: pa.ListArray.from_arrays(*map(pa.array, lists.flat(name))) for name in ("replicas", "isr")}
