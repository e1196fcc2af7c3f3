"""A segment of a log: a file of record batches, its offset and time index, and its aborted transactions."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import chain, dropwhile
from struct import Struct
from typing import Final

import attrs

from kraftlake.records.batch_header import HEADER, parse_header
from kraftlake.replica_manager.errors import CorruptRecordError
from kraftlake.replica_manager.logs.batch_run import BatchRun, find_batches
from kraftlake.replica_manager.logs.disk.entry_file import EntryFile
from kraftlake.replica_manager.logs.disk.files import Files, LogFile
from kraftlake.replica_manager.logs.log_batch import (
    OLD_HEADER,
    LogBatch,
    log_batches,
    old_size,
    refuse_old_format,
    size_said,
)
from kraftlake.replica_manager.logs.log_config import LogConfig
from kraftlake.replica_manager.logs.open_transactions import EndedTransaction
from kraftlake.replica_manager.logs.timestamps import NO_TIMESTAMP

OFFSET_ENTRY: Final = Struct(">ii")
"""The last offset of a batch, relative to the segment's base offset, and the position of the batch."""
TIME_ENTRY: Final = Struct(">qi")
"""The largest timestamp up to a batch, and the last offset of the batch that has it, relative to the base offset."""
TRANSACTION_ENTRY: Final = Struct(">hqqqq")
"""An aborted transaction: version, producer id, first offset, last offset, last stable offset."""

LOG: Final = ".log"
OFFSET_INDEX: Final = ".index"
TIME_INDEX: Final = ".timeindex"
TRANSACTION_INDEX: Final = ".txnindex"
SUFFIXES: Final = (LOG, OFFSET_INDEX, TIME_INDEX, TRANSACTION_INDEX)
_CHUNK: Final = 64 * 1024
_CHECKED: Final = 1024 * 1024
"""The number of bytes checked at once."""
LARGEST_RELATIVE_OFFSET: Final = (1 << 31) - 1


def batches_in(file: LogFile, position: int = 0) -> Iterator[tuple[int, LogBatch]]:
    """Yield the position and content of the whole batches from `position` on; a truncated last batch is skipped.

    Raises CorruptRecordError at bytes that are not a batch.
    """
    while (data := file.read(position, _CHUNK)) and len(data) >= HEADER.size:
        start = position
        for batch in log_batches(data):
            yield position, batch
            position += batch.size
        if position == start:  # the batch is larger than what was read, or cut off
            size = size_said(data)
            if size > file.size - position:
                return
            (batch,) = log_batches(file.read(position, size))
            yield position, batch
            position += size


def file_name(base_offset: int, suffix: str) -> str:
    """The name of a segment's file."""
    return f"{base_offset:020d}{suffix}"


