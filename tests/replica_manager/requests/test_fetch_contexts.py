"""Requests in fetch sessions: what they read, and how the response is reduced."""

from __future__ import annotations

from itertools import count

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.records.offset_and_epoch import OffsetAndEpoch
from kraftlake.replica_manager.fetch.leader_end_point import FetchedPartition, FetchRequest
from kraftlake.replica_manager.partition.leader import FetchParams, FetchPartition
from kraftlake.replica_manager.requests.fetch_contexts import FetchManager
from kraftlake.replica_manager.requests.fetch_session_cache import FetchSessionCache
from kraftlake.runtime.clock import ManualClock
from tests.histories import uuid_of

A, B = TopicPartition("a", 0), TopicPartition("b", 0)
STILL = FetchedPartition(high_watermark=3, log_start_offset=0)
"""An answer without data, which is no news when it is repeated."""


def request(id_: int = 0, epoch: int = 0, forgotten=(), replica_id: int = 2, **offsets: int) -> FetchRequest:
    partitions = {TopicPartition(topic, 0): FetchPartition(fetch_offset=offset) for topic, offset in offsets.items()}
    return FetchRequest(
        params=FetchParams(replica_id=replica_id), partitions=partitions, forgotten=tuple(forgotten),
        session_id=id_, session_epoch=epoch,
    )  # fmt: skip


def manager(slots: int = 10) -> FetchManager:
    return FetchManager(FetchSessionCache(ManualClock(), slots, count(7).__next__))


def begun(sessions: FetchManager) -> int:
    """A session of both partitions, whose offsets the follower knows."""
    response = sessions.new_context(request(a=1, b=2)).respond({A: STILL, B: STILL})
    assert response.partitions == {A: STILL, B: STILL}
    return response.session_id


def test_a_full_request_starts_a_session():
    sessions = manager()
    assert begun(sessions) == 7
    assert sessions.cache.partition_count == 2


def test_a_session_remembers_its_partitions_and_answers_with_news():
    sessions = manager()
    id_ = begun(sessions)
    context = sessions.new_context(request(id_, 1, b=5))
    assert {name: fetch.fetch_offset for name, fetch in context.partitions.items()} == {A: 1, B: 5}
    moved = attrs.evolve(STILL, high_watermark=4)
    response = context.respond({A: STILL, B: moved})
    assert (response.session_id, response.error, response.partitions) == (id_, ErrorCode.NONE, {B: moved})
    assert sessions.new_context(request(id_, 2)).respond({A: STILL, B: moved}).partitions == {}


@pytest.mark.parametrize(
    "news",
    [
        FetchedPartition(data=b"x", high_watermark=3, log_start_offset=0),
        FetchedPartition(high_watermark=4, log_start_offset=0),
        FetchedPartition(high_watermark=3, log_start_offset=1),
        FetchedPartition(error=ErrorCode.UNKNOWN_LEADER_EPOCH),
        FetchedPartition(high_watermark=3, log_start_offset=0, diverging_epoch=OffsetAndEpoch(1, 1)),
    ],
    ids=["data", "high watermark", "log start", "error", "diverging epoch"],
)
def test_news_is_data_a_moved_watermark_or_start_an_error_or_a_diverging_epoch(news):
    sessions = manager()
    context = sessions.new_context(request(begun(sessions), 1))
    assert context.respond({A: STILL, B: news}).partitions == {B: news}


def test_after_an_error_the_high_watermark_is_sent_again():
    sessions = manager()
    id_ = begun(sessions)
    sessions.new_context(request(id_, 1)).respond({A: FetchedPartition(error=ErrorCode.NOT_LEADER_OR_FOLLOWER)})
    assert sessions.new_context(request(id_, 2)).respond({A: STILL}).partitions == {A: STILL}


ANSWERS = st.builds(
    FetchedPartition, error=st.sampled_from([ErrorCode.NONE, ErrorCode.NONE, ErrorCode.FENCED_LEADER_EPOCH]),
    high_watermark=st.integers(0, 2), log_start_offset=st.integers(0, 1), data=st.sampled_from([b"", b"", b"x"]),
)  # fmt: skip
ASKED = st.fixed_dictionaries(
    {}, optional={name: st.integers(0, 3).map(lambda epoch: FetchPartition(fetch_offset=1, current_leader_epoch=epoch))
                  for name in (A, B)},
)  # fmt: skip


