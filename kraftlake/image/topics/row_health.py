"""The unhealthy partitions and directories of packed topics, counted on their rows. Imports numpy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from kraftlake.image.partition_health import is_under_min_isr
from kraftlake.image.topics.packed_topics import PackedTopics
from kraftlake.image.topics.row_queries import lists_of
from kraftlake.kernels.partition_row import LEADER, RECOVERY
from kraftlake.records.uuid import Uuid


def count_unhealthy_rows(
    topics: PackedTopics, min_isr: Any, fenced: Collection[int], is_offline: Callable[[int, Uuid], bool]
) -> tuple[list[int], Counter[tuple[int, Uuid]]]:
    """The counts of partitions in the order of HEALTH_COUNTS, and the replicas in each offline directory.

    `min_isr` is int32[T], min.insync.replicas of each topic; `is_offline` says it of a broker and a directory.
    """
    lists, rows = lists_of(topics), topics.merged_rows()
    in_sync, replicas = lists.lengths("isr"), lists.lengths("replicas")
    of_rows = np.repeat(min_isr, np.diff(topics.table.starts))
    moving = (lists.lengths("adding_replicas") > 0) | (lists.lengths("removing_replicas") > 0)
    kinds = (
        is_under_min_isr(in_sync, replicas, of_rows),
        in_sync < replicas,
        np.isin(rows[:, LEADER], [*fenced]),
        moving,
        rows[:, RECOVERY] != 0,
    )
    brokers, directories = lists.flat("replicas")[1], lists.flat("directories")[1]
    keys, counts = np.unique(brokers.astype(np.int64) << 32 | directories.astype(np.int64), return_counts=True)
    pairs = [(key >> 32, topics.directories[key & 0xFFFF_FFFF]) for key in keys.tolist()]
    offline = {pair: count for pair, count in zip(pairs, counts.tolist(), strict=True) if is_offline(*pair)}
    return [int(np.count_nonzero(kind)) for kind in kinds], Counter(offline)
