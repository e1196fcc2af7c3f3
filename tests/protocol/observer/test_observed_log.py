from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.protocol.describe import Leader
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.protocol.observer.observed_log import DivergedLogError, ObservedLog
from kraftlake.protocol.observer.raw_batch import RawBatch
from kraftlake.protocol.observer.requests import FetchedLogPart
from kraftlake.records.offset_and_epoch import OffsetAndEpoch
from kraftlake.runtime.errors import CorruptDataError
from tests.protocol.observer.model_quorum import ModelQuorum, raw_batch

LEADER = Leader(id=1, epoch=3, address=None)
START = OffsetAndEpoch(offset=0, epoch=0)


def answer(*batches: RawBatch, high_watermark: int = -1, diverging: OffsetAndEpoch | None = None) -> FetchedLogPart:
    return FetchedLogPart(
        error=ErrorCode.NONE, leader=LEADER, high_watermark=high_watermark, diverging=diverging, batches=batches
    )


def test_batches_wait_until_the_high_watermark_is_past_them() -> None:
    log = ObservedLog(START)
    first, second, third = raw_batch(0, 1), raw_batch(1, 1, count=3), raw_batch(4, 2)
    assert log.take(answer(first, second, high_watermark=3)) == [first], "the second reaches up to offset 3"
    assert log.fetched == OffsetAndEpoch(offset=4, epoch=1)
    assert log.take(answer(third, high_watermark=-1)) == [], "a new leader knows no high watermark at first"
    assert log.take(answer(high_watermark=5)) == [second, third]
    assert (log.next_offset, log.committed.epoch) == (5, 2)


def test_what_a_new_leader_replaced_is_dropped_and_fetched_again() -> None:
    log = ObservedLog(START)
    kept, lost, other = raw_batch(0, 1), raw_batch(1, 1), raw_batch(1, 2)
    log.take(answer(kept, lost, high_watermark=1))
    assert log.take(answer(diverging=OffsetAndEpoch(offset=1, epoch=1))) == []
    assert log.fetched == OffsetAndEpoch(offset=1, epoch=1)
    assert log.take(answer(other, high_watermark=2)) == [other]


def test_a_log_that_differs_below_what_was_committed_is_an_error_with_the_offset() -> None:
    log = ObservedLog(START)
    log.take(answer(raw_batch(0, 1), raw_batch(1, 1), high_watermark=2))
    with pytest.raises(
        DivergedLogError, match="differs from offset 1 on, although everything before offset 2"
    ) as fault:
        log.take(answer(diverging=OffsetAndEpoch(offset=1, epoch=1)))
    assert fault.value.offset == 1


@pytest.mark.parametrize("batch", [raw_batch(2, 1), raw_batch(0, 1), raw_batch(1, 0)])
def test_a_gap_a_repetition_and_an_older_epoch_are_refused(batch: RawBatch) -> None:
    log = ObservedLog(START)
    log.take(answer(raw_batch(0, 1), high_watermark=1))
    with pytest.raises(CorruptDataError, match="offset 1 of epoch 1 or later was asked for"):
        log.take(answer(batch, high_watermark=9))


def test_a_log_of_unknown_epoch_begins_with_the_batch_around_its_offset() -> None:
    log = ObservedLog(OffsetAndEpoch(offset=5, epoch=-1))
    around, next_ = raw_batch(3, 7, count=4), raw_batch(7, 7)
    assert log.take(answer(around, high_watermark=7)) == [around]
    assert log.take(answer(next_, high_watermark=8)) == [next_]
    with pytest.raises(CorruptDataError):
        log.take(answer(raw_batch(7, 7, count=4), high_watermark=20))


def test_it_is_full_only_while_megabytes_wait_for_the_high_watermark() -> None:
    log, big = ObservedLog(START), b"\0" * (30 << 20)
    batches = [RawBatch(base_offset=n, last_offset=n, epoch=1, timestamp=0, data=big) for n in range(3)]
    log.take(answer(*batches[:2]))
    assert not log.is_full
    log.take(answer(batches[2]))
    assert log.is_full
    log.forget_waiting()
    assert not log.is_full
    assert log.fetched == START
    assert log.take(answer(*batches, high_watermark=3)) == batches
    assert not log.is_full


