"""Segments and snapshots that Kafka reads, written whole or not at all.

Source: org.apache.kafka.snapshot.RecordsSnapshotWriter and org.apache.kafka.raft.internals.BatchAccumulator.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from kraftlake.kafka_files.file_names import segment_base_offset
from kraftlake.records.batch import RecordBatch, encode_batch
from kraftlake.records.control_records import (
    KRaftVersionRecord,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from kraftlake.records.schema import Message
from kraftlake.records.serde import ApiMessageAndVersion, encode_value
from kraftlake.runtime.errors import EnvironmentFaultError, OffsetError, UsageError

MAX_RECORDS_IN_BATCH = 1024
MAX_BYTES_IN_BATCH = 1024 * 1024
RECORD_OVERHEAD = 24
"""More than a record's length, attributes, deltas and counts take beside its value."""


def write_checkpoint(
    path: str | Path,
    messages: Iterable[ApiMessageAndVersion],
    *,
    epoch: int,
    last_contained_log_timestamp: int,
    timestamp: int | None = None,
    kraft_version: int = 0,
    voters: VotersRecord | None = None,
    compression: str = "none",
) -> int:
    """Write a KRaft snapshot of `messages` and return its size in bytes.

    Header (from kraft.version 1 on with the version and the `voters`), data batches of at most 1,024 records and
    about 1 MiB, footer. `epoch` is that of the last offset contained, as in the file's name; `timestamp`, epoch ms, is
    what the batches carry, that of the last record contained if None. A file at `path` is replaced. Raises
    EnvironmentFaultError where the disk refuses, and leaves nothing behind.
    """
    if kraft_version < 1 and voters is not None:
        raise UsageError(f"a snapshot at kraft.version {kraft_version} has no voters: voters need kraft.version 1")
    when = last_contained_log_timestamp if timestamp is None else timestamp
    batches = checkpoint_batches(
        messages,
        epoch=epoch,
        last_contained_log_timestamp=last_contained_log_timestamp,
        timestamp=when,
        kraft_version=kraft_version,
        voters=voters,
    )
    return _write(Path(path), (encode_batch(batch, compression) for batch in batches))


def checkpoint_batches(
    messages: Iterable[ApiMessageAndVersion],
    *,
    epoch: int,
    last_contained_log_timestamp: int,
    timestamp: int,
    kraft_version: int = 0,
    voters: VotersRecord | None = None,
) -> Iterator[RecordBatch]:
    """The batches of such a snapshot, offsets from 0 on."""
    head: list[Message] = [SnapshotHeaderRecord(last_contained_log_timestamp=last_contained_log_timestamp)]
    if kraft_version >= 1:
        head.append(KRaftVersionRecord(k_raft_version=kraft_version))
        if voters is not None:
            head.append(voters)
    yield RecordBatch.control_of(0, epoch, timestamp, head)
    offset = len(head)
    for values in _split(messages):
        yield RecordBatch(
            base_offset=offset,
            epoch=epoch,
            timestamp=timestamp,
            values=values,
            timestamps=(timestamp,) * len(values),
        )
        offset += len(values)
    yield RecordBatch.control_of(offset, epoch, timestamp, [SnapshotFooterRecord()])


class BatchCutter:
    """Says where a batch ends: before the record that would be one too many, or would make it too large."""

    def __init__(self, records: int = 0, size: int = 0) -> None:
        self.records = records
        """Of the batch that is open."""
        self.size = size
        """About how many bytes they take."""

    def begins(self, value_size: int) -> bool:
        """Whether the next record, whose value has so many bytes, begins a batch; it is counted in."""
        taken = value_size + RECORD_OVERHEAD
        full = self.records == MAX_RECORDS_IN_BATCH or (self.records and self.size + taken > MAX_BYTES_IN_BATCH)
        if full or not self.records:
            self.records, self.size = 1, taken
            return True
        self.records += 1
        self.size += taken
        return False


def _split(messages: Iterable[ApiMessageAndVersion]) -> Iterator[tuple[bytes, ...]]:
    values: list[bytes] = []
    cutter = BatchCutter()
    for message in messages:
        value = encode_value(message.message, message.version)
        if cutter.begins(len(value)) and values:
            yield tuple(values)
            values = []
        values.append(value)
    if values:
        yield tuple(values)


def write_segment(path: str | Path, batches: Iterable[RecordBatch], compression: str = "none") -> int:
    """Write `batches`, contiguous and in offset order, as one segment and return its size in bytes.

    A file at `path` is replaced. Raises OffsetError where a batch does not follow the one before it, or the first
    one does not start at the offset that the file's name says; EnvironmentFaultError where the disk refuses.
    """
    target = Path(path)
    return _write(
        target, (encode_batch(b, compression) for b in _contiguous(batches, segment_base_offset(target.name)))
    )


def _contiguous(batches: Iterable[RecordBatch], expected: int | None) -> Iterator[RecordBatch]:
    for batch in batches:
        if expected is not None and batch.base_offset != expected:
            raise OffsetError(
                f"a segment can't be written: offset {expected} is due, a batch starts at {batch.base_offset}"
            )
        yield batch
        expected = batch.last_offset + 1


def _write(target: Path, parts: Iterable[bytes]) -> int:
    """Write a temporary file beside `target`, fsync it, rename it, fsync the folder."""
    try:
        descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=f"{target.name}.", suffix=".part")
    except OSError as error:
        raise _refused(target, error) from None
    try:
        size = 0
        with os.fdopen(descriptor, "wb") as file:
            for part in parts:
                file.write(part)
                size += len(part)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(target)
        _sync_folder(target.parent)
    except BaseException as error:
        Path(temporary).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise _refused(target, error) from None
        raise
    return size


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _refused(target: Path, error: OSError) -> EnvironmentFaultError:
    return EnvironmentFaultError(f"{target} can't be written: {os.strerror(error.errno) if error.errno else error}")
