"""Follows a live quorum: appends records to a lake as soon as the quorum commits them."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kraftlake.protocol.node_error import NodeError, NoLeaderError, OlderLeaderError
from kraftlake.protocol.observer.observed_log import DivergedLogError, ObservedLog
from kraftlake.protocol.observer.quorum_observer import QuorumObserver, SnapshotNeededError
from kraftlake.records.batch import RecordBatch
from kraftlake.records.no_ops import has_no_ops_alone
from kraftlake.records.offset_and_epoch import OffsetAndEpoch
from kraftlake.replay.imports.follow_log import FollowStep
from kraftlake.replay.imports.import_log import check_accepts, import_source
from kraftlake.replay.imports.new_lake import is_lake
from kraftlake.replay.live.open_quorum import decoded, fetch_log, mirror_quorum
from kraftlake.replay.live.retry_policy import RetryPolicy
from kraftlake.replay.queries.source import LogSource
from kraftlake.runtime.clock import Clock, SystemClock
from kraftlake.runtime.errors import ImportConflictError

if TYPE_CHECKING:
    from kraftlake.metadata_log.log import MetadataLog

_WAIT_MS: Final = 500
_HELD_FOR_NS: Final = 5_000_000_000
_OLDER_FOR_NS: Final = 30_000_000_000
"""The time in ns without another leader after which one of an earlier epoch is accepted.

