"""The ends of each epoch's batches in one copy of the log, and the offset that they prove committed."""

from __future__ import annotations

from kraftlake.records.batch import RecordBatch
from kraftlake.replay.reading.chunks import Chunk


class EpochEnds:
    """The end offset of each epoch's batches in one copy of the log; feed it chunks in offset order.

    The high watermark is of the leader's log. A node that led before, and was cut off, holds other batches at the same
    offsets until it truncates them. A copy that holds a batch of the leader's epoch, or of a later one, is the leader's
    log up to there (Raft's log matching); the batches after its last such batch prove nothing.
    """

    def __init__(self) -> None:
        self.ends: dict[int, int] = {}
        """The offset after the last batch of each epoch."""

    def see(self, epoch: int, end_offset: int) -> None:
        """Add a batch of `epoch` that ends below `end_offset`."""
        self.ends[epoch] = max(end_offset, self.ends.get(epoch, 0))

    def see_chunk(self, chunk: Chunk) -> None:
        """Add the next chunk of the log."""
        if isinstance(chunk, RecordBatch):
            self.see(chunk.epoch, chunk.last_offset + 1)
            return
        last_of_epoch = [*(chunk.epochs[1:] != chunk.epochs[:-1]).nonzero()[0].tolist(), -1]
        for index in last_of_epoch:
            self.see(int(chunk.epochs[index]), int(chunk.last_offsets[index]) + 1)

    def committed_below(self, offset: int, epoch: int) -> int:
        """The offset below which this copy is committed; −1 where nothing proves it.

        A log up to `epoch`, a leader's or a snapshot's, is committed below `offset`.
        """
        return min(max((end for of, end in self.ends.items() if of >= epoch), default=-1), offset)
