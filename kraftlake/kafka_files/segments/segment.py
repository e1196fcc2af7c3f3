"""A segment: the file of the log from a base offset to the base offset of the next segment."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import attrs

from kraftlake.kafka_files.faults import BrokenFileError, TornTail
from kraftlake.kafka_files.segments.batch_walk import READ_CHUNK, Damage, Whole, walk
from kraftlake.kafka_files.stored_file import StoredFile, Window
from kraftlake.kernels.compiled import pass_good
from kraftlake.records.batch import RecordBatch, read_batches
from kraftlake.records.batch_header import HEADER_SIZE, parse_header, pass_whole, size_said
from kraftlake.runtime.errors import CorruptDataError

if TYPE_CHECKING:
    from kraftlake.records.batch_values import BatchValues

_TAIL_BYTES = 64 * 1024
"""The bytes at a segment's end in which the last batch is searched; a larger batch costs a scan of all headers."""


@attrs.define
class ReaderPosition:
    """The position of a reader in the log: the next expected offset, and the minimum epoch."""

    offset: int
    epoch: int = 0

    def fault(self, base_offset: int, epoch: int) -> str | None:
        """The reason why a batch of this base offset and epoch can't follow here, or None."""
        if base_offset > self.offset:
            return f"offsets {self.offset} to {base_offset - 1} are missing before a batch that starts at {base_offset}"
        if base_offset < self.offset:
            return f"a batch that starts at offset {base_offset}, which the log already has"
        if epoch < self.epoch:
            return f"a batch of epoch {epoch} after one of epoch {self.epoch}"
        return None

    def pass_by(self, last_offset: int, epoch: int) -> None:
        """Move past a batch that ends at this offset."""
        self.offset = last_offset + 1
        self.epoch = epoch


@attrs.frozen(kw_only=True)
class Segment:
    """One `*.log` file. `end_position` is the end of its usable bytes: before its size if the tail is torn."""

    file: StoredFile
    base_offset: int
    end_position: int

    def batches(self, at: ReaderPosition, from_offset: int, to_offset: int | None) -> Iterator[RecordBatch]:
        """Yield the batches that hold any offset in [from_offset, to_offset]; moves `at` past them.

        Raises BrokenFileError at the first invalid byte.
        """
        with Window(self.file, READ_CHUNK) as window:
            position, at.offset = skip_before(from_offset, window, self.end_position, at.offset)
            while position < self.end_position:
                data = window.at(position, min(READ_CHUNK, self.end_position - position))
                size, _ = pass_whole(data, check_crc=False)
                data = data[:size] if size else self._one_batch(position, at).data
                for batch in self._decoded(data, position, at):
                    position += batch.size_in_bytes
                    at.pass_by(batch.last_offset, batch.epoch)
                    if batch.last_offset >= from_offset:
                        yield batch
                    if to_offset is not None and at.offset > to_offset:
                        return

    def bulk_batches(self, at: ReaderPosition, from_offset: int) -> Iterator[BatchValues | RecordBatch]:
        """The same as `batches`, in bulk; stops silently before the first invalid byte."""
        with Window(self.file, READ_CHUNK) as window:
            position, at.offset = skip_before(from_offset, window, self.end_position, at.offset)
        yield from bulk_batches(self.file, position, self.end_position, at)

    def end_offset(self, *, expected: int) -> int:
        """Return the offset after the last whole batch.

        If the last bytes show that the end is `expected`, the offset at which the next segment starts, only they are
        read; otherwise the headers of all batches.
        """
        if self._end_from(max(0, self.end_position - _TAIL_BYTES), headers_only=False) == expected:
            return expected
        return self._end_from(0, headers_only=True) or self.base_offset

    def _end_from(self, start: int, *, headers_only: bool) -> int | None:
        """Return the offset after the last whole batch after byte `start`; None without any."""
        end: int | None = None
        for step in walk(self.file, start=start, limit=self.end_position, headers_only=headers_only):
            if isinstance(step, Whole):
                end = step.header.last_offset + 1
        return end

    def _decoded(self, data: memoryview, position: int, at: ReaderPosition) -> Iterator[RecordBatch]:
        """Yield the batches in `data`, which begins at `position` and holds batches that are whole by their lengths."""
        batches = read_batches(data, file=self.file.name, position=position)
        while True:
            try:
                batch = next(batches, None)
            except CorruptDataError:
                decode(self.file, self._one_batch(position, at))
                raise
            if batch is None:
                return
            fault = at.fault(batch.base_offset, batch.epoch)
            if fault is not None:
                raise BrokenFileError(self.file.name, position, at.offset, fault)
            position += batch.size_in_bytes
            yield batch

    def _one_batch(self, position: int, at: ReaderPosition) -> Whole:
        """Return the whole batch at `position`; raises BrokenFileError with the reason if none is there."""
        step = next(walk(self.file, start=position, limit=self.end_position))
        if isinstance(step, Damage):
            raise BrokenFileError(self.file.name, position, at.offset, step.reason)
        return step


