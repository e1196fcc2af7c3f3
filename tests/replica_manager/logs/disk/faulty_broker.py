"""A log manager on faulty files, beside what its logs must be after kills, power cuts and failures."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from random import Random

import attrs

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.kafka_files.node.partition_files import parse_offsets
from kraftlake.replica_manager.errors import KafkaStorageError
from kraftlake.replica_manager.logs.disk.disk_log import DiskPartitionLog
from kraftlake.replica_manager.logs.disk.disk_log_manager import DiskLogManager, open_log_manager
from kraftlake.replica_manager.logs.disk.log_directory import LOG_STARTS, RECOVERY_POINTS
from kraftlake.replica_manager.logs.disk.log_segment import batches_in
from kraftlake.replica_manager.logs.log_batch import log_batches
from kraftlake.replica_manager.logs.log_values import AppendOrigin
from kraftlake.runtime.clock import ManualClock
from kraftlake.runtime.errors import CorruptDataError
from kraftlake.runtime.whole_file import PART
from simulator.data_batches import batch, marker
from simulator.faulty_files import SYNC, Fault, FaultyFiles, PowerCut
from tests.replica_manager.brokers import BAR, FOO
from tests.replica_manager.logs.disk.expected_log import Expected, check_inside
from tests.replica_manager.logs.disk.opened import SMALL

DIRECTORIES = ("a", "b")
PARTITIONS = (TopicPartition("foo", 0), TopicPartition("foo", 1), TopicPartition("bar", 0))
IDS = {"foo": FOO, "bar": BAR}
PRODUCERS = (7, 8)
CONFIG = attrs.evolve(SMALL, file_delete_delay_ms=100, flush_ms=50)
CONFIGS = {"bar": {"retention.bytes": "900", "segment.bytes": "400"}}


class FaultyBroker:
    """Its methods are steps; each leaves `expected` as the logs must be found later."""

    def __init__(self, seed: int, ignored_syncs: str = "\0") -> None:
        self.files = FaultyFiles(Random(seed), ignored_syncs=ignored_syncs)
        self.clock = ManualClock(1_000)
        self.chance = Random(seed)
        self.expected: dict[TopicPartition, Expected] = {}
        self.doubtful: dict[TopicPartition, tuple[Expected | None, ...]] = {}
        """What a log may be as well, where a step on it was broken off."""
        self.high_watermarks: dict[str, tuple[dict[TopicPartition, int], ...]] = {}
        """The contents that a checkpoint may have."""
        self.epochs: dict[TopicPartition, int] = {}
        self.time = 1_000
        self.failed: list[str] = []
        self.faulty: set[str] = set()
        self.lossy: set[str] = set()
        """The directories that may have lost what was not synced since their logs were looked at."""
        self.places: dict[TopicPartition, str] = {}
        self.in_all = False
        """Whether a step on all logs was broken off, which may have deleted old segments."""
        self.transactional: set[tuple[TopicPartition, int]] = set()
        """The producers that have begun a transaction, which write in transactions only from then on."""
        self.survived = 0
        """How many batches were found again after power cuts."""
        self.manager = self._opened()

    # steps

    def lead(self, name: TopicPartition, producer: int, transactional: bool, count: int) -> None:
        """Append one batch as the leader."""
        log = self._log(name)
        data = self._batch(log, producer, transactional, count)
        origin = AppendOrigin.CLIENT
        self._append(name, data, lambda: log.append_as_leader(data, self._epoch(name), origin))

    def end_transaction(self, name: TopicPartition, producer: int, commit: bool) -> None:
        """Append a marker as the leader, where a transaction is open."""
        log = self._log(name)
        state = log.producers.get(producer)
        if state is not None and state.transaction_first_offset is not None:
            data = marker(producer, commit=commit)
            self._append(name, data, lambda: log.append_as_leader(data, self._epoch(name), AppendOrigin.COORDINATOR))

    def follow(self, name: TopicPartition, count: int) -> None:
        """Append a few batches as a follower, which may go on in a new segment."""
        log, end = self._log(name), self.expected[name].end
        data = b"".join(self._batch(log, -1, False, 1) for _ in range(count))
        placed = [one.placed(end + at, self._epoch(name)) for at, one in enumerate(log_batches(data))]
        data = b"".join(one.data for one in placed)
        self._append(name, data, lambda: log.append_as_follower(data, self._epoch(name)))

    def elect(self, name: TopicPartition) -> None:
        """Begin a leader epoch."""
        log = self._log(name)
        self.epochs[name] = self._epoch(name) + 1
        epoch, end = self.epochs[name], log.log_end_offset
        self._doing(name, self.expected[name], lambda: log.assign_epoch_start_offset(epoch, end))

    def truncate(self, name: TopicPartition, back: int) -> None:
        """Remove the last records; the next ones are of another leader."""
        log, before = self._log(name), self.expected[name]
        ends = [before.begin, *(one.last_offset + 1 for one in before.batches)]
        offset = ends[max(0, len(ends) - 1 - back)]
        after = before.restarted(offset) if offset < before.start else before.cut(offset)
        self._doing(name, after, lambda: log.truncate_to(offset))
        self.elect(name)

    def begin_anew(self, name: TopicPartition, forth: int) -> None:
        """Remove all records, and go on at a later offset."""
        log, before = self._log(name), self.expected[name]
        offset = before.end + forth
        self._doing(name, before.restarted(offset), lambda: log.truncate_fully_and_start_at(offset))

    def delete_records(self, name: TopicPartition, forth: int) -> None:
        """Raise the log start offset."""
        log, before = self._log(name), self.expected[name]
        offset = min(before.start + forth, before.end)
        log.update_high_watermark(before.end)
        after = attrs.evolve(before, start=offset)
        self._doing(name, after, lambda: log.maybe_increment_log_start_offset(offset))

    def roll(self, name: TopicPartition) -> None:
        """Begin a segment."""
        log = self._log(name)
        self._doing(name, self.expected[name], log.roll)

    def flush(self, name: TopicPartition) -> None:
        """Make a log durable."""
        log, before = self._log(name), self.expected[name]
        self._doing(name, attrs.evolve(before, durable=before.end), log.flush)

    def pass_time(self) -> None:
        """Flush, delete and checkpoint as a broker does from time to time."""
        self.clock.advance(60)
        for log in self.manager.logs().values():
            if log.directory not in self.failed:
                log.update_high_watermark(log.log_end_offset)
        self._all(self.manager.flush_logs)
        self._all(self.manager.clean_logs)

    def checkpoint(self) -> None:
        """Write down recovery points, log starts and high watermarks."""
        self._all(self.manager.checkpoint)
        for directory in DIRECTORIES:
            if directory not in self.failed:
                self._write_high_watermarks(directory)

    def _write_high_watermarks(self, directory: str) -> None:
        marks = {name: log.high_watermark for name, log in self.manager.logs().items() if log.directory == directory}
        self.high_watermarks[directory] = (*self.high_watermarks.get(directory, ({},)), marks)
        if self._guarded(lambda: self.manager.write_high_watermarks(directory, marks)):
            self.high_watermarks[directory] = (marks,)

    def delete(self, name: TopicPartition) -> None:
        """Delete a partition; the next step on it makes it anew."""
        if name not in self.expected or name in self.doubtful or self.places[name] in self.failed:
            return
        errors: list[Exception] = []
        before = attrs.evolve(self.expected.pop(name), checkpointed_start=0)
        self.doubtful[name] = (before, None)
        self.manager.delete_logs([name], lambda _, error: errors.append(error))
        assert all(isinstance(error, KafkaStorageError) for error in errors)
        if not errors:
            del self.doubtful[name]
            for contents in self.high_watermarks.values():
                for marks in contents:
                    marks.pop(name, None)

    def move(self, name: TopicPartition) -> None:
        """Copy a partition to the other directory, and put the copy in its place."""
        log, before = self._log(name), self.expected[name]
        (other,) = {*DIRECTORIES} - {log.directory}
        if other in self.failed:
            return
        self.manager.prefer_directory(name, other)

        def move() -> None:
            future = self.manager.get_or_create_log(
                name, is_new=False, is_future=True, topic_id=IDS[name.topic], target_directory_id=None
            )
            future.truncate_fully_and_start_at(before.start)
            for one in kept:
                future.append_as_follower(one.data, one.leader_epoch)
            self.manager.replace_current_with_future(name)

        moved = attrs.evolve(before, durable=before.end, checkpointed_start=before.start)
        kept = [one for one in before.batches if one.last_offset >= before.start]
        if kept and kept[0].base_offset == before.start:
            self.places[name] = ""
            if self._doing(name, moved, move):
                self.places[name] = other

    def shut_down(self, power: bool) -> None:
        """Stop in order, perhaps lose power then, and start."""
        if self._guarded(lambda: self.manager.shutdown(broker_epoch=1)) and not self.failed:
            self.expected = {
                name: attrs.evolve(one, durable=one.end, checkpointed_start=one.start)
                for name, one in self.expected.items()
            }
        self._end(power)

    def kill(self) -> None:
        """End the process, and start again."""
        self._end(power=False)

    def kill_and_fail(self, directory: str, error: int, kind: str) -> None:
        """End the process, and start again with a directory that fails."""
        self._end(power=False, faults=[Fault(directory, error, frozenset([kind]))])

    def cut_power(self) -> None:
        """Stop the machine, and start again."""
        self._end(power=True)

    def break_off(self, calls: int) -> None:
        """Stop the machine or end the process after some calls."""
        self.files.cut_after = calls

    def fail(self, directory: str, error: int, kind: str) -> None:
        """Let calls in a directory fail until the next start."""
        self.faulty.add(directory)
        self.files.faults.append(Fault(directory, error, frozenset([kind])))
        if kind == SYNC:
            self.lossy.add(directory)

    def fill(self, directory: str, left: int) -> None:
        """Leave a directory that much space."""
        self.faulty.add(directory)
        self.files.space[directory] = left

    # how steps are done

    def do(self, name: str, *arguments: object) -> None:
        """A step; one on a partition whose directory has failed is left out."""
        try:
            getattr(self, name)(*arguments)
        except Offline:
            pass
        except PowerCut:
            self._end(power=self.chance.random() < 0.5)

    def _log(self, name: TopicPartition) -> DiskPartitionLog:
        """The log of a partition, which is made where there is none. Raises Offline where its directory has failed."""
        log = self.manager.get_log(name)
        if log is None:
            if name in self.doubtful or name in self.expected:
                raise Offline
            self.epochs[name] = 0
            self.doubtful[name] = (Expected(), None)
            self.places[name] = ""
            log = self._made(name)
            self.expected[name] = Expected()
            del self.doubtful[name]
        if log.directory in self.failed or name in self.doubtful:
            raise Offline
        self.places[name] = log.directory
        return log

    def _made(self, name: TopicPartition) -> DiskPartitionLog:
        try:
            return self.manager.get_or_create_log(
                name, is_new=True, is_future=False, topic_id=IDS[name.topic], target_directory_id=None
            )
        except KafkaStorageError:
            raise Offline from None

    def _epoch(self, name: TopicPartition) -> int:
        return self.epochs.setdefault(name, 0)

    def _batch(self, log: DiskPartitionLog, producer: int, transactional: bool, count: int) -> bytes:
        self.time += 10
        known = log.producers.get(producer)
        writer = (log.topic_partition, producer)
        if transactional or writer in self.transactional:
            self.transactional.add(writer)
            transactional = True
        return batch(
            *(b"%06d" % (self.time + at) + b"x" * (self.time % 70) for at in range(count)),
            times=(self.time,) * count,
            producer=producer,
            transactional=transactional and producer >= 0,
            sequence=None if producer < 0 else 0 if known is None else known.last_sequence + 1,
        )

    def _append(self, name: TopicPartition, data: bytes, call: Callable[[], object]) -> None:
        end, placed = self.expected[name].end, []
        for one in log_batches(data):
            placed.append(one.placed(end, self._epoch(name)))
            end = placed[-1].last_offset + 1
        self._doing(name, self.expected[name].appended(placed), call)

    def _doing(self, name: TopicPartition, after: Expected, call: Callable[[], object]) -> bool:
        before = self.expected[name]
        if after.begin != before.begin:
            before = attrs.evolve(before, durable=0)
        self.doubtful[name] = (before, after)
        done = self._guarded(call)
        if done:
            self.expected[name] = after
            del self.doubtful[name]
        return done

    def _all(self, call: Callable[[], None]) -> None:
        """A call that may do something to all logs."""
        self.in_all = True
        self._guarded(call)
        self.in_all = False
        for name, log in self.manager.logs().items():
            if name in self.expected and name not in self.doubtful and log.directory not in self.failed:
                before = self.expected[name]
                self.expected[name] = attrs.evolve(
                    before, start=log.log_start_offset, durable=max(before.durable, log.recovery_point)
                )

    def _guarded(self, call: Callable[[], object]) -> bool:
        """Whether a call was done. One that fails takes a directory offline, and nothing else."""
        known = len(self.failed)
        try:
            call()
        except KafkaStorageError:
            assert self.failed, "an error, and no directory is offline"
            return False
        return len(self.failed) == known

    # restarts

    def _opened(self) -> DiskLogManager:
        self.failed = []
        manager = open_log_manager(
            DIRECTORIES, cluster_id="cluster", node_id=1, clock=self.clock, defaults=CONFIG,
            topic_configs=lambda topic: CONFIGS.get(topic, {}), files=self.files, random=Random(self.files.life),
            on_failure=self._note_failure,
        )  # fmt: skip
        manager.startup([], lambda *_: False)
        return manager

    def _note_failure(self, directory: str, _: OSError) -> None:
        assert directory not in self.failed, f"{directory} is reported again"
        assert directory in self.faulty, f"{directory} did not fail"
        self.failed.append(directory)

    def _end(self, power: bool, faults: Iterable[Fault] = ()) -> None:
        if power:
            self.files.power_cut()
            self.lossy.update(DIRECTORIES)
        else:
            self.files.restart()
        self.files.faults = [*faults]
        self.files.space.clear()
        self.faulty = {fault.folder for fault in faults}
        promised = {directory: self._recovery_points(directory) for directory in DIRECTORIES}
        for _ in range(10):
            try:
                self.manager = self._opened()
                break
            except PowerCut:  # in the recovery
                self.files.power_cut()
                self.lossy.update(DIRECTORIES)
            except CorruptDataError as error:
                self._remove_one(str(error))
                self.files.restart()
        else:
            raise AssertionError("it does not start")
        self.check(promised)

    def _recovery_points(self, directory: str) -> dict[TopicPartition, int]:
        path = f"{directory}/{RECOVERY_POINTS}"
        rows = parse_offsets(self.files.content(path)) if self.files.content(path) else ()
        return {TopicPartition(topic, number): offset for topic, number, offset in rows}

    def _remove_one(self, error: str) -> None:
        """Do what the message asks for, where the exchange of a log by its copy was broken off."""
        found = re.match("([ab]/.*) and ([ab]/.*) are logs of one replica: ", error)
        assert found is not None, error
        self.files.delete_folder(found[self.chance.choice((1, 2))])

    # what must be so after a restart

    def check(self, promised: dict[str, dict[TopicPartition, int]]) -> None:
        """Compare all logs but those in failed directories with what they may be, and take them as they are.

        `promised` are the recovery points that each directory's checkpoint had.
        """
        self._check_names()
        logs = self.manager.logs()
        perhaps_deleted = [name for name, allowed in self.doubtful.items() if None in allowed]
        perhaps_deleted += self.expected.keys() - logs.keys()
        for name in sorted({*self.expected, *self.doubtful, *logs}, key=str):
            log = logs.get(name)
            if not self.failed or (log is not None and log.directory not in self.failed):
                self._check(name, log, 0 if log is None else promised[log.directory].get(name, 0))
        for directory in self.high_watermarks.keys() - {*self.failed}:
            self._check_high_watermarks(directory, perhaps_deleted)
        self.in_all = False
        self.lossy.intersection_update(self.failed)

    def _check_names(self) -> None:
        """No file that was being written is left."""
        for directory in self.manager.directories:
            logs = [log for log in self.manager.logs().values() if log.directory == directory]
            for folder in (directory, *(log.folder for log in logs)):
                left = [name for name in self.files.names(folder) if name.endswith(PART)]
                assert not left, f"{folder} has {left}"

    def _check(self, name: TopicPartition, log: DiskPartitionLog | None, promised: int) -> None:
        allowed = self.doubtful.pop(name, (self.expected.get(name),))
        self.expected.pop(name, None)
        if log is None:
            is_lossy = self.places.get(name) in ("", *self.lossy)
            may_be_gone = None in allowed or (is_lossy and min(one.durable for one in allowed) == 0)
            assert may_be_gone, f"{name} is gone"
            return
        lossy = log.directory in self.lossy or self.places.get(name) != log.directory
        could = [one for one in allowed if one is not None]
        assert could, f"{name} is there"
        if self.in_all:
            could = [attrs.evolve(one, start=one.end) for one in could]
        problems = [one.problem(log, could, lossy=lossy) for one in could]
        assert None in problems, f"{name} {'; or '.join(filter(None, problems))}"
        is_promise_kept = promised <= log.log_end_offset or (not log.batches and any(one.begin for one in could))
        assert is_promise_kept, f"{name} ends at {log.log_end_offset}, and {promised} was checkpointed"
        starts = self.manager._opened[log.directory].offsets(LOG_STARTS)
        covered = max(max(one.start, one.covered) for one in could)
        check_inside(log, covered, CONFIG)
        self.survived += len(log.batches) if lossy else 0
        held = tuple(one for segment in log.segments for _, one in batches_in(segment.log))
        self.places[name] = log.directory
        self.expected[name] = Expected(
            batches=held,
            begin=min([log.log_end_offset, *(one.base_offset for one in held)]),
            start=log.log_start_offset,
            covered=covered,
            checkpointed_start=starts.get(name, 0),
            durable=log.recovery_point,
        )

    def _check_high_watermarks(self, directory: str, perhaps_deleted: list[TopicPartition]) -> None:
        kept = {}
        for name in PARTITIONS:
            found = self.manager.checkpointed_high_watermark(directory, name)
            written = {marks.get(name) for marks in self.high_watermarks[directory]}
            log = self.manager.get_log(name)
            if log is None or log.directory != directory or name in perhaps_deleted:
                written.add(None)
            assert found in written, f"{name}: high watermark {found}, not of {written}"
            if found is not None:
                kept[name] = found
        self.high_watermarks[directory] = (kept,)


class Offline(Exception):  # noqa: N818
    """The step is on a partition whose directory has failed."""
