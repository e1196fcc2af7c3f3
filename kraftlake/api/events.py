"""The events of a range of a source's log."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from kraftlake.runtime.html import html_table
from kraftlake.tables.events.events_table import EVENTS
from kraftlake.tables.events.log_events import LogEvents

if TYPE_CHECKING:
    from kraftlake.replay.loader.manifest import SkippedRecord
    from kraftlake.replay.queries.source import LogSource

_SHOWN: Final = 20
_ROWS_AT_ONCE: Final = 1000


class Events:
    """Events in log order, with the columns of the lake's table `events/` (docs/spark-jobs.md).

    Iteration yields a dict for each event; `to_table` returns all events as one Arrow table, `tables` yields tables of
    bounded size. Each of these replays the range anew. Reading raises the errors of replaying a record.
    """

    def __init__(
        self,
        source: LogSource,
        first: int | None,
        last: int | None,
        *,
        show_secrets: bool,
        lenient: bool,
        of_brokers: frozenset[int] | None = None,
    ) -> None:
        self._source = source
        self._range = first, last
        self._kept: dict[str, Any] = {"lenient": lenient, "show_secrets": show_secrets, "of_brokers": of_brokers}
        self._next: LogEvents | None = self._log_events()  # raises at once where the range can't be read
        self._skipped: Sequence[SkippedRecord] = ()

    def __repr__(self) -> str:
        first, last = self._range
        return f"<Events of {self._source.name} from offset {first} to {last}>"

    def _repr_html_(self) -> str:
        shown = list(islice(self, _SHOWN + 1))
        rows = [(str(event["offset"]), event["timestamp"], event["sentence"]) for event in shown[:_SHOWN]]
        caption = f"The first {_SHOWN} events" if len(shown) > _SHOWN else "Events"
        return html_table(rows, header=("offset", "time", "event"), caption=f"{caption} of {self._source.name}")

    @property
    def skipped(self) -> Sequence[SkippedRecord]:
        """The records that the newest lenient reading left out so far."""
        return self._skipped

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Each event as a dict of the table's columns."""
        for table in self.tables():
            yield from rows_of(table)

    def tables(self) -> Generator[pa.Table]:
        """The events in Arrow tables of bounded size."""
        found, self._next = self._next or self._log_events(), None
        try:
            yield from found
        finally:
            self._skipped = tuple(found.skipped)

    def to_table(self) -> pa.Table:
        """All events as one Arrow table, strings as such."""
        tables = [table.cast(EVENTS.schema) for table in self.tables()]
        return pa.concat_tables(tables) if tables else EVENTS.schema.empty_table()

    def _log_events(self) -> LogEvents:
        return LogEvents(self._source.reader, *self._range, cluster_id=self._source.cluster_id, **self._kept)


def rows_of(table: pa.Table) -> Iterator[dict[str, Any]]:
    """The rows of a table as dicts, converted a few at a time."""
    for batch in table.to_batches(max_chunksize=_ROWS_AT_ONCE):
        yield from batch.to_pylist()
