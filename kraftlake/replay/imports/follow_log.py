"""Follows the directory of a live node: appends records to a lake as soon as they are known to be committed."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import attrs

from kraftlake.kafka_files.directory import MetadataDirectory
from kraftlake.kafka_files.follow import TruncatedLogError
from kraftlake.replay.imports.import_log import import_source
from kraftlake.replay.imports.import_plan import plan_import
from kraftlake.replay.imports.kept_snapshot import facts_of
from kraftlake.replay.imports.new_lake import is_lake
from kraftlake.replay.live.committed_tail import CommittedTail, committed_end, retried
from kraftlake.replay.queries.source import LogSource
from kraftlake.replay.reading.chunks import chunks_of_snapshot
from kraftlake.replay.reading.committed import CommittedTo
from kraftlake.replay.reading.open_reader import LakeReader
from kraftlake.replay.reading.replay_base import usable_snapshots
from kraftlake.runtime.arguments import path_text
from kraftlake.runtime.errors import NotASourceError, UsageError

if TYPE_CHECKING:
    from kraftlake.kafka_files.snapshots.snapshot import Snapshot
    from kraftlake.metadata_log.log import MetadataLog
    from kraftlake.replay.live.committed_tail import AskQuorum

_LONGEST_PAUSE = 30.0


@attrs.frozen(kw_only=True)
class FollowStep:
    """The additions to the lake by one step; the offsets are inclusive, None for nothing.

    `seen_to` is the offset after the last whole batch in the directory; batches from `end_offset` on wait until they
    are known to be committed. `truncated` is a sentence while the directory's tail is missing.
    """

    from_offset: int | None = None
    to_offset: int | None = None
    records: int = 0
    snapshots: int = 0
    end_offset: int
    committed_to: int
    seen_to: int
    truncated: str | None = None

    @classmethod
    def of(
        cls, log: MetadataLog, records: int, snapshots: int = 0, *, seen_to: int, truncated: str | None = None
    ) -> FollowStep:
        """A step that appended these numbers of records and snapshots, up to the current end of a lake's log."""
        end = log.end_offset
        return cls(
            from_offset=end - records if records else None,
            to_offset=end - 1 if records else None,
            records=records,
            snapshots=snapshots,
            end_offset=end,
            committed_to=log.committed_to,
            seen_to=max(seen_to, end),
            truncated=truncated,
        )

    @property
    def is_news(self) -> bool:
        """Whether anything was appended."""
        return bool(self.records or self.snapshots)


