"""The events of a range of any source's log, in order and without Spark. Imports numpy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import attrs
import pyarrow as pa
import pyarrow.compute as pc

from kraftlake.image.metadata_image import MetadataImage
from kraftlake.replay.loader.manifest import SkippedRecord
from kraftlake.replay.log.delta_chunk import DeltaChunk
from kraftlake.replay.log.log_replay import LogReplay
from kraftlake.replay.queries.changes import begin_of_range
from kraftlake.replay.reading.open_reader import LogReader
from kraftlake.replay.reading.replay_base import check_unbroken
from kraftlake.runtime.json_names import camel_case
from kraftlake.tables.events.delta_events import DeltaEvents, EventChunk
from kraftlake.tables.events.events_table import EVENTS


class LogEvents:
    """The events of the metadata deltas that end in [from_offset, to_offset]; iterate it, or its `chunks`, once.

    None is the log's own start or end. Where `from_offset` is None and the log starts above 0, the events begin after
    the snapshot that covers its start: its load makes none, as it does not say when anything happened. Raises the
    errors of `LogChanges`, after the events before the record that can't be replayed.
    """

    def __init__(
        self,
        reader: LogReader,
        from_offset: int | None = None,
        to_offset: int | None = None,
        *,
        lenient: bool = False,
        cluster_id: str | None = None,
        show_secrets: bool = False,
        of_brokers: frozenset[int] | None = None,
    ) -> None:
        """Sensitive configs are `(redacted)` unless `show_secrets`.

        `of_brokers` leaves only the events of these brokers and of the partitions that they host at the time.
        """
        self._reader = reader
        self._to_offset = reader.end_offset - 1 if to_offset is None else to_offset
        after = begin_of_range(reader, from_offset, to_offset, lenient=lenient)
        self._replay = LogReplay(lenient=lenient)
        begin = self._replay.begin_at(reader, after, cluster_id=cluster_id)
        if not lenient:
            check_unbroken(reader, after + 1, self._to_offset)
        image = attrs.evolve(begin.image, provenance=self._replay.last)
        # Control records count at once, also where a metadata transaction is open and its records do not yet.
        begin = attrs.evolve(begin, image=image, quorum=begin.newest_quorum)
        self._events = DeltaEvents(begin, show_secrets=show_secrets, of_brokers=of_brokers)
        self.begin: MetadataImage = image
        """The image before the first delta."""

    @property
    def skipped(self) -> Sequence[SkippedRecord]:
        """The records that a lenient replay has left out so far."""
        return self._replay.skipped

    def __iter__(self) -> Iterator[pa.Table]:
        """The rows of `events/`, as tables of a bounded number of log batches."""
        return (chunk.rows().cast(EVENTS.schema) for chunk in self.chunks())

    def chunks(self, also: Callable[[DeltaChunk], None] = lambda _: None) -> Iterator[EventChunk]:
        """The input of the events: the metadata deltas of a bounded number of log batches at once.

        `also` is called with the deltas before each.
        """
        for chunk in self._replay.read(self._reader, self._to_offset):
            also(chunk)
            yield self._events.take(chunk)


def as_json(events: pa.Table) -> pa.Table:
    """The table events/ with the names of its JSON, and with times in milliseconds since 1970, -1 for none."""
    times = pc.fill_null(pc.divide(events["timestamp"].cast(pa.int64()), 1000), -1)
    place = events.column_names.index("timestamp")
    return events.set_column(place, "timestamp", times).rename_columns([*map(camel_case, events.column_names)])
