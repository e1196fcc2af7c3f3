"""The events of published changes, as a broker's loader makes them: of few records, or of those not read in bulk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
import pyarrow as pa

from kraftlake.image import TopicsImage
from kraftlake.replay.log.delta_boundaries import DeltaBoundaries
from kraftlake.replay.log.object_partitions import GatheredChanges
from kraftlake.replay.queries.change_fold import Published
from kraftlake.runtime.errors import KraftlakeError
from kraftlake.tables.events.delta_events import EventChunk, NumberedBrokers, NumberedEvent
from kraftlake.tables.events.non_topic_events import election_event, non_topic_events
from kraftlake.tables.events.table import EVENTS

_CHANGES_AT_ONCE: Final = 200


class ChangeEvents:
    """Collects what events of published changes are made of; `chunk` gives it."""

    def __init__(self, *, show_secrets: bool = False, of_brokers: frozenset[int] | None = None) -> None:
        """Sensitive configs are `(redacted)` unless `show_secrets`; `of_brokers` as for `delta_rows`."""
        self._of_brokers = of_brokers
        self._show_secrets = show_secrets
        self._ends: list[tuple[int, int, int]] = []
        self._partitions = GatheredChanges()
        self._topics = TopicsImage.EMPTY
        self._elections: list[NumberedEvent] = []
        self._others: list[NumberedEvent] = []
        self._brokers: list[NumberedBrokers] = []

    def add(self, change: Published) -> None:
        """Add a change; the load of a snapshot makes no events, for it does not say when anything happened."""
        if change.of_snapshot:
            return
        number, end, self._topics = len(self._ends), change.manifest.provenance, change.image.topics
        self._ends.append((end.offset, end.epoch, end.timestamp))
        if change.elected is not None:
            self._elections.append((number, election_event(change.elected, change.epoch)))
        if change.delta.topics_delta is not None:
            self._partitions.add_delta(number, change.delta.topics_delta)
        if change.delta.cluster_delta is not None:
            self._brokers.append((number, change.delta.cluster_delta.changed_brokers))
        events = non_topic_events(change.delta, change.image, show_secrets=self._show_secrets)
        self._others += ((number, event) for event in events)

    def chunk(self) -> EventChunk:
        """The deltas of the changes."""
        offsets, epochs, times = np.array(self._ends, np.int64).reshape(-1, 3).T
        boundaries = DeltaBoundaries(offsets=offsets, epochs=epochs.astype(np.int32), times=times)
        return EventChunk(
            boundaries=boundaries,
            partitions=self._partitions.changes(self._topics),
            elections=self._elections,
            others=self._others,
            brokers=self._brokers,
            of_brokers=self._of_brokers,
        )


def event_tables(
    changes: Iterable[Published],
    *,
    after: int = -1,
    show_secrets: bool = False,
    of_brokers: frozenset[int] | None = None,
) -> Iterator[pa.Table]:
    """The rows of `events/` of changes, as tables of a bounded number of them. As `event_chunks`."""
    for chunk in event_chunks(changes, after=after, show_secrets=show_secrets, of_brokers=of_brokers):
        yield chunk.rows().cast(EVENTS.schema)


def event_chunks(
    changes: Iterable[Published],
    *,
    after: int = -1,
    show_secrets: bool = False,
    of_brokers: frozenset[int] | None = None,
) -> Iterator[EventChunk]:
    """What events of changes are made of, a bounded number of them at once: of those that end after an offset.

    What the changes raise is raised after those before it. The options are those of `ChangeEvents`.
    """
    told, count = ChangeEvents(show_secrets=show_secrets, of_brokers=of_brokers), 0
    try:
        for change in changes:
            if change.offset > after:
                told.add(change)
                count += 1
            if count == _CHANGES_AT_ONCE:
                yield told.chunk()
                told, count = ChangeEvents(show_secrets=show_secrets, of_brokers=of_brokers), 0
    except KraftlakeError:
        yield told.chunk()
        raise
    if count:
        yield told.chunk()
