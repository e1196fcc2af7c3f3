"""A quorum in memory that keeps Raft's rules, and a leader of it that answers a Fetch as Kafka's does."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from kraftlake.protocol.describe import Leader
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.protocol.observer.raw_batch import RawBatch, split_batches
from kraftlake.protocol.observer.requests import FetchedLogPart
from kraftlake.records.batch import RecordBatch, encode_batch
from kraftlake.records.metadata_records import NoOpRecord
from kraftlake.records.offset_and_epoch import OffsetAndEpoch
from kraftlake.records.serde import encode_value

_VALUE = encode_value(NoOpRecord(), 0)


def raw_batch(offset: int, epoch: int, count: int = 1, timestamp: int = 1_700_000_000_000) -> RawBatch:
    batch = RecordBatch(
        base_offset=offset, epoch=epoch, timestamp=timestamp, values=(_VALUE,) * count, timestamps=(timestamp,) * count
    )
    (made,) = split_batches(encode_batch(batch))
    return made


@attrs.define
class ModelQuorum:
    """Three logs; `leader` appends, followers copy from it, and what two of the three have is committed.

    A snapshot of the leader's is answered where the log was deleted below it, at offset 0, to one who does not know the
    epoch before the log's start, and to one who is at an earlier epoch than the snapshot's.
    """

    logs: list[list[RawBatch]] = attrs.field(factory=lambda: [[], [], []])
    leader: int = 0
    epoch: int = 0
    high_watermark: int = -1
    committed: list[RawBatch] = attrs.field(factory=list)
    snapshot: OffsetAndEpoch | None = None
    log_start_offset: int = 0
    log_start_epoch: int = 0
    first_timestamp: int = 1_700_000_000_000

    def elect(self, node: int, voter: int) -> bool:
        """`node` leads a new epoch if `voter` may vote for it; it does not know the high watermark at first."""
        if node == voter or self.end_of(voter) > self.end_of(node):
            return False
        self.epoch += 1
        self.leader = node
        self.high_watermark = -1
        self.append()
        return True

    def end_of(self, node: int) -> tuple[int, int]:
        log = self.logs[node]
        return (log[-1].epoch, log[-1].last_offset + 1) if log else (-1, 0)

    def append(self, count: int = 1) -> None:
        log = self.logs[self.leader]
        # the time makes batches of two leaders at one offset differ
        offset = log[-1].last_offset + 1 if log else 0
        log.append(raw_batch(offset, self.epoch, count, timestamp=self.first_timestamp + self.epoch))

    def replicate(self, node: int, batches: int) -> None:
        """A follower drops what the leader does not have, and copies up to so many batches."""
        if node == self.leader:
            return
        theirs, ours = self.logs[self.leader], self.logs[node]
        same = next(
            (i for i, (a, b) in enumerate(zip(theirs, ours, strict=False)) if a != b), min(map(len, (theirs, ours)))
        )
        self.logs[node] = theirs[: max(same, min(len(theirs), same + batches))]
        self._commit()

    def _commit(self) -> None:
        log = self.logs[self.leader]
        for index in range(len(log), len(self.committed), -1):
            # A leader commits by counting only what it appended itself: Raft, 5.4.2.
            held = sum(other[:index] == log[:index] for other in self.logs)
            if held >= 2 and log[index - 1].epoch == self.epoch:
                assert log[: len(self.committed)] == self.committed, "the model breaks Raft's promise"
                self.committed = log[:index]
                break
        if self.committed and self.committed[-1].epoch == self.epoch:
            self.high_watermark = max(self.high_watermark, self.committed[-1].last_offset + 1)

    def answer(self, at: OffsetAndEpoch, *, epoch: int, max_batches: int = 100) -> FetchedLogPart:
        """As KafkaRaftClient.tryCompleteFetchRequest and KafkaRaftLog.validateOffsetAndEpoch."""
        here = Leader(id=self.leader, epoch=self.epoch, address=None)
        if epoch < 0 or at.epoch < 0:
            return FetchedLogPart(error=ErrorCode.INVALID_REQUEST, leader=here)
        if epoch != self.epoch:
            error = ErrorCode.FENCED_LEADER_EPOCH if epoch < self.epoch else ErrorCode.UNKNOWN_LEADER_EPOCH
            return FetchedLogPart(error=error, leader=here)
        facts = {"error": ErrorCode.NONE, "leader": here, "high_watermark": self.high_watermark}
        log = self.logs[self.leader]
        start = OffsetAndEpoch(offset=self.log_start_offset, epoch=self.log_start_epoch)
        if self.snapshot is not None and (
            at.offset in (0, min(at.offset, start.offset - 1))
            or (at.offset == start.offset and at != start)
            or at.epoch < self.snapshot.epoch
        ):
            return FetchedLogPart(**facts, snapshot=self.snapshot, log_start_offset=self.log_start_offset)
        epoch_, end = self._end_of_epoch(log, at.epoch)
        if at.offset and (epoch_ != at.epoch or end < at.offset):
            return FetchedLogPart(**facts, diverging=OffsetAndEpoch(offset=end, epoch=epoch_))
        batches = tuple(b for b in log if b.last_offset >= at.offset)[:max_batches]
        return FetchedLogPart(**facts, batches=batches, log_start_offset=self.log_start_offset)

    @staticmethod
    def _end_of_epoch(log: Sequence[RawBatch], epoch: int) -> tuple[int, int]:
        known = [b for b in log if b.epoch <= epoch]
        return (known[-1].epoch, known[-1].last_offset + 1) if known else (0, 0)
