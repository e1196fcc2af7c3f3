"""The events of published changes, as a broker's loader makes them: of few records, or of those not read in bulk."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from kraftlake.replay.queries.changes import Published
from kraftlake.tables.changes.delta_boundaries import DeltaBoundaries
from kraftlake.tables.events.entry_events import election_event
from kraftlake.tables.events.object_events import ObjectEvents
from kraftlake.tables.events.table import EVENTS


class ChangeEvents:
    """Collects the events of published changes; `table` gives their rows."""

    def __init__(self, *, show_secrets: bool = False) -> None:
        """Sensitive configs are `(redacted)` unless `show_secrets`."""
        self._events = ObjectEvents(show_secrets=show_secrets)
        self._ends: list[tuple[int, int, int]] = []

    def add(self, change: Published) -> None:
        """Add a change; the load of a snapshot makes no events, for it does not say when anything happened."""
        if change.of_snapshot:
            return
        first = [] if change.elected is None else [election_event(change.elected, change.epoch)]
        self._events.add(len(self._ends), change.delta, change.image, first)
        end = change.manifest.provenance
        self._ends.append((end.offset, end.epoch, end.timestamp))

    def table(self) -> pa.Table:
        """The rows of `events/`: by change; those of the quorum first, then of topics and partitions."""
        offsets, epochs, times = np.array(self._ends, np.int64).reshape(-1, 3).T
        rows, _ = self._events.rows(DeltaBoundaries(offsets=offsets, epochs=epochs.astype(np.int32), times=times))
        return rows.cast(EVENTS.schema)
