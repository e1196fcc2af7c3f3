"""Queries over all partitions, on the rows of a packed image. Imports numpy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import attrs
import numpy as np
import numpy.typing as npt

from kraftlake.image.partition_health import is_under_min_isr
from kraftlake.image.topics.packed_topics import PackedTopics
from kraftlake.image.topics.partition_registration import NO_LEADER, PartitionRegistration
from kraftlake.kernels.partition_row import HEAP_LISTS, ISR, LEADER, RARE, SHAPE, WIDTH

Int32s: TypeAlias = npt.NDArray[np.int32]
Mask: TypeAlias = npt.NDArray[np.bool_]


def count_offline_and_imbalanced(topics: PackedTopics) -> tuple[int, int]:
    """The numbers of partitions without a leader, and of those whose leader is not their first replica."""
    rows = topics.merged_rows()
    leader, shape = rows[:, LEADER], rows[:, SHAPE]
    preferred = rows[:, 0].copy()
    preferred[(shape & 0xFF) == 0] = NO_LEADER
    rare = np.flatnonzero(shape == RARE)
    starts = rows[rare, 0]
    # the first number after the lengths is the first replica, if there is one
    heap = np.asarray(topics.heap)
    preferred[rare] = np.where(heap[starts] > 0, _heap_at(heap, starts + HEAP_LISTS), NO_LEADER)
    return int((leader == NO_LEADER).sum()), int((leader != preferred).sum())


def _heap_at(heap: Int32s, places: Int32s) -> Int32s:
    return heap[np.minimum(places, len(heap) - 1)] if len(heap) else places


@attrs.frozen(kw_only=True, eq=False)
class ReplicaCounts:
    """The numbers of replicas of each kind (int64[B]) by broker (`brokers`: int32[B], sorted)."""

    brokers: Int32s
    by_kind: Mapping[str, npt.NDArray[np.int64]]


def count_replicas(topics: PackedTopics, min_isr: Int32s) -> ReplicaCounts:
    """The counts of `broker_partitions` for all rows but rare ones (see `rare_rows`).

    `min_isr` is int32[T], min.insync.replicas of each topic.
    """
    rows = topics.merged_rows()
    shape, leader = rows[:, SHAPE], rows[:, LEADER]
    plain = shape != RARE
    replicas, in_sync = shape & 0xFF, (shape >> 8) & 0xFF
    under = is_under_min_isr(in_sync, replicas, np.repeat(min_isr, np.diff(topics.table.starts)))
    offline = leader == NO_LEADER
    hosting: list[Int32s] = []
    kinds: dict[str, list[Mask]] = {kind: [] for kind in ("led", "followed", "out_of_isr", "under_min_isr", "offline")}
    for place in range(WIDTH):
        there = np.flatnonzero(plain & (place < replicas))
        broker = rows[there, place]
        in_isr = np.zeros(len(there), np.bool_)
        for member in range(WIDTH):
            in_isr |= (member < in_sync[there]) & (rows[there, ISR + member] == broker)
        led = leader[there] == broker
        hosting.append(broker)
        for kind, mask in zip(kinds, (led, ~led, ~in_isr, under[there], offline[there]), strict=True):
            kinds[kind].append(mask)
    brokers, index = np.unique(np.concatenate(hosting), return_inverse=True)
    counted = {kind: np.bincount(index[np.concatenate(masks)], minlength=len(brokers)) for kind, masks in kinds.items()}
    return ReplicaCounts(brokers=brokers, by_kind=counted)


def rare_rows(topics: PackedTopics) -> npt.NDArray[np.int64]:
    """The numbers of the rows whose lists are in the heap: they are examined one by one."""
    return np.flatnonzero(topics.merged_rows()[:, SHAPE] == RARE)


def rows_hosting(topics: PackedTopics, broker: int) -> npt.NDArray[np.int64]:
    """The numbers of the rows that have `broker` among their replicas, and of all rare rows, which may have it."""
    rows = topics.merged_rows()
    shape = rows[:, SHAPE]
    hosted = shape == RARE
    for place in range(WIDTH):
        hosted |= (rows[:, place] == broker) & (place < (shape & 0xFF)) & (shape != RARE)
    return np.flatnonzero(hosted)


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
