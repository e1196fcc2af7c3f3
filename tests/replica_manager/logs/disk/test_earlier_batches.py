"""Batches of producers that a restart or a truncation has forgotten: a client that repeats one of them learns it."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.records.batch_header import HEADER
from kraftlake.replica_manager.errors import OutOfOrderSequenceError
from kraftlake.replica_manager.logs.disk import earlier_batches
from kraftlake.replica_manager.logs.disk.disk_log import DiskPartitionLog
from kraftlake.replica_manager.logs.log_batch import LogBatch, log_batches
from kraftlake.replica_manager.logs.log_config import LogConfig
from kraftlake.replica_manager.logs.log_values import AppendOrigin
from kraftlake.replica_manager.logs.memory_log import MemoryPartitionLog
from kraftlake.replica_manager.logs.partition_log import PartitionLog
from kraftlake.replica_manager.logs.producer_state import BatchMetadata
from simulator.data_batches import batch, emptied, marker
from tests.replica_manager.brokers import FOO
from tests.replica_manager.logs.disk.opened import CLEAN, PARTITION, SMALL, opened, reopened

LARGEST = (1 << 31) - 1
PRODUCERS = (7, 8)


def write(log: PartitionLog, sequence: int, *, count: int = 1, producer: int = 7, **more: int) -> tuple[int, int]:
    """The offsets of a client's batch."""
    info = log.append_as_leader(batch(*[b"x" * 40] * count, producer=producer, sequence=sequence, **more), 0)
    return info.first_offset, info.last_offset


def filled(folder: Path, count: int, *, first: int = 0, others: int = 0, config: LogConfig = SMALL) -> DiskPartitionLog:
    """A log of batches of one record by producer 7, each behind so many of others."""
    log = opened(folder, config)
    for number in range(count):
        for _ in range(others):
            log.append_as_leader(batch(b"x" * 40), 0)
        write(log, (first + number) & LARGEST)
    return log


@pytest.mark.parametrize("clean", [True, False])
def test_the_last_five_batches_are_known_after_a_restart(tmp_path: Path, clean: bool) -> None:
    log = reopened(filled(tmp_path, 9), tmp_path, clean=clean)
    for sequence in range(4, 9):
        assert write(log, sequence) == (sequence, sequence)
    with pytest.raises(OutOfOrderSequenceError, match="sequence number 3, and 9 was due"):
        write(log, 3)
    assert write(log, 9) == (9, 9)


def test_the_last_five_batches_are_those_that_a_truncation_has_left(tmp_path: Path) -> None:
    log = filled(tmp_path, 9)
    log.truncate_to(7)
    for sequence in range(2, 7):
        assert write(log, sequence) == (sequence, sequence)
    assert write(log, 7) == (7, 7)


def test_a_repeated_batch_is_answered_with_the_time_at_which_it_was_appended(tmp_path: Path) -> None:
    log = opened(tmp_path)
    for sequence in range(3):
        write(log, sequence, times=(1_000 + sequence,))
    again = reopened(log, tmp_path)
    info = again.append_as_leader(batch(b"x" * 40, producer=7, sequence=1), 0)
    assert (info.first_offset, info.log_append_time, info.size_in_bytes) == (1, 1_001, 0)


def test_batches_of_others_between_them_and_segments_do_not_matter(tmp_path: Path) -> None:
    log = reopened(filled(tmp_path, 6, others=20), tmp_path)
    assert len(log.segments) > 10
    assert [write(log, sequence)[0] for sequence in range(1, 6)] == [41, 62, 83, 104, 125]


def test_sequence_numbers_that_have_wrapped_are_found(tmp_path: Path) -> None:
    log = reopened(filled(tmp_path, 5, first=LARGEST - 1), tmp_path)
    assert [write(log, sequence)[0] for sequence in (LARGEST - 1, LARGEST, 0, 1, 2)] == [0, 1, 2, 3, 4]
    assert write(log, 3) == (5, 5)


def test_batches_of_an_earlier_epoch_are_not_taken(tmp_path: Path) -> None:
    log = filled(tmp_path, 4)
    for sequence in range(2):
        write(log, sequence, epoch=1)
    log = reopened(log, tmp_path)
    assert write(log, 0, epoch=1) == (4, 4)
    state = log.producers.get(7)
    assert state is not None
    assert [one.first_offset for one in state.batches] == [4, 5]


