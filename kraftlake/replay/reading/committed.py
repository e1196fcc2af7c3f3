"""The offset up to which a log is committed by its own content: a Kafka directory holds no high watermark."""

from __future__ import annotations

from kraftlake.records.batch import RecordBatch
from kraftlake.records.control_records import LeaderChangeMessage
from kraftlake.replay.reading.chunks import Chunk
from kraftlake.replay.reading.log_reader import LogReader, SnapshotReader
from kraftlake.replay.reading.open_reader import LakeReader
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