class LogFollower:
    """Keeps a lake up to date with the directory of a live node; one thread, step by step.

    By default it appends the records that the log itself proves to be committed (`CommittedTo`), which is late: up to
    the last snapshot or change of leader. With `quorum`, which returns the quorum's current position, it appends at
    once the records that this position proves to be committed (`EpochEnds`). With `include_uncommitted` it appends all
    whole batches; a tail that the node truncates afterwards is reported, and raises ImportConflictError, naming the
    first offset that disagrees, once other records replace it. The first step imports and compares as `import_source`
    does, and raises as it does.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        lake: str | os.PathLike[str],
        *,
        cluster_id: str | None = None,
        include_uncommitted: bool = False,
        quorum: AskQuorum | None = None,
    ) -> None:
        from kraftlake.metadata_log.storage.location import lake_location

        if include_uncommitted and quorum is not None:
            raise UsageError("A quorum tells what is committed: that, or everything (the uncommitted too), not both.")

        self._directory = path_text(directory)
        self._lake = lake_location(lake)
        self._cluster_id = cluster_id
        self._include_uncommitted = include_uncommitted
        self._quorum = quorum
        self._tail: CommittedTail | None = None
        self._seen_snapshots: set[str] = set()

    def step(self) -> FollowStep:
        """Append the new records of the directory."""
        return retried(self._step)

    def _step(self) -> FollowStep:
        if self._tail is None:
            return self._first()
        try:
            return self._next()
        except TruncatedLogError as fault:
            return self._after_truncation(fault)

    def run(
        self,
        report: Callable[[FollowStep], None],
        *,
        poll: float,
        stop: threading.Event,
        observe: Callable[[FollowStep], object] | None = None,
    ) -> None:
        """Run a step every `poll` seconds until `stop` is set; `report` gets the first step and each with an addition.

        `observe` gets every step.

        While the directory's tail is missing, each step compares the whole rest, and the pauses double up to half a
        minute.
        """
        truncated: str | None = None
        first = True
        pause = poll
        while not stop.is_set():
            step = self.step()
            if observe is not None:
                observe(step)
            if first or step.is_news or step.truncated != truncated:
                report(step)
            first, truncated = False, step.truncated
            pause = poll if truncated is None else max(poll, min(2 * pause, _LONGEST_PAUSE))
            stop.wait(pause)

    def _first(self) -> FollowStep:
        """Import the whole directory, so that it is compared with everything in the lake."""
        source = LogSource.open(self._directory, cluster_id=self._cluster_id)
        log = source.reader
        if not isinstance(log, MetadataDirectory) or not log.may_grow:
            raise UsageError(f"{self._directory} can't be followed: only the directory of a node grows.")
        self._directory = log.path  # of what may lie deep in the folder that was named
        seen_to, committed_to = log.end_offset, -1
        if not self._include_uncommitted:
            committed_to = committed_end(log, self._quorum)
            source.reader = attrs.evolve(log, end_offset=committed_to, torn=None)
            has_content = committed_to > log.start_offset or bool(usable_snapshots(log))
            if not has_content and not is_lake(self._lake):
                return FollowStep(end_offset=log.start_offset, committed_to=-1, seen_to=seen_to)
        report = import_source(source, str(self._lake), cluster_id=self._cluster_id)
        self._open()
        if self._quorum is not None:
            self._log.append([], committed_to)
        return FollowStep.of(self._log, report.records, report.snapshots, seen_to=seen_to)

    def _open(self) -> None:
        from kraftlake.metadata_log.log import MetadataLog

        self._log = MetadataLog.open(self._lake)
        reader = LakeReader(self._log)
        self._seen_snapshots = {snapshot.name for snapshot in reader.snapshots}
        self._tail = CommittedTail(
            self._directory,
            self._log.end_offset,
            epoch=self._log.epoch,
            known=CommittedTo.continued(reader),
            include_uncommitted=self._include_uncommitted,
            quorum=self._quorum,
        )

    def _next(self) -> FollowStep:
        from kraftlake.metadata_log.append.log_commit import commit_groups

        assert self._tail is not None
        log, tail, start = self._log, self._tail, self._log.end_offset
        found = tail.snapshots(self._seen_snapshots)
        bound = tail.bound(found)
        for batches in commit_groups(tail.batches(bound)):
            log.append(batches, tail.known.offset if bound is None else bound)
        snapshots = self._add_snapshots(found)
        tail.prove(found)
        log.append([], max(tail.known.offset, -1 if bound is None else bound))
        return FollowStep.of(log, log.end_offset - start, snapshots, seen_to=tail.seen_to)

    def _add_snapshots(self, found: Sequence[Snapshot]) -> int:
        """Add the new snapshots that the lake's log has reached and that it lacks; the others wait for the log."""
        added = 0
        there = {(one.end_offset, one.epoch) for one in self._log.snapshots()} if found else ()
        for snapshot in found:
            if snapshot.end_offset > self._log.end_offset:
                continue
            try:
                if snapshot.end_offset >= self._log.start_offset and (snapshot.end_offset, snapshot.epoch) not in there:
                    added += self._log.add_snapshot(facts_of(snapshot), chunks_of_snapshot(snapshot))
            except NotASourceError:
                continue  # deleted meanwhile
            self._seen_snapshots.add(snapshot.name)
        return added

    def _after_truncation(self, fault: TruncatedLogError) -> FollowStep:
        """Compare the directory with the lake: another log is an error, a shorter one may grow again."""
        self._log.refresh()
        plan_import(LogSource.open(self._directory).reader, LakeReader(self._log))
        self._open()
        return FollowStep.of(self._log, 0, seen_to=self._log.end_offset, truncated=str(fault))