@attrs.define(eq=False, kw_only=True)
class LogSegment:
    """The files of one segment; `folder` is the partition's.

    The transaction index is created with its first entry. Source: org.apache.kafka.storage.internals.log.LogSegment.
    """

    files: Files = attrs.field(repr=False)
    folder: str
    base_offset: int
    created_ms: int
    roll_jitter_ms: int = 0
    mark: str = ""
    """Stands behind the suffixes of the files' names while the segment is no part of the log."""
    log: LogFile = attrs.field(init=False, repr=False)
    offsets: EntryFile = attrs.field(init=False, repr=False)
    times: EntryFile = attrs.field(init=False, repr=False)
    transactions: EntryFile | None = attrs.field(init=False, repr=False, default=None)
    largest_timestamp: int = attrs.field(init=False, default=NO_TIMESTAMP)
    """The largest timestamp of its records, −1 without any."""
    _indexed: bool = attrs.field(init=False, default=True)
    _offset_of_largest: int = attrs.field(init=False, default=-1)
    _first_timestamp: int | None = attrs.field(init=False, default=None)
    _unindexed: int = attrs.field(init=False, default=0)
    """The bytes since the last entry of the offset index."""
    _newest: tuple[int, int] | None = attrs.field(init=False, default=None)
    """The first offset and the position of the last append, from which caught-up followers read."""

    def __attrs_post_init__(self) -> None:
        self.log = self.files.open(self.path(LOG))
        self._indexed = self.log.size == 0 or all(
            self.files.exists(self.path(suffix)) for suffix in (OFFSET_INDEX, TIME_INDEX)
        )
        self.offsets = EntryFile(self.files.open(self.path(OFFSET_INDEX)), OFFSET_ENTRY)
        self.times = EntryFile(self.files.open(self.path(TIME_INDEX)), TIME_ENTRY)
        if self.files.exists(self.path(TRANSACTION_INDEX)):
            self._open_transactions()
        self._take_indexed_timestamp()

    def path(self, suffix: str) -> str:
        """The path of the segment's file with a suffix."""
        return f"{self.folder}/{file_name(self.base_offset, suffix)}{self.mark}"

    @property
    def size(self) -> int:
        """The size of its batches in bytes."""
        return self.log.size

    @property
    def file_sizes(self) -> tuple[int, int, int]:
        """The sizes of the batches, the offset index and the time index in bytes."""
        return self.size, len(self.offsets) * OFFSET_ENTRY.size, len(self.times) * TIME_ENTRY.size

    @property
    def first_batch_timestamp(self) -> int | None:
        """The largest timestamp of its first batch (epoch ms), None for no batch."""
        if self._first_timestamp is None and self.size:
            self._first_timestamp = next(batch.max_timestamp for _, batch in batches_in(self.log))
        return self._first_timestamp

    @property
    def is_sound(self) -> bool:
        """Whether the indexes exist, and end with whole entries within the log; of transactions, all entries count.

        Other entries are checked when they are used, by the batch at their place.
        """
        indexes = [self.offsets, self.times, *([] if self.transactions is None else [self.transactions])]
        last = self.offsets.last
        whole = self._indexed and all(index.is_whole for index in indexes)
        return (
            whole
            and (last is None or 0 <= last[1] < max(self.size, 1))
            and all(self.base_offset <= ended.last_offset >= ended.first_offset for ended in self.aborted())
        )

    def should_roll(self, run: BatchRun, config: LogConfig, now_ms: int) -> bool:
        """Whether the next batches require a new segment."""
        full = config.segment_index_bytes
        return (
            self.size > config.segment_bytes - run.size
            or (
                self.size > 0
                and self._waited_ms(run.max_timestamp, now_ms) > config.max_segment_ms - self.roll_jitter_ms
            )
            or len(self.offsets) >= full // OFFSET_ENTRY.size
            or len(self.times) >= full // TIME_ENTRY.size - 1  # the last one is for the segment's end
            or run.last_offset - self.base_offset > LARGEST_RELATIVE_OFFSET
        )

    def _waited_ms(self, newest: int, now_ms: int) -> int:
        """Return the segment's age by the records' timestamps, or else by the clock."""
        first = self.first_batch_timestamp
        if first is not None and first >= 0:
            return newest - first
        return now_ms - self.created_ms

    def append(self, run: BatchRun, index_interval_bytes: int) -> None:
        """Append batches, with an index entry after each `index_interval_bytes`."""
        position = self.log.size
        if position == 0:
            self._first_timestamp = run.max_timestamp
        self.log.append(run.content)
        self._newest = run.first_offset, position
        self._index(run, position, index_interval_bytes)

    def _index(self, run: BatchRun, position: int, index_interval_bytes: int) -> None:
        last = self.times.last
        offsets, times, self._unindexed, self.largest_timestamp, self._offset_of_largest = run.index(
            self.base_offset,
            position,
            index_interval_bytes,
            unindexed=self._unindexed,
            largest_timestamp=self.largest_timestamp,
            offset_of_largest=self._offset_of_largest,
            indexed_timestamp=NO_TIMESTAMP if last is None else last[0],
        )
        self.offsets.append(*offsets)
        self.times.append(*times)

    def _index_time(self) -> None:
        last = self.times.last
        if self.largest_timestamp > (NO_TIMESTAMP if last is None else last[0]):
            self.times.append(self.largest_timestamp, self._offset_of_largest - self.base_offset)

    def note_aborted(self, ended: EndedTransaction) -> None:
        """Add an aborted transaction to the transaction index."""
        if self.transactions is None:
            self._open_transactions()
        assert self.transactions is not None
        self.transactions.append(0, ended.producer_id, ended.first_offset, ended.last_offset, ended.last_stable_offset)

    def _open_transactions(self) -> None:
        self.transactions = EntryFile(self.files.open(self.path(TRANSACTION_INDEX)), TRANSACTION_ENTRY, column=3)

    def aborted(self) -> Iterator[EndedTransaction]:
        """The aborted transactions whose markers are in the segment."""
        if self.transactions is not None:
            for index in range(len(self.transactions)):
                yield EndedTransaction(*self.transactions[index][1:])

    def position_of(self, offset: int) -> int:
        """The position of the batch that contains `offset`, or of the first one after it; else the end."""
        return next((place for place, _ in self._placed_from(offset)), self.size)

    def indexed_position(self, offset: int) -> int:
        """The position of the last batch in the offset index that ends at an offset or before it; else 0.

        It is 0, too, for a damaged entry, which does not name the batch at its position. Until KAFKA-806 Kafka wrote
        the position of an append's first batch with the offset of its last one.
        """
        known = self.offsets.up_to(min(offset - self.base_offset, LARGEST_RELATIVE_OFFSET))
        relative, position = self.offsets[known - 1] if known else (0, 0)
        end = self._batch_end(position)
        return position if end is not None and self.base_offset <= end <= self.base_offset + relative else 0

    def batches_from(self, offset: int) -> Iterator[LogBatch]:
        """Yield the batch that contains `offset`, or the first one after it, and all later ones."""
        return (batch for _, batch in self._placed_from(offset))

    def _placed_from(self, offset: int) -> Iterator[tuple[int, LogBatch]]:
        """Yield the same batches with their positions."""
        if self._newest is not None and offset >= self._newest[0]:
            start = self._newest[1]
        else:
            start = self.indexed_position(offset)
        return dropwhile(lambda placed: placed[1].last_offset < offset, batches_in(self.log, start))

    def batches_with(self, timestamp: int) -> Iterator[LogBatch]:
        """Yield batches, among them the first one with a record at or after `timestamp` (epoch ms)."""
        known = self.times.up_to(timestamp - 1)
        if known:
            largest, relative = self.times[known - 1]
            batches = self.batches_from(self.base_offset + relative)
            first = next(batches, None)
            if first is not None and first.max_timestamp == largest:  # else the entry is damaged
                return chain((first,), batches)
        return self.batches_from(self.base_offset)

    def drop_stale_entries(self) -> None:
        """Remove invalid entries from the end of the indexes.

        Kafka neither trims the indexes of the last segment on close, nor clears the entries that a truncation removes.
        """
        while (last := self.offsets.last) is not None and self._batch_end(last[1]) != self.base_offset + last[0]:
            self.offsets.truncate(len(self.offsets) - 1)
        while (entry := self.times.last) is not None:
            batch = next(self.batches_from(self.base_offset + entry[1]), None)
            if batch is not None and (batch.max_timestamp, batch.last_offset - self.base_offset) == entry:
                return
            self.times.truncate(len(self.times) - 1)

    def _batch_end(self, position: int) -> int | None:
        """Return the last offset of the batch at a position, None if no batch begins there."""
        header = parse_header(self.log.read(position, HEADER.size)) if 0 <= position < self.size else None
        return header.last_offset if header is not None and header.is_possible else None

    @property
    def _last_indexed_position(self) -> int:
        return self.indexed_position(self.base_offset + LARGEST_RELATIVE_OFFSET)

    def next_offset(self) -> int:
        """The offset after its last record."""
        return self._end()[0]

    @property
    def ends_whole(self) -> bool:
        """Whether its batches are all of its bytes."""
        return self._end()[1] == self.size

    def _end(self) -> tuple[int, int]:
        """The offset after its last record, and the position after its last batch."""
        offset, end = self.base_offset, 0
        for position, batch in batches_in(self.log, self._last_indexed_position):
            offset, end = batch.last_offset + 1, position + batch.size
        return offset, end

    def _take_indexed_timestamp(self) -> None:
        last = self.times.last
        self.largest_timestamp, offset = (NO_TIMESTAMP, 0) if last is None else last
        self._offset_of_largest = self.base_offset + offset

    def find_largest_timestamp(self) -> None:
        """Find the largest timestamp in the last entry of the time index and the batches after it."""
        self._take_indexed_timestamp()
        for _, batch in batches_in(self.log, self._last_indexed_position):
            if batch.max_timestamp > self.largest_timestamp:
                self.largest_timestamp, self._offset_of_largest = batch.max_timestamp, batch.last_offset

    def truncate_to(self, offset: int, now_ms: int) -> None:
        """Remove the batches with records at or after `offset`, and their index entries."""
        position = self.position_of(offset)
        relative = offset - self.base_offset
        self.offsets.truncate(self.offsets.up_to(relative - 1))
        times = self.times
        times.truncate(bisect_left(range(len(times)), relative, key=lambda index: int(times[index][1])))
        if self.transactions is not None:
            self.transactions.truncate(self.transactions.up_to(offset - 1))
        self._newest = None
        self.log.truncate(position)
        self._unindexed = 0
        if position == 0:
            self.created_ms, self._first_timestamp = now_ms, None
        self.find_largest_timestamp()

    def check_format(self, position: int = 0) -> None:
        """Raise UnsupportedForMessageFormatError if records of an older format begin at a position."""
        size = old_size(self.log.read(position, OLD_HEADER.size))
        if 0 < size <= self.size - position:
            refuse_old_format(self.log.read(position, size))

    def recover(self, index_interval_bytes: int, *, cut: bool) -> Iterator[BatchRun]:
        """Check every batch and rebuild the indexes; yields each batch once it is indexed.

        With `cut`, bytes after the last valid batch are cut off, and so is a batch with a wrong offset, which no
        checksum covers. Otherwise the method raises CorruptRecordError or UnexpectedAppendOffsetError, and in any case
        UnsupportedForMessageFormatError.
        """
        self.offsets.truncate(0)
        self.times.truncate(0)
        if self.transactions is not None:
            self.transactions.truncate(0)
        self.largest_timestamp, self._offset_of_largest, self._unindexed = NO_TIMESTAMP, -1, 0
        self._newest = None
        offsets = (self.base_offset, self.base_offset + LARGEST_RELATIVE_OFFSET)
        end, size, next_offset, problem = 0, _CHECKED, 0, None
        while problem is None and end < self.size:
            run, problem = find_batches(self.log.read(end, size), expected=next_offset, offsets=offsets)
            if run:
                self._index(run, end, index_interval_bytes)
                end, size, next_offset = end + run.size, _CHECKED, run.last_offset + 1
                yield run
            elif problem is None:
                size = size_said(self.log.read(end, HEADER.size))
                if size > self.size - end:
                    problem = CorruptRecordError(f"The record batch at byte {end} is cut off.")
        if problem is not None:
            self.check_format(end)
            if not cut:
                raise problem
            self.log.truncate(end)
        self._indexed, self._unindexed = True, 0  # as Kafka counts
        self.become_inactive()

    def become_inactive(self) -> None:
        """Note the largest timestamp in the time index, which determines the segment's age."""
        self._index_time()

    def sync(self) -> None:
        """Make the files' content durable."""
        self.log.sync()
        for index in (self.offsets, self.times, self.transactions):
            if index is not None:
                index.file.sync()

    def close(self) -> None:
        """Close the files."""
        self.log.close()
        for index in (self.offsets, self.times, self.transactions):
            if index is not None:
                index.file.close()
