"""The log as it grows: its batches from an offset on, then each new one after its commit, by any process.

The next version is opened by its name, so that waiting costs one attempt to open a file, without a listing.
"""

from __future__ import annotations

import threading
import time
from collections.abc import AsyncIterator, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from kraftlake.metadata_log.delta_table.actions import AddFile
from kraftlake.metadata_log.delta_table.data_files import DataFileGoneError, offset_span, read_rows
from kraftlake.metadata_log.delta_table.delta_log import is_left_behind, is_there, read_commit
from kraftlake.metadata_log.delta_table.table_state import commit_path
from kraftlake.metadata_log.log_facts import LOG_TABLE
from kraftlake.records.batch import RecordBatch
from kraftlake.records.rows import LOG_SCHEMA, from_rows
from kraftlake.runtime.errors import CorruptDataError, OffsetError, UsageError

if TYPE_CHECKING:
    from kraftlake.metadata_log.reading.readable_log import ReadableLog

_CHECKED_EVERY = 0.25
"""The interval in seconds at which a waiting tail checks for a clean-up of the next version, or another table."""

EACH_TIME = float("inf")
"""As the interval of a cursor: each look checks so."""
_CHUNK = 256


class TailCursor:
    """The position of a tail: batches below `next_offset` were returned, versions up to its log's version were read."""

    def __init__(self, log: ReadableLog, from_offset: int | None, poll: float) -> None:
        offset = log.end_offset if from_offset is None else from_offset
        _check_held(log, offset)
        if offset > log.end_offset:
            raise OffsetError(f"Offset {offset} is past the end of {log.path}, which ends before {log.end_offset}.")
        self._log = log
        self._table = log.path / LOG_TABLE
        self.next_offset = offset
        self._backlog: Iterator[RecordBatch] | None = None
        self._misses = 0
        self._patience = max(1, round(_CHECKED_EVERY / poll))
        self._left_behind = False

    def step(self) -> list[RecordBatch]:
        """Return the next batches in order, at most `_CHUNK` from a backlog; an empty list if none exist yet."""
        while True:
            if self._backlog is not None:
                batches = list(islice(self._backlog, _CHUNK))
                if batches:
                    self.next_offset = batches[-1].last_offset + 1
                    return batches
                self._backlog = None
            if self.next_offset < self._log.end_offset:
                _check_held(self._log, self.next_offset)
                self._backlog = self._log.batches(self.next_offset)
            elif (added := self._next_version()) is None:
                return []
            elif batches := self._read_added(added):
                return batches

    def has_news(self) -> bool:
        """Whether `step` may return batches; looks for one file name."""
        behind = self._backlog is not None or self.next_offset < self._log.end_offset
        if behind or is_there(commit_path(self._table, self._log.version + 1)):
            return True
        return self._is_left_behind()

    def _next_version(self) -> list[AddFile] | None:
        """Advance to the next version, or the newest if that was cleaned up.

        Returns its new files, None without a version. Raises ReplacedTableError if another log has replaced this one.
        """
        commit = read_commit(self._table, self._log.version + 1)
        if commit is not None:
            self._log.apply(commit)
            return [add for add in commit.adds if add.data_change]
        if self._is_left_behind():
            self._log.refresh()
            self._left_behind = False
            return []
        return None

    def _is_left_behind(self) -> bool:
        """Whether the next version may be missing for another reason than that it is not made yet.

        Checked every `_patience` calls.
        """
        self._misses += 1
        if self._misses % self._patience == 0:
            self._left_behind = is_left_behind(self._table, self._log.version)
        return self._left_behind

    def _read_added(self, added: list[AddFile]) -> list[RecordBatch]:
        """Return the batches of a version that added one file of new offsets, the usual case; else an empty list."""
        log, first, end = self._log, self.next_offset, self._log.end_offset
        spans = [offset_span(add) for add in added]
        if [(span.low, span.high, span.rows) for span in spans] != [(first, end - 1, end - first)]:
            return []
        try:
            batches = list(from_rows(read_rows(self._table / added[0].path, LOG_SCHEMA)))
        except DataFileGoneError:
            return []  # compacted and vacuumed since: the newest version has the rows elsewhere
        self._check(batches)
        self.next_offset = log.end_offset
        return batches

    def _check(self, batches: list[RecordBatch]) -> None:
        expected = self.next_offset
        for batch in batches:
            if batch.base_offset != expected:
                raise CorruptDataError(f"{self._log.path} holds offset {batch.base_offset} in place of {expected}.")
            expected = batch.last_offset + 1
        if expected != self._log.end_offset:
            raise CorruptDataError(f"{self._log.path} lacks offset {expected}, although it is committed.")