def test_markers_and_what_compaction_has_left_of_one_stand_between_batches(tmp_path: Path) -> None:
    log = opened(tmp_path)
    for sequence in range(3):
        write(log, sequence, transactional=True)
        log.append_as_leader(marker(7, commit=True), 0, AppendOrigin.COORDINATOR)
    (left,) = log_batches(emptied(marker(7, commit=True, epoch=9)))
    log.append_as_follower(left.placed(6, 0).data, 0)
    write(log, 3)
    log = reopened(log, tmp_path)
    assert [write(log, sequence, transactional=True)[0] for sequence in range(3)] == [0, 2, 4]


def test_batches_below_the_start_are_found_while_their_segment_is_there(tmp_path: Path) -> None:
    log = filled(tmp_path, 5)
    log.update_high_watermark(5)
    log.maybe_increment_log_start_offset(4)
    log = reopened(log, tmp_path)
    assert write(log, 2) == (2, 2)
    log.update_high_watermark(5)
    log.delete_old_segments()
    log = reopened(log, tmp_path)
    with pytest.raises(OutOfOrderSequenceError, match="sequence number 2, and 5 was due"):
        write(log, 2)


def test_a_batch_that_the_snapshot_alone_has_stays_known(tmp_path: Path) -> None:
    log = filled(tmp_path, 3)
    for _ in range(20):
        log.append_as_leader(batch(b"x" * 40), 0)
    log.update_high_watermark(20)
    log.maybe_increment_log_start_offset(20)
    log.delete_old_segments()
    assert log.segments[0].base_offset > 3
    log = reopened(log, tmp_path)
    assert write(log, 2) == (2, 2)
    with pytest.raises(OutOfOrderSequenceError):
        write(log, 1)


