"""Follow the directory of a live node: append to a lake what is committed, as soon as that is known."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence

import attrs

from kraftlake.kafka_files import DirectoryFollower, RemovedFileError, SourceKind, TruncatedLogError
from kraftlake.records.batch import RecordBatch
from kraftlake.replay.imports.committed import CommittedTo
from kraftlake.replay.imports.epoch_ends import EpochEnds, Position
from kraftlake.replay.imports.import_log import import_source
from kraftlake.replay.imports.import_plan import plan_import
from kraftlake.replay.imports.kept_snapshot import facts_of
from kraftlake.replay.imports.new_lake import is_lake
from kraftlake.replay.queries.source import LogSource
from kraftlake.replay.reading.chunks import chunks_of_snapshot
from kraftlake.replay.reading.log_reader import LogReader, SnapshotReader
from kraftlake.replay.reading.open_reader import LakeReader
from kraftlake.replay.reading.replay_base import usable_snapshots
from kraftlake.runtime.arguments import path_text
from kraftlake.runtime.errors import NotASourceError, UsageError

_LONGEST_PAUSE = 30.0
_LOOKS = 5
"""Attempts at reading a directory while its node deletes old segments one by one."""


@attrs.frozen(kw_only=True)
class FollowStep:
    """What one step appended to the lake; the offsets are inclusive, None for nothing.

    `seen_to` is the offset after the last whole batch in the directory; batches from `end_offset` on wait until they
    are known to be committed. `truncated` is a sentence while the directory's tail is missing.
    """

    from_offset: int | None
    to_offset: int | None
    records: int
    snapshots: int
    end_offset: int
    committed_to: int
    seen_to: int
    truncated: str | None = None

    @property
    def is_news(self) -> bool:
        """Whether anything was appended."""
        return bool(self.records or self.snapshots)


class LogFollower:
    """Keeps a lake up to date with the directory of a live node; one thread, step by step.

    It takes what the log itself tells is committed (`CommittedTo`), which is late: up to the last snapshot or change of
    leader; with `quorum`, which says where the quorum stands whenever it is called, it takes what that proves to be
    committed (`EpochEnds`), at once. With `include_uncommitted` it takes all whole batches; a tail that the node
    truncates afterwards is told, and ends the following with ImportConflictError, naming the first offset that
    disagrees, once other records are there. The first step imports and compares as `import_source` does, and raises as
    it does.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        lake: str | os.PathLike[str],
        *,
        cluster_id: str | None = None,
        include_uncommitted: bool = False,
        quorum: Callable[[], Position] | None = None,
    ) -> None:
        from kraftlake.metadata_log import lake_location

        if include_uncommitted and quorum is not None:
            raise UsageError("A quorum tells what is committed: that, or everything (the uncommitted too), not both.")

        self._directory = path_text(directory)
        self._lake = lake_location(lake)
        self._cluster_id = cluster_id
        self._include_uncommitted = include_uncommitted
        self._quorum = quorum
        self._importer: DirectoryFollower | None = None
        self._seen_snapshots: set[str] = set()

    def step(self) -> FollowStep:
        """Append what is new in the directory."""
        for _ in range(_LOOKS - 1):
            try:
                return self._step()
            except RemovedFileError:
                continue
        return self._step()

    def _step(self) -> FollowStep:
        if self._importer is None:
            return self._first()
        try:
            return self._next()
        except TruncatedLogError as fault:
            return self._after_truncation(fault)

    def run(self, tell: Callable[[FollowStep], None], *, poll: float, stop: threading.Event) -> None:
        """Step each `poll` seconds until `stop` is set; `tell` gets the first step, and each that appended anything.

        While the directory's tail is missing, each step compares the whole rest, and the pauses double up to half a
        minute.
        """
        truncated: str | None = None
        first = True
        pause = poll
        while not stop.is_set():
            step = self.step()
            if first or step.is_news or step.truncated != truncated:
                tell(step)
            first, truncated = False, step.truncated
            pause = poll if truncated is None else max(poll, min(2 * pause, _LONGEST_PAUSE))
            stop.wait(pause)

    def _first(self) -> FollowStep:
        """Import the whole directory, so that it is compared with everything in the lake."""
        source = LogSource.open(self._directory, cluster_id=self._cluster_id)
        if source.kind is not SourceKind.DIRECTORY:
            raise UsageError(f"{self._directory} can't be followed: only the directory of a node grows.")
        seen_to, bounded_end = source.end_offset, -1
        if not self._include_uncommitted:
            bounded = _Committed(source.reader, self._quorum)
            bounded_end = bounded.end_offset
            source = LogSource(bounded, source.kind, source.path, source.cluster_id)
            if not bounded.is_anything and not is_lake(self._lake):
                return FollowStep(
                    from_offset=None, to_offset=None, records=0, snapshots=0, end_offset=bounded.start_offset,
                    committed_to=-1, seen_to=seen_to,
                )  # fmt: skip
        report = import_source(source, str(self._lake), cluster_id=self._cluster_id)
        self._open(report.end_offset)
        if self._quorum is not None:
            self._log.append([], bounded_end)
        return FollowStep(
            from_offset=report.from_offset,
            to_offset=report.to_offset,
            records=report.records,
            snapshots=report.snapshots,
            end_offset=report.end_offset,
            committed_to=self._log.committed_to,
            seen_to=max(seen_to, report.end_offset),
        )

    def _open(self, end_offset: int) -> None:
        from kraftlake.metadata_log import MetadataLog

        self._log = MetadataLog.open(self._lake)
        reader = LakeReader(self._log)
        self._seen_snapshots = {snapshot.name for snapshot in reader.snapshots}
        self._committed = CommittedTo.continued(reader, self._log.committed_to)
        self._known = CommittedTo.continued(reader, self._log.committed_to)
        self._ends = EpochEnds()
        self._ends.see(self._log.epoch, end_offset)
        self._importer = DirectoryFollower(self._directory, end_offset)
        self._scanner = DirectoryFollower(self._directory, end_offset)

    def _next(self) -> FollowStep:
        from kraftlake.metadata_log import commit_groups

        assert self._importer is not None
        log, start = self._log, self._log.end_offset
        found = list(self._importer.snapshots(self._seen_snapshots))
        known, bound = -1, None
        if not self._include_uncommitted:
            known = bound = self._scan(found)
        for chunk in commit_groups(self._importer.poll(bound)):
            for batch in chunk:
                self._committed.see(batch)
                self._ends.see_batch(batch)
            log.append(chunk, max(self._committed.offset, min(known, chunk[-1].last_offset + 1)))
        added = self._add_snapshots(found)
        log.append([], max(self._committed.offset, known, self._known_by(found)))
        return FollowStep(
            from_offset=start if log.end_offset > start else None,
            to_offset=log.end_offset - 1 if log.end_offset > start else None,
            records=log.end_offset - start,
            snapshots=added,
            end_offset=log.end_offset,
            committed_to=log.committed_to,
            seen_to=max(log.end_offset, self._scanner.next_offset),
        )

    def _scan(self, found: Sequence[SnapshotReader]) -> int:
        """Scan all batches, committed or not; gives the offset up to which they are known to be committed."""
        for batch in self._scanner.poll():
            self._known.see(batch)
            self._ends.see_batch(batch)
        self._known.see_committed(self._known_by(found))
        if self._quorum is None:
            return self._known.offset
        return max(self._known.offset, self._ends.committed_by(self._quorum()))

    def _known_by(self, found: Sequence[SnapshotReader]) -> int:
        """How far new snapshots of the node prove that this log is committed; else −1."""
        return max((self._ends.committed_below(one.end_offset, one.epoch) for one in found), default=-1)

    def _add_snapshots(self, found: Sequence[SnapshotReader]) -> int:
        """Keep the new snapshots that the lake's log has reached; the others wait for it."""
        added = 0
        for snapshot in found:
            if snapshot.end_offset > self._log.end_offset:
                continue
            try:
                batches = list(chunks_of_snapshot(snapshot))
            except NotASourceError:
                continue  # deleted meanwhile
            self._seen_snapshots.add(snapshot.name)
            if snapshot.end_offset >= self._log.start_offset:
                added += self._log.add_snapshot(facts_of(snapshot), batches)
        return added

    def _after_truncation(self, fault: TruncatedLogError) -> FollowStep:
        """Compare the directory with the lake: another log is an error, a shorter one may grow again."""
        self._log.refresh()
        plan_import(
            LogSource.open(self._directory).reader,
            LakeReader(self._log),
            committed_to=self._log.committed_to,
            lake_epoch=self._log.epoch,
            progress=lambda _phase, _done, _total: None,
        )
        self._open(self._log.end_offset)
        end = self._log.end_offset
        return FollowStep(
            from_offset=None, to_offset=None, records=0, snapshots=0, end_offset=end,
            committed_to=self._log.committed_to, seen_to=end, truncated=str(fault),
        )  # fmt: skip


