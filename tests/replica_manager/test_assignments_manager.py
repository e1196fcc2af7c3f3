"""The log directories of replicas, reported to the controller."""

from __future__ import annotations

from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.delta.topics.local_replica_changes import TopicIdPartition
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.provenance import MetadataProvenance
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.records import metadata_records as r
from kraftlake.replica_manager.assignments_manager import (
    MOST_IN_A_REQUEST,
    AssignmentsManager,
    AssignReplicasResponse,
)
from tests.replica_manager.brokers import D1, D2, FOO, tp


def name(number: int) -> TopicIdPartition:
    return TopicIdPartition(FOO, tp(number))


def image_of(*changes) -> MetadataImage:
    """`foo` with partitions of broker 1, and what has changed since."""
    delta = MetadataDelta(MetadataImage.EMPTY)
    delta.replay(r.TopicRecord(name="foo", topic_id=FOO))
    for number in range(2 * MOST_IN_A_REQUEST):
        partition = r.PartitionRecord(
            partition_id=number, topic_id=FOO, replicas=(1, 2), isr=(1, 2), leader=1, leader_epoch=0, partition_epoch=0
        )
        delta.replay(partition)
    for record in changes:
        delta.replay(record)
    return delta.apply(MetadataProvenance(offset=1, epoch=1))


FULL = image_of()


class Channel:
    """The controller; `wait` runs the scheduled actions."""

    def __init__(self) -> None:
        self.requests, self.scheduled, self.failed = [], [], []
        self.image = FULL
        self.manager = AssignmentsManager(
            1, lambda: 100, lambda: self.image, self, schedule=self.schedule, on_failure=self.failed.append
        )

    def assign_replicas_to_dirs(self, request, on_answer):
        self.requests.append((request, on_answer))

    def schedule(self, delay_ms, action):
        self.scheduled.append((delay_ms, action))

    def wait(self) -> list[int]:
        scheduled, self.scheduled = self.scheduled, []
        for _, action in scheduled:
            action()
        return [delay for delay, _ in scheduled]

    def assign(self, number: int, directory=D1) -> None:
        self.manager.handle_assignment(name(number), directory, "test")

    def answer(self, error=ErrorCode.NONE, **errors) -> None:
        request, on_answer = self.requests[-1]
        named = {name(int(key[1:])): code for key, code in errors.items()}
        results = {} if error else dict.fromkeys(request.directories, ErrorCode.NONE) | named
        on_answer(AssignReplicasResponse(error=error, results=results))

    def sent(self):
        return {key.topic_partition.partition: where for key, where in self.requests[-1][0].directories.items()}


def test_assignments_within_the_first_back_off_share_a_request():
    channel = Channel()
    channel.assign(0)
    channel.assign(1)
    assert channel.wait() == [100]
    assert channel.sent() == {0: D1, 1: D1}
    channel.assign(2)
    assert (channel.wait(), len(channel.requests)) == ([100], 1)  # one request is on its way at most
    channel.answer()
    assert channel.wait() == [100]
    assert channel.sent() == {2: D1}
    channel.answer()
    assert (channel.wait(), len(channel.requests), channel.manager.waiting) == ([], 2, 0)


def test_the_last_directory_of_a_replica_counts_even_if_an_earlier_one_is_in_flight():
    channel = Channel()
    channel.assign(0, D1)
    channel.wait()
    channel.assign(0, D2)
    assert channel.manager.waiting == 2
    channel.answer()
    channel.wait()
    assert channel.sent() == {0: D2}


def test_a_failed_request_is_retried_after_a_delay_that_doubles():
    channel = Channel()
    channel.assign(0)
    delays = channel.wait()
    for _ in range(8):
        channel.answer(ErrorCode.NETWORK_EXCEPTION)
        delays += channel.wait()
    assert delays == [100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]
    channel.answer()
    assert channel.manager.waiting == 0
    channel.assign(1)
    assert channel.wait() == [100]


