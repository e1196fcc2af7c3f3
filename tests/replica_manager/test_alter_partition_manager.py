"""Proposals to the controller."""

from __future__ import annotations

from kraftlake.delta.topics.local_replica_changes import TopicIdPartition
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.replica_manager.alter_partition_manager import (
    RETRY_AFTER_MS,
    AlterPartitionResponse,
    BatchingAlterPartitionManager,
)
from kraftlake.replica_manager.controller_channel import LeaderAndIsr
from tests.replica_manager.brokers import FOO, tp


def proposal(epoch: int = 0) -> LeaderAndIsr:
    return LeaderAndIsr(leader=1, leader_epoch=epoch, isr=(), partition_epoch=0)


def name(number: int) -> TopicIdPartition:
    return TopicIdPartition(FOO, tp(number))


class Channel:
    def __init__(self) -> None:
        self.requests = []
        self.scheduled = []
        self.epoch = 100
        self.manager = BatchingAlterPartitionManager(1, lambda: self.epoch, self, self.schedule)
        self.answers: dict[int, list] = {}

    def alter_partition(self, request, on_answer):
        self.requests.append((request, on_answer))

    def schedule(self, delay_ms, action):
        self.scheduled.append((delay_ms, action))

    def propose(self, number: int) -> None:
        self.manager.submit(name(number), proposal(), self.answers.setdefault(number, []).append)

    def answer(self, error=ErrorCode.NONE, **partitions) -> None:
        self.requests[-1][1](
            AlterPartitionResponse(error=error, partitions={name(int(k[1:])): v for k, v in partitions.items()})
        )

    def sent(self) -> list[int]:
        return [key.topic_partition.partition for key in self.requests[-1][0].partitions]


def test_one_request_is_in_flight_and_later_proposals_go_with_the_next():
    channel = Channel()
    channel.propose(0)
    channel.propose(1)
    channel.propose(2)
    assert (len(channel.requests), channel.sent()) == (1, [0])
    channel.answer(p0=proposal(7))
    assert channel.answers[0] == [proposal(7)]
    assert (len(channel.requests), channel.sent()) == (2, [1, 2])


def test_a_partition_has_at_most_one_proposal():
    channel = Channel()
    channel.propose(0)
    channel.propose(0)
    assert channel.answers[0] == [ErrorCode.OPERATION_NOT_ATTEMPTED]
    channel.answer(p0=proposal())
    channel.propose(0)
    assert len(channel.requests) == 2


def test_each_partition_gets_its_own_answer_and_one_without_is_sent_again():
    channel = Channel()
    channel.propose(9)
    channel.propose(0)
    channel.propose(1)
    channel.answer(p9=proposal())
    channel.answer(p0=ErrorCode.INELIGIBLE_REPLICA)
    assert channel.answers[0] == [ErrorCode.INELIGIBLE_REPLICA]
    assert channel.answers[1] == []
    assert channel.sent() == [1]


def test_a_failed_request_is_retried_with_the_newest_broker_epoch():
    channel = Channel()
    channel.propose(0)
    channel.answer(ErrorCode.STALE_BROKER_EPOCH)
    assert channel.answers[0] == []
    ((delay, again),) = channel.scheduled
    assert delay == RETRY_AFTER_MS
    channel.epoch = 200
    again()
    assert (channel.requests[-1][0].broker_epoch, channel.sent()) == (200, [0])


def test_a_proposal_made_by_a_callback_goes_with_the_next_request():
    channel = Channel()
    channel.manager.submit(name(0), proposal(), lambda _: channel.propose(0))
    channel.answer(p0=proposal())
    assert len(channel.requests) == 2
    channel.answer(p0=proposal(3))
    assert channel.answers[0] == [proposal(3)]


def test_an_exception_of_a_callback_affects_no_other_answer_and_no_later_proposal():
    channel = Channel()
    channel.propose(9)
    channel.manager.submit(name(0), proposal(), lambda _: 1 / 0)
    channel.propose(1)
    channel.answer(p9=proposal())
    channel.answer(p0=proposal(), p1=proposal(2))
    assert channel.answers[1] == [proposal(2)]
    channel.propose(2)
    assert (len(channel.requests), channel.sent()) == (3, [2])


def test_an_exception_in_a_refused_proposals_callback_is_not_raised_by_submit():
    channel = Channel()
    channel.propose(0)
    channel.manager.submit(name(0), proposal(), lambda _: 1 / 0)
    channel.answer(p0=proposal())
    assert channel.answers[0] == [proposal()]


def test_a_request_that_cannot_be_sent_is_retried():
    channel = Channel()
    send, channel.alter_partition = channel.alter_partition, lambda request, on_answer: 1 / 0
    channel.propose(0)
    channel.alter_partition = send
    ((delay, again),) = channel.scheduled
    assert delay == RETRY_AFTER_MS
    again()
    channel.answer(p0=proposal(3))
    assert channel.answers[0] == [proposal(3)]


def test_a_second_answer_to_a_request_is_ignored():
    channel = Channel()
    channel.propose(0)
    channel.answer(p0=proposal(1))
    channel.propose(0)
    channel.requests[0][1](AlterPartitionResponse(partitions={name(0): proposal(2)}))
    channel.answer(p0=proposal(3))
    assert channel.answers[0] == [proposal(1), proposal(3)]