class _Committed:
    """A log up to where it is known to be committed, in whole batches."""

    def __init__(self, reader: LogReader, quorum: Callable[[], Position] | None) -> None:
        known = CommittedTo()
        known.see_source(reader)
        ends, epoch_ends = [], EpochEnds()
        for batch in reader.batches(reader.start_offset):
            known.see(batch)
            epoch_ends.see_batch(batch)
            ends.append(batch.last_offset + 1)
        offset = known.offset if quorum is None else max(known.offset, epoch_ends.committed_by(quorum()))
        self._reader = reader
        self.name = reader.name
        self.cluster_id = reader.cluster_id
        self.start_offset = reader.start_offset
        self.end_offset = max((end for end in ends if end <= offset), default=reader.start_offset)
        self.snapshots: tuple[SnapshotReader, ...] = tuple(reader.snapshots)

    @property
    def is_anything(self) -> bool:
        """Whether a lake can be made of it."""
        return self.end_offset > self.start_offset or bool(usable_snapshots(self._reader))

    def batches(self, from_offset: int = 0, to_offset: int | None = None) -> Iterator[RecordBatch]:
        """The whole batches that hold any offset of the range, as far as they are committed."""
        last = self.end_offset - 1 if to_offset is None else min(to_offset, self.end_offset - 1)
        if last >= max(from_offset, self.start_offset):
            yield from self._reader.batches(from_offset, last)