A leader that was deposed while it was cut off resigns after quorum.fetch.timeout.ms and a half, 3 s by default.
"""


class QuorumFollower:
    """Keeps a lake level with a quorum; one thread, step by step. Only committed records enter the lake.

    A lake that does not exist is made of everything that the quorum still has. An existing one continues where it ends:
    its cluster and its last batch are compared with the quorum's, the batch again with each connection and each leader,
    because a quorum whose disks were put back to an earlier state continues with other records. No-op records, two a
    second, wait up to five seconds for other records, so that a quiet cluster's lake has few versions. `name` is that
    of the quorum, for messages. `on_append` gets the batches of each append to a lake that exists. `quiet_pause` are
    the seconds until `run` asks again after an answer with no-op records alone: fewer answers, with more of them each.
    """

    def __init__(
        self,
        observer: QuorumObserver,
        lake: str | os.PathLike[str],
        *,
        name: str,
        clock: Clock | None = None,
        on_append: Callable[[Sequence[RecordBatch]], object] = lambda _: None,
        quiet_pause: float = 0.0,
    ) -> None:
        from kraftlake.metadata_log.storage.location import lake_location

        self._observer = observer
        self._lake = lake_location(lake)
        self._name = name
        self._on_append = on_append
        self._log: MetadataLog | None = None
        self._observed: ObservedLog | None = None
        self._compared_with: tuple[int, int] | None = None
        self._probe: ObservedLog | None = None
        self._probed = (-1, -1)
        self._older_since_ns: int | None = None
        self._clock = clock or SystemClock()
        self._held: list[RecordBatch] = []
        self._held_since_ns = 0
        self._quiet_pause, self._is_quiet = quiet_pause, False

    @property
    def high_watermark(self) -> int:
        """The largest high watermark since the last comparison, −1 before any."""
        return -1 if self._observed is None else self._observed.high_watermark

    def run(self, report: Callable[[FollowStep], None], *, patience: RetryPolicy, stop: threading.Event) -> None:
        """Follow until `stop` is set; `report` gets the first step, and each that appended anything.

        Raises ImportConflictError where the lake and the quorum disagree, or the quorum has deleted records that the
        lake lacks; LakeError where the lake can't be written; NodeError as `patience` says.
        """
        first = True
        while not stop.is_set():
            try:
                step = self.step(patience)
            except NodeError as fault:
                self._flush(report)
                patience.failed(fault)
                continue
            patience.succeeded()
            if step.is_news or (first and self._compared_with is not None):
                report(step)
                first = False
            if self._is_quiet and self._quiet_pause:
                stop.wait(self._quiet_pause)
        self._flush(report)

    def _flush(self, report: Callable[[FollowStep], None]) -> None:
        """Append the records that were held back."""
        if self._log is not None and self._held:
            report(self._step_of(self._log, self._append(self._log)))

    def step(self, patience: RetryPolicy) -> FollowStep:
        """Append the records that were committed since the last step; waits half a second at most for them."""
        try:
            step = self._first(patience) if self._log is None else self._next(self._log)
        except NoLeaderError as fault:
            self._see_older(isinstance(fault, OlderLeaderError))
            raise
        self._see_older(False)
        return step

    def _next(self, log: MetadataLog) -> FollowStep:
        observed = self._observed
        assert observed is not None
        if self._compared_with != self._connected:
            self._compare(log, observed)
            return self._step_of(log, 0)
        before = observed.committed
        try:
            batches = fetch_log(self._observer, observed, wait_ms=_WAIT_MS)
        except SnapshotNeededError as answer:
            if answer.log_start_offset > observed.next_offset:
                raise self._behind(answer, log.end_offset) from None
            raise self._of_another_log(observed.next_offset - 1) from None
        if self._compared_with != self._connected:
            self._observed = ObservedLog(before)
            return self._step_of(log, 0)
        return self._step_of(log, self._take(log, decoded(batches)))

    @property
    def _connected(self) -> tuple[int, int]:
        """A value that changes with the connection and with the leader's epoch."""
        return self._observer.connections, self._observer.leader.epoch

    def _see_older(self, older: bool) -> None:
        """Allow the comparison with a leader of an earlier epoch, once the nodes have named no other long enough."""
        if not older:
            self._older_since_ns = None
            return
        now = self._clock.nanoseconds()
        if self._older_since_ns is None:
            self._older_since_ns = now
        elif now - self._older_since_ns >= _OLDER_FOR_NS:
            self._observer.forget_leader()
            self._older_since_ns = None

    def _first(self, patience: RetryPolicy) -> FollowStep:
        from kraftlake.metadata_log.log import MetadataLog

        records = snapshots = 0
        log = MetadataLog.open(self._lake) if is_lake(self._lake) else None
        if log is not None:
            check_accepts(log, self._lake, self._name, self._observer.cluster_id)
            self._observer.cluster_id = log.cluster_id or self._observer.cluster_id
        if log is None or log.end_offset == log.start_offset:  # it may lack the snapshots that come before the records
            records, snapshots = self._make(log, patience)
            self._compared_with = self._connected
            log = MetadataLog.open(self._lake)
            self._observer.cluster_id = log.cluster_id or self._observer.cluster_id
        self._log, self._observed = log, ObservedLog(_end_of(log))
        return self._step_of(log, records, snapshots)

    def _make(self, empty: MetadataLog | None, patience: RetryPolicy) -> tuple[int, int]:
        """Make the lake from the quorum's log, or fill an `empty` one; returns the numbers of records and snapshots."""
        from kraftlake.metadata_log.log import MetadataLog

        with tempfile.TemporaryDirectory(prefix="kraftlake-") as folder:
            reader = mirror_quorum(self._observer, Path(folder), name=self._name, patience=patience)
            if empty is not None and reader.start_offset > empty.end_offset:
                raise ImportConflictError(
                    f"The lake {self._lake} holds no records and was to begin at offset {empty.end_offset}, but the "
                    f"log of {self._name} starts at offset {reader.start_offset} now: delete the lake, and follow into "
                    f"a new one."
                )
            source = LogSource(reader, reader.kind, self._name, self._observer.cluster_id)
            report = import_source(source, str(self._lake))
        MetadataLog.open(self._lake).append([], report.end_offset)  # all of it is committed
        return report.records, report.snapshots

    def _compare(self, log: MetadataLog, observed: ObservedLog) -> None:
        """Compare the last appended batch with the quorum's, so that no records are appended to the wrong log."""
        end, connected = observed.next_offset, self._connected
        if end == log.start_offset:
            self._compared_with = connected
            return
        if self._probe is None or self._probed != connected:
            self._probe, self._probed = ObservedLog(OffsetAndEpoch(offset=end - 1, epoch=-1)), connected
        is_same = False
        try:
            found = fetch_log(self._observer, self._probe, wait_ms=_WAIT_MS)
        except SnapshotNeededError as answer:
            if answer.log_start_offset > end:
                raise self._behind(answer, log.end_offset) from None
            found, is_same = [], True  # the next Fetch compares the epoch
        except DivergedLogError as fault:
            raise ImportConflictError(
                f"The lake {self._lake} goes up to offset {end - 1}, and the log of {self._name} ends before that: it "
                f"is another cluster's, or the quorum lost records."
            ) from fault
        if connected != self._connected:
            return  # the batch is to come from the leader that is followed from here on
        if found:
            (last,) = self._held[-1:] or log.batches(end - 1, end - 1)
            (theirs,) = decoded(found[:1])
            if theirs != last:
                raise self._of_another_log(last.base_offset)
            is_same = True
        if is_same:
            self._probe, self._compared_with = None, connected
            self._observed = ObservedLog(observed.committed)  # what waited, and a high watermark, may be of another

    def _take(self, log: MetadataLog, batches: Sequence[RecordBatch]) -> int:
        """Append `batches`, or hold them back; returns the number of records that were appended."""
        now = self._clock.nanoseconds()
        if batches and not self._held:
            self._held_since_ns = now
        self._held += batches
        no_ops = all(map(has_no_ops_alone, batches))
        self._is_quiet = no_ops and bool(batches)
        return 0 if no_ops and now - self._held_since_ns < _HELD_FOR_NS else self._append(log)

    def _append(self, log: MetadataLog) -> int:
        from kraftlake.metadata_log.append.log_commit import commit_groups

        records = 0
        for group in commit_groups(self._held):
            log.append(group, group[-1].last_offset + 1)
            self._on_append(group)
            records += sum(batch.record_count for batch in group)
        self._held = []
        return records

    def _behind(self, answer: SnapshotNeededError, end: int) -> ImportConflictError:
        return ImportConflictError(
            f"The lake {self._lake} ends at offset {end - 1}, but the log of {self._name} starts at offset "
            f"{answer.log_start_offset} now, so what is between them is gone there: import it from the directory or a "
            f"backup of a controller that has it, or follow into a new lake."
        )

    def _of_another_log(self, offset: int) -> ImportConflictError:
        return ImportConflictError(
            f"Offset {offset} of {self._name} is not that of the lake {self._lake}: they are two histories: the lake "
            f"took what a deposed leader wrote, or a second quorum has this cluster id. `kraftlake quorum {self._name} "
            f"{self._lake}` shows where they part, and whose each is."
        )

    def _step_of(self, log: MetadataLog, records: int, snapshots: int = 0) -> FollowStep:
        seen_to = -1 if self._observed is None else self._observed.fetched.offset
        return FollowStep.of(log, records, snapshots, seen_to=seen_to)


def _end_of(log: MetadataLog) -> OffsetAndEpoch:
    """The end of a lake's log, and the epoch of its last record or, without one, of the snapshot that ends there."""
    if log.end_offset > log.start_offset:
        return OffsetAndEpoch(offset=log.end_offset, epoch=log.epoch)
    epochs = [snapshot.epoch for snapshot in log.snapshots() if snapshot.end_offset == log.end_offset]
    return OffsetAndEpoch(offset=log.end_offset, epoch=max(epochs, default=0))