@given(st.lists(st.tuples(ASKED, st.sampled_from([(), (A,)]), ANSWERS, ANSWERS), max_size=8))
def test_a_reader_knows_the_newest_offsets_of_each_partition_through_leader_epochs_and_errors(steps):
    sessions = manager()
    id_ = begun(sessions)
    known = {A: (3, 0), B: (3, 0)}
    for epoch, (asked, forgotten, a, b) in enumerate(steps, 1):
        request_of = attrs.evolve(request(id_, epoch, forgotten=forgotten), partitions=asked)
        context = sessions.new_context(request_of)
        answers = {name: answer for name, answer in ((A, a), (B, b)) if name in context.partitions}
        changed = context.respond(answers).partitions
        known |= {name: (one.high_watermark, one.log_start_offset) for name, one in changed.items()}
        for name, answer in answers.items():
            assert known[name] == (answer.high_watermark, answer.log_start_offset)
            assert name in changed or (answer.error is ErrorCode.NONE and not answer.data)


def test_a_partition_with_data_is_read_last_the_next_time():
    sessions = manager()
    id_ = begun(sessions)
    sessions.new_context(request(id_, 1)).respond({A: attrs.evolve(STILL, data=b"x"), B: STILL})
    assert list(sessions.new_context(request(id_, 2)).partitions) == [B, A]


def test_a_forgotten_partition_is_no_longer_read():
    sessions = manager()
    id_ = begun(sessions)
    assert list(sessions.new_context(request(id_, 1, forgotten=[A])).partitions) == [B]


def test_a_partition_that_is_named_and_forgotten_at_once_is_forgotten():
    sessions, ids = manager(), {A: uuid_of(7), B: uuid_of(8)}
    named = request(a=0, b=0)
    wanted = {name: attrs.evolve(one, topic_id=ids[name]) for name, one in named.partitions.items()}
    full = attrs.evolve(named, partitions=wanted)
    session = sessions.new_context(full).respond(dict.fromkeys(wanted, STILL)).session_id
    gone = frozenset({(ids[A], A.partition)})
    again = attrs.evolve(full, session_id=session, session_epoch=1, forgotten_ids=gone)
    assert list(sessions.new_context(again).partitions) == [B]


def test_a_session_that_forgets_everything_ends():
    sessions = manager()
    id_ = begun(sessions)
    assert sessions.new_context(request(id_, 1, forgotten=[A, B])).respond({}).session_id == 0
    assert len(sessions.cache) == 0


def test_a_recreated_topic_is_a_new_partition_of_the_session():
    sessions = manager()
    id_ = begun(sessions)
    anew = FetchPartition(topic_id=uuid_of(5), fetch_offset=1)
    context = sessions.new_context(attrs.evolve(request(id_, 1), partitions={A: anew}))
    assert context.partitions[A] == anew
    assert context.respond({A: STILL}).partitions == {A: STILL}


def test_an_unknown_session_and_a_wrong_epoch_are_errors_that_read_nothing():
    sessions = manager()
    id_ = begun(sessions)
    for wrong, error in [
        (request(99, 1), ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        (request(id_, 2), ErrorCode.INVALID_FETCH_SESSION_EPOCH),
    ]:
        context = sessions.new_context(wrong)
        assert context.partitions == {}
        response = context.respond({})
        assert (response.error, response.session_id, response.partitions) == (error, 0, {})
    assert sessions.new_context(request(id_, 1)).respond({}).error is ErrorCode.NONE


def test_a_request_overtaken_by_a_later_one_is_refused():
    sessions = manager()
    id_ = begun(sessions)
    slow = sessions.new_context(request(id_, 1))
    sessions.new_context(request(id_, 2))
    response = slow.respond({A: attrs.evolve(STILL, data=b"x")})
    assert (response.error, response.session_id) == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, id_)


def test_a_full_request_ends_its_session_and_starts_another():
    sessions = manager()
    id_ = begun(sessions)
    assert sessions.new_context(request(id_, 0, a=1)).respond({A: STILL}).session_id == id_ + 1
    assert sessions.cache.get(id_) is None


def test_the_final_request_ends_the_session_and_begins_none():
    sessions = manager()
    response = sessions.new_context(request(begun(sessions), -1, a=1)).respond({A: STILL})
    assert (response.session_id, response.partitions) == (0, {A: STILL})
    assert len(sessions.cache) == 0


def test_without_room_a_full_request_is_answered_without_a_session():
    sessions = manager(slots=0)
    response = sessions.new_context(request(a=1)).respond({A: STILL})
    assert (response.session_id, response.partitions) == (0, {A: STILL})


def test_followers_sessions_are_privileged_and_consumers_are_not():
    sessions = manager(slots=1)
    consumer = sessions.new_context(request(replica_id=-1, a=1)).respond({A: STILL}).session_id
    follower = sessions.new_context(request(a=1)).respond({A: STILL}).session_id
    assert sessions.cache.get(consumer) is None
    assert sessions.cache.get(follower) is not None
