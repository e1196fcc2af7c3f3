"""A leader over TCP: what a fetcher asks reaches it, answers come back, every fault is a LeaderUnreachableError."""

from __future__ import annotations

import os
import random
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode as KioError
from kio.static.primitive import i32, i64

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.protocol.address import Address
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.protocol.node_connector import NodeConnector
from kraftlake.records.offset_and_epoch import OffsetAndEpoch
from kraftlake.records.uuid import Uuid
from kraftlake.replica_manager.errors import FencedLeaderEpochError, ReplicationError
from kraftlake.replica_manager.fetch.fetch_session import FetchSession
from kraftlake.replica_manager.fetch.fetcher import BrokerEndPoint
from kraftlake.replica_manager.fetch.leader_end_point import (
    EpochEndOffset,
    FetchedPartition,
    FetchRequest,
    LeaderUnreachableError,
)
from kraftlake.replica_manager.fetch.remote_end_point import RemoteLeaderEndPoint
from kraftlake.replica_manager.logs.log_values import FetchIsolation
from kraftlake.replica_manager.partition.leader import FetchParams, FetchPartition
from tests.replica_manager.scripted_node import AT_ONCE, EPOCH_ENDS, FETCH, LIST_OFFSETS, ScriptedNode

EXAMPLES = 400 if os.environ.get("KRAFTLAKE_TESTS") == "long" else 25
FOO, BAR = Uuid(b"foo".ljust(16)), Uuid(b"bar".ljust(16))
FOO0, FOO1, BAR2 = TopicPartition("foo", 0), TopicPartition("foo", 1), TopicPartition("bar", 2)
PARAMS = FetchParams(replica_id=7, replica_epoch=40, max_wait_ms=250, max_bytes=9000, isolation=FetchIsolation.LOG_END)
WANTED = FetchPartition(
    topic_id=FOO, fetch_offset=11, log_start_offset=3, max_bytes=800, current_leader_epoch=5, last_fetched_epoch=4
)


def scripted(fetch_version: int = 17) -> ScriptedNode:
    return ScriptedNode({FETCH: fetch_version, LIST_OFFSETS: 9, EPOCH_ENDS: 4})


@contextmanager
def leading(**options: Any) -> Iterator[tuple[ScriptedNode, RemoteLeaderEndPoint]]:
    leader = scripted(**options)
    with leader.serving() as address, closing(end_point_to(address)) as end_point:
        yield leader, end_point


def end_point_to(address: Address, *, timeout: float = 30.0) -> RemoteLeaderEndPoint:
    end_point = BrokerEndPoint(1, address.host, address.port)
    return RemoteLeaderEndPoint(end_point, NodeConnector(timeout=timeout), replica_id=7, timeout_s=timeout)


@pytest.fixture
def pair() -> Iterator[tuple[ScriptedNode, RemoteLeaderEndPoint]]:
    with leading() as pair:
        yield pair


def fetch_response(m: Any, *partitions: tuple[Uuid, Any], error: KioError = KioError.none, session_id: int = 0) -> Any:
    return m.FetchResponse(
        throttle_time=AT_ONCE, error_code=error, session_id=i32(session_id),
        responses=tuple(
            m.FetchableTopicResponse(topic_id=uuid.UUID(bytes=bytes(id_)), partitions=(one,)) for id_, one in partitions
        ),
    )  # fmt: skip


def partition_of(m: Any, index: int, error: KioError = KioError.none, **fields: Any) -> Any:
    known = {"high_watermark": i64(-1), "aborted_transactions": None, "records": None} | fields
    return m.PartitionData(partition_index=i32(index), error_code=error, **known)


def no_news(m: Any, request: Any) -> Any:
    """An answer for each partition of the request, in session 99."""
    named = [(Uuid(topic.topic_id.bytes), int(one.partition)) for topic in request.topics for one in topic.partitions]
    return fetch_response(m, *((id_, partition_of(m, index)) for id_, index in named), session_id=99)


def ids_of(topics: Any) -> list[tuple[bytes, list[int]]]:
    return [
        (topic.topic_id.bytes, [int(getattr(one, "partition", one)) for one in topic.partitions]) for topic in topics
    ]


