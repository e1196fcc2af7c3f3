"""The writer of `events/`."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

import pyarrow as pa

from kraftlake.replay.log.delta_chunk import DeltaChunk, LogBegin
from kraftlake.tables.changes_writer import ChangesWriter
from kraftlake.tables.events.delta_events import DeltaEvents
from kraftlake.tables.events.events_table import ENCODED_EVENTS, EVENTS
from kraftlake.tables.lazy_table import LazyTable


class EventsWriter(ChangesWriter):
    """Makes the rows of `events/`. The load of a snapshot makes none, as it does not say when anything happened."""

    description = EVENTS
    encodes = True
    of_topics = True
    _made: list[Future[pa.Table]]

    def drain_later(self) -> LazyTable:
        """The rows of the deltas that were added since the last call.

        A thread of the writer's own makes them while the next deltas are taken.
        """
        made, self._made = self._made, []
        return LazyTable(lambda: pa.concat_tables([ENCODED_EVENTS.empty_table(), *(rows.result() for rows in made)]))

    def begin_deltas(self, begin: LogBegin) -> None:
        """Initialize at the end of the table."""
        self._events = DeltaEvents(begin)
        self._maker = ThreadPoolExecutor(1, "kraftlake-events")
        self._made = []

    def take_deltas(self, chunk: DeltaChunk) -> None:
        """Add the rows of deltas."""
        self._made.append(self._maker.submit(self._events.take(chunk).rows))
