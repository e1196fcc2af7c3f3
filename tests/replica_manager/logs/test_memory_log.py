"""A log in memory, with the rules of a log on disk."""

from __future__ import annotations

import attrs
import pytest

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.records.offset_and_epoch import OffsetAndEpoch
from kraftlake.replica_manager.errors import (
    CorruptRecordError,
    InconsistentTopicIdError,
    OffsetOutOfRangeError,
    RecordTooLargeError,
    UnexpectedAppendOffsetError,
)
from kraftlake.replica_manager.logs import log_batch
from kraftlake.replica_manager.logs.batch_run import find_batches
from kraftlake.replica_manager.logs.client_batches import prepared_batches
from kraftlake.replica_manager.logs.leader_epochs import LeaderEpochs
from kraftlake.replica_manager.logs.log_batch import joined, log_batches
from kraftlake.replica_manager.logs.log_config import LogConfig
from kraftlake.replica_manager.logs.log_values import (
    AbortedTransaction,
    AppendOrigin,
    FetchIsolation,
    TimestampAndOffset,
)
from kraftlake.replica_manager.logs.memory_log import MemoryPartitionLog
from simulator.data_batches import batch, marker
from tests.replica_manager.brokers import BAR, FOO


def log(**config) -> MemoryPartitionLog:
    return MemoryPartitionLog(TopicPartition("foo", 0), FOO, "d", LogConfig(**config))


def filled(*epochs: int) -> MemoryPartitionLog:
    """A batch of two records for each epoch."""
    made = log()
    for epoch in epochs:
        made.append_as_leader(batch(b"a", b"b"), epoch)
    made.update_high_watermark(made.log_end_offset)
    return made


def test_a_leader_assigns_offsets_and_its_epoch():
    made = log()
    info = made.append_as_leader(batch(b"a", b"b") + batch(b"c"), 5)
    assert (info.first_offset, info.last_offset, made.log_end_offset) == (0, 2, 3)
    assert [(b.base_offset, b.last_offset, b.leader_epoch) for b in made.batches] == [(0, 1, 5), (2, 2, 5)]
    assert find_batches(joined(made.batches))[1] is None, "checksums cover neither offset nor epoch"


def test_a_corrupt_or_too_large_batch_leaves_the_log_unchanged():
    made = log(max_message_bytes=100)
    bad = bytearray(batch(b"a"))
    bad[-1] ^= 1
    for data, error in ((bytes(bad), CorruptRecordError), (batch(b"x" * 100), RecordTooLargeError)):
        with pytest.raises(error):
            made.append_as_leader(batch(b"fine") + data, 0)
    with pytest.raises(CorruptRecordError):
        made.append_as_leader(b"\1" * 80, 0)
    assert made.log_end_offset == 0


def test_a_batch_that_is_cut_off_is_left_out():
    data = batch(b"a") + batch(b"b")[:-1]
    assert len(list(log_batches(data))) == 1


def test_a_follower_takes_only_what_continues_its_log():
    leader, follower = filled(0, 0), log()
    whole = b"".join(b.data for b in leader.batches)
    follower.append_as_follower(whole, 0)
    assert follower.batches == leader.batches
    with pytest.raises(UnexpectedAppendOffsetError):
        follower.append_as_follower(whole, 0)


def test_the_high_watermark_stays_within_the_log_and_a_leader_only_raises_it():
    made = filled(0)
    assert made.update_high_watermark(99) == 2
    assert made.update_high_watermark(-5) == 0
    assert made.maybe_increment_high_watermark(1) == 0
    assert made.maybe_increment_high_watermark(1) is None
    with pytest.raises(ValueError, match="past the end"):
        made.maybe_increment_high_watermark(3)


def test_truncation_lowers_the_high_watermark_and_removes_epochs():
    made = filled(0, 1, 2)
    assert made.truncate_to(2)
    assert (made.log_end_offset, made.high_watermark, made.epochs) == (2, 2, [(0, 0)])
    assert not made.truncate_to(2)


