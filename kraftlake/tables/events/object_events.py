"""The events of metadata deltas that were replayed as objects: of few records, or of those not replayed in bulk.

Imports numpy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from kraftlake.delta import MetadataDelta, TopicsDelta
from kraftlake.image import MetadataImage, PartitionRegistration
from kraftlake.image.topics.partition_rows import COLUMNS, RowWriter
from kraftlake.tables.changes.delta_boundaries import DeltaBoundaries
from kraftlake.tables.events.entry_events import entry_events
from kraftlake.tables.events.event_rows import SingleEvents, event_rows
from kraftlake.tables.events.partition_pairs import PartitionPairs
from kraftlake.tables.events.table import Event
from kraftlake.tables.events.topic_events import partitions_added, partitions_in_words, topic_created, topic_deleted


class ObjectEvents:
    """Collects the events of metadata deltas, one after the other; `rows` gives their rows."""

    def __init__(self, *, show_secrets: bool = False) -> None:
        """Sensitive configs are `(redacted)` unless `show_secrets`."""
        self._show_secrets = show_secrets
        self._rank = 0
        self._singles: list[tuple[int, int, Event]] = []
        """Rank, delta, event."""
        self._topics: dict[tuple[str, str], int] = {}
        self._pairs: list[tuple[int, int, int, int]] = []
        """Rank, delta, topic, partition."""
        self._states = RowWriter([], 0)
        self._before: list[tuple[int, ...]] = []
        self._after: list[tuple[int, ...]] = []

    def add(self, number: int, delta: MetadataDelta, after: MetadataImage, first: Iterable[Event] = ()) -> None:
        """Add a delta, its number and the image after it; the events `first` come before all of its own."""
        self._add_singles(number, first)
        if delta.topics_delta is not None:
            self._add_topics(number, delta.topics_delta)
        self._add_singles(number, entry_events(delta, after, show_secrets=self._show_secrets))

    def rows(self, boundaries: DeltaBoundaries) -> tuple[pa.Table, Any]:
        """The rows of `events/` of the deltas, and the numbers of their deltas (int64)."""
        pairs = np.array(self._pairs, np.int64).reshape(-1, 4)
        singles = np.array([(rank, delta) for rank, delta, _ in self._singles], np.int64).reshape(-1, 2)
        return event_rows(
            PartitionPairs(
                before=np.array(self._before, np.int32).reshape(-1, COLUMNS),
                after=np.array(self._after, np.int32).reshape(-1, COLUMNS),
                base_heap=np.empty(0, np.int32),
                heap=np.array(self._states.heap, np.int32),
                topics=pairs[:, 2],
                partitions=pairs[:, 3].astype(np.int32),
                names=pa.array([name for name, _ in self._topics], pa.string()),
                ids=pa.array([topic_id for _, topic_id in self._topics], pa.string()),
                deltas=pairs[:, 1],
            ),
            pairs[:, 0],
            SingleEvents([event for _, _, event in self._singles], singles[:, 1], singles[:, 0]),
            boundaries,
        )

    def _add_topics(self, number: int, delta: TopicsDelta) -> None:
        """Deleted topics by name, then the others by name, each before its partitions."""
        gone = [topic for id_ in delta.deleted_topic_ids if (topic := delta.image.get_topic_by_id(id_)) is not None]
        self._add_singles(
            number,
            (
                topic_deleted(topic.name, str(topic.id), _in_words(topic.partitions))
                for topic in sorted(gone, key=lambda topic: topic.name)
            ),
        )
        for change in sorted(delta.changed_topics.values(), key=lambda change: change.name):
            name, topic_id = change.name, str(change.id)
            before = delta.image.get_topic_by_id(change.id)
            if before is None:
                self._add_singles(number, [topic_created(name, topic_id, _in_words(change.partition_changes))])
                continue
            added = sum(partition not in before.partitions for partition in change.partition_changes)
            if added:
                self._add_singles(number, [partitions_added(name, topic_id, len(before.partitions), added)])
            known = self._topics.setdefault((name, topic_id), len(self._topics))
            for partition, state in sorted(change.partition_changes.items()):
                was = before.partitions.get(partition)
                if was is not None:
                    self._pairs.append((self._next_rank(), number, known, partition))
                    self._before.append(self._states.row(was))
                    self._after.append(self._states.row(state))

    def _add_singles(self, number: int, events: Iterable[Event]) -> None:
        self._singles += ((self._next_rank(), number, event) for event in events)

    def _next_rank(self) -> int:
        self._rank += 1
        return self._rank


def _in_words(partitions: Mapping[int, PartitionRegistration]) -> str:
    factors = [len(partition.replicas) for partition in partitions.values()]
    return partitions_in_words(len(partitions), min(factors, default=0), max(factors, default=0))
