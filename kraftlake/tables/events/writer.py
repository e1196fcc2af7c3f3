"""The writer of `events/`."""

from __future__ import annotations

from kraftlake.tables.changes.changes_writer import ChangesWriter
from kraftlake.tables.changes.log_deltas import DeltaChunk, LogBegin
from kraftlake.tables.events.delta_events import DeltaEvents
from kraftlake.tables.events.table import EVENTS


class EventsWriter(ChangesWriter):
    """Makes the rows of `events/`. The load of a snapshot makes none, for it does not say when anything happened."""

    description = EVENTS
    encodes = True

    def _begin(self, begin: LogBegin) -> None:
        self._events = DeltaEvents(begin)

    def _take(self, chunk: DeltaChunk) -> None:
        self.rows.add_table(self._events.take(chunk))
