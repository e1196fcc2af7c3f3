"""Bulk replay: where there is much to load, many batches at once instead of one by one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kraftlake import kernels
from kraftlake.records.batch import RecordBatch
from kraftlake.replay.reading.progress import REPLAYING, telling

if TYPE_CHECKING:
    from kraftlake.records.batch_values import BatchValues
    from kraftlake.replay.loader.batch_loader import MetadataBatchLoader
    from kraftlake.replay.reading.log_reader import LogReader, SnapshotReader
    from kraftlake.replay.reading.progress import Progress

BULK_FROM: Final = 20_000
"""From how many records on loading the compiled code pays."""
BULK_SNAPSHOT_BYTES: Final = 1_000_000
"""From how many bytes of a snapshot file on it does; a partition takes about a hundred."""

BULK_SNAPSHOT_RECORDS: Final = 10_000
"""The same, where records are counted."""

AHEAD_FROM_BYTES: Final = 1 << 22
"""From how many bytes on a thread that finds the values ahead of their replay is worth its start."""
_RECORD_BYTES = 48
"""About the bytes of a change record in its batch; others take more."""

T = TypeVar("T")


def made_ahead(parts: Iterable[T], size: int) -> AbstractContextManager[Iterator[T]]:
    """`with made_ahead(parts, size) as made`: the parts of about so many bytes, each made while the last is in use.

    Few of them are made when they are asked for.
    """
    if size < AHEAD_FROM_BYTES:
        return nullcontext(iter(parts))
    from kraftlake.runtime.one_ahead import one_ahead

    return one_ahead(parts)


def load_in_bulk(loader: MetadataBatchLoader, reader: LogReader, to: int, *, progress: Progress | None = None) -> None:
    """Gather the log after the loader's last offset up to `to` in bulk, as far as that goes; the rest is for others."""
    stretches: Any = getattr(reader, "stretches", None)
    if to - loader.last_offset < BULK_FROM or stretches is None or not kernels.available():
        return
    with made_ahead(stretches(loader.last_offset + 1, to), (to - loader.last_offset) * _RECORD_BYTES) as parts:
        for part in telling(parts, progress, REPLAYING, to + 1):
            if isinstance(part, RecordBatch):
                loader.load_batch(part, to_offset=to)
            else:
                loader.load_values(part, to_offset=to)


def parts_of_snapshot(snapshot: SnapshotReader) -> Iterator[BatchValues | RecordBatch]:
    """All batches of a snapshot, many at once where it is large."""
    stretches: Any = getattr(snapshot, "stretches", None)
    # One that a lake made for itself never was a file, and so has no size, but its records are counted.
    records: int = getattr(snapshot, "record_count", 0)
    large = snapshot.size_in_bytes >= BULK_SNAPSHOT_BYTES or records >= BULK_SNAPSHOT_RECORDS
    after = 0
    if large and stretches is not None and kernels.available():
        from kraftlake.records.control_records import SnapshotFooterRecord

        with made_ahead(stretches(), max(snapshot.size_in_bytes, records * _RECORD_BYTES)) as parts:
            for part in parts:
                after = part.last_offset + 1
                yield part
                if isinstance(part, RecordBatch) and SnapshotFooterRecord.API_KEY in part.control_types:
                    return
    for batch in snapshot.batches():
        if batch.base_offset >= after:
            yield batch