@pytest.mark.parametrize("version", range(13, 19))
def test_a_fetch_carries_everything_that_a_leader_needs_to_know_of_a_follower(version: int) -> None:
    with leading(fetch_version=version) as (leader, end_point):
        leader.answers[FETCH] = no_news
        partitions = {
            FOO0: WANTED,
            BAR2: FetchPartition(topic_id=BAR, fetch_offset=0),
            FOO1: FetchPartition(topic_id=FOO, fetch_offset=1),
        }
        params = attrs.evolve(PARAMS, rack="east", isolation=FetchIsolation.TXN_COMMITTED)
        response = end_point.fetch(FetchRequest(params=params, partitions=partitions, session_id=6, session_epoch=0))
    assert response.session_id == 99
    assert list(response.partitions) == [FOO0, BAR2, FOO1]
    (sent,) = leader.requests
    replica = sent.replica_state if version >= 15 else sent
    assert int(replica.replica_id) == 7
    assert version < 15 or int(replica.replica_epoch) == 40
    assert (sent.max_wait.total_seconds(), sent.min_bytes, sent.max_bytes, sent.rack_id) == (0.25, 1, 9000, "east")
    assert (sent.isolation_level, sent.session_id, sent.session_epoch) == (1, 6, 0)
    assert ids_of(sent.topics) == [(FOO, [0]), (BAR, [2]), (FOO, [1])], "in the order of the fetcher"
    one = sent.topics[0].partitions[0]
    assert (one.fetch_offset, one.log_start_offset, one.partition_max_bytes) == (11, 3, 800)
    assert (one.current_leader_epoch, one.last_fetched_epoch) == (5, 4)
    other = sent.topics[1].partitions[0]
    assert (other.current_leader_epoch, other.last_fetched_epoch) == (-1, -1), "unknown to the fetcher"


def test_what_the_leader_answers_comes_back_byte_for_byte(pair: tuple[ScriptedNode, RemoteLeaderEndPoint]) -> None:
    leader, end_point = pair
    records = random.Random(1).randbytes(100_000)
    leader.answers[FETCH] = lambda m, request: fetch_response(
        m,
        (FOO, partition_of(m, 0, records=records, high_watermark=i64(20), log_start_offset=i64(2))),
        (FOO, partition_of(m, 1, diverging_epoch=m.EpochEndOffset(epoch=i32(3), end_offset=i64(10)))),
        (BAR, partition_of(m, 2, KioError.unknown_leader_epoch)),
        session_id=99,
    )
    partitions = {FOO0: WANTED, FOO1: WANTED, BAR2: attrs.evolve(WANTED, topic_id=BAR)}
    response = end_point.fetch(FetchRequest(params=PARAMS, partitions=partitions))
    assert (response.error, response.session_id) == (ErrorCode.NONE, 99)
    assert response.partitions == {
        FOO0: FetchedPartition(data=records, high_watermark=20, log_start_offset=2),
        FOO1: FetchedPartition(diverging_epoch=OffsetAndEpoch(10, 3)),
        BAR2: FetchedPartition(error=ErrorCode.UNKNOWN_LEADER_EPOCH),
    }


def test_an_error_of_the_whole_answer_has_no_partitions(pair: tuple[ScriptedNode, RemoteLeaderEndPoint]) -> None:
    leader, end_point = pair
    request = FetchRequest(params=PARAMS, partitions={FOO0: WANTED}, session_id=5, session_epoch=3)
    for error in (KioError.fetch_session_id_not_found, KioError.invalid_fetch_session_epoch):
        leader.answers[FETCH] = lambda m, _, error=error: fetch_response(m, error=error)
        response = end_point.fetch(request)
        assert (response.error.name, response.partitions) == (error.name.upper(), {})
    leader.answers[FETCH] = lambda m, _: fetch_response(m, error=KioError.group_max_size_reached)
    assert end_point.fetch(request).error == ErrorCode.UNKNOWN_SERVER_ERROR, "an error that no leader answers"