def test_what_is_left_after_a_divergence_is_not_committed_by_the_answer_that_reported_it() -> None:
    """Kept of two leaders' batches is that of the first, of an epoch which the third has never had."""
    log = ObservedLog(START)
    log.take(answer(raw_batch(0, 1), raw_batch(1, 3)))
    theirs = [raw_batch(0, 2), raw_batch(1, 4)]
    for diverging in (OffsetAndEpoch(offset=1, epoch=2), OffsetAndEpoch(offset=0, epoch=0)):
        assert log.take(answer(high_watermark=2, diverging=diverging)) == []
    assert log.take(answer(*theirs, high_watermark=2)) == theirs


def test_up_to_the_epoch_of_a_snapshot_that_is_passed_by_nothing_waits_and_the_leader_is_asked_by_offset() -> None:
    log = ObservedLog(START)
    log.take(answer(raw_batch(0, 1), raw_batch(1, 1), high_watermark=1))
    log.pass_by(OffsetAndEpoch(offset=3, epoch=3))
    assert log.asked == OffsetAndEpoch(offset=1, epoch=-1), "what waited may be of a leader that was deposed"
    theirs = [raw_batch(1, 2), raw_batch(2, 3), raw_batch(3, 3)]
    assert log.take(answer(theirs[0])) == theirs[:1], "it is committed, though the leader knows no high watermark yet"
    assert log.asked == OffsetAndEpoch(offset=2, epoch=-1)
    assert log.take(answer(*theirs[1:])) == theirs[1:2]
    assert log.asked == OffsetAndEpoch(offset=4, epoch=3)
    assert log.high_watermark == 1
    with pytest.raises(CorruptDataError, match="offset 4 of epoch 3 or later"):
        log.take(answer(raw_batch(4, 2)))


node = st.integers(0, 2)
action = st.one_of(
    st.tuples(st.just("elect"), node, node),
    st.tuples(st.just("append"), st.integers(1, 3)),
    st.tuples(st.just("replicate"), node, st.integers(0, 3)),
    st.tuples(st.just("fetch"), st.integers(1, 4)),
)


@given(st.lists(action, max_size=60))
def test_only_what_the_quorum_committed_is_handed_on_through_any_elections_and_all_of_it_in_the_end(
    steps: list[tuple[object, ...]],
) -> None:
    quorum, log, seen = ModelQuorum(), ObservedLog(START), []
    quorum.elect(0, 1)
    for name, *arguments in [*steps, ("replicate", 0, 99), ("replicate", 1, 99), ("replicate", 2, 99)]:
        if name == "fetch":
            seen += log.take(quorum.answer(log.fetched, epoch=quorum.epoch, max_batches=arguments[0]))  # type: ignore[arg-type]
            assert seen == quorum.committed[: len(seen)]
        else:
            getattr(quorum, str(name))(*arguments)
    for _ in range(len(quorum.logs[quorum.leader]) + quorum.epoch + 2):
        seen += log.take(quorum.answer(log.fetched, epoch=quorum.epoch))
    assert seen == quorum.committed


@given(st.lists(st.one_of(action, st.just(("snapshot",))), max_size=60))
def test_and_where_a_leader_sends_snapshots_of_later_epochs_instead(steps: list[tuple[object, ...]]) -> None:
    quorum, log, seen = ModelQuorum(), ObservedLog(OffsetAndEpoch(offset=1, epoch=-1)), []

    def fetch(max_batches: int = 100) -> None:
        at = log.asked
        answer = quorum.answer(
            at._replace(epoch=quorum.epoch) if at.epoch < 0 else at, epoch=quorum.epoch, max_batches=max_batches
        )
        if answer.snapshot is not None:
            log.pass_by(answer.snapshot)
        else:
            seen.extend(log.take(answer))

    quorum.elect(0, 1)
    quorum.replicate(1, 1)
    for name, *arguments in [*steps, ("replicate", 0, 99), ("replicate", 1, 99), ("replicate", 2, 99)]:
        if name == "fetch":
            fetch(int(str(arguments[0])))
            assert seen == quorum.committed[1 : 1 + len(seen)]
        elif name == "snapshot":
            last = quorum.committed[-1]
            quorum.snapshot = OffsetAndEpoch(offset=last.last_offset + 1, epoch=last.epoch)
        else:
            getattr(quorum, str(name))(*arguments)
    for _ in range(2 * len(quorum.logs[quorum.leader]) + 2 * quorum.epoch + 2):
        fetch()
    assert seen == quorum.committed[1:]
