"""A snapshot: a `*.checkpoint` file with all metadata below an offset as its own records.

Source: org.apache.kafka.snapshot.RecordsSnapshotReader and Snapshots.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import attrs

from kraftlake.kafka_files.faults import BrokenFileError
from kraftlake.kafka_files.file_names import BOOTSTRAP_NAME, snapshot_id
from kraftlake.kafka_files.segments.batch_walk import Damage, Whole, walk
from kraftlake.kafka_files.segments.segment import ReaderPosition, bulk_batches, decode
from kraftlake.kafka_files.stored_file import StoredFile
from kraftlake.records.batch import RecordBatch
from kraftlake.records.control_records import SnapshotFooterRecord, SnapshotHeaderRecord
from kraftlake.runtime.errors import CorruptDataError

if TYPE_CHECKING:
    from kraftlake.records.batch_values import BatchValues


@attrs.frozen(kw_only=True)
class Snapshot:
    """The metadata after all offsets below `end_offset`, the last of which has `epoch`.

    Only the file's name contains these two: if `named` is false they are 0 and meaningless. `finished` means that the
    last record is a footer; an interrupted writer leaves none. `bootstrap` marks the file with which a node is
    formatted: input of the first controller, never a base for a replay. `last_contained_log_timestamp` is the append
    time of the last record contained, in epoch ms, −1 if the header can't be read.
    """

    name: str
    end_offset: int
    epoch: int
    named: bool = True
    finished: bool
    bootstrap: bool
    last_contained_log_timestamp: int
    size_in_bytes: int
    file: StoredFile = attrs.field(repr=False, eq=False)

    def damage(self) -> str | None:
        """The first invalid byte of a finished snapshot, with the reason; None for a sound one. Reads all batches."""
        try:
            for _ in self._whole_batches():
                pass
        except BrokenFileError as fault:
            return str(fault)
        return None

    def batches(self) -> Iterator[RecordBatch]:
        """Yield all batches, including control batches, at their offsets in the file (from 0 on).

        Raises BrokenFileError at the first invalid byte; of an unfinished snapshot it yields the whole batches first.
        """
        footer_seen = False
        for step in self._whole_batches():
            if footer_seen:
                offset = step.header.base_offset
                raise BrokenFileError(self.name, step.position, offset, "a batch after the snapshot's footer")
            batch = decode(self.file, step)
            if step.position == 0 and SnapshotHeaderRecord.API_KEY not in batch.control_types[:1]:
                raise BrokenFileError(self.name, 0, 0, "a snapshot that does not start with a snapshot header")
            footer_seen = SnapshotFooterRecord.API_KEY in batch.control_types
            yield batch

    def _whole_batches(self) -> Iterator[Whole]:
        at = ReaderPosition(0)
        for step in walk(self.file):
            fault = step.reason if isinstance(step, Damage) else at.fault(step.header.base_offset, step.header.epoch)
            if fault is not None:
                raise BrokenFileError(self.name, step.position, at.offset, fault)
            assert isinstance(step, Whole)
            yield step
            at.pass_by(step.header.last_offset, step.header.epoch)

    def bulk_batches(self) -> Iterator[BatchValues | RecordBatch]:
        """The same as `batches`, in bulk.

        Ends after the footer, or stops silently before the first invalid byte: `batches` reports the reason.
        """
        for chunk in bulk_batches(self.file, 0, self.file.size, ReaderPosition(0)):
            single = chunk if isinstance(chunk, RecordBatch) else None
            control = () if single is None else single.control_types
            if chunk.base_offset == 0 and SnapshotHeaderRecord.API_KEY not in control[:1]:
                return
            ends = single is not None and single.position + single.size_in_bytes == self.file.size
            if SnapshotFooterRecord.API_KEY in control and not ends:
                return
            yield chunk


def read_snapshot(file: StoredFile) -> Snapshot:
    """Describe the snapshot in `file` by its name, its first and its last batch."""
    identity = snapshot_id(file.name)
    is_bootstrap_file = file.name == BOOTSTRAP_NAME
    end_offset, epoch = identity or (0, 0)
    last: Whole | None = None
    whole = file.size > 0
    for step in walk(file, headers_only=True):
        if isinstance(step, Damage):
            whole = False
            break
        last = step
    return Snapshot(
        name=file.name,
        end_offset=end_offset,
        epoch=epoch,
        named=identity is not None or is_bootstrap_file,
        finished=whole and last is not None and _ends_with_footer(file, last),
        bootstrap=identity == (0, 0) or is_bootstrap_file,
        last_contained_log_timestamp=_header_timestamp(file),
        size_in_bytes=file.size,
        file=file,
    )


def _ends_with_footer(file: StoredFile, last: Whole) -> bool:
    batch = _control_batch(file, last.position)
    return batch is not None and batch.control_types[-1:] == (SnapshotFooterRecord.API_KEY,)


def _header_timestamp(file: StoredFile) -> int:
    batch = _control_batch(file, 0)
    if batch is None or batch.control_types[:1] != (SnapshotHeaderRecord.API_KEY,):
        return -1
    try:
        header = batch.messages()[0].message
    except CorruptDataError:
        return -1
    return header.last_contained_log_timestamp if isinstance(header, SnapshotHeaderRecord) else -1


def _control_batch(file: StoredFile, position: int) -> RecordBatch | None:
    """Return the control batch at `position`; None without a readable one."""
    step = next(walk(file, start=position), None)
    if not isinstance(step, Whole) or not step.header.is_control:
        return None
    try:
        return decode(file, step)
    except CorruptDataError:
        return None