def test_partitions_that_leave_a_session_are_named_by_the_ids_that_they_had_in_it(
    pair: tuple[ScriptedNode, RemoteLeaderEndPoint],
) -> None:
    leader, end_point = pair
    leader.answers[FETCH] = no_news
    session = FetchSession()

    def fetch(wanted: dict[TopicPartition, FetchPartition]) -> Any:
        changed, forgotten = session.build(wanted)
        request = FetchRequest(
            params=PARAMS, partitions=changed, forgotten=forgotten, session_id=session.session_id,
            session_epoch=session.epoch,
        )  # fmt: skip
        assert session.handle_response(end_point.fetch(request))
        sent = leader.requests[-1]
        return ids_of(sent.topics), ids_of(sent.forgotten_topics_data), (sent.session_id, sent.session_epoch)

    foo, bar = WANTED, attrs.evolve(WANTED, topic_id=BAR)
    assert fetch({FOO0: foo, FOO1: foo, BAR2: bar}) == ([(FOO, [0, 1]), (BAR, [2])], [], (0, 0))
    assert fetch({FOO0: foo, FOO1: foo, BAR2: bar}) == ([], [], (99, 1))
    assert fetch({FOO0: foo}) == ([], [(FOO, [1]), (BAR, [2])], (99, 2))
    # the topic was deleted, and another one of its name created
    anew = attrs.evolve(WANTED, topic_id=BAR)
    assert fetch({FOO0: anew}) == ([(BAR, [0])], [(FOO, [0])], (99, 3))
    assert fetch({}) == ([], [(BAR, [0])], (99, 4))
    session.handle_error()
    assert fetch({FOO1: foo}) == ([(FOO, [1])], [], (99, 0))


def test_partitions_that_were_not_asked_for_end_the_connection(pair: tuple[ScriptedNode, RemoteLeaderEndPoint]) -> None:
    leader, end_point = pair
    leader.answers[FETCH] = lambda m, _: fetch_response(m, (BAR, partition_of(m, 0)))
    with pytest.raises(LeaderUnreachableError, match=r"^Leader 1: 127.* answered for a partition that was not asked"):
        end_point.fetch(FetchRequest(params=PARAMS, partitions={FOO0: WANTED}))
    leader.answers[FETCH] = no_news
    end_point.fetch(FetchRequest(params=PARAMS, partitions={FOO0: WANTED}))
    assert leader.connections == 2


def test_a_lost_connection_fails_one_call_and_the_next_one_connects_again(
    pair: tuple[ScriptedNode, RemoteLeaderEndPoint],
) -> None:
    leader, end_point = pair
    request = FetchRequest(params=PARAMS, partitions={FOO0: WANTED})
    leader.answers[FETCH] = lambda m, _: None
    for connections in (1, 2):
        with pytest.raises(LeaderUnreachableError, match="closed the connection instead of answering"):
            end_point.fetch(request)
        assert leader.connections == connections
    leader.answers[FETCH] = no_news
    for _ in range(2):
        assert end_point.fetch(request).partitions.keys() == {FOO0}
    assert leader.connections == 3


def test_a_leader_that_does_not_listen_or_speaks_too_old_versions_is_unreachable() -> None:
    request = FetchRequest(params=PARAMS, partitions={FOO0: WANTED})
    with leading(fetch_version=12) as (_, end_point), pytest.raises(LeaderUnreachableError, match="versions 0 to 12"):
        end_point.fetch(request)
    with scripted().serving() as address:
        pass
    with closing(end_point_to(address)) as end_point, pytest.raises(LeaderUnreachableError, match="refuses"):
        end_point.fetch(request)


def test_close_ends_the_call_in_flight_and_each_later_one(pair: tuple[ScriptedNode, RemoteLeaderEndPoint]) -> None:
    leader, end_point = pair
    asked, end = threading.Event(), threading.Event()

    def never(module: Any, request: Any) -> None:
        asked.set()
        end.wait()

    leader.answers[FETCH] = never
    faults: list[Exception] = []

    def fetch() -> None:
        try:
            end_point.fetch(FetchRequest(params=PARAMS, partitions={FOO0: WANTED}))
        except LeaderUnreachableError as fault:
            faults.append(fault)

    fetching = threading.Thread(target=fetch)
    fetching.start()
    assert asked.wait(60)
    end_point.close()
    fetching.join(60)
    end.set()
    assert "closed on this side" in str(faults[0])
    calls: list[Callable[[], object]] = [
        lambda: end_point.fetch(FetchRequest(params=PARAMS, partitions={FOO0: WANTED})),
        lambda: end_point.epoch_end_offsets({FOO0: (1, 1)}),
        lambda: end_point.latest_offset(FOO0, 1),
    ]
    for call in calls:
        with pytest.raises(LeaderUnreachableError, match="closed on this side"):
            call()
    end_point.close()
    assert leader.connections == 1


