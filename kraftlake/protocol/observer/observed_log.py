"""The log of a quorum as an observer receives it: committed batches are passed on, uncommitted ones wait.

Pure logic. Source: org.apache.kafka.raft.KafkaRaftClient (handleFetchResponse) and FollowerState.
"""

from __future__ import annotations

from collections import deque

from kraftlake.protocol.observer.raw_batch import RawBatch
from kraftlake.protocol.observer.requests import FetchedLogPart
from kraftlake.records.offset_and_epoch import OffsetAndEpoch
from kraftlake.runtime.errors import CorruptDataError, ImportConflictError

_MAX_WAITING_BYTES = 64 * 1024 * 1024


class DivergedLogError(ImportConflictError):
    """Reports that the quorum's log holds other records, from `offset` on, at offsets considered committed."""

    def __init__(self, offset: int, end: int) -> None:
        super().__init__(
            f"the quorum's log differs from offset {offset} on, although everything before offset {end} was committed "
            f"when it was read: it is another cluster's log, or the quorum lost records."
        )
        self.offset = offset


class ObservedLog:
    """The log from a position on. Batches below `next_offset` were returned by `take`, and all of them are committed.

    The leader sends batches above the high watermark too, which a later leader may replace: such batches wait. Once an
    offset was below the high watermark of any leader, no leader's log holds another record there; so the largest high
    watermark is kept, even while a new leader has none.
    """

    def __init__(self, start: OffsetAndEpoch) -> None:
        """Start at `start`; if its epoch is −1, with the batch that holds its offset, of any epoch."""
        self.committed = start
        self.high_watermark = -1
        self._waiting: deque[RawBatch] = deque()
        self._waiting_bytes = 0
        self._passed = OffsetAndEpoch(offset=-1, epoch=-1)

    @property
    def next_offset(self) -> int:
        """The offset after the last returned batch."""
        return self.committed.offset

    @property
    def fetched(self) -> OffsetAndEpoch:
        """The position of the next Fetch: after all received records."""
        if not self._waiting:
            return self.committed
        last = self._waiting[-1]
        return OffsetAndEpoch(offset=last.last_offset + 1, epoch=last.epoch)

    @property
    def asked(self) -> OffsetAndEpoch:
        """The value of `fetched` for the leader; its epoch is −1 if the request has only the offset."""
        at = self.fetched
        return OffsetAndEpoch(offset=at.offset, epoch=-1) if at.epoch < self._passed.epoch else at

    @property
    def is_full(self) -> bool:
        """Whether the waiting batches exceed the limit, so that no more should be fetched."""
        return self._waiting_bytes > _MAX_WAITING_BYTES

    def forget_waiting(self) -> None:
        """Drop the waiting batches, which will be fetched again."""
        self._waiting.clear()
        self._waiting_bytes = 0

    def pass_by(self, snapshot: OffsetAndEpoch) -> None:
        """Continue with the log although the leader sends `snapshot`, as leaders do for followers at an earlier epoch.

        Up to that epoch the request to the leader has only the offset, after the returned batches. This is safe: the
        content of the snapshot is committed, so no part of it waits, and every later leader has the same.
        """
        self.forget_waiting()
        self._passed = snapshot

    def take(self, answer: FetchedLogPart) -> list[RawBatch]:
        """Process the answer to a Fetch from `fetched` on; returns the batches that are now committed.

        Raises DivergedLogError if committed offsets differ, CorruptDataError for batches that don't follow.
        """
        if answer.diverging is not None:
            # What is left may differ, too: only an answer that continues it proves that it is what the leader has.
            self._truncate(answer.diverging)
            return []
        for batch in answer.batches:
            self._add(batch)
        self.high_watermark = max(self.high_watermark, answer.high_watermark)
        return self._release()

    def _add(self, batch: RawBatch) -> None:
        at = self.fetched
        inside = at.epoch < 0 and batch.base_offset < at.offset <= batch.last_offset
        follows = batch.base_offset == at.offset or inside
        if not follows or batch.epoch < at.epoch:
            raise CorruptDataError(
                f"a batch of offset {batch.base_offset} and epoch {batch.epoch} came where offset {at.offset} of epoch "
                f"{at.epoch} or later was asked for"
            )
        self._waiting.append(batch)
        self._waiting_bytes += len(batch.data)

    def _truncate(self, diverging: OffsetAndEpoch) -> None:
        """Drop the batches that the leader lacks: its log ends at `diverging` for the largest common epoch."""
        dropped = False
        while self._waiting:
            last = self._waiting[-1]
            if last.epoch <= diverging.epoch and last.last_offset < diverging.offset:
                break
            self._waiting_bytes -= len(self._waiting.pop().data)
            dropped = True
        if not dropped:
            raise DivergedLogError(min(diverging.offset, self.committed.offset), self.committed.offset)

    def _release(self) -> list[RawBatch]:
        ready: list[RawBatch] = []
        end = max(self.high_watermark, self._passed.offset)
        while self._waiting and self._waiting[0].last_offset < end:
            batch = self._waiting.popleft()
            self._waiting_bytes -= len(batch.data)
            ready.append(batch)
        if ready:
            self.committed = OffsetAndEpoch(offset=ready[-1].last_offset + 1, epoch=ready[-1].epoch)
        return ready
