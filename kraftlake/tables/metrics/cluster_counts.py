"""Kafka's controller counts after each metadata delta, of its changes and the counts before it. Imports numpy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import attrs
import numpy as np

from kraftlake.image import MetadataImage, count_cluster
from kraftlake.image.cluster_counts import count_brokers
from kraftlake.kernels.aot.compiled import run
from kraftlake.kernels.columns.cluster_counts import COUNTS, UNCLEAN, count_changes
from kraftlake.records import metadata_records as r
from kraftlake.tables.changes.effective_records import UNKNOWN_KIND
from kraftlake.tables.changes.log_deltas import DeltaChunk
from kraftlake.tables.changes.object_deltas import object_deltas
from kraftlake.tables.changes.partition_changes import PartitionChanges

BROKER_KINDS: Final = tuple(
    cls.API_KEY
    for cls in (
        r.RegisterBrokerRecord,
        r.UnregisterBrokerRecord,
        r.FenceBrokerRecord,
        r.UnfenceBrokerRecord,
        r.BrokerRegistrationChangeRecord,
    )
)
"""The api keys of the records that make a broker active or fenced, or remove it."""

BROKERS: Final = 3
"""The number of counts that are of brokers: the first of ClusterCounts; the others are of topics."""


class _Changes(NamedTuple):
    """The changes that `count_changes` takes."""

    deltas: Any
    before: Any
    after: Any
    flags: Any
    unclean: Any
    eligible: Any


class ClusterCounter:
    """Updates the counts delta by delta; `counts` (int64[7], as ClusterCounts) are those after the last delta."""

    def __init__(self, image: MetadataImage = MetadataImage.EMPTY) -> None:
        """Begin with the counts of an image."""
        self.counts = np.array(attrs.astuple(count_cluster(image)), np.int64)
        self._cluster = image.cluster

    def take(self, chunk: DeltaChunk, *, with_first: bool) -> tuple[Any, Any]:
        """Count a chunk, at least one delta, that follows the chunks before.

        Gives the deltas (int64[n], by number) that change a count or have an election, `with_first` the first as well;
        and of each (int64[n, 9]) the counts after it, its unclean elections and those from the eligible replicas.
        Raises ReplayError or CorruptDataError, with the offset, for a record that contradicts the state so far.
        """
        growth, elections = _topic_changes(chunk.partitions, len(chunk.boundaries))
        brokers = {-1: self.counts[:BROKERS].tolist(), **dict(self._take_brokers(chunk))}
        newest = np.searchsorted([*brokers], np.arange(len(growth)), side="right") - 1
        of_topics = self.counts[BROKERS:] + np.cumsum(growth, axis=0)
        counts = np.concatenate((np.array([*brokers.values()])[newest], of_topics), axis=1)
        changed = (np.diff(counts, axis=0, prepend=self.counts[None]) != 0).any(axis=1) | elections.any(axis=1)
        changed[0] |= with_first
        self.counts = counts[-1]
        deltas = np.flatnonzero(changed)
        return deltas, np.concatenate((counts[deltas], elections[deltas]), axis=1)

    def _take_brokers(self, chunk: DeltaChunk) -> Iterator[tuple[int, list[int]]]:
        """The deltas with records of brokers, with the counts of brokers after each."""
        chosen = chunk.records.are_of((*BROKER_KINDS, UNKNOWN_KIND))
        records, deltas = chunk.records.where(chosen), chunk.deltas[chosen]
        for number, delta in object_deltas(records, deltas, BROKER_KINDS, lambda: MetadataImage(cluster=self._cluster)):
            self._cluster = delta.apply(delta.image.provenance).cluster
            fenced, shutting_down = count_brokers(self._cluster)
            yield number, [len(self._cluster.brokers) - fenced, fenced, shutting_down]


def _topic_changes(changes: PartitionChanges, deltas: int) -> tuple[Any, Any]:
    """By delta the growth of the counts of topics (int64[d, 4]), and the elections of each kind (int64[d, 2])."""
    topics = np.zeros((deltas, 1), np.int64)
    for of, sign in ((changes.created, 1), (changes.removed, -1)):
        np.add.at(topics[:, 0], of[:, 0], sign)
    changes, counts = changes.by_delta(), np.zeros((deltas, COUNTS), np.int64)
    columns = _Changes(*(np.ascontiguousarray(getattr(changes, name)) for name in _Changes._fields))
    run(count_changes, changes.compiled, columns, *changes.heaps, counts)
    return np.concatenate((topics, counts[:, :UNCLEAN]), axis=1), counts[:, UNCLEAN:]
