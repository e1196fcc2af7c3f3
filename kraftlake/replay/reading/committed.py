"""The offset up to which a log is committed by its own content: a Kafka directory holds no high watermark."""

from __future__ import annotations

from kraftlake.records.batch import RecordBatch
from kraftlake.records.control_records import LeaderChangeMessage
from kraftlake.replay.reading.chunks import Chunk
from kraftlake.replay.reading.open_reader import LakeReader, LogReader, SnapshotReader
from kraftlake.replay.reading.replay_base import usable_snapshots


class CommittedTo:
    """The offset up to which a log is committed, as far as its own content proves.

    The offset is the larger of the end of the newest finished snapshot and the last LeaderChange that a data batch of
    its epoch follows: snapshots are made of committed records only, and a controller writes only after its own
    LeaderChange is committed.

    `offset` is -1 while neither was seen. Feed chunks in offset order.
    """

    def __init__(self, offset: int = -1) -> None:
        self.offset = offset
        self._claim: tuple[int, int] | None = None
        """Offset and epoch of a LeaderChange that no data batch has followed yet."""

    @classmethod
    def continued(cls, lake: LakeReader) -> CommittedTo:
        """The committed offset at the end of a lake's log.

        Only control batches at its very end can hold a LeaderChange that no data batch has followed yet.
        """
        tail: list[RecordBatch] = []
        offset = lake.end_offset - 1
        while offset >= lake.start_offset:
            (batch,) = lake.batches(offset, offset)
            if not batch.control:
                break
            tail.append(batch)
            offset = batch.base_offset - 1
        committed = cls(lake.log.committed_to)
        for batch in reversed(tail):
            committed.see(batch)
        return committed

    def see(self, chunk: Chunk) -> None:
        """Add the next chunk of the log."""
        if isinstance(chunk, RecordBatch) and chunk.control:
            for index, control_type in enumerate(chunk.control_types):
                if control_type == LeaderChangeMessage.API_KEY:
                    self._claim = (chunk.base_offset + index, chunk.epoch)
        elif self._claim is not None:
            offset, epoch = self._claim
            if epoch in ((chunk.epoch,) if isinstance(chunk, RecordBatch) else chunk.epochs):
                self.see_committed(offset)
                self._claim = None

    def see_source(self, source: LogReader) -> None:
        """Add the facts of a source besides its batches: the newest snapshot of Kafka's files, the note of a lake.

        A lake's snapshots prove nothing: kraftlake's jobs make them of any record in the log, committed or not.
        """
        if isinstance(source, LakeReader):
            self.see_committed(source.log.committed_to)
            return
        for snapshot in usable_snapshots(source):
            if _is_of(source, snapshot):
                self.see_committed(snapshot.end_offset)

    def see_committed(self, offset: int) -> None:
        """Record that the offsets below this one are committed."""
        self.offset = max(self.offset, offset)


def _is_of(source: LogReader, snapshot: SnapshotReader) -> bool:
    """Whether a snapshot proves that the log below its end is committed.

    A snapshot past the end of the log, in a later epoch, was fetched from a leader: the node drops the log, whose tail
    the quorum may never have committed.
    """
    end = source.end_offset
    if snapshot.end_offset <= end or end == source.start_offset:
        return True
    (last,) = source.batches(end - 1, end - 1)
    return last.epoch >= snapshot.epoch


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
