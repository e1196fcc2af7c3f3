"""The log of a replica in files, in Kafka's layout."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from random import Random

import attrs

from kraftlake.kafka_files.node.partition_files import (
    LEADER_EPOCHS,
    PARTITION_METADATA,
    leader_epochs_content,
    topic_id_content,
)
from kraftlake.records.uuid import Uuid
from kraftlake.replica_manager.errors import RecordTooLargeError
from kraftlake.replica_manager.logs.batch_run import BatchRun
from kraftlake.replica_manager.logs.disk.earlier_batches import earlier_batches
from kraftlake.replica_manager.logs.disk.files import Files
from kraftlake.replica_manager.logs.disk.log_segment import LOG, SUFFIXES, LogSegment
from kraftlake.replica_manager.logs.disk.producer_snapshots import ProducerSnapshots
from kraftlake.replica_manager.logs.leader_epochs import LeaderEpochs
from kraftlake.replica_manager.logs.log_batch import LogBatch
from kraftlake.replica_manager.logs.log_config import COMPACT, DELETE
from kraftlake.replica_manager.logs.log_values import AppendOrigin, LogAppendInfo
from kraftlake.replica_manager.logs.open_transactions import EndedTransaction
from kraftlake.replica_manager.logs.partition_log import PartitionLog
from kraftlake.replica_manager.logs.producer_state import ProducerStates
from kraftlake.runtime.clock import Clock

DELETED = ".deleted"
CLEANED = ".cleaned"
SWAP = ".swap"
"""The suffixes of segments that a cleaner exchanges: incomplete ones with the first, complete with the second."""


@attrs.define(eq=False, repr=False, weakref_slot=False)
class DiskPartitionLog(PartitionLog):
    """A `PartitionLog` of segments in a folder; `load_log` opens one.

    Appended records survive the process, and, below `recovery_point`, a power cut. Segments are rolled and deleted as
    in Kafka, except that a follower's append may continue in a new segment. `logs/cleaning` compacts the log.
    """

    folder: str = attrs.field(kw_only=True)
    files: Files = attrs.field(kw_only=True)
    clock: Clock = attrs.field(kw_only=True)
    _random: Random = attrs.field(kw_only=True, factory=Random)
    segments: list[LogSegment] = attrs.field(factory=list, init=False)
    """The segments by base offset; the last one is appended to."""
    recovery_point: int = attrs.field(default=0, init=False)
    """The offset up to which the log is durable."""
    on_lowered: Callable[[], None] = attrs.field(default=lambda: None, init=False)
    """Writes the checkpoints, because the recovery point or the log start offset is now below their values."""
    on_cut: Callable[[int], None] = attrs.field(default=lambda _: None, init=False)
    """Gets the base offset of the first segment that loses records, before it does."""
    cuts: int = attrs.field(default=0, init=False)
    """How often records at the end were removed: what was read of the log before may not be in it."""
    snapshots: ProducerSnapshots = attrs.field(init=False)
    _doomed: list[tuple[int, str]] = attrs.field(factory=list, init=False)
    """Files to delete, each with its time of deletion (epoch ms)."""
    _new_names: bool = attrs.field(default=False, init=False)
    """Whether files were created or renamed since the last sync of the folder."""
    is_new_folder: bool = attrs.field(default=False, init=False)
    """Whether a power cut may remove the whole folder."""
    _flushed_ms: int = attrs.field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        self.producers = ProducerStates(
            self.topic_partition, lambda id_, offset: earlier_batches(self.segments, id_, offset)
        )
        self.snapshots = ProducerSnapshots(self.files, self.folder)
        self._epochs = LeaderEpochs(self._write_epochs)
        self._flushed_ms = self.clock.milliseconds()

    @property
    def active(self) -> LogSegment:
        """The segment that is appended to."""
        return self.segments[-1]

    @property
    def size(self) -> int:
        """The size of all batches in bytes."""
        return sum(segment.size for segment in self.segments)

    @property
    def starts_with_segment(self) -> bool:
        """Whether the log start offset is the first segment's base offset; thread-safe."""
        first = next(iter(self.segments), None)  # none while the log begins anew
        return first is not None and self.log_start_offset <= first.base_offset

    def assign_topic_id(self, topic_id: Uuid) -> None:
        """Set the topic's id, and write it to partition.metadata."""
        before = self.topic_id
        super().assign_topic_id(topic_id)
        if before is None:
            self._write_whole(PARTITION_METADATA, topic_id_content(topic_id))

    def load_epochs(self, entries: Sequence[tuple[int, int]]) -> None:
        """Load the leader epochs from the checkpoint."""
        self._epochs.load(entries)

    def fit_epochs(self) -> None:
        """Remove epochs outside the log, which a crash can leave."""
        self._epochs.truncate_from_end(self.log_end_offset)
        self._epochs.truncate_from_start(self.log_start_offset)

    def replay(self, run: BatchRun, segment: LogSegment) -> None:
        """Update epochs, producers and transactions from batches that recovery has found in a segment.

        A power cut may restore epochs that were stored before the log was truncated. As in Kafka, records below the log
        start offset add only epochs after the last known one.
        """
        for part, deleted in zip(run.divided_at(self.log_start_offset), (True, False), strict=True):
            for epoch, first, last in () if part is None else part.epochs:
                latest = self._epochs.latest
                if epoch >= 0 and (not deleted or latest is None or epoch > latest):
                    self._epochs.correct(epoch, first, last)
        for batch in run.effective_batches:
            self.producers.replay([batch])
            for ended in self._transactions.append([batch]):
                segment.note_aborted(ended)

    def _write_epochs(self, entries: list[tuple[int, int]]) -> None:
        self._write_whole(LEADER_EPOCHS, leader_epochs_content(entries))

    def _write_whole(self, name: str, content: bytes) -> None:
        """Write a file that has to be durable no earlier than the batches: an empty log needs no such file.

        This saves most of the time in which a broker takes over or creates partitions.
        """
        self.files.write_whole(f"{self.folder}/{name}", content, sync_name=False)
        self._new_names = True

    def _append(self, run: BatchRun, origin: AppendOrigin) -> LogAppendInfo:
        if not run:
            return super()._append(run, origin)
        if origin is not AppendOrigin.REPLICATION:
            self._check_size(run)
        info: LogAppendInfo | None = None
        for part in self._parts(run, origin):
            appended = super()._append(part, origin)
            info = appended if info is None else info.with_more(appended)
        assert info is not None
        if self.log_end_offset - self.recovery_point >= self.config.flush_messages:
            self.flush()
        return info

    def _check_size(self, run: BatchRun) -> None:
        if run.size > self.config.segment_bytes:
            raise RecordTooLargeError(
                f"{run.size} bytes in one request are more than the {self.config.segment_bytes} that segment.bytes of "
                f"{self.topic_partition.topic} allows."
            )

    def _parts(self, run: BatchRun, origin: AppendOrigin) -> Iterator[BatchRun]:
        """Yield the batches by segment; each segment is rolled before its first batches.

        A leader's append is never split.
        """
        now = self.clock.milliseconds()
        while origin is AppendOrigin.REPLICATION and len(run) > 1 and self._should_roll(run, now):
            count = bisect_left(range(2, len(run)), True, key=lambda end: self._should_roll(run.part(0, end), now)) + 1
            yield self._rolled_for(run.part(0, count), now)
            run = run.part(count, len(run))
        yield self._rolled_for(run, now)

    def _should_roll(self, run: BatchRun, now_ms: int) -> bool:
        return self.active.should_roll(run, self.config, now_ms)

    def _rolled_for(self, run: BatchRun, now_ms: int) -> BatchRun:
        if self._should_roll(run, now_ms):
            self.roll(run.first_offset)
        return run

    def roll(self, base_offset: int | None = None) -> LogSegment:
        """Start a segment at the log end, or at the later `base_offset`; an existing empty one is reused."""
        base = max(self.log_end_offset, base_offset or 0)
        if self.segments and self.active.base_offset == base and self.active.size == 0:
            return self.active
        if self.segments:
            self.active.become_inactive()
            self.make_durable()  # a power cut must not leave records behind others that it takes
        self.note_producers(base)
        return self.begin_segment(base)

    def note_producers(self, offset: int) -> None:
        """Write the producers' states, unless nothing was appended since the last snapshot."""
        if offset > (self.snapshots.offsets[-1] if self.snapshots.offsets else self.log_start_offset):
            self.snapshots.write(offset, self.producers.states())

    def begin_segment(self, base_offset: int) -> LogSegment:
        """Add an empty segment."""
        jitter = min(self.config.segment_jitter_ms, self.config.max_segment_ms)
        segment = LogSegment(
            files=self.files,
            folder=self.folder,
            base_offset=base_offset,
            created_ms=self.clock.milliseconds(),
            roll_jitter_ms=self._random.randrange(jitter) if jitter else 0,
        )
        self.segments.append(segment)
        self._new_names = True
        return segment

    def _write(self, run: BatchRun) -> None:
        self.active.append(run, self.config.index_interval_bytes)

    def _note_aborted(self, ended: EndedTransaction) -> None:
        self.active.note_aborted(ended)

    def segment_at(self, offset: int) -> int:
        """The index of the segment that contains an offset."""
        return max(0, bisect_right(self.segments, offset, key=lambda segment: segment.base_offset) - 1)

    def _batches_from(self, offset: int) -> Iterator[LogBatch]:
        for segment in self.segments[self.segment_at(offset) :]:
            yield from segment.batches_from(offset)

    def _batches_with(self, timestamp: int) -> Iterator[LogBatch]:
        for segment in self.segments[self.segment_at(self.log_start_offset) :]:
            if segment.largest_timestamp >= timestamp:
                yield from segment.batches_with(timestamp)

    def _latest_batch(self) -> LogBatch | None:
        latest: LogBatch | None = None
        for segment in self.segments[self.segment_at(self.log_start_offset) :]:
            largest = segment.largest_timestamp
            if latest is not None and largest <= latest.max_timestamp:
                continue
            if segment.base_offset < self.log_start_offset:
                held = segment.batches_from(self.log_start_offset)
                latest = max(held, key=lambda batch: batch.max_timestamp, default=None)
            else:
                found = segment.batches_with(largest)
                latest = next((batch for batch in found if batch.max_timestamp == largest), latest)
        return latest

    def _cut(self, offset: int) -> None:
        last = self.segments[self.segment_at(offset)]
        self.cuts += 1
        self.on_cut(last.base_offset)
        self._lower(offset)
        self.remove_after(last)
        self.active.truncate_to(offset, self.clock.milliseconds())
        self.active.sync()
        self.reload_producers(offset)

    def _lower(self, offset: int) -> None:
        """Lower the recovery point before records above it are removed: a power cut may corrupt later appends there."""
        if offset < self.recovery_point:
            self.recovery_point = offset
            self.on_lowered()

    def reload_producers(self, end: int) -> None:
        """Load the producers' states before offset `end` from the last snapshot and the batches after it.

        As in Kafka, a snapshot at or below the log start offset does not count, and one is written at `end`.
        """
        self.snapshots.delete(
            [offset for offset in self.snapshots.offsets if not self.log_start_offset < offset <= end]
        )
        latest = self.snapshots.latest()
        start, states = (self.log_start_offset, []) if latest is None else latest
        self.producers.load(states)
        opened = {
            state.producer_id: state.transaction_first_offset
            for state in states
            if state.transaction_first_offset is not None
        }
        before = [segment for segment in self.segments if segment.base_offset < end]  # the others may be torn
        aborted = [ended for segment in before for ended in segment.aborted()]
        self._transactions.load(opened, (ended for ended in aborted if ended.last_offset < start))
        for batch in chain.from_iterable(segment.batches_from(start) for segment in before[self.segment_at(start) :]):
            if batch.last_offset < start:
                continue
            if batch.base_offset >= end:
                break
            self.producers.replay([batch])
            self._transactions.append([batch])
        self.note_producers(end)

    def _restart(self, offset: int) -> None:
        self.cuts += 1
        self.on_cut(offset)
        self.recovery_point = min(self.recovery_point, offset)
        self.on_lowered()
        self._remove(self.segments[::-1])
        self.snapshots.delete(list(self.snapshots.offsets))
        self.begin_segment(offset)

    def _drop_below(self, offset: int) -> None:
        pass  # the next `delete_old_segments` does

    def delete_old_segments(self) -> int:
        """Delete the oldest segments that the topic's retention or the log start offset allows; returns their number.

        Their files are renamed now, and deleted by `delete_files` after file.delete.delay.ms. No segment beyond the
        high watermark is deleted.
        """
        config, now = self.config, self.clock.milliseconds()
        excess = self.size - config.retention_bytes if config.retention_bytes >= 0 else -1
        gone = 0
        for at, segment in enumerate(self.segments):
            after = self.segments[at + 1].base_offset if at + 1 < len(self.segments) else None
            is_last_and_empty = after is None and segment.size == 0
            if is_last_and_empty or self.high_watermark < (self.log_end_offset if after is None else after):
                break
            below_start = after is not None and after <= self.log_start_offset
            too_large = excess >= segment.size
            too_old = 0 <= config.retention_ms < now - self.age_of(segment)
            if not below_start and not (self._deletes and (too_large or too_old)):
                break
            excess -= segment.size
            gone += 1
        if not gone:
            return 0
        if gone == len(self.segments):
            self.roll()
        doomed, start = self.segments[:gone], self.segments[gone].base_offset
        if start > self.log_start_offset:
            self.maybe_increment_log_start_offset(start)
        self._remove(doomed)
        return gone

    @property
    def _deletes(self) -> bool:
        return DELETE in self.config.cleanup_policy or COMPACT not in self.config.cleanup_policy

    def age_of(self, segment: LogSegment) -> int:
        """Return a segment's largest timestamp, or the modification time of its file."""
        return (
            segment.largest_timestamp if segment.largest_timestamp >= 0 else self.files.modified_ms(segment.path(LOG))
        )

    def remove_after(self, segment: LogSegment) -> None:
        """Remove all segments after one, the last one first: a power cut must not leave a gap."""
        self._remove(self.segments[: self.segments.index(segment) : -1])

    def _remove(self, segments: Sequence[LogSegment]) -> None:
        """Remove segments from the log, durably; their files are deleted later, since a reader may use them."""
        gone = {segment.base_offset for segment in segments}
        self._set_aside(segments)
        self.segments = [segment for segment in self.segments if segment.base_offset not in gone]
        self.snapshots.delete([offset for offset in self.snapshots.offsets if offset in gone])
        if gone:
            self.files.sync_folder(self.folder)

    def _set_aside(self, segments: Sequence[LogSegment]) -> None:
        """Rename the files of segments, which are deleted later."""
        due = self.clock.milliseconds() + self.config.file_delete_delay_ms
        for segment in list(segments):
            segment.close()
            for path in map(segment.path, SUFFIXES):
                if self.files.exists(path):
                    self.files.rename(path, path + DELETED)
                    self._doomed.append((due, path + DELETED))

    def aborted_between(self, start: int, end: int) -> list[EndedTransaction]:
        """The aborted transactions with records below `end` whose markers are in the segment of `start` or behind it.

        Source: org.apache.kafka.storage.internals.log.LocalLog.collectAbortedTransactions.
        """
        return [
            ended
            for segment in self.segments[self.segment_at(start) :]
            for ended in segment.aborted()
            if ended.last_offset >= self.log_start_offset and ended.first_offset < end
        ]

    def replace_segments(self, old: Sequence[LogSegment]) -> None:
        """Put a cleaned segment in place of consecutive ones; its durable files have the first one's name and CLEANED.

        A crash leaves the old segments, or the new one: `load_log` finishes or undoes the exchange. Source:
        org.apache.kafka.storage.internals.log.LocalLog.replaceSegments.
        """
        base, first = old[0].base_offset, self.segments.index(old[0])
        new = [path for path in map(old[0].path, SUFFIXES) if self.files.exists(path + CLEANED)]
        for path in new:
            self.files.rename(path + CLEANED, path + SWAP)
        try:
            self.files.sync_folder(self.folder)
        except BaseException:  # as where no descriptor is left: a later exchange may take in other segments
            for path in new:
                self.files.delete(path + SWAP)
            raise
        self._set_aside(old)
        for path in new:
            self.files.rename(path + SWAP, path)
        self.files.sync_folder(self.folder)
        segment = LogSegment(files=self.files, folder=self.folder, base_offset=base, created_ms=old[0].created_ms)
        self.segments = [*self.segments[:first], segment, *self.segments[first + len(old) :]]
        gone = {one.base_offset for one in old[1:]}
        self.snapshots.delete([offset for offset in self.snapshots.offsets if offset in gone])
        self._transactions.replace_aborted(base, self.segments[first + 1].base_offset, segment.aborted())

    def delete_files(self) -> None:
        """Delete the files of removed segments that are due."""
        now = self.clock.milliseconds()
        for due, path in self._doomed:
            if due <= now:
                self.files.delete(path)
        self._doomed = [(due, path) for due, path in self._doomed if due > now]

    def flush(self) -> None:
        """Make the whole log durable."""
        self._flushed_ms = self.clock.milliseconds()
        if self._new_names or self.recovery_point < self.log_end_offset:
            self.make_durable()

    def make_durable(self) -> None:
        """Make all data durable that may not be, even without new records."""
        if self.is_new_folder:
            self.files.sync_folder(self.directory)
            self.is_new_folder = False
        if self._new_names:
            self.files.sync_folder(self.folder)
            self._new_names = False
        for segment in self.segments[self.segment_at(self.recovery_point) :]:
            segment.sync()
        self.recovery_point = self.log_end_offset

    def flush_if_due(self) -> None:
        """Make the log durable if flush.ms have passed since the last time."""
        if self.clock.milliseconds() - self._flushed_ms >= self.config.flush_ms:
            self.flush()

    def move_to(self, folder: str) -> None:
        """Rename the folder, durably."""
        self.files.rename(self.folder, folder)
        self.files.sync_folder(self.directory)
        self.is_new_folder = False
        self.folder = self.snapshots.folder = folder
        for segment in self.segments:
            segment.folder = folder
        self._doomed = [(due, f"{folder}/{path.rpartition('/')[2]}") for due, path in self._doomed]

    def close(self) -> None:
        """Write the producers' states and close the files; for a durable log, call `flush` first."""
        self.active.become_inactive()  # Kafka, if it opens the log next, takes the last entry for the largest timestamp
        self.note_producers(self.log_end_offset)
        self.close_files()

    def close_files(self) -> None:
        """Close the files without writing, for instance after a disk failure."""
        for segment in self.segments:
            segment.close()
