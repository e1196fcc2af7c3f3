"""A follower's fetch on the leader: in a session, delayed, throttled."""

from __future__ import annotations

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.replica_manager.fetch.leader_end_point import FetchRequest, FetchResponse
from kraftlake.replica_manager.logs.log_values import FetchIsolation
from kraftlake.replica_manager.partition.leader import FetchParams, FetchPartition
from kraftlake.replica_manager.replication_quota import ReplicationQuota
from kraftlake.replica_manager.requests.fetch_serving import serve_fetch
from tests.histories import uuid_of
from tests.replica_manager.cluster import Cluster, Node, answer_fetch

FOO0 = TopicPartition("foo", 0)


def cluster() -> Cluster:
    made = Cluster()
    made.create()
    made.publish()
    return made


def request(node: Node, offset: int | None = 0, *, id_: int = 0, epoch: int = 0, **fields) -> FetchRequest:
    partitions = {} if offset is None else {FOO0: FetchPartition(fetch_offset=offset, **fields)}
    params = FetchParams(
        replica_id=node.id, replica_epoch=node.epoch, max_bytes=10_000, isolation=FetchIsolation.LOG_END
    )
    return FetchRequest(params=params, partitions=partitions, session_id=id_, session_epoch=epoch)


def serve(made: Cluster, asked: FetchRequest, **options) -> list[FetchResponse]:
    """Broker 1 serves a fetch; the list receives the answer."""
    answers: list[FetchResponse] = []
    leader = made.nodes[1]
    serve_fetch(leader.server, leader.sessions, asked, answers.append, **options)
    return answers


def test_a_fetch_waits_within_its_session_and_an_append_wakes_it():
    made = cluster()
    follower = made.nodes[2]
    waiting = serve(made, request(follower))
    assert waiting == []
    made.append(1)
    made.nodes[1].delayed.fetch.check_and_complete(FOO0)
    (first,) = waiting
    assert first.partitions[FOO0].data
    asked_on = serve(made, request(follower, 1, id_=first.session_id, epoch=1))
    made.advance(500)
    made.nodes[1].delayed.expire()
    (second,) = asked_on
    assert second.session_id == first.session_id
    assert not any(fetched.data for fetched in second.partitions.values())


def test_an_unknown_session_is_answered_at_once():
    made = cluster()
    (answer,) = serve(made, request(made.nodes[2], None, id_=77, epoch=3))
    assert answer.error is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_follower_with_another_topic_id_gets_an_error():
    made = cluster()
    answer = answer_fetch(made.nodes[1], request(made.nodes[2], topic_id=uuid_of(3)))
    assert answer.partitions[FOO0].error is ErrorCode.INCONSISTENT_TOPIC_ID


def test_bytes_of_throttled_replicas_are_counted_and_wait_while_the_rate_is_exceeded():
    made = cluster()
    node, clock = made.nodes[2], made.nodes[1].clock
    made.stop(made.nodes[3])
    made.stop(node)
    made.start(node)
    made.publish()
    quota = ReplicationQuota(clock)
    quota.throttle("foo", None)
    quota.bytes_per_second = 1
    made.append(1)
    (first,) = serve(made, request(node), throttle=quota)
    assert quota.rate() == len(first.partitions[FOO0].data) > 1
    made.append(1)
    assert 2 not in made.nodes[1].manager.partition_or_raise(FOO0).in_sync.state.isr
    assert serve(made, request(node), throttle=quota) == []


def test_followers_fetch_in_sessions_and_restart_lost_ones():
    made = cluster()
    made.work(3)
    sessions = made.nodes[1].sessions.cache
    assert (len(sessions), sessions.partition_count) == (2, 2)
    (fetcher,) = made.nodes[2].fetchers()
    known = fetcher._session.session_id
    assert sessions.get(known) is not None
    sessions.remove(known)
    made.append(1)
    made.work(3)
    assert fetcher._session.session_id != known
    assert made.nodes[2].log(FOO0).log_end_offset == 1


def test_what_a_reader_may_not_read_stays_in_its_session_and_is_decided_anew_with_each_request():
    made, may = cluster(), {"read": False}
    node = made.nodes[2]
    made.append(1)

    def may_read(topic: str, partitions: int) -> bool:
        return may["read"] and (topic, partitions) == ("foo", 1)

    (refused,) = serve(made, request(node), may_read=may_read)
    assert refused.partitions[FOO0].error is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    may["read"] = True
    (allowed,) = serve(made, request(node, None, id_=refused.session_id, epoch=1), may_read=may_read)
    assert allowed.partitions[FOO0].data
    may["read"] = False
    (again,) = serve(made, request(node, None, id_=refused.session_id, epoch=2), may_read=may_read)
    assert again.partitions[FOO0].error is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert not again.partitions[FOO0].data
