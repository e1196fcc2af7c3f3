"""Requests of clients and followers: those answered at once, those that wait, and what completes them."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import attrs
import pytest

from kraftlake.protocol.error_code import ErrorCode
from kraftlake.records.offset_and_epoch import OffsetAndEpoch
from kraftlake.replica_manager.controller_channel import LeaderAndIsr
from kraftlake.replica_manager.logs.log_config import LogConfig
from kraftlake.replica_manager.logs.log_values import AppendOrigin, FetchIsolation, TimestampAndOffset
from kraftlake.replica_manager.logs.memory_log import MemoryLogManager, MemoryPartitionLog
from kraftlake.replica_manager.logs.timestamps import LATEST_TIMESTAMP
from kraftlake.replica_manager.partition.leader import FetchParams, FetchPartition
from kraftlake.replica_manager.partition.replica import Replica
from kraftlake.replica_manager.requests.delayed_answers import DeleteRecordsAnswer, ProduceAnswer
from kraftlake.replica_manager.requests.delayed_requests import DelayedRequests
from kraftlake.replica_manager.requests.log_reads import read_from_log
from kraftlake.replica_manager.requests.request_server import EpochEndOffset, ListedOffset, RequestServer
from kraftlake.runtime.log import without_logs
from simulator.data_batches import batch, marker
from tests.replica_manager.brokers import BAR, D1, D2, FOO, broker, change, partition, started, topic, tp

FOO0 = tp()


class Served:
    """Broker 1, which serves requests; the answers are kept for each request."""

    def __init__(self, *records: Any, min_isr: int = 1, **config: Any) -> None:
        made = LogConfig(min_insync_replicas=min_isr, **config)
        self.me = started(
            *(records or (topic(), partition(leader=1))),
            log_manager=MemoryLogManager({"d1": D1, "d2": D2}, made),
            delayed=DelayedRequests,
        )
        self.delayed: DelayedRequests = self.me.delayed
        self.server = RequestServer(self.me.manager, self.delayed)
        self.answers: dict[str, list[Any]] = {}

    def noted(self, name: str):
        return self.answers.setdefault(name, []).append

    def append(self, name: str, *values: bytes, acks: int = -1, to: Any = FOO0, timeout: float = 1_000, **options: Any):
        self.server.append_records(
            {to: batch(*(values or (b"x",)))}, required_acks=acks, timeout_ms=timeout,
            on_answer=self.noted(name), **options,
        )  # fmt: skip
        return self.of(name, to)

    def fetch(
        self, name: str, offset: int, *, follower: int | None = None, throttle: Any = None, to: Any = FOO0,
        epoch: int | None = None, last_epoch: int | None = None, partition_bytes: int = 1 << 20, **params: Any,
    ):  # fmt: skip
        if follower is not None:
            params |= {"replica_id": follower, "replica_epoch": 100 + follower, "isolation": FetchIsolation.LOG_END}
        wanted = FetchPartition(
            fetch_offset=offset, current_leader_epoch=epoch, last_fetched_epoch=last_epoch, max_bytes=partition_bytes
        )
        self.server.fetch_messages(FetchParams(**params), {to: wanted}, on_answer=self.noted(name), throttle=throttle)
        return self.of(name, to)

    def delete(self, name: str, offset: int, *, to: Any = FOO0):
        self.server.delete_records({to: offset}, timeout_ms=1_000, on_answer=self.noted(name))
        return self.of(name, to)

    def of(self, name: str, to: Any = FOO0):
        """The one answer to a request, None while it waits."""
        answers = self.answers.get(name, [])
        assert len(answers) <= 1, "a request is answered once"
        return answers[0][to] if answers else None

    def time(self, milliseconds: float) -> None:
        self.me.clock.advance(milliseconds)
        self.delayed.expire()

    @property
    def hw(self) -> int:
        return self.me.partition().local_log.high_watermark


# produce


@pytest.mark.parametrize("acks", [0, 1])
def test_acks_0_and_1_do_not_wait(acks: int):
    served = Served()
    assert served.append("p", acks=acks) == ProduceAnswer(base_offset=0, log_start_offset=0)
    assert served.hw == 0


@pytest.mark.parametrize("acks", [-2, 2, 3])
def test_other_acks_are_refused_and_append_nothing(acks: int):
    served = Served()
    assert served.append("p", acks=acks) == ProduceAnswer(error=ErrorCode.INVALID_REQUIRED_ACKS)
    assert served.me.partition().local_log.log_end_offset == 0


def test_acks_all_waits_for_the_isr():
    served = Served()
    assert served.append("p", b"a", b"b") is None
    served.fetch("f2", 2, follower=2)
    assert served.of("p") is None
    served.fetch("f3", 2, follower=3)
    assert served.of("p") == ProduceAnswer(base_offset=0, log_start_offset=0)


def test_acks_all_of_a_leader_alone_in_the_isr_is_answered_at_once():
    served = Served(topic(), partition(leader=1, isr=(1,)))
    assert served.append("p") == ProduceAnswer(base_offset=0, log_start_offset=0)


def test_a_produce_that_waits_too_long_times_out_and_may_be_committed_later():
    served = Served()
    served.append("p", timeout=100)
    served.time(99)
    assert served.of("p") is None
    served.time(1)
    assert served.of("p") == ProduceAnswer(base_offset=0, log_start_offset=0, error=ErrorCode.REQUEST_TIMED_OUT)
    for follower in (2, 3):
        served.fetch(f"f{follower}", 1, follower=follower)
    assert served.hw == 1
    assert len(served.answers["p"]) == 1


def test_a_waiting_produce_is_answered_when_the_broker_no_longer_leads():
    served = Served()
    served.append("p")
    served.me.hear(change(leader=2))
    answer = served.of("p")
    assert answer is not None
    assert answer.error is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_an_append_before_the_isr_became_too_small_is_answered_with_an_error():
    served = Served(min_isr=2)
    served.append("p")
    served.me.hear(change(isr=(1,)))
    for follower in (2, 3):
        served.fetch(f"f{follower}", 1, follower=follower)
    answer = served.of("p")
    assert answer is None or answer.error is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND


def test_too_few_in_sync_replicas_refuse_acks_all_and_only_that():
    served = Served(topic(), partition(leader=1, isr=(1,)), min_isr=2)
    assert served.append("p").error is ErrorCode.NOT_ENOUGH_REPLICAS
    assert served.append("q", acks=1).error is ErrorCode.NONE


def test_a_failed_partition_does_not_end_the_wait_of_another():
    served = Served(topic(), partition(0, leader=1), partition(1, leader=2))
    served.server.append_records(
        {FOO0: batch(b"a"), tp(1): batch(b"b"), tp(9): batch(b"c")},
        required_acks=-1, timeout_ms=50, on_answer=served.noted("p"),
    )  # fmt: skip
    assert served.of("p") is None
    for follower in (2, 3):
        served.fetch(f"f{follower}", 1, follower=follower)
    assert {name.partition: answer.error for name, answer in served.answers["p"][0].items()} == {
        0: ErrorCode.NONE,
        1: ErrorCode.NOT_LEADER_OR_FOLLOWER,
        9: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


def test_a_request_whose_partitions_all_fail_does_not_wait():
    served = Served(topic(), partition(leader=2))
    assert served.append("p").error is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_internal_topics_need_permission():
    offsets = tp(0, "__consumer_offsets")
    served = Served(topic("__consumer_offsets"), partition(leader=1))
    assert served.append("p", to=offsets, acks=1).error is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert served.append("q", to=offsets, acks=1, internal_topics_allowed=True).error is ErrorCode.NONE


def test_bytes_that_are_no_batch_are_refused_and_leave_the_log_unchanged():
    served = Served()
    data = bytearray(batch(b"a"))
    data[-1] ^= 1
    served.server.append_records({FOO0: bytes(data)}, required_acks=1, timeout_ms=0, on_answer=served.noted("p"))
    assert served.of("p").error is ErrorCode.CORRUPT_MESSAGE
    assert served.me.partition().local_log.log_end_offset == 0


# fetch


def values(answer: Any) -> int:
    return sum(one.count for one in answer.data.batches)


def test_a_fetch_waits_for_data_and_an_append_wakes_it():
    served = Served()
    assert served.fetch("f", 0, follower=2) is None
    served.append("p", b"a", acks=1)
    assert values(served.of("f")) == 1


def test_a_fetch_waits_for_enough_bytes():
    served = Served()
    one = len(batch(b"x"))
    assert served.fetch("f", 0, follower=2, min_bytes=2 * one) is None
    served.append("p", acks=1)
    assert served.of("f") is None
    served.append("q", acks=1)
    assert served.of("f").size_in_bytes == 2 * one


def test_a_fetch_at_its_timeout_gets_the_available_data():
    served = Served()
    served.append("p", acks=1)
    served.fetch("f", 0, follower=2, min_bytes=1_000_000, max_wait_ms=300)
    served.time(299)
    assert served.of("f") is None
    served.time(1)
    assert values(served.of("f")) == 1


def test_a_fetch_with_max_wait_0_is_answered_at_once():
    served = Served()
    assert values(served.fetch("f", 0, follower=2, max_wait_ms=0)) == 0


def test_a_fetch_without_partitions_is_answered_at_once():
    served = Served()
    served.server.fetch_messages(FetchParams(), {}, on_answer=served.noted("f"))
    assert served.answers["f"] == [{}]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"epoch": 7}, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ({"to": tp(5)}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"to": tp(1)}, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ],
)
def test_an_error_is_answered_at_once(options: dict[str, Any], error: ErrorCode):
    served = Served(topic(), partition(0, leader=1), partition(1, leader=2))
    assert served.fetch("f", 0, follower=2, **options).error is error


def test_an_offset_out_of_range_is_answered_at_once():
    assert Served().fetch("f", 5, follower=2).error is ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_diverging_epoch_is_answered_at_once():
    served = Served(topic(), partition(leader=1, epoch=3))
    served.append("p", acks=1)
    served.me.hear(change(leader=1))
    served.append("q", acks=1)
    answer = served.fetch("f", 2, follower=2, last_epoch=3)
    assert answer.diverging_epoch == OffsetAndEpoch(1, 3)
    assert values(answer) == 0


def test_a_consumer_reads_committed_records_and_a_follower_all():
    served = Served()
    served.append("p", b"a", acks=1)
    assert served.fetch("c", 0) is None
    assert values(served.fetch("f", 0, follower=2)) == 1
    for follower in (2, 3):
        served.fetch(f"g{follower}", 1, follower=follower)
    assert values(served.of("c")) == 1


def test_a_read_committed_consumer_reads_to_the_last_stable_offset_and_learns_of_aborted_transactions():
    served = Served(topic(), partition(leader=1, isr=(1,)))
    send = served.server.append_records

    def add(data: bytes) -> None:
        origin = AppendOrigin.COORDINATOR  # the marker can come from no client
        send({FOO0: data}, required_acks=1, timeout_ms=0, on_answer=lambda _: None, origin=origin)

    add(batch(b"a", producer=7, transactional=True))
    committed = {"isolation": FetchIsolation.TXN_COMMITTED}
    assert served.fetch("c", 0, **committed) is None
    add(marker(7, commit=False))
    answer = served.of("c")
    assert values(answer) == 2
    assert [one.producer_id for one in answer.data.aborted_transactions] == [7]


def test_bytes_are_limited_over_all_partitions_but_the_first_batch_always_comes():
    served = Served(topic(), partition(0, leader=1, isr=(1,)), partition(1, leader=1, isr=(1,)))
    for number in (0, 1):
        served.append(f"p{number}", b"x" * 100, acks=1, to=tp(number))
    size = len(batch(b"x" * 100))

    def both(limit: int, each: int = 1 << 20) -> list[int]:
        answers: list[Any] = []
        wanted = {tp(number): FetchPartition(fetch_offset=0, max_bytes=each) for number in (0, 1)}
        served.server.fetch_messages(FetchParams(max_bytes=limit), wanted, on_answer=answers.append)
        return [answer.size_in_bytes for answer in answers[0].values()]

    assert both(10 * size) == [size, size]
    assert both(size + 1) == [size, 0]
    assert both(1) == [size, 0]
    assert both(10 * size, each=1) == [size, 0]


def test_a_waiting_fetch_is_answered_when_the_broker_no_longer_leads():
    served = Served()
    served.fetch("f", 0, follower=2)
    served.me.hear(change(leader=2))
    assert served.of("f").error is ErrorCode.NOT_LEADER_OR_FOLLOWER


@attrs.define
class Quota:
    """A quota that the test controls."""

    exceeded: bool = True

    def is_throttled(self, _partition: Any) -> bool:
        return True

    def is_exceeded(self) -> bool:
        return self.exceeded


def test_an_exceeded_quota_delays_a_follower_outside_the_isr():
    served = Served(topic(), partition(leader=1, isr=(1, 3)))
    quota = Quota()
    served.append("p", acks=1)
    assert served.fetch("f", 0, follower=2, throttle=quota) is None
    assert values(served.fetch("in sync", 0, follower=3, throttle=quota)) == 1
    quota.exceeded = False
    served.append("q", acks=1)
    assert values(served.of("f")) == 2


def test_a_consumer_is_sent_to_the_most_caught_up_replica_in_its_rack():
    racks = {1: "a", 2: "b", 3: "b"}
    served = Served(
        topic(), partition(leader=1), *(attrs.evolve(broker(id_), rack=rack) for id_, rack in racks.items())
    )
    served.append("p", b"a", b"b", acks=1)
    served.fetch("f2", 1, follower=2)
    served.fetch("f3", 2, follower=3)
    assert served.fetch("near", 1, rack="b").preferred_read_replica == 3
    assert values(served.fetch("here", 0, rack="a")) == 2
    assert values(served.fetch("nobody", 0, rack="c")) == 2
    assert values(served.fetch("no rack", 0)) == 2
    assert served.fetch("nobody has it yet", 2, rack="b", max_wait_ms=0).preferred_read_replica == 3
    sent = served.of("near")
    assert (sent.read.log_end_offset, sent.read.log_start_offset, sent.size_in_bytes) == (2, 0, 0)


def test_no_consumer_is_sent_to_a_replica_outside_of_the_isr():
    served = Served(
        topic(), partition(leader=1, isr=(1, 2)), *(attrs.evolve(broker(id_), rack=f"r{id_}") for id_ in (1, 2, 3))
    )
    served.append("p", b"a", b"b", acks=1)
    served.fetch("f3", 1, follower=3)
    served.fetch("f2", 1, follower=2)
    assert served.fetch("in sync", 0, rack="r2").preferred_read_replica == 2
    assert served.fetch("outside", 0, rack="r3").preferred_read_replica is None


def test_a_consumer_with_another_leader_epoch_gets_no_preferred_replica():
    served = Served(
        topic(), partition(leader=1, epoch=3), *(attrs.evolve(broker(id_), rack=f"r{id_}") for id_ in (1, 2, 3))
    )
    served.append("p", b"a", acks=1)
    served.fetch("f2", 0, follower=2)
    assert served.fetch("old", 0, rack="r2", epoch=2).error is ErrorCode.FENCED_LEADER_EPOCH
    assert served.fetch("new", 0, rack="r2", epoch=4).error is ErrorCode.UNKNOWN_LEADER_EPOCH
    assert served.fetch("right", 0, rack="r2", epoch=3).preferred_read_replica == 2


def test_a_consumers_fetch_past_the_high_watermark_is_answered_at_once():
    served = Served()
    served.append("p", b"a", acks=1)
    served.append("q", b"b", b"c", acks=1)
    assert served.hw == 0
    assert values(served.fetch("past", 1)) == values(served.fetch("the end", 3)) == 0
    assert served.fetch("at it", 0) is None


def test_an_error_of_one_partition_does_not_fail_the_others(monkeypatch):
    served = Served(topic(), partition(0, leader=1, isr=(1,)), partition(1, leader=1, isr=(1,)))
    served.append("p", b"a", acks=1, to=tp(1))
    read = MemoryPartitionLog.read

    def broken(self, *arguments: Any, **more: Any):
        if self.topic_partition == FOO0:
            raise ZeroDivisionError("a fault that nobody expected")
        return read(self, *arguments, **more)

    monkeypatch.setattr(MemoryPartitionLog, "read", broken)
    with without_logs():
        answers = read_from_log(
            served.me.manager, FetchParams(), {name: FetchPartition(fetch_offset=0) for name in (FOO0, tp(1))}
        )
    assert answers[FOO0].error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert values(answers[tp(1)]) == 1


def test_a_producer_with_another_topic_id_gets_an_error():
    served = Served(topic(), partition(leader=1, isr=(1,)))
    assert served.append("other", b"a", topic_ids={"foo": BAR}).error is ErrorCode.UNKNOWN_TOPIC_ID
    assert served.me.partition().local_log.log_end_offset == 0
    assert served.append("same", b"a", topic_ids={"foo": FOO}).base_offset == 0


def test_a_repeated_batch_is_answered_with_its_first_offset():
    served = Served(topic(), partition(leader=1, isr=(1,)))
    for name, sequence in (("first", 0), ("second", 1), ("second again", 1), ("first again", 0)):
        data = batch(name[:5].encode(), producer=7, sequence=sequence)
        served.server.append_records({FOO0: data}, required_acks=-1, timeout_ms=0, on_answer=served.noted(name))
    assert [served.of(name).base_offset for name in served.answers] == [0, 1, 1, 0]
    assert served.me.partition().local_log.log_end_offset == 2
    gap = batch(b"x", producer=7, sequence=9)
    served.server.append_records({FOO0: gap}, required_acks=-1, timeout_ms=0, on_answer=served.noted("gap"))
    assert served.of("gap").error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


# the chain


def test_an_append_wakes_fetches_a_fetch_wakes_produces_and_the_high_watermark_wakes_both():
    served = Served()
    served.fetch("follower 2", 0, follower=2)
    served.fetch("follower 3", 0, follower=3)
    served.fetch("consumer", 0)
    assert served.append("produce", b"a") is None

    assert values(served.of("follower 2")) == values(served.of("follower 3")) == 1, "the append woke them"
    assert served.of("consumer") is None

    served.fetch("follower 2 again", 1, follower=2)
    assert (served.hw, served.of("produce"), served.of("consumer")) == (0, None, None)

    served.me.clock.advance(30_001)
    served.fetch("follower 2 goes on", 1, follower=2)
    served.me.manager.maybe_shrink_isr()
    (_, proposed, answered), *_ = served.me.controller.proposals[-1:]
    answered(
        LeaderAndIsr(
            leader=1, leader_epoch=proposed.leader_epoch, isr=proposed.isr, partition_epoch=proposed.partition_epoch + 1
        )
    )
    assert served.hw == 1, "the change of the ISR moved it"
    assert served.of("produce") == ProduceAnswer(base_offset=0, log_start_offset=0)
    assert values(served.of("consumer")) == 1


# delete records, offsets, elections


def test_deleting_records_waits_for_the_live_followers():
    served = Served()
    served.append("p", b"a", b"b", acks=1)
    for follower in (2, 3):
        served.fetch(f"f{follower}", 2, follower=follower)
    assert served.delete("d", 2) is None
    assert served.delayed.delete_records.delayed == 1
    for follower in (2, 3):
        served.server.fetch_messages(
            FetchParams(
                replica_id=follower, replica_epoch=100 + follower, isolation=FetchIsolation.LOG_END, max_wait_ms=0
            ),
            {FOO0: FetchPartition(fetch_offset=2, log_start_offset=2)},
            on_answer=lambda _: None,
        )
    assert served.of("d") == DeleteRecordsAnswer(low_watermark=2)
    assert served.delayed.delete_records.delayed == 0


def test_deleting_records_that_begins_to_wait_while_a_follower_reports_its_start_is_answered(monkeypatch):
    served = Served(topic(), partition(leader=1, replicas=(1, 2), isr=(1, 2)))
    served.append("p", b"a", b"b", acks=1)
    served.fetch("f", 2, follower=2)
    update = Replica.update_fetch_state

    def meanwhile(*args):
        monkeypatch.undo()
        served.delete("d", 2)
        update(*args)

    monkeypatch.setattr(Replica, "update_fetch_state", meanwhile)
    served.server.fetch_messages(
        FetchParams(replica_id=2, replica_epoch=102, isolation=FetchIsolation.LOG_END, max_wait_ms=0),
        {FOO0: FetchPartition(fetch_offset=2, log_start_offset=2)},
        on_answer=lambda _: None,
    )
    assert served.of("d") == DeleteRecordsAnswer(low_watermark=2)


def test_deleting_records_times_out():
    served = Served()
    served.append("p", b"a", acks=1)
    for follower in (2, 3):
        served.fetch(f"f{follower}", 1, follower=follower)
    served.delete("d", -1)
    served.time(1_000)
    assert served.of("d").error is ErrorCode.REQUEST_TIMED_OUT


def test_records_that_cannot_be_deleted_are_answered_at_once():
    served = Served(topic(), partition(leader=1, isr=(1,)))
    assert served.delete("past", 5).error is ErrorCode.OFFSET_OUT_OF_RANGE
    assert served.delete("internal", 0, to=tp(0, "__consumer_offsets")).error is ErrorCode.INVALID_TOPIC_EXCEPTION
    compacted = Served(topic(), partition(leader=1, isr=(1,)), cleanup_policy=("compact",))
    assert compacted.delete("compacted", 0).error is ErrorCode.POLICY_VIOLATION
    for policy in ((), ("compact", "delete")):
        kept = Served(topic(), partition(leader=1, replicas=(1,)), cleanup_policy=policy)
        assert kept.delete("not compacted only", 0).low_watermark == 0


def test_epochs_and_offsets_are_looked_up_a_partition_at_a_time():
    served = Served(topic(), partition(0, leader=1, isr=(1,), epoch=3), partition(1, leader=2))
    served.append("p", b"a", b"b", acks=1)
    assert served.server.offsets_for_leader_epoch({FOO0: (3, 3), tp(1): (None, 0)}) == {
        FOO0: EpochEndOffset(end=OffsetAndEpoch(2, 3)),
        tp(1): EpochEndOffset(error=ErrorCode.NOT_LEADER_OR_FOLLOWER),
    }
    assert served.server.offsets_for_leader_epoch({FOO0: (2, 3)})[FOO0].error is ErrorCode.FENCED_LEADER_EPOCH
    assert served.server.list_offsets({FOO0: LATEST_TIMESTAMP, tp(9): 0}) == {
        FOO0: ListedOffset(found=TimestampAndOffset(-1, 2, 3)),
        tp(9): ListedOffset(error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    }


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_an_append_whose_callback_raises_still_completes_waiting_fetches(acks):
    served = Served()
    assert served.fetch("waits", 0, follower=2, max_wait_ms=1_000) is None

    def raising(_answer) -> None:
        raise RuntimeError("a client's callback")

    with suppress(RuntimeError):
        served.server.append_records({FOO0: batch(b"x")}, required_acks=acks, timeout_ms=1_000, on_answer=raising)
    assert served.of("waits").size_in_bytes > 0


def test_a_callback_that_raises_after_a_wait_has_its_fault_reported():
    served = Served()
    served.append("p", b"a", acks=1)
    for follower in (2, 3):
        served.fetch(f"f{follower}", 1, follower=follower)
    faulty: list[str] = []

    def raising(_answer) -> None:
        raise RuntimeError("an answer that can't be encoded")

    def options(name: str) -> dict[str, Any]:
        return {"on_answer": raising, "on_fault": lambda: faulty.append(name)}

    served.server.append_records({FOO0: batch(b"x")}, required_acks=-1, timeout_ms=1_000, **options("produce"))
    served.server.fetch_messages(
        FetchParams(max_wait_ms=1_000), {FOO0: FetchPartition(fetch_offset=1)}, **options("fetch")
    )
    served.server.delete_records({FOO0: 1}, timeout_ms=1_000, **options("delete"))
    assert faulty == []
    with without_logs():
        served.time(1_000)
    assert sorted(faulty) == ["delete", "fetch", "produce"]


def test_records_that_are_at_fault_are_named():
    served = Served(cleanup_policy=("compact",))
    answer = served.append("produce", b"a", b"b")
    assert (answer.error, answer.base_offset, answer.log_start_offset) == (ErrorCode.INVALID_RECORD, -1, 0)
    assert [error.place for error in answer.records] == [0, 1]
    assert "without a key" in answer.message


def test_the_answer_to_a_batch_that_is_too_large_has_no_log_start():
    answer = Served(max_message_bytes=70).append("produce", b"a" * 100)
    assert (answer.error, answer.log_start_offset) == (ErrorCode.MESSAGE_TOO_LARGE, -1)


def test_a_client_may_ask_any_replica_for_its_offsets():
    served = Served(topic(), partition(leader=2, epoch=3))
    listed = {
        leader: served.server.list_offsets({FOO0: LATEST_TIMESTAMP}, require_leader=leader) for leader in (True, False)
    }
    assert listed[True][FOO0].error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert listed[False][FOO0].found is not None
