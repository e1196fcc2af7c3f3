"""The live log of a source that grows: a lake to which other processes append, a directory, or a quorum."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import attrs

from kraftlake.kafka_files.directory import MetadataDirectory
from kraftlake.kafka_files.follow import TruncatedLogError
from kraftlake.kafka_files.sniffing.source_kind import SourceKind
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.reading.tail import TailCursor
from kraftlake.metadata_log.storage.location import Location
from kraftlake.protocol.node_error import NodeError
from kraftlake.protocol.observer.observed_log import ObservedLog
from kraftlake.protocol.observer.quorum_observer import QuorumObserver, SnapshotNeededError
from kraftlake.records.batch import RecordBatch
from kraftlake.records.offset_and_epoch import OffsetAndEpoch
from kraftlake.replay.live.committed_tail import AskQuorum, CommittedTail, committed_end, retried
from kraftlake.replay.live.open_quorum import decoded, fetch_log
from kraftlake.replay.reading.committed import CommittedTo
from kraftlake.replay.reading.open_reader import LakeReader
from kraftlake.runtime.errors import KraftlakeError, LakeError, OffsetError, UsageError

if TYPE_CHECKING:
    from kraftlake.replay.queries.source import LogSource


_BATCHES: Final = 256
"""The most batches of a step."""


class LiveDirectory:
    """Returns the batches of a directory once known to be committed, or all whole batches: see `CommittedTail`.

    Batches that the node truncates were never returned, unless all are. Where its log ends before a returned batch,
    `trouble` says so until the batch is there again; where other batches take its place, TruncatedLogError ends the
    steps. Steps also raise OffsetError where the node deleted batches that were not read yet, NotASourceError where the
    directory is gone, BrokenFileError for damage with sound data after it.
    """

    def __init__(
        self, directory: MetadataDirectory, *, include_uncommitted: bool = False, quorum: AskQuorum | None = None
    ) -> None:
        """Initialize at the end of the committed log in a directory as it was opened."""
        end = directory.end_offset if include_uncommitted else committed_end(directory, quorum)
        self.reader = attrs.evolve(directory, end_offset=end, torn=None)
        self.trouble: str | None = None
        self._epoch = epoch_before(end, self.reader)
        self._seen_snapshots: set[str] = set()
        self._include_uncommitted = include_uncommitted
        self._tail = CommittedTail(
            directory.path,
            end,
            epoch=self._epoch,
            known=CommittedTo(-1 if include_uncommitted else end),
            include_uncommitted=include_uncommitted,
            quorum=quorum,
        )

    @property
    def seen_to(self) -> int:
        """The offset after the last whole batch in the directory."""
        return self._tail.seen_to

    def step(self) -> Sequence[RecordBatch]:
        """The next batches; an empty list for none yet."""
        try:
            batches = retried(self._next_batches)
        except TruncatedLogError as fault:
            if fault.replaced:
                raise self._replaced(fault) from None
            self.trouble = str(fault)
            return []
        self.trouble = None
        if batches:
            self._epoch = batches[-1].epoch
        return batches

    def close(self) -> None:
        """A no-op: no file is held open."""

    def _next_batches(self) -> list[RecordBatch]:
        batches: list[RecordBatch] = []
        try:
            batches.extend(islice(self._tail.batches(self._bound()), _BATCHES))
        except KraftlakeError:  # the next step raises it again: what was read before it comes first
            if not batches:
                raise
        return batches

    def _bound(self) -> int | None:
        found = [] if self._include_uncommitted else self._tail.snapshots(self._seen_snapshots)
        try:
            bound = self._tail.bound(found)
        except TruncatedLogError:
            self._tail.rescan(self._epoch)
            bound = self._tail.bound(found)
        if bound is not None:  # up to there a snapshot proves nothing more
            self._seen_snapshots |= {snapshot.name for snapshot in found if snapshot.end_offset <= bound}
        return bound

    def _replaced(self, fault: TruncatedLogError) -> TruncatedLogError:
        if not self._include_uncommitted:
            return fault
        return TruncatedLogError(
            f"{fault}. Uncommitted records were included, so what they changed may never have happened: begin anew.",
            fault.offset,
            replaced=True,
        )


def epoch_before(offset: int, directory: MetadataDirectory) -> int:
    """The epoch of the batch or the snapshot that ends before an offset; −1 at the beginning of a log."""
    if offset > directory.start_offset:
        return next(directory.batches(offset - 1, offset - 1)).epoch
    return max((one.epoch for one in directory.snapshots if one.end_offset == offset and not one.bootstrap), default=-1)


class LiveLake:
    """Returns the batches of a lake, committed by any process; a step tries to open one file.

    Raises LakeError where a lake on a disk was deleted, also where another one is in its place, OffsetError where the
    lake was trimmed past the last batch that was read.
    """

    trouble = None
    """A constant: no temporary error keeps a lake from being read."""

    def __init__(self, lake: LakeReader, *, poll: float) -> None:
        """Initialize at the end of a lake as it was opened; a step runs every `poll` seconds."""
        self.reader = lake
        self._folder = _Folder(lake.log.path)
        self._cursor = TailCursor(MetadataLog.open(lake.log.path), lake.end_offset, poll)

    @property
    def seen_to(self) -> int:
        """The offset after the last batch that was read."""
        return self._cursor.next_offset

    def step(self) -> Sequence[RecordBatch]:
        """The next batches; an empty list for none yet."""
        try:
            return self._cursor.step()
        finally:
            self._folder.check()

    def close(self) -> None:
        """Close the folder."""
        self._folder.close()


class _Folder:
    """The folder of a lake's log, held open, so that no other folder can be mistaken for it."""

    def __init__(self, lake: Location) -> None:
        self._path = lake / "log" if isinstance(lake, Path) else None
        self._held = None if self._path is None else os.open(self._path, os.O_RDONLY)
        self._lake = str(lake)

    def check(self) -> None:
        """Raise LakeError where the folder is no longer at its path; an object store has no folders."""
        if self._path is None or self._held is None:
            return
        try:
            if os.path.samestat(self._path.stat(), os.fstat(self._held)):
                return
        except OSError:
            pass
        raise LakeError(f"{self._lake} was deleted or replaced while it was watched.") from None

    def close(self) -> None:
        if self._held is not None:
            os.close(self._held)
            self._held = None