class Counted:
    """Counts the searches."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self._pieces = earlier_batches._pieces
        monkeypatch.setattr(earlier_batches, "_pieces", self._counted)

    def _counted(self, *arguments: object) -> object:
        self.count += 1
        return self._pieces(*arguments)  # type: ignore[arg-type]


def test_a_producer_is_searched_once_and_only_for_a_batch_before_those_that_are_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = Counted(monkeypatch)
    log = filled(tmp_path, 9, config=LogConfig())
    for start in (1, 3, 12):
        with pytest.raises(OutOfOrderSequenceError):
            write(log, start, count=5)  # a log that was not read again knows all
    log = reopened(log, tmp_path)
    for _ in range(3):
        with pytest.raises(OutOfOrderSequenceError):
            write(log, 12)
    assert write(log, 8) == (8, 8)
    assert counted.count == 0
    for _ in range(3):
        with pytest.raises(OutOfOrderSequenceError):
            write(log, 2)
    assert write(log, 4) == (4, 4)
    assert counted.count == 1


def test_a_search_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = filled(tmp_path, 5, others=5, config=LogConfig(index_interval_bytes=0))
    size = sum(one.size for one in log.batches if 11 <= one.base_offset < 29)
    monkeypatch.setattr(earlier_batches, "_READ", HEADER.size)  # each batch is a piece
    for limit, found in ((size, 11), (size - 1, 17)):
        monkeypatch.setattr(earlier_batches, "SEARCHED_BYTES", limit)
        log = reopened(log, tmp_path)
        with pytest.raises(OutOfOrderSequenceError):
            write(log, 0)
        state = log.producers.get(7)
        assert state is not None
        assert state.batches[0].first_offset == found


@pytest.mark.parametrize("place", [9, 16], ids=["length", "magic number"])
def test_damage_ends_a_search(tmp_path: Path, place: int) -> None:
    log = filled(tmp_path, 9, config=LogConfig(segment_bytes=250))
    log.flush()
    log.close()
    damaged = tmp_path / "foo-0" / f"{4:020d}.log"
    data = bytearray(damaged.read_bytes())
    data[place] = 9  # of the batch at 4
    damaged.write_bytes(data)
    log = opened(tmp_path, stored=CLEAN)
    with pytest.raises(OutOfOrderSequenceError):
        write(log, 5)
    assert write(log, 6) == (6, 6)


def test_a_batch_that_is_larger_than_what_is_read_at_once_is_passed_over(tmp_path: Path) -> None:
    log = opened(tmp_path, LogConfig(max_message_bytes=4 * earlier_batches._READ))
    write(log, 0)
    log.append_as_leader(batch(b"x" * (3 * earlier_batches._READ)), 0)
    log.append_as_leader(batch(b"x" * (2 * earlier_batches._READ), producer=7, sequence=1), 0)
    write(log, 2)
    log = reopened(log, tmp_path)
    assert write(log, 0) == (0, 0)
    assert log.append_as_leader(batch(b"", producer=7, sequence=1), 0).first_offset == 2


@attrs.define
class Written:
    """A log on disk that is killed, opened and truncated, and what was appended and not truncated."""

    folder: Path
    log: DiskPartitionLog = attrs.field(init=False)
    held: list[LogBatch] = attrs.field(factory=list)
    epochs: dict[int, int] = attrs.field(factory=dict)
    opened: dict[int, int] = attrs.field(factory=dict)
    """The epochs of the producers with an open transaction."""

    def __attrs_post_init__(self) -> None:
        self.log = opened(self.folder)

    def append(self, producer: int, count: int, transactional: bool) -> None:
        state = self.log.producers.get(producer)
        epoch = self.epochs.setdefault(producer, 0)
        known = state is not None and state.producer_epoch == epoch
        sequence = (state.last_sequence + 1) & LARGEST if state is not None and known else 0 if state else LARGEST - 3
        if transactional:
            self.opened.setdefault(producer, epoch)
        data = batch(
            *[b"x"] * count, producer=producer, epoch=epoch, sequence=sequence, transactional=producer in self.opened
        )
        self._append(data, AppendOrigin.CLIENT)

    def plain(self, count: int) -> None:
        self._append(batch(*[b"x" * 30] * count), AppendOrigin.CLIENT)

    def end(self, producer: int, raised: bool) -> None:
        if producer in self.opened:
            epoch = self.epochs[producer] = self.opened.pop(producer) + raised
            self._append(marker(producer, commit=True, epoch=epoch), AppendOrigin.COORDINATOR)

    def fence(self, producer: int) -> None:
        if producer not in self.opened and producer in self.epochs:
            self.epochs[producer] += 1

    def _append(self, data: bytes, origin: AppendOrigin) -> None:
        (made,) = log_batches(data)
        self.log.append_as_leader(data, 0, origin)
        self.held.append(made.placed(self.log.log_end_offset - made.last_offset - 1, 0))

    def reopen(self, clean: bool) -> None:
        self.log = reopened(self.log, self.folder, clean=clean)

    def roll(self) -> None:
        self.log.roll()

    def cut(self, back: int) -> None:
        keep = self.held[: max(0, len(self.held) - back)]
        self.log.truncate_to(keep[-1].last_offset + 1 if keep else 0)
        self.held, self.epochs, self.opened = keep, {}, {}
        for one in keep:
            self.epochs[one.producer_id] = one.producer_epoch
            if one.control or not one.transactional:
                self.opened.pop(one.producer_id, None)
            else:
                self.opened[one.producer_id] = one.producer_epoch

    def last_batches(self) -> dict[int, tuple[BatchMetadata, ...]]:
        """Of each producer, by one that has seen all that is held."""
        memory = MemoryPartitionLog(PARTITION, FOO, "d", SMALL)
        for one in self.held:
            memory.append_as_follower(one.data, 0)
        return {state.producer_id: state.batches for state in memory.producers.states()}

    def check(self) -> None:
        wanted, end = self.last_batches(), self.log.log_end_offset
        by_offset = {one.base_offset: one for one in self.held}
        for producer, batches in wanted.items():
            for known in batches:
                repeated = by_offset[known.first_offset]
                info = self.log.append_as_leader(repeated.data, 0)
                assert (info.first_offset, info.last_offset) == (known.first_offset, known.last_offset), known
            state = self.log.producers.get(producer)
            assert state is not None
            if batches:
                older = (batches[0].first_sequence - 1) & LARGEST
                with pytest.raises(OutOfOrderSequenceError):
                    write(self.log, older, producer=producer, epoch=state.producer_epoch)
                state = self.log.producers.get(producer)
                assert state is not None
            assert [one.first_offset for one in state.batches] == [one.first_offset for one in batches]
        assert self.log.log_end_offset == end, "a repeated batch was appended"


PRODUCER = st.sampled_from(PRODUCERS)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), PRODUCER, st.integers(1, 3), st.booleans()),
        st.tuples(st.just("append"), PRODUCER, st.integers(1, 3), st.just(False)),
        st.tuples(st.just("plain"), st.integers(1, 3)),
        st.tuples(st.just("end"), PRODUCER, st.booleans()),
        st.tuples(st.just("fence"), PRODUCER),
        st.tuples(st.just("roll")),
        st.tuples(st.just("cut"), st.integers(0, 8)),
        st.tuples(st.just("reopen"), st.booleans()),
    ),
    max_size=40,
)


@given(steps=STEPS)
def test_each_of_the_last_five_batches_is_known_whatever_happened_to_the_log(
    steps: list[tuple[object, ...]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    written = Written(tmp_path_factory.mktemp("log"))
    for name, *arguments in steps:
        getattr(written, str(name))(*arguments)
    written.check()
    written.reopen(clean=False)
    written.check()
    written.log.close()