def test_truncation_to_the_end_forgets_an_epoch_in_which_nothing_was_appended():
    made = filled(0)
    made.assign_epoch_start_offset(3, 2)
    assert not made.truncate_to(2)
    assert made.epochs == [(0, 0)]


def test_truncation_below_the_start_restarts_the_log():
    made = filled(0, 1)
    made.maybe_increment_log_start_offset(3)
    assert made.truncate_to(1)
    assert (made.log_start_offset, made.log_end_offset, made.batches, made.epochs) == (1, 1, (), [])


def test_the_log_start_moves_up_to_the_high_watermark_and_removes_epochs():
    made = filled(0, 1)
    assert made.maybe_increment_log_start_offset(3)
    assert (made.log_start_offset, made.epochs, len(made.batches)) == (3, [(1, 3)], 1)
    assert not made.maybe_increment_log_start_offset(1)
    with pytest.raises(OffsetOutOfRangeError):
        made.maybe_increment_log_start_offset(5)


def test_a_read_gives_whole_batches_within_its_limit_but_one_at_least():
    made = filled(0, 0, 0)
    size = made.batches[0].size
    assert [b.base_offset for b in made.read(3, 10_000, FetchIsolation.LOG_END).batches] == [2, 4]
    assert len(made.read(0, size * 2, FetchIsolation.LOG_END).batches) == 2
    assert len(made.read(0, 1, FetchIsolation.LOG_END).batches) == 1
    assert made.read(0, 1, FetchIsolation.LOG_END, min_one_message=False).batches == ()
    assert made.read(6, 1, FetchIsolation.LOG_END).batches == ()
    for offset in (-1, 7):
        with pytest.raises(OffsetOutOfRangeError):
            made.read(offset, 1, FetchIsolation.LOG_END)


def test_transactions_that_have_ended_below_the_high_watermark_take_no_memory():
    led, followed = log(), log()
    for sequence in range(5):
        led.append_as_leader(batch(b"a", producer=7, transactional=True, sequence=sequence), 0)
        led.append_as_leader(marker(7, commit=True), 0, AppendOrigin.COORDINATOR)
    followed.append_as_follower(joined(led.batches), 0)
    for made in (led, followed):
        undecided = made._transactions._undecided
        assert len(undecided) == 5
        made.update_high_watermark(4)
        assert list(undecided) == [(4, 5), (6, 7), (8, 9)]
        made.maybe_increment_high_watermark(9)
        assert list(undecided) == [(8, 9)]
        assert made.last_stable_offset == 8


def test_open_transactions_hold_the_last_stable_offset_and_aborted_ones_are_returned():
    made = log()
    made.append_as_leader(batch(b"a"), 0)
    made.append_as_leader(batch(b"t", producer=7, transactional=True), 0)
    made.append_as_leader(batch(b"b"), 0)
    made.update_high_watermark(3)
    assert made.last_stable_offset == 1
    made.append_as_leader(marker(7, commit=False), 0)
    assert made.last_stable_offset == 1
    made.update_high_watermark(4)
    assert made.last_stable_offset == 4
    read = made.read(0, 10_000, FetchIsolation.TXN_COMMITTED)
    assert read.aborted_transactions == (AbortedTransaction(7, 1),)
    made.truncate_to(3)
    assert made.last_stable_offset == 1


def test_aborted_transactions_go_with_their_records():
    made = log()
    for _ in range(3):
        made.append_as_leader(batch(b"x", producer=7, transactional=True), 0, AppendOrigin.COORDINATOR)
        made.append_as_leader(marker(7, commit=False), 0, AppendOrigin.COORDINATOR)
    made.update_high_watermark(6)
    made.maybe_increment_log_start_offset(3)
    assert [ended.first_offset for ended in made._transactions._aborted] == [2, 4]
    aborted = made.read(3, 1_000, FetchIsolation.TXN_COMMITTED).aborted_transactions
    assert [each.first_offset for each in aborted] == [2, 4]


def test_a_topic_id_is_assigned_once():
    made = log()
    made.assign_topic_id(FOO)
    with pytest.raises(InconsistentTopicIdError):
        made.assign_topic_id(BAR)