def skip_before(offset: int, window: Window, end: int, next_offset: int) -> tuple[int, int]:
    """Skip the batches of a segment that end below `offset`, by headers alone.

    `end` is the end of the segment's usable bytes, `next_offset` the offset of its first batch. Returns the position
    after the skipped batches and the offset after them; stops at the first header that looks invalid.
    """
    position = 0
    while next_offset < offset and position < end:
        data = window.at(position, min(READ_CHUNK, end - position))
        size, next_offset = pass_whole(data, check_crc=False, offset=next_offset, before=offset)
        if not size:
            header = parse_header(data)  # that of a batch which is longer than a chunk
            if header is None or header.fault() is not None or header.base_offset != next_offset:
                break
            if header.last_offset >= offset or header.size > end - position:
                break
            size, next_offset = header.size, header.last_offset + 1
        position += size
    return position, next_offset


_BULK_CHUNK = 8 << 20
"""The number of bytes per read in bulk: for a log of a million partitions, half the CPU time of reads of 1 MiB."""


def bulk_batches(file: StoredFile, start: int, end: int, at: ReaderPosition) -> Iterator[BatchValues | RecordBatch]:
    """Yield the batches in the bytes [start, end) of a file, in bulk; moves `at` past them.

    The function stops silently before the first invalid byte: reading batch by batch reports the reason.
    """
    from kraftlake.records.batch_values import BatchValues, read_values

    with Window(file, _BULK_CHUNK) as window:
        wanted = _BULK_CHUNK
        while start < end:
            data = window.at(start, min(wanted, end - start))
            before = start
            for chunk in read_values(data, file=file.name, position=start):
                if at.fault(chunk.base_offset, chunk.epoch) is not None:
                    return
                at.pass_by(chunk.last_offset, chunk.last_epoch if isinstance(chunk, BatchValues) else chunk.epoch)
                start += chunk.size_in_bytes
                yield chunk
            if start > before:
                wanted = _BULK_CHUNK
                continue
            said = size_said(data)
            if said is None or said <= len(data) or start + said > end:
                return
            wanted = said


def decode(file: StoredFile, step: Whole) -> RecordBatch:
    """Decode the only batch of a step. Raises BrokenFileError for malformed records."""
    try:
        batch, *others = read_batches(step.data, file=file.name, position=step.position)
    except CorruptDataError as error:
        message = f"a batch with a good CRC that can't be read ({error})"
        raise BrokenFileError(file.name, step.position, step.header.base_offset, message) from None
    assert not others
    return batch


@attrs.frozen(kw_only=True)
class SegmentEnd:
    """The end of a log by its last segment: the end of the last whole batch with a correct CRC, and the torn tail."""

    offset: int
    position: int
    torn: TornTail | None


def find_log_end(file: StoredFile, base_offset: int) -> SegmentEnd:
    """Find the end of a log in its last segment.

    Damage followed by a whole batch is not the end: reading stops there with an error.
    """
    offset = base_offset
    position = good_end = 0
    damage: Damage | None = None
    with Window(file, READ_CHUNK) as window:
        while position < file.size:
            size, after = pass_good(window.at(position, READ_CHUNK))
            if size:
                position += size
                offset, good_end, damage = after, position, None
                continue
            step = next(walk(file, start=position))
            position = step.end
            if isinstance(step, Whole):
                offset, good_end, damage = step.header.last_offset + 1, position, None
            elif damage is None:
                damage = step
    torn = None
    if damage is not None:
        torn = TornTail(file.name, damage.position, offset, damage.reason, _is_cut(file, damage.position))
    return SegmentEnd(offset=offset, position=good_end, torn=torn)


def _is_cut(file: StoredFile, position: int) -> bool:
    """Whether the bytes from `position` are the start of a batch cut off by the file's end, or zeros."""
    with Window(file, HEADER_SIZE) as window:
        head = bytes(window.at(position, min(HEADER_SIZE, file.size - position)))
    header = parse_header(head)
    if header is None or not any(head):
        return True
    return header.fault() is None and header.size > file.size - position
