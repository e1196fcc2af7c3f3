"""The events of a range of any source's log, in order and without Spark: of a long range in bulk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kraftlake.replay import BULK_FROM
from kraftlake.replay.loader.manifest import SkippedRecord
from kraftlake.replay.queries.changes import LogChanges
from kraftlake.replay.reading.log_reader import LogReader
from kraftlake.runtime.errors import KraftlakeError
from kraftlake.tables.events.change_events import event_chunks
from kraftlake.tables.events.delta_events import EventChunk
from kraftlake.tables.events.table import EVENTS

if TYPE_CHECKING:
    from kraftlake.image import MetadataImage
    from kraftlake.replay.loader.batch_loader import MetadataBatchLoader

Changes = Callable[[int | None, int | None], LogChanges]
"""Makes the changes of a range of offsets."""


class LogEvents:
    """The events of a range of a log; iterate it, or its `chunks`, once.

    `skipped` grows with the records that a lenient replay leaves out, by offset. Raises what `LogChanges` raises, after
    the events before the record that can't be replayed.
    """

    def __init__(
        self,
        reader: LogReader,
        changes: Changes,
        from_offset: int | None,
        to_offset: int | None,
        *,
        show_secrets: bool = False,
        of_brokers: frozenset[int] | None = None,
    ) -> None:
        """`changes` makes those of [from_offset, to_offset], and those of ranges within it.

        Sensitive configs are `(redacted)` unless `show_secrets`. `of_brokers` leaves only the events of these brokers
        and of the partitions that they host at the time.
        """
        self._kept: dict[str, Any] = {"show_secrets": show_secrets, "of_brokers": of_brokers}
        self._reader = reader
        self._make = changes
        self._to_offset = reader.end_offset - 1 if to_offset is None else to_offset
        self._begin = changes(from_offset, to_offset)
        self.skipped: dict[int, SkippedRecord] = {}

    @property
    def begin(self) -> MetadataImage:
        """The image before the first delta; to be asked for before the iteration."""
        return self._begin.loader.image

    def __iter__(self) -> Iterator[pa.Table]:
        """The rows of `events/`, as tables of a bounded number of log batches."""
        return (chunk.rows().cast(EVENTS.schema) for chunk in self.chunks())

    def chunks(self) -> Iterator[EventChunk]:
        """What the events are made of: the metadata deltas of a bounded number of log batches at once."""
        return self._told(self._begin)

    def _told(self, changes: LogChanges) -> Iterator[EventChunk]:
        loader = changes.loader
        begin = loader.last_offset + 1
        long = not loader.in_transaction and self._to_offset - begin >= BULK_FROM
        if not long or getattr(self._reader, "bulk_batches", None) is None:
            yield from self._one_by_one(changes)
        elif begin and not loader.provenance.batch_aligned:
            end = next(iter(self._reader.batches(begin, begin))).last_offset
            yield from self._one_by_one(self._make(begin, min(end, self._to_offset)))
            if end < self._to_offset:
                yield from self._told(self._make(end + 1, self._to_offset))
        else:
            self._note_skipped(changes)
            yield from self._by_columns(loader)

    def _one_by_one(self, changes: LogChanges, after: int = -1) -> Iterator[EventChunk]:
        """The deltas of changes that end after the offset `after`."""
        try:
            yield from event_chunks(changes, after=after, **self._kept)
        finally:
            self._note_skipped(changes)

    def _by_columns(self, loader: MetadataBatchLoader) -> Iterator[EventChunk]:
        """The deltas of all that follows a loader's image: in bulk as far as that goes, then one by one."""
        from kraftlake.tables.events.bulk_log_events import BulkLogEvents  # imports numpy

        parts = BulkLogEvents(self._reader, loader, self._to_offset, **self._kept)
        with suppress(KraftlakeError):  # the replay of objects says what is wrong, or skips it
            yield from parts
        if parts.safe_from <= self._to_offset:
            yield from self._one_by_one(self._make(parts.safe_from, self._to_offset), after=parts.told_to)

    def _note_skipped(self, changes: LogChanges) -> None:
        self.skipped |= {record.offset: record for record in changes.skipped}


def form_of(row: dict[str, Any]) -> dict[str, Any]:
    """A row of the table events/ as JSON: names in camel case, the time in milliseconds since 1970."""
    time = row.pop("timestamp")
    form = {"offset": row.pop("offset"), "epoch": row.pop("epoch")}
    form["timestamp"] = -1 if time is None else round(time.timestamp() * 1000)
    form |= {"kind": row.pop("kind"), "subject": row.pop("subject"), "topic": row.pop("topic")}
    return form | {"topicId": row.pop("topic_id")} | row
