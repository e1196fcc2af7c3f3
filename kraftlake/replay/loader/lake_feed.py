"""Feeds a lake's log to a metadata loader: first its whole content, then each new commit."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.reading.tail import TailCursor
from kraftlake.records.batch import RecordBatch
from kraftlake.replay.reading.open_reader import LakeReader
from kraftlake.replay.reading.replay_base import choose_base
from kraftlake.runtime.backoff import Backoff
from kraftlake.runtime.clock import Clock
from kraftlake.runtime.errors import KraftlakeError, OffsetError, RefusedReadError
from kraftlake.runtime.event_order import earliest
from kraftlake.runtime.event_queue import FunctionEvent
from kraftlake.runtime.fault_handler import FaultHandler
from kraftlake.runtime.log import get_logger

if TYPE_CHECKING:
    from kraftlake.replay.loader.metadata_loader import MetadataLoader

MAX_RECORDS = 50_000
"""About the number of records that one delta gathers before it is published."""
_SHARE = 4
"""The next look comes after one part in so many of the time since the last change."""
_TAG = "lake-feed"
_BACKOFF = Backoff(base=0.05, cap=5.0)
_log = get_logger(__name__)


class LakeFeed:
    """Reads the lake on the loader's own thread, so that nothing queues between reading and publishing.

    It looks for the next version `poll` seconds after a change, and ever more rarely while there is none, up to every
    `idle_poll` seconds (None: always every `poll`). All new batches become one call of the loader. Where the log was
    trimmed past the loader, the loader gets the newest snapshot and continues from there.

    `end_at_start` is the loader's high watermark: publishing begins when the log up to there is replayed.
    Where the disk or the object store refuses a read, the feed tries again, each time later. A log that can't be as it
    is stops the feed; the fault handler gets the error.
    """

    def __init__(
        self,
        log: MetadataLog,
        clock: Clock,
        fault_handler: FaultHandler,
        *,
        poll: float = 0.001,
        idle_poll: float | None = None,
    ) -> None:
        self._path = log.path
        self._clock = clock
        self._fault_handler = fault_handler
        self._poll_ns = round(poll * 1e9)
        self._idle_poll = poll if idle_poll is None else idle_poll
        self._idle_poll_ns = round(self._idle_poll * 1e9)
        self._changed_ns = 0
        self._cursor: TailCursor | None = None
        self._failures = 0
        self.end_at_start: int | None = None
        """The offset after the last one that was there when the feed began to read; None before that."""
        self.stopped: KraftlakeError | None = None

    def start(self, loader: MetadataLoader) -> None:
        """Begin; the loader is new, and has `end_at_start` as its high watermark."""
        self._loader = loader
        loader.queue.append(FunctionEvent(self._begin, self._handle))

    def _begin(self) -> None:
        log = MetadataLog.open(self._path)
        self.end_at_start = log.end_offset
        self._loader.catch_up(LakeReader(log))
        if self._loader.stopped is not None:
            return
        self._cursor = TailCursor(log, self._loader.next_offset, self._idle_poll)
        self._loader.queue.append(FunctionEvent(self._read, self._handle))

    def _read(self) -> None:
        """Load one delta, then schedule the next read: at once while the tail has more."""
        if self._loader.stopped is not None:
            return
        assert self._cursor is not None
        try:
            batches, more = self._gather(self._cursor)
        except OffsetError:
            self._load_newest_snapshot()
            return
        self._failures = 0
        if batches:
            self._loader.load(batches)
            self._changed_ns = self._clock.nanoseconds()
        event = FunctionEvent(self._read, self._handle)
        if more:
            self._loader.queue.append(event)
        else:
            now_ns = self._clock.nanoseconds()
            pause_ns = min(max((now_ns - self._changed_ns) // _SHARE, self._poll_ns), self._idle_poll_ns)
            self._loader.queue.schedule_deferred(_TAG, earliest(now_ns + pause_ns), event)

    def _gather(self, cursor: TailCursor) -> tuple[list[RecordBatch], bool]:
        """The new batches of the tail, and whether it may have more."""
        batches: list[RecordBatch] = []
        records = 0
        while records < MAX_RECORDS:
            try:
                step = cursor.step() if not batches or cursor.has_news() else []
            except KraftlakeError:
                if batches:
                    return batches, True  # the next read has the error; the cursor is past these
                raise
            if not step:
                return batches, False
            batches += step
            records += step[-1].last_offset + 1 - step[0].base_offset
        return batches, True

    def _load_newest_snapshot(self) -> None:
        """Load a snapshot that covers the offsets trimmed from the log; raises where there is none."""
        log = MetadataLog.open(self._path)
        reader = LakeReader(log)
        snapshot = choose_base(reader, log.end_offset - 1, from_snapshot=True)
        assert snapshot is not None
        assert snapshot.end_offset > self._loader.next_offset, "the log was trimmed past the loader"
        self._loader.load_snapshot(snapshot, reader)
        self._cursor = TailCursor(log, self._loader.next_offset, self._idle_poll)
        self._loader.queue.append(FunctionEvent(self._read, self._handle))

    def _handle(self, error: Exception) -> None:
        """Handle a closed queue, or a lake that can't be read."""
        if self._loader.queue.shutting_down:
            return
        if isinstance(error, RefusedReadError):
            self._try_again(error)
            return
        self.stopped = (
            error if isinstance(error, KraftlakeError) else KraftlakeError(f"{type(error).__name__}: {error}")
        )
        self._fault_handler.handle_fault(f"Reading the log of {self._path}", error)

    def _try_again(self, error: RefusedReadError) -> None:
        """Read again after a pause: the disk or the object store may answer then."""
        self._failures += 1
        if self._failures & (self._failures - 1) == 0:  # ever more rarely
            _log.warning("lake_not_read", failures=self._failures, cause=str(error))
        pause_ns = self._poll_ns + round(_BACKOFF.pause(self._failures, random.random()) * 1e9)  # noqa: S311 - jitter
        event = FunctionEvent(self._begin if self._cursor is None else self._read, self._handle)
        self._loader.queue.schedule_deferred(_TAG, earliest(self._clock.nanoseconds() + pause_ns), event)