@pytest.mark.parametrize("earliest", [-2, -4])
def test_the_earliest_offset_has_the_first_epoch_also_of_an_empty_log(earliest):
    made = log()
    assert made.offset_for_timestamp(earliest) == TimestampAndOffset(-1, 0, None)
    made.assign_epoch_start_offset(3, 0)
    assert made.offset_for_timestamp(earliest) == TimestampAndOffset(-1, 0, 3)
    made.append_as_leader(batch(b"a"), 3)
    made.append_as_leader(batch(b"b"), 5)
    made.update_high_watermark(2)
    assert made.offset_for_timestamp(earliest) == TimestampAndOffset(-1, 0, 3)
    made.maybe_increment_log_start_offset(2)
    assert made.offset_for_timestamp(earliest) == TimestampAndOffset(-1, 2, 5)
    made.truncate_fully_and_start_at(7)
    made.assign_epoch_start_offset(6, 9)  # what is known begins behind the start
    assert made.offset_for_timestamp(earliest) == TimestampAndOffset(-1, 7, None)


def test_what_a_leader_takes_can_be_looked_up_by_time(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(log_batch, "LARGEST_RECORDS", 1 << 24)
    config = LogConfig(compression_type="zstd")
    made = log()
    data, _ = prepared_batches(batch(bytes((1 << 24) - 100)), attrs.evolve(config, max_message_bytes=1 << 28), 0)
    made.append_as_leader(prepared_batches(data, config, 0)[0], 0)
    assert made.offset_for_timestamp(1_000)[:2] == (1_000, 0)


def test_times_are_those_of_records():
    made = log()
    made.append_as_leader(batch(b"a", b"b", b"c", times=(100, 300, 200)), 0)
    made.append_as_leader(batch(b"d", times=(50,)), 1)
    assert made.offset_for_timestamp(150)[:2] == (300, 1)
    assert made.offset_for_timestamp(-3)[:2] == (300, 1)
    assert made.offset_for_timestamp(-2).offset == 0
    assert made.offset_for_timestamp(301) is None


@pytest.mark.parametrize(
    ("epoch", "end"),
    [(-1, None), (0, (0, 0)), (1, (4, 1)), (2, (4, 1)), (3, (7, 3)), (5, (9, 5)), (6, None)],
)
def test_an_epoch_ends_where_the_next_one_starts(epoch, end):
    epochs = LeaderEpochs()
    for known, start in ((1, 0), (3, 4), (5, 7)):
        epochs.assign(known, start)
    assert epochs.end_offset_for(epoch, 9) == (None if end is None else OffsetAndEpoch(*end))


@pytest.mark.parametrize(
    ("found", "entries"),
    [
        ((3, 5, 6), [(1, 0), (3, 4), (5, 7)]),  # the leader may have begun before what is left of its records
        ((1, 2, 5), [(1, 0), (5, 7)]),
        ((1, 2, 9), [(1, 0)]),
        ((2, 4, 4), [(1, 0), (2, 4), (5, 7)]),
        ((4, 5, 6), [(1, 0), (3, 4), (4, 5), (5, 7)]),
        ((6, 5, 6), [(1, 0), (3, 4), (6, 5)]),
        ((0, 0, 2), [(0, 0), (3, 4), (5, 7)]),
    ],
)
def test_entries_that_batches_contradict_are_removed(found, entries):
    changes = []
    epochs = LeaderEpochs(changes.append)
    epochs.load([(1, 0), (3, 4), (5, 7)])
    for _ in range(2):
        epochs.correct(*found)
        assert epochs.entries() == entries
    assert changes == ([] if found == (3, 5, 6) else [entries])


def test_an_epoch_replaces_later_entries_that_contradict_it():
    epochs = LeaderEpochs()
    for known, start in ((1, 0), (3, 4), (5, 7)):
        epochs.assign(known, start)
    epochs.assign(6, 4)
    assert epochs.entries() == [(1, 0), (6, 4)]
    epochs.assign(6, 9)
    assert epochs.entries() == [(1, 0), (6, 4)]
    with pytest.raises(ValueError, match="epoch -1"):
        epochs.assign(-1, 0)
