"""What excuses a producer's batch that does not continue the one before: the leader that took it had forgotten it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.records.uuid import Uuid
from kraftlake.replica_manager.logs.log_batch import LogBatch, log_batches
from simulator import scheduler as scheduling
from simulator.data_batches import batch
from simulator.idle_producers import EXPIRATION_MS, ProducerWatch
from simulator.invariants import InvariantError

pytestmark = pytest.mark.usefixtures("time")
_TOPIC = Uuid(bytes(15) + b"1")
_KEY = _TOPIC, 0
_NAMES = {0: "outside", 1: "broker-1"}
"""Who leads in which epoch; the running process of a test is `outside`."""


@pytest.fixture
def watch() -> ProducerWatch:
    made = ProducerWatch(lambda key, epoch: _NAMES[epoch])
    assert made.committed(_KEY, sent(0, at=0)) == ""
    return made


def sent(sequence: int, *, at: int, epoch: int = 0, age_ms: int = 0) -> LogBatch:
    """Two records of producer 7, written `age_ms` ago."""
    then_ms = scheduling.active().time_ns() // 1_000_000 - age_ms
    [made] = log_batches(batch(b"a", b"b", times=(then_ms,) * 2, producer=7, sequence=sequence))
    return made.placed(at, epoch)


def log_of(*batches: LogBatch, end: int) -> Any:
    """A log with some batches in one segment."""
    content = b"".join(bytes(one.data) for one in batches)
    segment = SimpleNamespace(path=lambda suffix: "log", size=len(content))
    files = SimpleNamespace(_files=SimpleNamespace(content=lambda path: content))
    return SimpleNamespace(
        topic_id=_TOPIC, topic_partition=TopicPartition("one", 0), log_end_offset=end, segments=[segment], files=files,
        segment_at=lambda offset: 0,
    )  # fmt: skip


def forget(watch: ProducerWatch, end: int = 2, age_ms: int = EXPIRATION_MS) -> None:
    watch.expired(log_of(sent(0, at=0, age_ms=age_ms), end=end), _KEY, [7])


def taken(watch: ProducerWatch, one: LogBatch) -> str:
    """What is wrong with a batch that its leader takes, and commits."""
    watch.appended(_NAMES[one.leader_epoch], _KEY, one)
    return watch.committed(_KEY, one)


def test_batches_continue_each_other(watch: ProducerWatch) -> None:
    assert watch.committed(_KEY, sent(2, at=2)) == ""
    assert watch.committed(_KEY, sent(2, at=4)) == "the batch at 4 of producer 7 has 2 behind 2 to 3 of 2"
    assert "has 9" in watch.committed(_KEY, sent(9, at=6))
    assert watch.excused == 0


def test_a_batch_is_doubled_once_where_its_leader_had_forgotten_the_producer(watch: ProducerWatch) -> None:
    forget(watch)
    assert taken(watch, sent(0, at=2)) == ""
    assert watch.excused == 1
    assert "behind 0 to 1 of 2" in taken(watch, sent(0, at=4))


@pytest.mark.parametrize(
    ("end", "epoch", "cut", "why"),
    [
        (0, 0, 9, "it forgot the producer before its log had the batch"),
        (3, 0, 9, "it forgot the producer after it took the second one"),
        (2, 1, 9, "another broker forgot it"),
        (2, 0, 0, "its log was cut to before the first one"),
    ],
)
def test_nothing_else_excuses_a_doubled_batch(watch: ProducerWatch, end: int, epoch: int, cut: int, why: str) -> None:
    forget(watch, end)
    watch.cut("outside", _KEY, cut)
    assert taken(watch, sent(0, at=2, epoch=epoch)), why


def test_a_log_that_is_cut_after_it_had_the_batch_changes_nothing(watch: ProducerWatch) -> None:
    forget(watch)
    anew = sent(0, at=2)
    watch.appended("outside", _KEY, anew)
    watch.cut("outside", _KEY, 0)
    watch.appended("outside", _KEY, anew)  # from the broker that has it
    assert watch.committed(_KEY, anew) == ""


def test_a_new_log_learns_of_all_producers(watch: ProducerWatch) -> None:
    forget(watch)
    watch.begun("outside", _KEY)
    assert taken(watch, sent(0, at=2))


def test_a_producer_that_is_not_idle_is_not_forgotten(watch: ProducerWatch) -> None:
    with pytest.raises(InvariantError, match="one-0: outside forgets producer 7, whose batch at 0 is 119999 ms old"):
        forget(watch, age_ms=EXPIRATION_MS - 1)


def test_a_broker_may_forget_a_producer_whose_later_batch_it_does_not_have(watch: ProducerWatch) -> None:
    assert watch.committed(_KEY, sent(2, at=4)) == ""
    watch.expired(log_of(end=4), _KEY, [7])
    with pytest.raises(InvariantError, match="forgets producer 7, whose batch at 4 is 0 ms old"):
        watch.expired(log_of(end=5), _KEY, [7])


def test_a_leader_may_refuse_a_producer_behind_a_batch_that_is_excused(watch: ProducerWatch) -> None:
    assert watch.committed(_KEY, sent(2, at=2)) == ""
    anew = sent(0, at=4)
    assert not watch.may_refuse(_KEY, 7, 2, log_of(anew, end=6))
    forget(watch, end=4)
    watch.appended("outside", _KEY, anew)
    assert not watch.may_refuse(_KEY, 7, 2, log_of(end=4))
    assert watch.may_refuse(_KEY, 7, 2, log_of(anew, end=6))
    assert watch.committed(_KEY, anew) == ""
    assert watch.may_refuse(_KEY, 7, 2, log_of(end=6))
    assert not watch.may_refuse(_KEY, 7, 4, log_of(end=6))


def test_a_leader_may_refuse_a_producer_that_was_idle_for_long(watch: ProducerWatch) -> None:
    assert watch.committed(_KEY, sent(2, at=2, age_ms=EXPIRATION_MS - 1)) == ""
    assert not watch.may_refuse(_KEY, 7, 2, log_of(end=4))
    assert watch.committed(_KEY, sent(4, at=4, age_ms=EXPIRATION_MS)) == ""
    assert watch.may_refuse(_KEY, 7, 4, log_of(end=6))
