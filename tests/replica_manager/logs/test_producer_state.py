"""The state of a log's producers: one test for each rule."""

from __future__ import annotations

import pytest

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.replica_manager.errors import (
    InvalidProducerEpochError,
    InvalidTxnStateError,
    OutOfOrderSequenceError,
    TransactionCoordinatorFencedError,
)
from kraftlake.replica_manager.logs.log_batch import joined, log_batches
from kraftlake.replica_manager.logs.log_config import LogConfig
from kraftlake.replica_manager.logs.log_values import AbortedTransaction, AppendOrigin, FetchIsolation
from kraftlake.replica_manager.logs.memory_log import MemoryPartitionLog
from kraftlake.replica_manager.logs.producer_state import BATCHES_TO_RETAIN
from simulator.data_batches import batch, emptied, marker
from tests.replica_manager.brokers import FOO

LARGEST = (1 << 31) - 1


def log() -> MemoryPartitionLog:
    return MemoryPartitionLog(TopicPartition("foo", 0), FOO, "d", LogConfig())


def write(made: MemoryPartitionLog, sequence: int, *, count: int = 1, producer: int = 7, **more) -> tuple[int, int]:
    """The offsets of a client's batch."""
    info = made.append_as_leader(batch(*[b"x"] * count, producer=producer, sequence=sequence, **more), 0)
    return info.first_offset, info.last_offset


def test_repeats_of_the_last_five_batches_are_recognised_and_older_ones_are_out_of_order():
    made = log()
    for number in range(BATCHES_TO_RETAIN + 1):
        write(made, 2 * number, count=2)
    for number in range(1, BATCHES_TO_RETAIN + 1):
        assert write(made, 2 * number, count=2) == (2 * number, 2 * number + 1)
    with pytest.raises(OutOfOrderSequenceError, match="sequence number 0, and 12 was due"):
        write(made, 0, count=2)
    assert made.log_end_offset == 2 * (BATCHES_TO_RETAIN + 1)


def test_sequence_numbers_have_no_gap_and_wrap_after_the_largest():
    made = log()
    write(made, LARGEST - 1)
    with pytest.raises(OutOfOrderSequenceError):
        write(made, LARGEST - 1, count=2)
    write(made, LARGEST, count=3)
    assert made.producers.get(7).last_sequence == 1
    assert write(made, 2) == (4, 4)
    assert write(made, LARGEST, count=3) == (1, 3)


def test_an_unknown_producer_may_start_at_any_sequence_and_a_new_epoch_starts_at_0():
    made = log()
    write(made, 5)
    with pytest.raises(OutOfOrderSequenceError, match="and 0 was due"):
        write(made, 6, epoch=1)
    write(made, 0, epoch=1)
    with pytest.raises(InvalidProducerEpochError, match="producer epoch 0, but 1 was seen"):
        write(made, 6)
    assert made.log_end_offset == 2


def test_a_refused_batch_refuses_the_whole_append():
    made = log()
    write(made, 0)
    with pytest.raises(OutOfOrderSequenceError):
        made.append_as_leader(batch(b"x", producer=7, sequence=1) + batch(b"x", producer=7, sequence=3), 0)
    assert made.log_end_offset == 1
    assert write(made, 1) == (1, 1)


def test_a_follower_notes_producers_and_refuses_nothing():
    leader, follower = log(), log()
    write(leader, 3)
    write(leader, 4)
    write(leader, 0, epoch=2)
    follower.append_as_follower(joined(leader.batches), 0)
    assert follower.producers.get(7) == leader.producers.get(7)
    assert write(follower, 0, epoch=2) == (2, 2)


def test_truncation_forgets_the_removed_batches():
    made = log()
    for sequence in range(3):
        write(made, sequence)
    made.truncate_to(2)
    assert write(made, 1) == (1, 1)
    assert write(made, 2) == (2, 2)
    assert made.log_end_offset == 3
    made.truncate_fully_and_start_at(8)
    assert write(made, 5) == (8, 8)


def test_a_producer_expires_unless_its_transaction_is_open():
    made = log()
    write(made, 0, times=(1_000,))
    write(made, 0, producer=8, times=(1_000,), transactional=True)
    made.remove_expired_producers(1_999, 1_000)
    assert len(made.producers) == 2
    made.remove_expired_producers(2_000, 1_000)
    assert (made.producers.get(7), len(made.producers)) == (None, 1)
    assert write(made, 9) == (2, 2)


def test_a_producer_with_an_open_transaction_may_not_write_outside_of_it():
    made = log()
    write(made, 0, transactional=True)
    with pytest.raises(InvalidTxnStateError, match="began at offset 0"):
        write(made, 1)
    made.append_as_leader(marker(7, commit=True, coordinator_epoch=4), 0, AppendOrigin.COORDINATOR)
    assert made.producers.get(7).coordinator_epoch == 4
    assert write(made, 1) == (2, 2)
    with pytest.raises(TransactionCoordinatorFencedError, match="coordinator epoch 3, but 4 was seen"):
        made.append_as_leader(marker(7, commit=True, coordinator_epoch=3), 0, AppendOrigin.COORDINATOR)


def test_a_marker_of_a_later_epoch_ends_the_sequence():
    made = log()
    write(made, 0, transactional=True)
    made.append_as_leader(marker(7, commit=False, epoch=1), 0, AppendOrigin.COORDINATOR)
    with pytest.raises(InvalidProducerEpochError):
        write(made, 1, transactional=True)
    assert write(made, 0, epoch=1) == (2, 2)


@pytest.mark.parametrize("after", [70, 86_400_000, 40 * 86_400_000])
def test_a_marker_that_a_compacting_leader_has_rewritten_ends_its_transaction(after: int):
    made = log()
    write(made, 0, transactional=True)
    (rewritten,) = log_batches(marker(7, commit=False, coordinator_epoch=4, horizon=1_000 + after))
    made.append_as_follower(rewritten.placed(1, 0).data, 0)
    assert (made.producers.get(7).coordinator_epoch, made.producers.get(7).last_timestamp) == (4, 1_000)
    made.update_high_watermark(2)
    assert made.last_stable_offset == 2
    assert made.read(0, 1_000, FetchIsolation.TXN_COMMITTED).aborted_transactions == (AbortedTransaction(7, 0),)


def test_a_marker_without_its_record_says_nothing():
    made = log()
    write(made, 0, transactional=True)
    made.append_as_leader(marker(7, commit=True, coordinator_epoch=4), 0, AppendOrigin.COORDINATOR)
    write(made, 1, transactional=True)
    before = made.producers.get(7)
    (left,) = log_batches(emptied(marker(7, commit=True, epoch=1)))
    made.append_as_follower(left.placed(3, 0).data, 0)
    assert (made.log_end_offset, made.producers.get(7)) == (4, before)
    made.update_high_watermark(4)
    assert made.last_stable_offset == 2
    assert made.read(0, 1_000, FetchIsolation.TXN_COMMITTED).aborted_transactions == ()


def test_the_sequences_of_other_writers_than_clients_are_not_checked():
    made = log()
    write(made, 0)
    made.append_as_leader(batch(b"x", producer=7, sequence=9), 0, AppendOrigin.COORDINATOR)
    assert made.log_end_offset == 2
