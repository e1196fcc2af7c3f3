"""The records of a log that clients' requests made, with their times and causes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from kraftlake.diagnosis.attribution.causes import CLIENT_RECORDS, Cause, cause_of, cause_of_control
from kraftlake.diagnosis.thing_changes import begins_of, image_after
from kraftlake.kafka_files.sniffing.source_kind import SourceKind
from kraftlake.records.batch import RecordBatch
from kraftlake.records.metadata_records import TopicRecord
from kraftlake.records.serde import decode_value, with_short_frame
from kraftlake.records.uuid import Uuid
from kraftlake.replay.queries.source import LogSource
from kraftlake.replay.reading.chunks import Chunk, chunks_of
from kraftlake.runtime.errors import KraftlakeError

_KEYS: Final = frozenset(record.API_KEY for record in CLIENT_RECORDS)
_FRAME: Final = 3


class ChangedRecord(NamedTuple):
    """The time of a record (epoch ms, -1 for none), and what can have made it."""

    time: int
    cause: Cause


class ChangedRecords:
    """The records of a log: those of clients are read once, others when they are asked for."""

    def __init__(self, source: LogSource) -> None:
        """Read the log of a source; what can't be read or decoded is left out."""
        self._source = source
        self._names: dict[Uuid, str] = {}
        self.of_clients: dict[int, ChangedRecord] = {}
        """The records that requests of clients made, by offset, but those of single partitions."""
        self.is_snapshot = source.kind is SourceKind.SNAPSHOT
        if self.is_snapshot or source.start_offset >= source.end_offset:
            return
        begin = begins_of(source, source.end_offset - 1, lenient=True)[0]
        if begin >= 0:
            topics = image_after(source, begin, lenient=True).topics.topics_by_name().values()
            self._names = {topic.id: topic.name for topic in topics}
        chunks = chunks_of(source.reader, source.start_offset, source.end_offset - 1, lambda *_: None)
        for chunk in chunks:
            for offset, time, value in _candidates(chunk):
                self._add(offset, time, value)

    def at(self, offset: int) -> ChangedRecord | None:
        """The record at an offset; None where there is none that can be read."""
        found = self.of_clients.get(offset)
        if found is not None or self.is_snapshot:
            return found
        for batch in self._source.batches(offset, offset):
            place = offset - batch.base_offset
            if batch.control:
                return ChangedRecord(batch.timestamps[place], cause_of_control(batch.control_types[place]))
            message = _decoded(batch.values[place])
            return ChangedRecord(batch.timestamps[place], cause_of(message, self._names))
        return None

    def _add(self, offset: int, time: int, value: bytes) -> None:
        message = _decoded(value)
        if message is None:
            return
        if isinstance(message, TopicRecord):
            self._names[message.topic_id] = message.name
        self.of_clients[offset] = ChangedRecord(time, cause_of(message, self._names))


def _decoded(value: bytes) -> Any:
    try:
        return decode_value(value).message
    except (KraftlakeError, ValueError):
        return None


def _candidates(chunk: Chunk) -> Iterator[tuple[int, int, bytes]]:
    """The offset, time and value of each record of a type that clients' requests make."""
    if isinstance(chunk, RecordBatch):
        if not chunk.control:
            for place, value in enumerate(chunk.values):
                framed = with_short_frame(value)
                if len(framed) >= _FRAME and framed[1] in _KEYS:
                    yield chunk.base_offset + place, chunk.timestamps[place], value
        return
    import numpy as np

    long = np.flatnonzero(chunk.stops - chunk.starts >= _FRAME)
    places = long[np.isin(chunk.data[chunk.starts[long] + 1], [*_KEYS])]
    for at, time in zip(places.tolist(), chunk.times[places].tolist(), strict=True):
        yield chunk.base_offset + at, time, chunk.value(at)
