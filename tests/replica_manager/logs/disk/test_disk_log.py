"""A log on disk does as one in memory, after restarts and crashes too."""

from __future__ import annotations

import copy
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.replica_manager.errors import RecordTooLargeError
from kraftlake.replica_manager.logs.disk.disk_log import DiskPartitionLog
from kraftlake.replica_manager.logs.disk.log_loader import StoredState
from kraftlake.replica_manager.logs.disk.log_segment import TIME_ENTRY
from kraftlake.replica_manager.logs.log_batch import log_batches
from kraftlake.replica_manager.logs.log_config import LogConfig
from kraftlake.replica_manager.logs.log_values import FetchIsolation
from kraftlake.replica_manager.logs.memory_log import MemoryPartitionLog
from kraftlake.replica_manager.logs.partition_log import PartitionLog
from kraftlake.runtime.clock import ManualClock
from simulator.data_batches import batch, marker
from simulator.faulty_files import Everything, FaultyFiles, Nothing, PowerCut
from tests.replica_manager.brokers import FOO
from tests.replica_manager.logs.disk.opened import PARTITION, SMALL, loaded, opened, reopened

PRODUCERS = (7, 8, 9)


class Pair:
    """A log on disk beside one in memory, which gets the same calls."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.disk = opened(folder)
        self.memory = MemoryPartitionLog(PARTITION, FOO, str(folder), SMALL)
        self.epoch = 0
        self.time = 1_000
        self.producer_epoch = 0

    def both(self, name: str, *arguments: object) -> None:
        results = [getattr(log, name)(*arguments) for log in (self.disk, self.memory)]
        assert results[0] == results[1]

    def append(self, producer: int, transactional: bool, count: int, gap: int) -> None:
        self.time += 10
        values = [b"x" * (20 * producer % 77)] * count
        known = self.memory.producers.get(producer)
        transactional |= known is not None and known.transaction_first_offset is not None
        data = batch(
            *values,
            times=(self.time,) * count,
            producer=producer if transactional or gap % 2 else -1,
            transactional=transactional,
            epoch=self.producer_epoch,
        )
        self.follow(data, gap)

    def follow(self, data: bytes, gap: int = 0) -> None:
        """As a follower of a leader that may have compacted its log."""
        (made,) = log_batches(data)
        self.both("append_as_follower", made.placed(self.memory.log_end_offset + gap, self.epoch).data, self.epoch)

    def end(self, producer: int, commit: bool) -> None:
        self.follow(marker(producer, commit=commit, epoch=self.producer_epoch))

    def elect(self) -> None:
        self.epoch += 1
        self.both("assign_epoch_start_offset", self.epoch, self.memory.log_end_offset)

    def cut(self, back: int) -> None:
        self.both("truncate_to", max(0, self.memory.log_end_offset - back))
        if self.memory.log_start_offset:
            self._take_producers()

    def _take_producers(self) -> None:
        """What is known of producers from before the log's start depends on snapshots, which only disks have.

        `tests/interop/test_kafka_logs.py` compares it with Kafka's.
        """
        self.memory.producers.load(self.disk.producers.states())
        self.memory._transactions = copy.deepcopy(self.disk._transactions)

    def start(self, forth: int) -> None:
        self.both("update_high_watermark", self.memory.log_end_offset)
        self.both(
            "maybe_increment_log_start_offset", min(self.memory.log_start_offset + forth, self.memory.log_end_offset)
        )

    def restart_at(self, forth: int) -> None:
        self.both("truncate_fully_and_start_at", self.memory.log_end_offset + forth)

    def flush(self) -> None:
        self.disk.flush()

    def roll(self) -> None:
        self.disk.roll()

    def age(self) -> None:
        self.disk.delete_old_segments()

    def reopen(self, clean: bool) -> None:
        self.disk = reopened(self.disk, self.folder, clean=clean)
        # A restart leaves the high watermark to its checkpoint, and gaps at the end of the log are forgotten.
        last = max((one.last_offset + 1 for one in self.memory.batches), default=0)
        assert last <= self.disk.log_end_offset <= self.memory.log_end_offset
        self.memory.log_end_offset = self.disk.log_end_offset
        self.memory.high_watermark = self.disk.high_watermark
        self.memory._epochs.truncate_from_end(self.memory.log_end_offset)
        if self.disk.log_start_offset:
            self._take_producers()
        if not self.memory.batches:  # of an empty log, recovery may find the last epoch in a batch below its start
            self.memory._epochs.load(self.disk.epochs)
        elif not clean and self.memory.epochs[0][1] > self.memory.log_start_offset:  # the same before a gap
            (epoch, start), *_ = self.disk.epochs
            if start == self.memory.log_start_offset:
                later = [entry for entry in self.memory.epochs if entry[0] != epoch]
                self.memory._epochs.load([(epoch, start), *later])

    def check(self) -> None:
        disk, memory = self.disk, self.memory
        held = [one for one in disk.batches if one.last_offset >= memory.log_start_offset]
        assert held == list(memory.batches)
        assert ends(disk) == ends(memory)
        assert [disk.end_offset_for_epoch(epoch) for epoch in range(self.epoch + 2)] == [
            memory.end_offset_for_epoch(epoch) for epoch in range(self.epoch + 2)
        ]
        for timestamp in (-3, -2, *range(1_000, self.time + 11, 10)):
            assert disk.offset_for_timestamp(timestamp) == memory.offset_for_timestamp(timestamp), timestamp
        for producer in PRODUCERS:
            assert state_of(disk, producer) == state_of(memory, producer)
        for log in (disk, memory):
            log.update_high_watermark(log.log_end_offset)
        assert disk.last_stable_offset == memory.last_stable_offset
        for offset in range(memory.log_start_offset, memory.log_end_offset + 1):
            for isolation in FetchIsolation:
                assert disk.read(offset, 300, isolation) == memory.read(offset, 300, isolation)


def ends(log: PartitionLog) -> tuple[int, int, int]:
    return log.log_start_offset, log.log_end_offset, log.high_watermark


def state_of(log: PartitionLog, producer: int) -> tuple[object, ...] | None:
    """What a snapshot keeps of a producer."""
    state = log.producers.get(producer)
    if state is None:
        return None
    last = (state.batches[-1].last_sequence, state.batches[-1].last_offset) if state.batches else None
    return state.producer_epoch, state.coordinator_epoch, state.last_timestamp, state.transaction_first_offset, last


PRODUCER = st.sampled_from(PRODUCERS)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), PRODUCER, st.booleans(), st.integers(1, 3), st.integers(0, 3)),
        st.tuples(st.just("append"), PRODUCER, st.booleans(), st.integers(1, 3), st.just(0)),
        st.tuples(st.just("end"), PRODUCER, st.booleans()),
        st.tuples(st.just("elect")),
        st.tuples(st.just("cut"), st.integers(0, 8)),
        st.tuples(st.just("start"), st.integers(0, 6)),
        st.tuples(st.just("restart_at"), st.integers(0, 5)),
        st.tuples(st.sampled_from(["flush", "roll", "age"])),
        st.tuples(st.just("reopen"), st.booleans()),
    ),
    max_size=40,
)


@given(steps=STEPS)
def test_a_log_on_disk_is_what_one_in_memory_is(
    steps: list[tuple[object, ...]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    pair = Pair(tmp_path_factory.mktemp("log"))
    for name, *arguments in steps:
        getattr(pair, str(name))(*arguments)
    pair.check()
    pair.reopen(clean=False)
    pair.check()
    pair.disk.close()


def filled(folder: Path, count: int, config: LogConfig = SMALL, clock: ManualClock | None = None) -> DiskPartitionLog:
    """A log of batches of one record, a second apart, each committed."""
    log = opened(folder, config, clock=clock)
    for number in range(count):
        log.append_as_leader(batch(b"x" * 100, times=(1_000 * number,)), 0)
    log.update_high_watermark(count)
    return log


def files_of(folder: Path, suffix: str) -> list[str]:
    return sorted(path.name for path in (folder / "foo-0").iterdir() if path.name.endswith(suffix))


def test_segments_are_rolled_by_size_time_and_index(tmp_path: Path) -> None:
    by_size = filled(tmp_path / "size", 9, LogConfig(segment_bytes=600))
    assert [segment.base_offset for segment in by_size.segments] == [0, 3, 6]
    by_time = filled(tmp_path / "time", 9, LogConfig(segment_ms=3_000))
    assert [segment.base_offset for segment in by_time.segments] == [0, 4, 8]
    by_index = filled(tmp_path / "index", 9, LogConfig(index_interval_bytes=0, segment_index_bytes=36))
    assert [len(segment.offsets) for segment in by_index.segments] == [2, 2, 2]


def test_a_follower_divides_what_it_fetched_and_a_leader_refuses_it(tmp_path: Path) -> None:
    data = b"".join(next(log_batches(batch(b"x" * 100))).placed(offset, 0).data for offset in range(9))
    log = opened(tmp_path)
    assert log.append_as_follower(data, 0).size_in_bytes == len(data)
    assert len(log.segments) == 5
    assert sum(segment.size for segment in log.segments) == len(data)
    with pytest.raises(RecordTooLargeError, match=r"segment\.bytes of foo allows"):
        log.append_as_leader(data, 0)


def test_old_segments_go_by_time_by_size_and_by_the_start_but_never_above_the_high_watermark(tmp_path: Path) -> None:
    clock = ManualClock(20_000)
    by_time = filled(tmp_path / "time", 9, LogConfig(segment_bytes=600, retention_ms=16_000), clock)
    assert (by_time.delete_old_segments(), by_time.log_start_offset) == (1, 3)
    clock.advance(5_000)
    by_time.update_high_watermark(8)
    assert (by_time.delete_old_segments(), by_time.log_start_offset) == (1, 6)
    by_time.update_high_watermark(9)
    assert (by_time.delete_old_segments(), by_time.log_start_offset, by_time.log_end_offset) == (1, 9, 9)
    assert by_time.delete_old_segments() == 0
    by_size = filled(tmp_path / "size", 9, LogConfig(segment_bytes=600, retention_bytes=700, retention_ms=-1), clock)
    assert (by_size.delete_old_segments(), by_size.log_start_offset) == (1, 3)
    compacted = filled(tmp_path / "compacted", 9, LogConfig(segment_bytes=600, cleanup_policy=("compact",)), clock)
    compacted.maybe_increment_log_start_offset(4)
    assert (compacted.delete_old_segments(), compacted.log_start_offset) == (1, 4)


def test_an_empty_segment_stays_as_the_last_one_and_goes_as_the_first_one(tmp_path: Path) -> None:
    clock = ManualClock(10**13)
    last = filled(tmp_path / "last", 9, LogConfig(segment_bytes=600, retention_ms=1_000), clock)
    last.truncate_to(6)
    assert [segment.size > 0 for segment in last.segments] == [True, True, False]
    assert (last.delete_old_segments(), last.log_start_offset, last.log_end_offset) == (2, 6, 6)
    (far,) = log_batches(batch(b"x"))
    for folder, config in (
        ("time", LogConfig(retention_ms=1_000)),
        ("size", LogConfig(retention_ms=-1, retention_bytes=1)),
    ):
        first = opened(tmp_path / folder, config, clock=clock)
        first.append_as_follower(far.placed(1 << 31, 0).data, 0)
        assert [segment.size > 0 for segment in first.segments] == [False, True]
        first.update_high_watermark(first.log_end_offset)
        first.delete_old_segments()
        assert (len(first.segments), first.log_start_offset >= 1 << 31) == (1, True), folder


def test_files_of_deleted_segments_go_after_the_delay(tmp_path: Path) -> None:
    clock = ManualClock(10**12)
    log = filled(tmp_path, 9, LogConfig(segment_bytes=600, retention_ms=0), clock)
    log.delete_old_segments()
    assert len(files_of(tmp_path, ".log.deleted")) == 3
    clock.advance(59_999)
    log.delete_files()
    assert len(files_of(tmp_path, ".log.deleted")) == 3
    clock.advance(1)
    log.delete_files()
    assert files_of(tmp_path, ".deleted") == []
    log.delete_old_segments()
    log.close_files()
    assert opened(tmp_path).log_start_offset == 9


def test_a_changed_config_applies_to_the_next_append(tmp_path: Path) -> None:
    log = filled(tmp_path, 3, LogConfig())
    log.update_config(SMALL)
    log.append_as_leader(batch(b"x" * 100), 0)
    assert len(log.segments) == 2


def test_flush_makes_durable_up_to_the_end_and_by_count_and_time(tmp_path: Path) -> None:
    clock = ManualClock(0)
    log = opened(tmp_path, LogConfig(flush_messages=3, flush_ms=100), clock=clock)
    for expected in (0, 0, 3, 3):
        log.append_as_leader(batch(b"x"), 0)
        assert log.recovery_point == expected
    log.flush_if_due()
    assert log.recovery_point == 3
    clock.advance(100)
    log.flush_if_due()
    assert log.recovery_point == 4


@pytest.mark.parametrize("back", [1, 30, 170, 171, 400])
def test_a_torn_end_is_cut_to_the_last_whole_batch(tmp_path: Path, back: int) -> None:
    log = filled(tmp_path, 9)
    log.close_files()
    last = tmp_path / "foo-0" / files_of(tmp_path, ".log")[-1]
    os.truncate(last, max(0, last.stat().st_size - back))
    made = opened(tmp_path, stored=StoredState(recovery_point=4))
    assert made.log_end_offset < 9
    assert list(made.batches) == list(
        log_batches(b"".join((tmp_path / "foo-0" / name).read_bytes() for name in files_of(tmp_path, ".log")))
    )
    assert made.append_as_leader(batch(b"y"), 0).first_offset == made.log_end_offset - 1


def grown(files: FaultyFiles, count: int = 9) -> DiskPartitionLog:
    """A log on faulty files, of batches of one record in leader epochs of two, by one producer."""
    log = loaded(files)
    for number in range(count):
        log.append_as_leader(batch(b"x" * 100, times=(number,), producer=7, sequence=number), number // 2)
    return log


def test_a_segment_is_durable_before_the_next_one_begins() -> None:
    files = FaultyFiles(Nothing())
    log = grown(files)
    bases = [segment.base_offset for segment in log.segments]
    assert log.recovery_point == bases[-1] == 8
    files.power_cut()
    made = loaded(files, stored=StoredState(recovery_point=8))
    assert made.log_end_offset == 8
    assert [segment.largest_timestamp for segment in made.segments] == [1, 3, 5, 7]


def test_the_time_index_of_a_flushed_segment_is_durable_after_it_was_rolled() -> None:
    files = FaultyFiles(Nothing())
    log = grown(files, 1)
    log.flush()
    log.roll()
    log.flush()
    files.power_cut()
    assert loaded(files, stored=StoredState(recovery_point=1)).segments[0].largest_timestamp == 0


def test_a_flush_makes_new_segments_durable() -> None:
    files = FaultyFiles(Nothing())
    grown(files).flush()
    files.power_cut()
    assert loaded(files, stored=StoredState(recovery_point=9)).log_end_offset == 9


def test_a_truncation_is_durable() -> None:
    files = FaultyFiles(Nothing())
    log = grown(files)
    log.flush()
    log.truncate_to(5)
    files.power_cut()
    made = loaded(files)
    assert (made.log_end_offset, made.epochs) == (5, [(0, 0), (1, 2), (2, 4)])


def test_an_aborted_transaction_that_was_cut_off_does_not_come_back_with_a_power_cut() -> None:
    files = FaultyFiles(Nothing())
    log = loaded(files)
    log.append_as_leader(batch(b"x", producer=7, transactional=True), 0)
    log.append_as_leader(marker(7, commit=False), 0)
    log.flush()
    log.truncate_to(1)
    log.flush()
    log.close()
    files.power_cut()
    made = loaded(files, stored=StoredState(clean=True))
    assert (made.log_end_offset, list(made.active.aborted())) == (1, [])


def test_a_closed_log_has_its_largest_timestamp_in_the_time_index(tmp_path: Path) -> None:
    log = opened(tmp_path)
    for time in (9, 8):
        log.append_as_leader(batch(b"x", times=(time,)), 0)
    log.flush()
    log.close()
    entries = (tmp_path / "foo-0" / f"{0:020d}.timeindex").read_bytes()
    assert [*TIME_ENTRY.iter_unpack(entries)][-1] == (9, 0)


def test_a_closed_log_writes_into_no_other_file(tmp_path: Path) -> None:
    log = opened(tmp_path)
    log.close_files()
    with (tmp_path / "another").open("w+b") as another:
        with pytest.raises(OSError, match="Bad file descriptor"):
            log.append_as_leader(batch(b"x"), 0)
        assert another.read() == b""


def test_a_power_cut_within_a_truncation_leaves_no_gap_and_all_epochs() -> None:
    for calls in range(100):
        files = FaultyFiles(Everything())
        log = grown(files)
        log.flush()
        files.cut_after = calls
        try:
            log.truncate_to(1)
        except PowerCut:
            files.power_cut()
        else:
            break
        made = loaded(files)
        offsets = [one.base_offset for one in made.batches]
        assert offsets == [*range(made.log_end_offset)], calls
        assert made.epochs == [(epoch, 2 * epoch) for epoch in range((made.log_end_offset + 1) // 2)], calls
    assert calls > 30