class LiveQuorum:
    """Returns the batches that a quorum commits, one Fetch in each step; `trouble` says that it does not answer.

    Raises OffsetError where the leader deleted batches that were not read yet, DivergedLogError where the quorum lost
    committed batches.
    """

    def __init__(self, log: MetadataDirectory, observer: QuorumObserver) -> None:
        """Initialize at the end of a quorum's log as it was copied; closes the `observer`."""
        self.reader = log
        self.trouble: str | None = None
        self._observer = observer
        self._observed = ObservedLog(OffsetAndEpoch(offset=log.end_offset, epoch=epoch_before(log.end_offset, log)))

    @property
    def seen_to(self) -> int:
        """The offset after the last batch that the leader sent, committed or not."""
        return self._observed.fetched.offset

    def step(self) -> Sequence[RecordBatch]:
        """The next committed batches; an empty list for none yet."""
        try:
            batches = fetch_log(self._observer, self._observed, wait_ms=0)
        except NodeError as fault:
            self.trouble = f"the quorum can't be asked: {str(fault).rstrip('.')}"
            return []
        except SnapshotNeededError as answer:
            raise OffsetError(
                f"{self.reader.name} starts at offset {answer.log_start_offset} now: what it had from offset "
                f"{self._observed.next_offset} on was deleted there before it was read."
            ) from None
        self.trouble = None
        return decoded(batches)

    def close(self) -> None:
        """Close the connection."""
        self._observer.close()


LiveLog: TypeAlias = LiveDirectory | LiveLake | LiveQuorum
"""A log that grows, read step by step by one thread. A replay starts from `reader`; `step` goes on at its end.

All have `reader`, the log as it was at the beginning: its committed batches, and the snapshots beside them; `seen_to`,
the offset after the last whole batch that was seen, committed or not; `trouble`, the reason why no records arrive, a
sentence, while that may pass, else None; `close`, which releases what is held open.

`step` returns the next committed batches, a bounded number, without waiting, an empty sequence where there are none
yet. They follow those of the step before without a gap, the first ones those of `reader`. It raises a KraftlakeError,
one sentence, where the log can't be followed any further.
"""


def open_live(
    source: LogSource, *, poll: float, include_uncommitted: bool = False, quorum: AskQuorum | None = None
) -> LiveLog:
    """Follow a source, as it was opened, from its end on: a lake, the directory of a node, or a quorum.

    A step runs every `poll` seconds. For a directory, batches that are known to be committed are returned, also by the
    answer of `quorum`, or all with `include_uncommitted`. Raises UsageError for a source that does not grow, and where
    its kind has no use for an option.
    """
    if include_uncommitted and quorum is not None:
        raise UsageError("A quorum tells what is committed: that, or everything (the uncommitted too), not both.")
    reader = source.reader
    if isinstance(reader, LakeReader):
        if include_uncommitted or quorum is not None:
            raise UsageError(
                f"{source.name} is a lake, of which everything is taken: quorum and include_uncommitted are for the "
                "directory of a node."
            )
        return LiveLake(reader, poll=poll)
    if isinstance(reader, MetadataDirectory) and source.observer is not None:
        if include_uncommitted or quorum is not None:
            raise UsageError(f"{source.name} is a quorum, which tells by itself what is committed.")
        return LiveQuorum(reader, source.observer())
    if isinstance(reader, MetadataDirectory) and source.kind is SourceKind.DIRECTORY:
        return LiveDirectory(reader, include_uncommitted=include_uncommitted, quorum=quorum)
    raise UsageError(f"{source.name} can't be watched: only a lake, the directory of a node and a quorum grow.")
