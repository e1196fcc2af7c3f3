"""The batches that the node of a directory appends, once they are known to be committed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from kraftlake.kafka_files.directory import MetadataDirectory
from kraftlake.kafka_files.faults import RemovedFileError
from kraftlake.kafka_files.follow import DirectoryFollower
from kraftlake.kafka_files.snapshots.snapshot import Snapshot
from kraftlake.records.batch import RecordBatch
from kraftlake.replay.reading.chunks import chunks_of
from kraftlake.replay.reading.committed import CommittedTo, EpochEnds

if TYPE_CHECKING:
    from kraftlake.protocol.quorum_client import QuorumPosition

_ATTEMPTS: Final = 5
"""Attempts at reading a directory while its node deletes old segments one by one."""
T = TypeVar("T")

AskQuorum: TypeAlias = "Callable[[], QuorumPosition]"
"""A function that returns the quorum's current position."""


class CommittedTail:
    """A position in the directory of a live node, before the next batch that is to be committed.

    The committed offset is known from the log itself (`CommittedTo`), which is late, and with `quorum` also from the
    quorum's high watermark (`EpochEnds`), at once. With `include_uncommitted` all whole batches count as committed.
    Each step: `snapshots`, then `bound`, then `batches` up to it; they raise the errors of `DirectoryFollower`.
    """

    def __init__(
        self,
        directory: str,
        next_offset: int,
        *,
        epoch: int,
        known: CommittedTo,
        include_uncommitted: bool = False,
        quorum: AskQuorum | None = None,
    ) -> None:
        """Initialize at `next_offset`, after a batch of `epoch`; `known` has seen the log up to there."""
        self.known = known
        self._directory = directory
        self._include_uncommitted = include_uncommitted
        self._quorum = quorum
        self._reader = DirectoryFollower(directory, next_offset)
        self._begin_scan(epoch)

    def _begin_scan(self, epoch: int) -> None:
        self._scanner = DirectoryFollower(self._directory, self.next_offset)
        self._ends = EpochEnds()
        self._ends.see(epoch, self.next_offset)

    @property
    def next_offset(self) -> int:
        """The offset after the last batch that `batches` returned."""
        return self._reader.next_offset

    @property
    def seen_to(self) -> int:
        """The offset after the last whole batch that was seen, committed or not."""
        return max(self._reader.next_offset, self._scanner.next_offset)

    def rescan(self, epoch: int) -> None:
        """Scan anew from the last returned batch, of `epoch`, on: the node replaced some of the log after it."""
        self.known = CommittedTo(self.known.offset)
        self._begin_scan(epoch)

    def snapshots(self, seen: set[str]) -> list[Snapshot]:
        """The finished snapshots whose names are not among `seen`, oldest first."""
        return list(self._reader.snapshots(seen))

    def bound(self, snapshots: Sequence[Snapshot]) -> int | None:
        """Scan all new batches; returns the offset below which they are committed, None where all are returned.

        `snapshots` are new ones of the node.
        """
        if self._include_uncommitted:
            return None
        for batch in self._scanner.poll():
            self._see(batch)
        self.prove(snapshots)
        return _with_quorum(self.known, self._ends, self._quorum)

    def batches(self, bound: int | None) -> Iterator[RecordBatch]:
        """The next batches that end below a bound."""
        for batch in self._reader.poll(bound):
            if bound is None:
                self._see(batch)
            yield batch

    def prove(self, snapshots: Sequence[Snapshot]) -> None:
        """Add the proof of commit by snapshots of the node."""
        proven = (self._ends.committed_below(one.end_offset, one.epoch) for one in snapshots)
        self.known.see_committed(max(proven, default=-1))

    def _see(self, batch: RecordBatch) -> None:
        self.known.see(batch)
        self._ends.see_chunk(batch)


def retried(read: Callable[[], T]) -> T:
    """The result of reading a directory, tried again if its node deletes a file meanwhile."""
    for _ in range(_ATTEMPTS - 1):
        with suppress(RemovedFileError):
            return read()
    return read()


def committed_end(log: MetadataDirectory, quorum: AskQuorum | None) -> int:
    """The end of the whole batches that are known to be committed in a directory; its start where none are."""
    known, epoch_ends = CommittedTo(), EpochEnds()
    known.see_source(log)
    for chunk in chunks_of(log, log.start_offset, log.end_offset - 1):
        known.see(chunk)
        epoch_ends.see_chunk(chunk)
    end = min(_with_quorum(known, epoch_ends, quorum), log.end_offset)
    if end <= log.start_offset:
        return log.start_offset
    last = next(log.batches(end - 1, end - 1))
    return end if last.last_offset == end - 1 else last.base_offset


def _with_quorum(known: CommittedTo, ends: EpochEnds, quorum: AskQuorum | None) -> int:
    """The offset below which a log is known to be committed, by its content and by the quorum's answer."""
    if quorum is None:
        return known.offset
    position = quorum()
    return max(known.offset, ends.committed_below(position.high_watermark, position.leader_epoch))