def test_an_error_of_single_replicas_neither_delays_the_others_nor_counts_as_a_failure():
    channel = Channel()
    for _ in range(5):
        channel.assign(1)
        channel.wait()
        channel.answer(p1=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    channel.assign(2)
    assert channel.wait() == [100]
    assert channel.sent() == {1: D1, 2: D1}


def test_replicas_with_errors_are_sent_after_the_others():
    channel = Channel()
    refused = {f"p{number}": ErrorCode.NOT_LEADER_OR_FOLLOWER for number in range(MOST_IN_A_REQUEST)}
    for number in range(MOST_IN_A_REQUEST):
        channel.assign(number)
    channel.wait()
    channel.assign(MOST_IN_A_REQUEST)
    channel.answer(**refused)
    channel.wait()
    assert MOST_IN_A_REQUEST in channel.sent()


def test_an_assignment_of_a_deleted_topic_is_dropped_and_blocks_no_other():
    channel = Channel()
    channel.assign(0)
    channel.wait()
    channel.image = image_of(
        r.RemoveTopicRecord(topic_id=FOO), r.TopicRecord(name="bar", topic_id=D2),
        r.PartitionRecord(partition_id=0, topic_id=D2, replicas=(1,), isr=(1,), leader=1, leader_epoch=0),
    )  # fmt: skip
    channel.answer(p0=ErrorCode.UNKNOWN_TOPIC_ID)
    bar = TopicIdPartition(D2, tp(0)._replace(topic="bar"))
    channel.manager.handle_assignment(bar, D1, "test")
    channel.wait()
    assert list(channel.requests[-1][0].directories) == [bar]
    channel.answer()
    assert (channel.wait(), channel.manager.waiting) == ([], 0)


def test_an_assignment_of_a_replica_that_moved_to_another_broker_is_not_sent():
    channel = Channel()
    channel.image = image_of(r.PartitionChangeRecord(partition_id=3, topic_id=FOO, replicas=(2,), isr=(2,), leader=2))
    channel.assign(3)
    channel.wait()
    assert (channel.requests, channel.manager.waiting) == ([], 0)


def test_a_replica_without_a_result_is_sent_again():
    channel, accepted = Channel(), []
    channel.manager.handle_assignment(name(0), D1, "test", lambda: accepted.append(D1))
    channel.wait()
    channel.requests[-1][1](AssignReplicasResponse())
    assert accepted == []
    channel.wait()
    channel.answer()
    assert accepted == [D1]


def test_a_request_has_a_limit():
    channel = Channel()
    for number in range(MOST_IN_A_REQUEST + 2):
        channel.assign(number)
    channel.wait()
    assert len(channel.sent()) == MOST_IN_A_REQUEST
    channel.answer()
    channel.wait()
    assert len(channel.sent()) == 2


def test_failed_directories_go_to_the_next_heartbeat():
    channel = Channel()
    channel.manager.handle_failure(D2)
    assert channel.failed == [D2]


def test_on_accepted_is_called_even_if_another_directory_was_reported_meanwhile():
    channel, accepted = Channel(), []
    channel.manager.handle_assignment(name(0), D1, "test", lambda: accepted.append(D1))
    channel.wait()
    channel.answer(p0=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert accepted == []
    channel.wait()
    channel.manager.handle_assignment(name(0), D2, "test", lambda: accepted.append(D2))
    channel.answer()
    assert accepted == [D1]
    channel.wait()
    assert channel.sent() == {0: D2}
    channel.answer()
    assert (accepted, channel.wait(), channel.manager.waiting) == ([D1, D2], [], 0)


def test_an_exception_of_a_callback_affects_no_other_callback_and_no_request():
    channel, accepted = Channel(), []
    channel.manager.handle_assignment(name(0), D1, "test", lambda: 1 / 0)
    channel.manager.handle_assignment(name(1), D1, "test", lambda: accepted.append(1))
    channel.wait()
    channel.assign(2)
    channel.answer()
    assert accepted == [1]
    channel.wait()
    assert channel.sent() == {2: D1}


def test_a_channel_that_raises_is_retried_and_a_second_answer_is_ignored():
    channel, accepted = Channel(), []
    send = channel.assign_replicas_to_dirs
    late = []

    def broken(request, on_answer):
        late.append(on_answer)
        raise OSError("no route")

    channel.assign_replicas_to_dirs = broken
    channel.manager.handle_assignment(name(0), D1, "test", lambda: accepted.append(D1))
    channel.wait()
    channel.assign_replicas_to_dirs = send
    assert channel.wait() == [200]
    late[0](AssignReplicasResponse(results={name(0): ErrorCode.NONE}))
    assert accepted == []
    channel.answer()
    assert accepted == [D1]
