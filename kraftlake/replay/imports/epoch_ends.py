"""Which offsets of one node's copy of the log the quorum's high watermark proves to be committed."""

from __future__ import annotations

from typing import Protocol

from kraftlake.records.batch import RecordBatch


class Position(Protocol):
    """The position of the quorum: a `QuorumPosition`."""

    @property
    def leader_epoch(self) -> int:
        """The epoch of the leader that was asked."""
        ...

    @property
    def high_watermark(self) -> int:
        """The offset below which its log is committed; −1 for unknown."""
        ...


class EpochEnds:
    """Where the batches of each epoch end in one copy of the log; feed it batches in offset order.

    The high watermark is of the leader's log. A node that led before, and was cut off, holds other batches at the same
    offsets until it truncates them. A copy that holds a batch of the leader's epoch, or of a later one, is the leader's
    log up to there (Raft's log matching); what follows its last such batch proves nothing.
    """

    def __init__(self) -> None:
        self._ends: dict[int, int] = {}

    def see(self, epoch: int, end_offset: int) -> None:
        """Take in a batch of `epoch` that ends below `end_offset`."""
        self._ends[epoch] = max(end_offset, self._ends.get(epoch, 0))

    def see_batch(self, batch: RecordBatch) -> None:
        """Take in the next batch."""
        self.see(batch.epoch, batch.last_offset + 1)

    def committed_by(self, position: Position) -> int:
        """The offset below which this copy is committed, by the leader's answer; −1 where that proves nothing."""
        return self.committed_below(position.high_watermark, position.leader_epoch)

    def committed_below(self, offset: int, epoch: int) -> int:
        """As `committed_by`, where a log up to `epoch` is committed below `offset`: a leader's, or a snapshot's."""
        return min(max((end for of, end in self._ends.items() if of >= epoch), default=-1), offset)
