"""The events of published changes, as a broker's loader makes them: of few records, or of those not read in bulk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
import pyarrow as pa

from kraftlake.image import TopicsImage
from kraftlake.replay.queries.change_fold import Published
from kraftlake.runtime.errors import KraftlakeError
from kraftlake.tables.changes.delta_boundaries import DeltaBoundaries
from kraftlake.tables.changes.object_partitions import GatheredChanges
from kraftlake.tables.events.delta_events import NumberedEvent, delta_rows
from kraftlake.tables.events.non_topic_events import election_event, non_topic_events
from kraftlake.tables.events.table import EVENTS

_CHANGES_AT_ONCE: Final = 200


class ChangeEvents:
    """Collects the events of published changes; `table` gives their rows."""

    def __init__(self, *, show_secrets: bool = False, of_brokers: frozenset[int] | None = None) -> None:
        """Sensitive configs are `(redacted)` unless `show_secrets`; `of_brokers` as for `delta_rows`."""
        self._of_brokers = of_brokers
        self._show_secrets = show_secrets
        self._ends: list[tuple[int, int, int]] = []
        self._partitions = GatheredChanges()
        self._topics = TopicsImage.EMPTY
        self._elections: list[NumberedEvent] = []
        self._others: list[NumberedEvent] = []

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
        events = non_topic_events(change.delta, change.image, show_secrets=self._show_secrets)
        self._others += ((number, event) for event in events)

    def table(self) -> pa.Table:
        """The rows of `events/`, by change."""
        offsets, epochs, times = np.array(self._ends, np.int64).reshape(-1, 3).T
        boundaries = DeltaBoundaries(offsets=offsets, epochs=epochs.astype(np.int32), times=times)
        changes = self._partitions.changes(self._topics, compiled=False)
        rows = delta_rows(changes, boundaries, self._elections, self._others, of_brokers=self._of_brokers)
        return rows.cast(EVENTS.schema)


def event_tables(
    changes: Iterable[Published],
    *,
    after: int = -1,
    show_secrets: bool = False,
    of_brokers: frozenset[int] | None = None,
) -> Iterator[pa.Table]:
    """The rows of `events/` of changes, as tables of a bounded number of them: of those that end after an offset.

    What the changes raise is raised after the rows of those before it. The options are those of `ChangeEvents`.
    """
    told, count = ChangeEvents(show_secrets=show_secrets, of_brokers=of_brokers), 0
    try:
        for change in changes:
            if change.offset > after:
                told.add(change)
                count += 1
            if count == _CHANGES_AT_ONCE:
                yield told.table()
                told, count = ChangeEvents(show_secrets=show_secrets, of_brokers=of_brokers), 0
    except KraftlakeError:
        yield told.table()
        raise
    if count:
        yield told.table()
