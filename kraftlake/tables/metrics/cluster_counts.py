"""The counts of a cluster after each metadata delta, of its changes and the counts before it. Imports numpy."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import attrs
import numpy as np

from kraftlake.image.broker_registration import BrokerRegistration
from kraftlake.image.cluster_counts import ClusterCounts, count_brokers
from kraftlake.image.cluster_health import HEALTH_COUNTS
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.replay.log.other_records import OtherChange
from kraftlake.tables.metrics.count_changes import CountChanges
from kraftlake.tables.metrics.health_growth import HealthGrowth

CLUSTER_COUNTS: Final = tuple(field.name for field in attrs.fields(ClusterCounts))
COUNTS: Final = (*CLUSTER_COUNTS, *HEALTH_COUNTS)
"""The names of the counts of `ClusterCounter`."""

_BROKERS: Final = 3
"""The number of counts that are of brokers: the first of ClusterCounts."""
_GROWTH: Final = 7
"""The number of columns of `CountChanges.growth` that are no elections."""


class ClusterCounter:
    """Updates the counts delta by delta; `counts` (int64[13], as COUNTS) are those after the last delta."""

    def __init__(self, image: MetadataImage, of_topics: CountChanges | None = None) -> None:
        """Begin with the counts of an image; `of_topics` makes its topics where it has none, since shards have them."""
        of_topics = CountChanges.of_topics(image.topics) if of_topics is None else of_topics
        fenced, shutting_down = count_brokers(image.cluster)
        self._health = HealthGrowth(image, of_topics.shares)
        brokers = np.array([[len(image.cluster.brokers) - fenced, fenced, shutting_down]], np.int64)
        topics = of_topics.growth[:, :_GROWTH].sum(axis=0, keepdims=True)
        self.counts = _in_order(brokers, topics, np.array([self._health.counts], np.int64))[0]

    def take(self, changes: CountChanges, others: Iterable[OtherChange], *, with_first: bool) -> tuple[Any, Any]:
        """Count deltas that follow the earlier ones.

        `changes` are those of topics, merged from all shards, and `others` the changes of everything else. Returns the
        deltas (int64[n], by number) that change a count or have an election, with `with_first` the first as well; and
        of each (int64[n, 15]) the counts after it, its unclean elections and those from the eligible replicas.
        """
        others, offsets = [*others], changes.boundaries.offsets
        growth, elections = changes.growth[:, :_GROWTH], changes.growth[:, _GROWTH:]
        health = self._health.take(offsets, changes.shares, others)
        grown = _in_order(_growth_of_brokers(offsets, others), growth, health)
        counts = self.counts + np.cumsum(grown, axis=0)
        changed = grown.any(axis=1) | elections.any(axis=1)
        changed[:1] |= with_first
        self.counts = counts[-1] if len(counts) else self.counts
        deltas = np.flatnonzero(changed)
        return deltas, np.concatenate((counts[deltas], elections[deltas]), axis=1)


def _in_order(brokers: Any, topics: Any, health: Any) -> Any:
    """The columns of COUNTS: of brokers, of `CountChanges.growth`, of `health_growth.KINDS`."""
    under_replicated, reassigning, recovering = topics[:, -3:].T
    under_min_isr, led_by_fenced, offline = health.T
    of_health = (under_min_isr, under_replicated, led_by_fenced, reassigning, recovering, offline)
    return np.column_stack((brokers, topics[:, :-3], *of_health))


def _growth_of_brokers(offsets: Any, others: Iterable[OtherChange]) -> Any:
    growth = np.zeros((len(offsets), _BROKERS), np.int64)
    for other in others:
        if (cluster := other.change.cluster_delta) is not None:
            delta = int(np.searchsorted(offsets, other.offset))
            for id_, broker in cluster.changed_brokers.items():
                growth[delta] += np.subtract(_counted(broker), _counted(cluster.image.brokers.get(id_)), dtype=np.int64)
    return growth


def _counted(broker: BrokerRegistration | None) -> tuple[int, int, int]:
    """The share of a broker in the counts of brokers."""
    if broker is None:
        return 0, 0, 0
    return int(not broker.fenced), int(broker.fenced), int(broker.in_controlled_shutdown)
