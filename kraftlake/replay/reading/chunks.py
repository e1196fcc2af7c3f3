"""A log or a snapshot read in order: batch by batch, or in large chunks where it is long enough for that."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import attrs

from kraftlake.records.batch import RecordBatch
from kraftlake.replay.reading.open_reader import LogReader, SnapshotReader
from kraftlake.replay.reading.replay_base import readable_batches

if TYPE_CHECKING:
    from kraftlake.records.batch_values import BatchValues

Chunk: TypeAlias = "BatchValues | RecordBatch"
"""One batch, or consecutive data batches."""

BULK_FROM: Final = 20_000
"""The number of a log's records from which reading in bulk is faster although it loads numpy.

For partition records and their changes, 12,000 take as long both ways, 25,000 two thirds of the time in bulk.
"""
BULK_SNAPSHOT_FROM: Final = 10_000
"""The same number for a snapshot."""
_SNAPSHOT_RECORD_BYTES: Final = 100
"""The size of a partition's record, to estimate the number of records in a snapshot file."""


def bulk_chunks(reader: LogReader, first: int, last: int) -> Iterator[Chunk] | None:
    """Chunks that together hold the offsets [first, last] and more; None where reading in bulk is not worth it.

    The chunks may end before `last`: later batches have to be read one by one.
    """
    bulk_batches: Any = getattr(reader, "bulk_batches", None)
    if bulk_batches is None or last - first < BULK_FROM:
        return None
    chunks: Iterator[Chunk] = bulk_batches(first, last)
    return chunks


def chunks_of(
    reader: LogReader, first: int, last: int, lost: Callable[[int, int, str], None] | None = None
) -> Iterator[Chunk]:
    """The whole batches that hold any offset of [first, last], in order; raises the errors of `reader.batches`.

    With `lost`, missing and damaged offsets are skipped as in `readable_batches`.
    """
    for chunk in bulk_chunks(reader, first, last) or ():
        if isinstance(chunk, RecordBatch) or (chunk.base_offset >= first and chunk.last_offset <= last):
            yield chunk
        else:
            yield from (batch for batch in chunk.batches(first) if batch.base_offset <= last)
        first = chunk.last_offset + 1
    if first <= last:
        yield from readable_batches(reader, first, last, lost)


def chunks_of_snapshot(snapshot: SnapshotReader) -> Iterator[Chunk]:
    """All batches of a snapshot."""
    bulk_batches: Any = getattr(snapshot, "bulk_batches", None)
    # A snapshot that a lake made itself never was a file and has no size, but its records are counted.
    records: int = getattr(snapshot, "record_count", 0) or snapshot.size_in_bytes // _SNAPSHOT_RECORD_BYTES
    after = 0
    if bulk_batches is not None and records >= BULK_SNAPSHOT_FROM:
        from kraftlake.records.control_records import SnapshotFooterRecord
        from kraftlake.runtime.prefetching import prefetch

        with prefetch(bulk_batches()) as chunks:
            for chunk in chunks:
                after = chunk.last_offset + 1
                yield chunk
                if isinstance(chunk, RecordBatch) and SnapshotFooterRecord.API_KEY in chunk.control_types:
                    return
    for batch in snapshot.batches():
        if batch.base_offset >= after:
            yield batch


def cut(part: Chunk, first: int, last: int) -> Chunk:
    """The part of a batch that has offsets of [first, last]; values of many batches are never cut."""
    if not isinstance(part, RecordBatch) or (part.base_offset >= first and part.last_offset <= last):
        return part
    begin = max(first, part.base_offset)
    some = slice(begin - part.base_offset, last + 1 - part.base_offset)
    return attrs.evolve(
        part,
        base_offset=begin,
        values=part.values[some],
        timestamps=part.timestamps[some],
        control_types=part.control_types[some],
    )
