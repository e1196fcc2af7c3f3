"""Kafka's controller counts after each metadata delta, of its changes and the counts before it. Imports numpy."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import attrs
import numpy as np

from kraftlake.image.broker_registration import BrokerRegistration
from kraftlake.image.cluster_counts import count_cluster
from kraftlake.kernels import compiled
from kraftlake.kernels.columns.change_buffers import COUNTS, CountedChanges
from kraftlake.replay.log.delta_chunk import LogBegin
from kraftlake.replay.log.other_records import OtherChange
from kraftlake.replay.log.partition_changes import PartitionChanges

BROKERS: Final = 3
"""The number of counts that are of brokers: the first of ClusterCounts; the others are of topics."""

TOPIC_COUNTS: Final = 6
"""The number of columns of `topic_counts`."""
_GROWTH: Final = 4


class ClusterCounter:
    """Updates the counts delta by delta; `counts` (int64[7], as ClusterCounts) are those after the last delta."""

    def __init__(self, begin: LogBegin) -> None:
        """Initialize with the counts at the start."""
        counts = count_cluster(begin.image) if begin.counts is None else begin.counts
        self.counts = np.array(attrs.astuple(counts), np.int64)

    def take(self, offsets: Any, changes: Any, others: Iterable[OtherChange], *, with_first: bool) -> tuple[Any, Any]:
        """Count deltas that follow the earlier ones.

        `offsets` (int64) are the last of each; `changes` are those of `topic_counts`, summed over all shards, and
        `others` the changes of everything else. Returns the deltas (int64[n], by number) that change a count or have an
        election, with `with_first` the first as well; and of each (int64[n, 9]) the counts after it, its unclean
        elections and those from the eligible replicas.
        """
        growth, elections = changes[:, :_GROWTH], changes[:, _GROWTH:]
        sums, places = [self.counts[:BROKERS].tolist()], list[int]()
        for other in others:
            if (cluster := other.change.cluster_delta) is not None:
                now = sums[-1]
                for id_, broker in cluster.changed_brokers.items():
                    shares = zip(now, _counted(broker), _counted(cluster.image.brokers.get(id_)), strict=True)
                    now = [count + has - had for count, has, had in shares]
                sums.append(now)
                places.append(other.offset)
        changed_at = np.searchsorted(offsets, np.array(places, np.int64))
        newest = np.searchsorted(changed_at, np.arange(len(growth)), side="right")
        of_topics = self.counts[BROKERS:] + np.cumsum(growth, axis=0)
        counts = np.concatenate((np.array(sums, np.int64)[newest], of_topics), axis=1)
        changed = (np.diff(counts, axis=0, prepend=self.counts[None]) != 0).any(axis=1) | elections.any(axis=1)
        changed[:1] |= with_first
        self.counts = counts[-1] if len(counts) else self.counts
        deltas = np.flatnonzero(changed)
        return deltas, np.concatenate((counts[deltas], elections[deltas]), axis=1)


def _counted(broker: BrokerRegistration | None) -> tuple[bool, bool, bool]:
    """The share of a broker in the counts of brokers."""
    if broker is None:
        return False, False, False
    return not broker.fenced, broker.fenced, broker.in_controlled_shutdown


def topic_counts(changes: PartitionChanges, deltas: int) -> Any:
    """The growth of each count of topics, and the number of elections of each kind, by delta (int64[d, 6])."""
    topics = np.zeros((deltas, 1), np.int64)
    for of, sign in ((changes.created, 1), (changes.removed, -1)):
        np.add.at(topics[:, 0], of[:, 0], sign)
    changes, counts = changes.by_delta(), np.zeros((deltas, COUNTS), np.int64)
    columns = (np.ascontiguousarray(getattr(changes, name)) for name in CountedChanges._fields)
    compiled.count_changes(compiled.CountedChanges(*columns), *changes.heaps, counts)
    return np.concatenate((topics, counts), axis=1)
