"""Writers of segments and snapshots for Kafka, atomic.

Source: org.apache.kafka.snapshot.RecordsSnapshotWriter.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from kraftlake.kafka_files.file_names import segment_base_offset
from kraftlake.kafka_files.snapshots.batches import checkpoint_batches
from kraftlake.records.batch import RecordBatch, encode_batch
from kraftlake.records.control_records import VotersRecord
from kraftlake.records.encoded_values import EncodedValues
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.runtime.errors import EnvironmentFaultError, OffsetError, UsageError
from kraftlake.runtime.whole_file import write_whole

if TYPE_CHECKING:
    from kraftlake.records.batch_values import BatchValues


def write_checkpoint(
    path: str | Path,
    messages: Iterable[ApiMessageAndVersion | EncodedValues],
    *,
    epoch: int,
    timestamp: int,
    kraft_version: int = 0,
    voters: VotersRecord | None = None,
) -> int:
    """Write a KRaft snapshot of `messages` and return its size in bytes.

    Header (from kraft.version 1 on with the version and the `voters`), data batches of at most 1,024 records and 8 MiB,
    footer. `epoch` and `timestamp` (epoch ms) are those of the last record contained. A file at `path` is replaced.
    Raises EnvironmentFaultError if the disk refuses, and then leaves no file.
    """
    if kraft_version < 1 and voters is not None:
        raise UsageError(f"a snapshot at kraft.version {kraft_version} has no voters: voters need kraft.version 1")
    batches = checkpoint_batches(messages, epoch=epoch, timestamp=timestamp, kraft_version=kraft_version, voters=voters)
    return _write(Path(path), _encoded(batches))


def _encoded(batches: Iterable[RecordBatch | BatchValues]) -> Iterator[bytes]:
    for batch in batches:
        if isinstance(batch, RecordBatch):
            yield encode_batch(batch)
            continue
        from kraftlake.records.encoded_batches import encode_batches

        yield from encode_batches(batch)


def write_segment(path: str | Path, batches: Iterable[RecordBatch]) -> int:
    """Write `batches`, contiguous and in offset order, as one segment and return its size in bytes.

    A file at `path` is replaced. Raises OffsetError if a batch does not follow the previous one, or the first one does
    not start at the offset in the file's name; EnvironmentFaultError if the disk refuses.
    """
    target = Path(path)
    return _write(target, _encoded(_contiguous(batches, segment_base_offset(target.name))))


def _contiguous(batches: Iterable[RecordBatch], expected: int | None) -> Iterator[RecordBatch]:
    for batch in batches:
        if expected is not None and batch.base_offset != expected:
            raise OffsetError(
                f"a segment can't be written: offset {expected} is due, a batch starts at {batch.base_offset}"
            )
        yield batch
        expected = batch.last_offset + 1


def _write(target: Path, parts: Iterable[bytes]) -> int:
    try:
        return write_whole(target, parts)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else error
        raise EnvironmentFaultError(f"{target} can't be written: {reason}") from None
