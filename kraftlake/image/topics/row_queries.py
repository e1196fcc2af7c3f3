"""Queries over all partitions, on the rows of a packed image. Imports numpy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from kraftlake.image.partition_health import is_under_min_isr
from kraftlake.image.topics.packed_topics import PackedTopics
from kraftlake.image.topics.partition_registration import NO_LEADER, PartitionRegistration
from kraftlake.image.topics.row_lists import RowLists
from kraftlake.kernels.partition_row import LEADER

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
    leader = topics.merged_rows()[:, LEADER]
    bounds, replicas = lists_of(topics).flat("replicas")
    preferred = np.append(replicas, np.int32(NO_LEADER))[bounds[:-1]]
    preferred[np.diff(bounds) == 0] = NO_LEADER
    return int((leader == NO_LEADER).sum()), int((leader != preferred).sum())


def count_replicas(topics: PackedTopics, min_isr: Int32s) -> dict[int, dict[str, int]]:
    """The counts of `broker_partitions` by broker; `min_isr` is int32[T], min.insync.replicas of each topic."""
    leader, lists = topics.merged_rows()[:, LEADER], lists_of(topics)
    replicas, in_sync = lists.lengths("replicas"), lists.lengths("isr")
    under = is_under_min_isr(in_sync, replicas, np.repeat(min_isr, np.diff(topics.table.starts)))
    rows, hosts = _replicas(lists)
    first, members = lists.flat("isr")
    in_isr = np.zeros(len(hosts), np.bool_)
    for place in range(int(in_sync.max(initial=0))):
        there = np.flatnonzero(place < in_sync[rows])
        in_isr[there] |= members[first[rows[there]] + place] == hosts[there]
    led = leader[rows] == hosts
    offline = leader[rows] == NO_LEADER
    masks = {"led": led, "followed": ~led, "out_of_isr": ~in_isr, "under_min_isr": under[rows], "offline": offline}
    brokers, index = np.unique(hosts, return_inverse=True)
    counts = {kind: np.bincount(index[mask], minlength=len(brokers)).tolist() for kind, mask in masks.items()}
    return {broker: {kind: of[n] for kind, of in counts.items()} for n, broker in enumerate(brokers.tolist())}


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
