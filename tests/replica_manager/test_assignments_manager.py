"""Where replicas lie, told to the controller."""

from __future__ import annotations

from kraftlake.delta import TopicIdPartition
from kraftlake.replica_manager.assignments_manager import (
    MOST_IN_A_REQUEST,
    AssignmentsManager,
    AssignReplicasResponse,
)
from kraftlake.replica_manager.errors import ErrorCode
from tests.replica_manager.brokers import D1, D2, FOO, tp


def name(number: int) -> TopicIdPartition:
    return TopicIdPartition(FOO, tp(number))


class Channel:
    def __init__(self) -> None:
        self.requests, self.scheduled, self.failed = [], [], []
        self.manager = AssignmentsManager(1, lambda: 100, self, self.schedule, self.failed.append)

    def assign_replicas_to_dirs(self, request, on_answer):
        self.requests.append((request, on_answer))

    def schedule(self, delay_ms, action):
        self.scheduled.append((delay_ms, action))

    def assign(self, number: int, directory=D1) -> None:
        self.manager.handle_assignment(name(number), directory, "test")

    def answer(self, error=ErrorCode.NONE, **errors) -> None:
        named = {name(int(key[1:])): code for key, code in errors.items()}
        self.requests[-1][1](AssignReplicasResponse(error=error, errors=named))

    def sent(self):
        return {key.topic_partition.partition: where for key, where in self.requests[-1][0].directories.items()}


def test_what_gathers_while_a_request_is_on_its_way_goes_with_the_next():
    channel = Channel()
    for number in range(3):
        channel.assign(number)
    assert channel.sent() == {0: D1}
    channel.answer()
    assert channel.sent() == {1: D1, 2: D1}
    channel.answer()
    assert (len(channel.requests), channel.manager.waiting) == (2, 0)


def test_the_last_directory_of_a_replica_counts_even_if_an_earlier_one_is_on_its_way():
    channel = Channel()
    channel.assign(0, D1)
    channel.assign(0, D2)
    channel.answer()
    assert channel.sent() == {0: D2}


def test_what_fails_is_sent_again_after_a_while_that_doubles():
    channel = Channel()
    channel.assign(0)
    for _ in range(9):
        channel.answer(ErrorCode.NETWORK_EXCEPTION)
        channel.scheduled[-1][1]()
    assert [delay for delay, _ in channel.scheduled] == [100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]
    channel.answer()
    assert channel.manager.waiting == 0


def test_only_replicas_with_an_error_are_sent_again_and_new_ones_wait_with_them():
    channel = Channel()
    channel.assign(9)
    channel.assign(0)
    channel.assign(1)
    channel.answer()
    channel.answer(p1=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    channel.assign(2)
    assert len(channel.requests) == 2
    channel.scheduled[-1][1]()
    assert channel.sent() == {1: D1, 2: D1}


def test_a_request_has_a_limit():
    channel = Channel()
    for number in range(MOST_IN_A_REQUEST + 2):
        channel.assign(number)
    channel.answer()
    assert len(channel.sent()) == MOST_IN_A_REQUEST
    channel.answer()
    assert len(channel.sent()) == 1


def test_failed_directories_are_for_the_next_heartbeat():
    channel = Channel()
    channel.manager.handle_failure(D2)
    assert channel.failed == [D2]


def test_who_waits_is_told_once_the_controller_has_noted_it_even_if_another_directory_was_named_meanwhile():
    channel, accepted = Channel(), []
    channel.manager.handle_assignment(name(0), D1, "test", lambda: accepted.append(D1))
    channel.answer(p0=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert accepted == []
    channel.scheduled[-1][1]()
    channel.manager.handle_assignment(name(0), D2, "test", lambda: accepted.append(D2))
    channel.answer()
    assert accepted == [D1]
    assert channel.sent() == {0: D2}
    channel.answer()
    channel.manager.send()
    assert (accepted, channel.manager.waiting) == ([D1, D2], 0)
