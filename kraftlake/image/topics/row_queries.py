"""Queries over all partitions, on the rows of a packed image. Imports numpy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from kraftlake.image.partition_health import is_under_min_isr
from kraftlake.image.topics.buffers import zeros
from kraftlake.image.topics.packed_topics import PackedTopics
from kraftlake.image.topics.partition_registration import PartitionRegistration
from kraftlake.image.topics.row_lists import RowLists
from kraftlake.kernels import compiled
from kraftlake.kernels.columns import change_buffers

Int32s: TypeAlias = npt.NDArray[np.int32]


def lists_of(topics: PackedTopics) -> RowLists:
    """The lists of all rows."""
    return RowLists(topics.merged_rows(), topics.heap, topics.heap[:0])


def _replicas(lists: RowLists) -> tuple[Int32s, Int32s]:
    """The row and the broker of each replica."""
    bounds, brokers = lists.flat("replicas")
    return np.repeat(np.arange(len(bounds) - 1, dtype=np.int32), np.diff(bounds)), brokers


def count_offline_and_imbalanced(topics: PackedTopics) -> tuple[int, int]:
    """The numbers of partitions without a leader, and of those whose leader is not their first replica."""
    counts = count_rows(topics)
    return counts[change_buffers.OFFLINE], counts[change_buffers.IMBALANCED]


def count_rows(topics: PackedTopics) -> list[int]:
    """The counts of all partitions, in the order of the columns of `kernels.columns.change_buffers`."""
    counts = zeros("q", 1, change_buffers.COUNTS)
    compiled.count_partitions(topics.merged().cells, topics.heap, counts)
    return counts.tolist()[0]  # type: ignore[no-any-return]


def count_replicas(topics: PackedTopics, min_isr: Int32s) -> dict[int, list[int]]:
    """The counts of `broker_partitions` by broker; `min_isr` is int32[T], min.insync.replicas of each topic."""
    lists = lists_of(topics)
    of_rows = np.repeat(min_isr, np.diff(topics.table.starts))
    under = is_under_min_isr(lists.lengths("isr"), lists.lengths("replicas"), of_rows).view(np.uint8)
    brokers, found = 512, -1
    while found < 0:
        brokers *= 2
        counts = zeros("q", brokers, 6)
        found = compiled.count_replicas(topics.merged().cells, topics.heap, under, zeros("i", 2 * brokers), counts)
    return {broker: numbers for broker, *numbers in counts[:found].tolist()}


def rows_with_elr(topics: PackedTopics) -> Any:
    """The numbers of the rows with eligible leader replicas."""
    return np.flatnonzero(lists_of(topics).lengths("elr"))


def rows_hosting(topics: PackedTopics, broker: int) -> Any:
    """The numbers of the rows that have `broker` among their replicas."""
    rows, hosts = _replicas(lists_of(topics))
    hosting = rows[hosts == broker].astype(np.int64)
    return hosting[np.diff(hosting, prepend=-1) > 0]  # once, where a replica is named twice


def min_isr_of_topics(topics: PackedTopics, default: int, of_topic: Mapping[str, int]) -> Int32s:
    """int32[T]: the values in `of_topic`, `default` for all other topics."""
    largest = np.iinfo(np.int32).max
    values = np.full(topics.table.topic_count, min(default, largest), np.int32)
    numbers = topics.table.by_name
    for name, value in of_topic.items():
        if name in numbers:
            values[numbers[name]] = min(value, largest)
    return values


def partitions_at(
    topics: PackedTopics, rows: npt.NDArray[np.int64]
) -> Iterator[tuple[str, int, PartitionRegistration]]:
    """Topic name, partition id and state of the partitions at `rows`."""
    table = topics.table
    numbers: list[int] = (np.searchsorted(table.starts, rows, side="right") - 1).tolist()
    registration: Callable[[int], Any] = topics.registration
    for row, number in zip(rows.tolist(), numbers, strict=True):
        place = row - table.bounds[number]
        ids = table.sparse.get(number)
        yield table.names[number], place if ids is None else ids[place], registration(row)