class LogTail:
    """An iterator over a log's batches that waits for the next one; also a context manager.

    It ends when nothing was committed for `timeout` seconds (None: never; 0: at the end of the log), or after `close`,
    which any thread may call. One thread iterates. Raises OffsetError with the first available offset if the log was
    trimmed past the tail, LakeError if the lake was deleted or replaced, CorruptDataError as `MetadataLog.batches`
    does; each of these ends the tail.
    """

    def __init__(self, log: ReadableLog, from_offset: int | None, *, timeout: float | None, poll: float) -> None:
        check_waits(timeout, poll)
        self._cursor = TailCursor(log, from_offset, poll)
        self._timeout = timeout
        self._poll = poll
        self._closed = threading.Event()
        self._ready: list[RecordBatch] = []

    @property
    def next_offset(self) -> int:
        """The offset after the last returned batch, where another tail would continue."""
        return self._ready[-1].base_offset if self._ready else self._cursor.next_offset

    def close(self) -> None:
        """End the iteration, at the latest after the next poll."""
        self._closed.set()

    def __enter__(self) -> LogTail:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> LogTail:
        return self

    def __next__(self) -> RecordBatch:
        if not self._ready:
            self._ready = self._wait()[::-1]
        if self._closed.is_set() or not self._ready:
            self.close()
            raise StopIteration
        return self._ready.pop()

    def _wait(self) -> list[RecordBatch]:
        deadline = None if self._timeout is None else time.monotonic() + self._timeout
        try:
            while not self._closed.is_set():
                batches = self._cursor.step()
                if batches or (deadline is not None and time.monotonic() >= deadline):
                    return batches
                self._closed.wait(self._poll)
        except BaseException:
            self.close()
            raise
        return []


async def tail_async(
    log: ReadableLog,
    from_offset: int | None,
    *,
    timeout: float | None,
    poll: float,
) -> AsyncIterator[RecordBatch]:
    """The same as `LogTail` for an event loop, without blocking; `aclose()` ends it."""
    import asyncio  # takes 20 ms, which only an event loop is to pay

    check_waits(timeout, poll)
    cursor = await asyncio.to_thread(TailCursor, log, from_offset, poll)
    loop = asyncio.get_running_loop()
    deadline = None if timeout is None else loop.time() + timeout
    while True:
        batches = await asyncio.to_thread(lambda: cursor.step() if cursor.has_news() else [])
        for batch in batches:
            yield batch
        if batches and timeout is not None:
            deadline = loop.time() + timeout
        if not batches:
            if deadline is not None and loop.time() >= deadline:
                return
            await asyncio.sleep(poll)


def check_waits(timeout: float | None, poll: float) -> None:
    """Raise UsageError for an invalid timeout or poll interval."""
    if poll <= 0 or (timeout is not None and timeout < 0):
        raise UsageError("A tail's poll must be above 0 seconds, and its timeout at least 0.")


def _check_held(log: ReadableLog, offset: int) -> None:
    if offset < log.start_offset:
        raise OffsetError(
            f"Offset {offset} is not in {log.path} any more, or never was: the first available offset is "
            f"{log.start_offset}."
        )
