"""Search for a producer's earlier batches in the segments of a log.

Kafka's producer snapshots have only the last batch of each producer. A client that repeats an earlier batch has to
learn that it was already appended.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Final

from kraftlake.records.batch_header import HEADER, header_at
from kraftlake.replica_manager.errors import CorruptRecordError, UnsupportedForMessageFormatError
from kraftlake.replica_manager.logs.disk.files import LogFile
from kraftlake.replica_manager.logs.disk.log_segment import LOG, LogSegment, batches_in
from kraftlake.replica_manager.logs.log_batch import LogBatch, headers, size_said
from kraftlake.runtime.log import get_logger

_log = get_logger(__name__)

SEARCHED_BYTES: Final = 256 * 1024 * 1024
"""The number of bytes before the log's end in which batches are searched.

The batches that a producer may repeat were in flight together, for at most request.timeout.ms (30 s): one of them is
further back only in a partition with more than 8 MiB per second.
"""
_READ: Final = 1024 * 1024
"""The number of bytes per read."""
"""The index of the producer id in a batch's header."""


def earlier_batches(segments: Sequence[LogSegment], producer_id: int, offset: int) -> Iterator[LogBatch]:
    """Yield a producer's batches in the last `SEARCHED_BYTES` before `offset`, the last one first.

    A damaged batch ends the search.
    """
    left = SEARCHED_BYTES
    for segment in reversed(segments):
        if segment.base_offset >= offset:
            continue
        try:
            for start, stop in _pieces(segment, offset):
                left -= stop - start
                if left < 0:
                    return
                yield from _last_of(producer_id, segment.log, start, stop)
        except (CorruptRecordError, UnsupportedForMessageFormatError) as error:
            _log.warning("search_for_earlier_batches_ends", file=segment.path(LOG), why=str(error))
            return


def _pieces(segment: LogSegment, offset: int) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of a segment's pieces before the batch that contains `offset`, the last piece first.

    A piece has at least `_READ` bytes, except the segment's first one, and begins at an entry of the offset index.
    """
    entries = segment.offsets
    stop = segment.position_of(offset)
    while stop:
        count = bisect_left(range(len(entries)), stop - _READ, key=lambda at: int(entries[at][1]))
        start = entries[count - 1][1] if count else 0
        yield start, stop
        stop = start


def _last_of(producer_id: int, file: LogFile, start: int, stop: int) -> Iterator[LogBatch]:
    places = [place for place, id_ in _producers(file, start, stop) if id_ == producer_id]
    return (next(batches_in(file, place))[1] for place in reversed(places))


def _producers(file: LogFile, position: int, stop: int) -> Iterator[tuple[int, int]]:
    """Yield the position and the producer id of each batch from `position` to `stop`. Raises CorruptRecordError."""
    while position < stop and len(data := file.read(position, min(stop - position, _READ))) >= HEADER.size:
        size = 0
        for start, size, header in headers(data):  # noqa: B007 - the last end is how much was gone over
            yield position + start, header.producer_id
        if not size:  # the batch is larger than what was read
            size = size_said(data)
            if size > stop - position:
                raise CorruptRecordError(f"At byte {position} there is no whole record batch.")
            yield position, header_at(data).producer_id
        position += size
