"""One cleaning of a log: its keys are indexed, and its segments are replaced by what is left of them.

Source: org.apache.kafka.storage.internals.log.Cleaner.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Final

import attrs

from kraftlake.records.batch_header import header_at
from kraftlake.replica_manager.errors import CorruptRecordError
from kraftlake.replica_manager.logs.batch_run import find_batches
from kraftlake.replica_manager.logs.cleaning.batch_content import records_of
from kraftlake.replica_manager.logs.cleaning.batch_filter import BatchFilter, LastRecord
from kraftlake.replica_manager.logs.cleaning.cleanable import LogToClean, segments_between
from kraftlake.replica_manager.logs.cleaning.cleaned_transactions import CleanedTransactions
from kraftlake.replica_manager.logs.cleaning.offset_map import OffsetMap
from kraftlake.replica_manager.logs.cleaning.segment_groups import segment_groups
from kraftlake.replica_manager.logs.disk.disk_log import CLEANED, DiskPartitionLog
from kraftlake.replica_manager.logs.disk.log_segment import LOG, SUFFIXES, LogSegment
from kraftlake.replica_manager.logs.log_batch import LogBatch, log_batches, size_said

_CHUNK: Final = 512 * 1024
"""The bytes that are read at once, with the replica's lock."""


class CleaningAbortedError(Exception):
    """Reports that the log was truncated or deleted, or lost segments, while it was cleaned; what was done is kept."""


@attrs.define(eq=False, kw_only=True)
class LogCleaning:
    """Cleans a part of a log in steps, between which the log may change; `guard` blocks other threads from it.

    `is_there` says whether the log is still that of its replica. `cleaned_to` is the end of the clean part afterwards.
    """

    to_clean: LogToClean
    offset_map: OffsetMap
    now_ms: int
    guard: Callable[[], AbstractContextManager[object]]
    is_there: Callable[[], bool] = lambda: True
    cleaned_to: int = attrs.field(init=False)
    bytes_before: int = attrs.field(default=0, init=False)
    """The bytes of the segments that were replaced."""
    bytes_after: int = attrs.field(default=0, init=False)
    """The bytes of those in their place."""
    _cuts: int = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.cleaned_to = self.to_clean.first_dirty_offset
        self._cuts = self._log.cuts

    @property
    def _log(self) -> DiskPartitionLog:
        return self.to_clean.log

    def steps(self) -> Iterator[int]:
        """Clean; yields the bytes that each step has read and written.

        Raises CleaningAbortedError, CorruptRecordError for a damaged batch, KafkaStorageError if the directory has
        failed.
        """
        yield from self._index_keys()
        end = self.offset_map.latest_offset + 1  # behind the first dirty record at least, since one key has room
        upper_bound, transactions = self.to_clean.first_uncleanable_offset, CleanedTransactions()
        with self.guard():
            segments = segments_between(self._log.segments, 0, end)
        for group in segment_groups(segments, self._log.config, upper_bound):
            yield from self._clean(group, transactions)
        self.cleaned_to = end

    def _index_keys(self) -> Iterator[int]:
        """Put the keys of the dirty part into the map, until it is full."""
        start, end = self.to_clean.first_dirty_offset, self.to_clean.first_uncleanable_offset
        transactions, found = CleanedTransactions(), self.offset_map
        with self.guard():
            segments = segments_between(self._log.segments, start, end)
            if not segments:  # as after the end of their retention time
                raise CleaningAbortedError
            transactions.add_aborted(self._log.aborted_between(start, end))
            position = segments[0].indexed_position(start)
        for place, segment in enumerate(segments):
            for batches in self._chunks(segment, position):
                for batch in batches:
                    is_of_none = transactions.may_discard(batch) or batch.control or not batch.count
                    if not is_of_none and batch.last_offset >= start:
                        header = header_at(batch.data)
                        if not found.put(header, records_of(batch.data, header), start):
                            return
                    if batch.last_offset >= start:
                        found.note_offset(batch.last_offset)
                yield sum(batch.size for batch in batches)
            position = 0
            found.note_offset((segments[place + 1].base_offset if place + 1 < len(segments) else end) - 1)

    def _clean(self, group: Sequence[LogSegment], transactions: CleanedTransactions) -> Iterator[int]:
        """Write what is left of some segments into one, and put that in their place."""
        log, files = self._log, self._log.files
        with self.guard():
            self.check(group)
            keeper = BatchFilter(
                offset_map=self.offset_map,
                transactions=transactions,
                last_records={
                    state.producer_id: LastRecord(
                        state.batches[-1].last_offset if state.batches else None, state.producer_epoch
                    )
                    for state in log.producers.states()
                },
                now_ms=self.now_ms,
                delete_retention_ms=log.config.delete_retention_ms,
            )
            paths = [group[0].path(suffix) + CLEANED for suffix in SUFFIXES]
            for path in paths:
                files.delete(path)
            cleaned = LogSegment(
                files=files, folder=log.folder, base_offset=group[0].base_offset, created_ms=self.now_ms, mark=CLEANED
            )
        try:
            for segment, after in zip(group, [*group[1:], None], strict=True):
                yield from self._clean_into(cleaned, segment, after, keeper)
            with self.guard():
                self.check(group)
                cleaned.become_inactive()
            cleaned.sync()
            sizes = sum(segment.size for segment in group), cleaned.size
            cleaned.close()
            with self.guard():
                self.check(group)
                files.set_modified_ms(cleaned.path(LOG), files.modified_ms(group[-1].path(LOG)))
                log.replace_segments(group)
        except Exception:  # where a process ends, the next one may clean the same segments already
            cleaned.close()
            for path in paths:
                files.delete(path)
            raise
        self.bytes_before += sizes[0]
        self.bytes_after += sizes[1]

    def _clean_into(
        self, cleaned: LogSegment, segment: LogSegment, after: LogSegment | None, keeper: BatchFilter
    ) -> Iterator[int]:
        with self.guard():
            self.check([segment])
            end = segment.next_offset() if after is None else after.base_offset
            keeper.transactions.add_aborted(self._log.aborted_between(segment.base_offset, end))
        for batches in self._chunks(segment, 0):
            left = b"".join(kept for batch in batches if (kept := keeper.filtered(batch)) is not None)
            run, problem = find_batches(left)
            if problem is not None:
                raise problem
            with self.guard():
                self.check([segment])  # the folder of a deleted log has another name, where files are opened (again)
                if left:
                    cleaned.append(run, self._log.config.index_interval_bytes)
                for ended in keeper.transactions.take_retained():
                    cleaned.note_aborted(ended)
            yield sum(batch.size for batch in batches) + len(left)

    def _chunks(self, segment: LogSegment, position: int) -> Iterator[list[LogBatch]]:
        """Yield the batches of a segment from a position on, some at once."""
        size = _CHUNK
        while True:
            with self.guard():
                self.check([segment])
                if position >= segment.size:
                    return
                data = segment.log.read(position, size)
                batches = list(log_batches(data))
                if not batches:
                    if size != _CHUNK:
                        raise CorruptRecordError(f"The record batch at byte {position} is cut off.")
                    size = size_said(data)
                    continue
            size = _CHUNK
            position += sum(batch.size for batch in batches)
            yield batches

    def check(self, segments: Sequence[LogSegment] = ()) -> None:
        """Raise CleaningAbortedError if the log, or segments, are no longer as they were when the cleaning began."""
        log = self._log
        if log.cuts != self._cuts or not self.is_there() or not all(segment in log.segments for segment in segments):
            raise CleaningAbortedError
