"""The writer of `events/`."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from kraftlake.tables.changes.changes_writer import ChangesWriter
from kraftlake.tables.changes.log_deltas import DeltaChunk, LogBegin
from kraftlake.tables.events.delta_events import DeltaEvents
from kraftlake.tables.events.table import EVENTS
from kraftlake.tables.lazy_table import LazyTable


class EventsWriter(ChangesWriter):
    """Makes the rows of `events/`. The load of a snapshot makes none, for it does not say when anything happened."""

    description = EVENTS
    encodes = True

    def drain_later(self) -> LazyTable:
        """The rows that were made since the last call, or are being made."""
        return self.rows.take_later()

    def _begin(self, begin: LogBegin) -> None:
        self._events = DeltaEvents(begin)
        self._maker: ThreadPoolExecutor | None = None

    def _take(self, chunk: DeltaChunk) -> None:
        self.rows.add_later(self._later(self._events.take(chunk)))

    def _later(self, make: Callable[[], pa.Table]) -> LazyTable:
        """Rows that a background thread makes, where compiled code replays records."""
        if not self._deltas.store.is_compiled:
            return LazyTable.of(make())
        if self._maker is None:
            self._maker = ThreadPoolExecutor(1, "kraftlake-events")
        return LazyTable(self._maker.submit(make).result)