def test_the_ends_of_epochs_come_for_each_partition_that_was_asked_for(
    pair: tuple[ScriptedNode, RemoteLeaderEndPoint],
) -> None:
    leader, end_point = pair

    def answer(m: Any, request: Any) -> Any:
        ends = (
            m.EpochEndOffset(partition=i32(0), error_code=KioError.none, leader_epoch=i32(4), end_offset=i64(70)),
            m.EpochEndOffset(partition=i32(1), error_code=KioError.none),
            m.EpochEndOffset(partition=i32(9), error_code=KioError.none, leader_epoch=i32(4), end_offset=i64(70)),
        )
        topics = (m.OffsetForLeaderTopicResult(topic="foo", partitions=ends),)
        return m.OffsetForLeaderEpochResponse(throttle_time=AT_ONCE, topics=topics)

    leader.answers[EPOCH_ENDS] = answer
    assert end_point.epoch_end_offsets({FOO0: (5, 4), BAR2: (6, 2), FOO1: (5, 3)}) == {
        FOO0: EpochEndOffset(end=OffsetAndEpoch(70, 4)),
        FOO1: EpochEndOffset(end=None),
        BAR2: EpochEndOffset(error=ErrorCode.UNKNOWN_SERVER_ERROR),
    }
    (sent,) = leader.requests
    assert sent.replica_id == 7
    assert {
        (topic.topic, int(one.partition)): (one.current_leader_epoch, one.leader_epoch)
        for topic in sent.topics
        for one in topic.partitions
    } == {("foo", 0): (5, 4), ("foo", 1): (5, 3), ("bar", 2): (6, 2)}


def test_the_ends_of_the_leaders_log_are_asked_for_in_its_epoch(
    pair: tuple[ScriptedNode, RemoteLeaderEndPoint],
) -> None:
    leader, end_point = pair

    def answer(m: Any, request: Any, error: KioError = KioError.none, name: str | None = None) -> Any:
        asked = request.topics[0].partitions[0]
        offset = i64({-2: 12, -1: 80}[int(asked.timestamp)])
        one = m.ListOffsetsPartitionResponse(partition_index=asked.partition_index, error_code=error, offset=offset)
        topic = m.ListOffsetsTopicResponse(name=name or request.topics[0].name, partitions=(one,))
        return m.ListOffsetsResponse(throttle_time=AT_ONCE, topics=(topic,))

    leader.answers[LIST_OFFSETS] = answer
    assert (end_point.earliest_offset(BAR2, 5), end_point.latest_offset(BAR2, 6)) == (12, 80)
    sent = [(one.replica_id, one.topics[0].partitions[0].current_leader_epoch) for one in leader.requests]
    assert sent == [(7, 5), (7, 6)]
    leader.answers[LIST_OFFSETS] = lambda m, request: answer(m, request, KioError.fenced_leader_epoch)
    with pytest.raises(FencedLeaderEpochError):
        end_point.latest_offset(BAR2, 5)
    leader.answers[LIST_OFFSETS] = lambda m, request: answer(m, request, KioError.not_leader_or_follower)
    with pytest.raises(ReplicationError, match="NOT_LEADER_OR_FOLLOWER") as fault:
        end_point.latest_offset(BAR2, 5)
    assert fault.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    leader.answers[LIST_OFFSETS] = lambda m, request: answer(m, request, name="other")
    with pytest.raises(LeaderUnreachableError, match="did not answer for bar-2"):
        end_point.latest_offset(BAR2, 5)


@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), kind=st.sampled_from(["flip", "cut", "noise", "repeat", "empty"]))
def test_broken_frames_are_an_unreachable_leader_and_never_a_wait(seed: int, kind: str) -> None:
    chance = random.Random(seed)

    def spoil(data: bytes) -> bytes:
        if chance.random() < 0.4:
            return data
        if kind == "flip":
            at = chance.randrange(len(data))
            return data[:at] + bytes([data[at] ^ (1 << chance.randrange(8))]) + data[at + 1 :]
        if kind == "cut":
            return data[: chance.randrange(len(data))]
        return {"noise": chance.randbytes(chance.randrange(200)), "repeat": data + data, "empty": b"\0\0\0\0"}[kind]

    leader = scripted()
    leader.answers[FETCH] = lambda m, request: fetch_response(
        m, (FOO, partition_of(m, 0, records=bytes(100), diverging_epoch=m.EpochEndOffset(epoch=i32(3)))), session_id=9
    )
    leader.spoil = spoil
    with leader.serving() as address, closing(end_point_to(address, timeout=0.02)) as end_point:
        for _ in range(4):
            with suppress(LeaderUnreachableError):  # may assert nothing: any other error fails
                response = end_point.fetch(FetchRequest(params=PARAMS, partitions={FOO0: WANTED}))
                assert response.partitions.keys() <= {FOO0}
                assert all(len(one.data) <= 200 for one in response.partitions.values())
