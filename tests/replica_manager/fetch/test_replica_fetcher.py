"""A follower that fetches: one test for each rule."""

from __future__ import annotations

import attrs
import pytest
from structlog.testing import capture_logs

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.records.offset_and_epoch import OffsetAndEpoch
from kraftlake.replica_manager.errors import KafkaStorageError
from kraftlake.replica_manager.fetch.fetch_session import FetchSession
from kraftlake.replica_manager.fetch.fetch_states import ReplicaState
from kraftlake.replica_manager.fetch.fetcher import InitialFetchState
from kraftlake.replica_manager.fetch.leader_end_point import FetchedPartition, FetchResponse
from kraftlake.replica_manager.logs.log_batch import log_batches
from kraftlake.replica_manager.partition.follower import append_records_to_follower
from kraftlake.replica_manager.partition.leader import FetchPartition, append_records_to_leader
from simulator.data_batches import batch, old_message
from tests.replica_manager.cluster import Cluster, EndPoint

FOO0 = TopicPartition("foo", 0)


def cluster(**options) -> Cluster:
    made = Cluster(**options)
    made.create()
    made.publish()
    return made


def only(made: Cluster, id_: int = 2):
    (fetcher,) = made.nodes[id_].fetchers()
    return fetcher


def state(made: Cluster, id_: int = 2):
    return only(made, id_).states()[FOO0]


def log(made: Cluster, id_: int):
    return made.nodes[id_].log(FOO0)


def hand(made: Cluster, fetched: FetchedPartition, id_: int = 2) -> None:
    """Pass an answer to the follower for its next request, without the leader."""
    fetcher = only(made, id_)
    assert fetcher.build_fetch() is not None
    fetcher.handle_response(FetchResponse(partitions={FOO0: fetched}))


def test_followers_copy_the_leaders_log_and_learn_its_high_watermark_one_answer_later():
    made = cluster()
    made.append(1, b"a", b"b")
    made.work(2)
    assert log(made, 2).batches == log(made, 3).batches == log(made, 1).batches
    assert log(made, 1).high_watermark == 2
    made.work()
    assert log(made, 2).high_watermark == 2


def test_the_thread_is_named_by_fetcher_and_leader():
    assert only(cluster()).name == "ReplicaFetcherThread-0-1"


def test_a_log_without_epochs_is_truncated_to_its_high_watermark_first():
    made = Cluster()
    made.create()
    for node in made.nodes.values():
        node.hear()
    assert state(made).state is ReplicaState.TRUNCATING
    only(made).maybe_truncate()
    assert state(made).state is ReplicaState.FETCHING
    assert state(made).last_fetched_epoch is None


def test_a_served_partition_moves_to_the_end():
    made = Cluster()
    made.create(3)
    made.publish()
    made.work()
    made.append(1, number=0)
    made.work()
    assert [name.partition for name in only(made).states()] == [1, 2, 0]


def test_a_partition_at_the_same_leader_epoch_keeps_its_state():
    made = cluster()
    made.append(1)
    made.work(2)
    before = state(made)
    again = InitialFetchState(topic_id=None, leader=only(made).leader, current_leader_epoch=0, offset=0)
    only(made).add_partitions({FOO0: again})
    assert state(made) == before


def test_an_answer_for_another_offset_is_dropped():
    made = cluster()
    made.append(1)
    made.work()
    made.append(1)
    fetcher = only(made)
    response = fetcher._end_point.fetch(fetcher.build_fetch())
    fetcher._states[FOO0] = attrs.evolve(fetcher.states()[FOO0], fetch_offset=0)
    fetcher.handle_response(response)
    assert log(made, 2).log_end_offset == 1
    assert FOO0 in fetcher.states()


def test_an_answer_for_a_delayed_partition_is_dropped():
    made = cluster()
    made.append(1)
    fetcher = only(made)
    fetcher.maybe_truncate()
    request = fetcher.build_fetch()
    response = fetcher._end_point.fetch(request)
    fetcher._delay([FOO0])
    fetcher.handle_response(response)
    assert log(made, 2).log_end_offset == 0


def test_a_fetched_offset_that_is_not_the_end_of_the_log_fails_the_partition():
    made = cluster()
    made.work()
    partition = made.nodes[2].manager.partition_or_raise(FOO0)
    append_records_to_follower(partition, _placed(b"odd"), 0)
    hand(made, FetchedPartition(high_watermark=0))
    assert made.nodes[2].manager.replica_fetchers.failed_partitions == {FOO0}
    assert only(made).partition_count == 0


def test_a_diverging_follower_truncates_to_the_leaders_offset_and_continues():
    made = cluster()
    made.append(1, b"a")
    made.work(3)
    made.append(1, b"lost")
    made.cut = {(2, 1), (3, 1)}
    made.elect(0, 2)
    made.publish()
    made.append(2, b"kept")
    made.work(4)
    made.advance(2000)
    made.work(4)
    assert log(made, 1).batches == log(made, 2).batches == log(made, 3).batches
    assert [(b.base_offset, b.leader_epoch) for b in log(made, 1).batches] == [(0, 0), (1, 1)]


def test_the_high_watermark_and_log_start_of_a_diverging_answer_are_ignored():
    made = cluster()
    made.append(1, b"a", b"b")
    made.work(3)
    hand(made, FetchedPartition(high_watermark=99, log_start_offset=2, diverging_epoch=OffsetAndEpoch(1, 0)))
    assert log(made, 2).log_end_offset == 1
    assert (log(made, 2).log_start_offset, state(made).fetch_offset) == (0, 1)
    assert log(made, 2).high_watermark <= 1


def test_out_of_range_with_the_leaders_end_below_ours_truncates_to_it():
    made = cluster()
    made.append(1, b"a")
    made.append(1, b"b")
    made.work(3)
    log(made, 1).truncate_to(1)
    hand(made, FetchedPartition(error=ErrorCode.OFFSET_OUT_OF_RANGE))
    assert (log(made, 2).log_end_offset, state(made).fetch_offset) == (1, 1)


def test_out_of_range_with_the_leaders_start_above_our_end_restarts_the_log_there():
    made = cluster()
    made.work(2)
    log(made, 1).truncate_fully_and_start_at(50)
    hand(made, FetchedPartition(error=ErrorCode.OFFSET_OUT_OF_RANGE))
    assert (log(made, 2).log_start_offset, log(made, 2).log_end_offset, state(made).fetch_offset) == (50, 50, 50)


def test_out_of_range_with_our_end_within_the_leaders_log_continues_at_our_end():
    made = cluster()
    made.work(2)
    made.append(1, b"a")
    hand(made, FetchedPartition(error=ErrorCode.OFFSET_OUT_OF_RANGE))
    assert state(made).fetch_offset == 0
    made.work()
    assert log(made, 2).log_end_offset == 1


def test_out_of_range_with_a_leader_that_does_not_answer_delays_the_partition():
    made = cluster()
    made.work()
    made.cut = {(2, 1)}
    hand(made, FetchedPartition(error=ErrorCode.OFFSET_OUT_OF_RANGE))
    assert only(made).build_fetch() is None


def test_a_fenced_follower_waits_for_metadata():
    made = cluster()
    made.work()
    hand(made, FetchedPartition(error=ErrorCode.FENCED_LEADER_EPOCH))
    assert made.nodes[2].manager.replica_fetchers.failed_partitions == {FOO0}
    made.elect(0, 3)
    made.publish()
    assert made.nodes[2].manager.replica_fetchers.failed_partitions == set()
    assert state(made).current_leader_epoch == 1


def test_a_follower_with_a_new_leader_epoch_fetches_again_in_that_epoch():
    made = cluster()
    made.work()
    fetcher = only(made)
    fetcher.build_fetch()
    known = fetcher.states()[FOO0]
    fetcher._states[FOO0] = attrs.evolve(known, current_leader_epoch=5)
    fetcher.handle_response(FetchResponse(partitions={FOO0: FetchedPartition(error=ErrorCode.FENCED_LEADER_EPOCH)}))
    assert FOO0 in fetcher.states()
    request = fetcher.build_fetch()
    assert request is not None
    assert request.partitions[FOO0].current_leader_epoch == 5


def test_an_answer_of_an_earlier_leader_epoch_is_dropped_though_leader_and_offset_are_the_same():
    made = cluster()
    made.append(1, b"a")
    made.work(2)
    fetcher = only(made)
    assert fetcher.build_fetch() is not None
    made.elect(0, 1)
    made.publish()
    assert (only(made), state(made).current_leader_epoch, state(made).fetch_offset) == (fetcher, 1, 1)
    (old,) = log_batches(batch(b"gone"))
    fetcher.handle_response(FetchResponse(partitions={FOO0: FetchedPartition(data=old.placed(1, 0).data)}))
    assert log(made, 2).log_end_offset == 1
    made.append(1, b"b")
    made.work(2)
    assert log(made, 2).batches == log(made, 1).batches


def test_a_truncation_mark_above_the_fetch_offset_does_not_move_it_up():
    made = cluster()
    made.append(1, b"a", b"b")
    made.work(2)
    made.append(1, b"c")
    made.append(1, b"d")
    fetcher = only(made)
    fetcher.mark_for_truncation(FOO0, 3)
    assert (state(made).fetch_offset, state(made).state) == (2, ReplicaState.TRUNCATING)
    made.work(3)
    assert log(made, 2).batches == log(made, 1).batches


def test_a_truncation_that_the_leader_did_not_answer_waits_for_the_back_off():
    made = cluster()
    made.append(1, b"a")
    made.work(2)
    fetcher = only(made)
    fetcher.mark_for_truncation(FOO0, 1)
    made.cut.add((2, 1))
    fetcher.maybe_truncate()
    made.cut.clear()
    fetcher.maybe_truncate()
    assert state(made).state is ReplicaState.TRUNCATING
    made.advance(made.config.replica_fetch_backoff_ms)
    fetcher.maybe_truncate()
    assert state(made).state is ReplicaState.FETCHING


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.INCONSISTENT_TOPIC_ID, ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    ],
)  # fmt: skip
def test_any_other_error_is_retried_after_the_back_off(error):
    made = cluster()
    made.work()
    hand(made, FetchedPartition(error=error))
    assert only(made).build_fetch() is None
    made.advance(made.config.replica_fetch_backoff_ms)
    assert only(made).build_fetch() is not None


def test_a_corrupt_batch_is_fetched_again_and_not_appended():
    made = cluster()
    made.work()
    bad = bytearray(batch(b"a"))
    bad[-2] ^= 1
    hand(made, FetchedPartition(data=bytes(bad), high_watermark=1))
    assert log(made, 2).log_end_offset == 0
    assert FOO0 in only(made).states()
    made.append(1, b"a")
    made.advance(2000)
    made.work(2)
    assert log(made, 2).log_end_offset == 1


def test_a_storage_error_fails_the_partition():
    made = cluster()
    made.work()

    def broken(*_):
        raise KafkaStorageError("gone")

    made.nodes[2].manager.partition_or_raise(FOO0).log = type(
        "Broken", (), {"log_end_offset": 0, "log_start_offset": 0, "append_as_follower": broken}
    )()
    hand(made, FetchedPartition())
    assert made.nodes[2].manager.replica_fetchers.failed_partitions == {FOO0}


def test_an_unreachable_leader_delays_all_partitions():
    made = cluster()
    made.cut = {(2, 1)}
    made.work()
    assert only(made).build_fetch() is None
    made.cut = set()
    made.append(1)
    made.work()
    assert log(made, 2).log_end_offset == 0
    made.advance(1000)
    made.work()
    assert log(made, 2).log_end_offset == 1


@pytest.mark.parametrize("size", [0, 100])
def test_records_of_an_older_format_are_not_followed_and_the_reason_is_logged(size):
    made = cluster()
    made.work()
    with capture_logs() as logs:
        hand(made, FetchedPartition(data=old_message(b"x" * size), high_watermark=1))
    (logged,) = [entry for entry in logs if entry["event"] == "partition_failed"]
    assert "The records at offset 0 have format 1, " in logged["error"]
    assert log(made, 2).log_end_offset == 0


def test_an_oversized_batch_is_replicated():
    made = cluster()
    made.append(1, b"x" * 100_000)
    made.config = attrs.evolve(made.config, replica_fetch_max_bytes=10)
    only(made)._config = made.config
    made.work(2)
    assert log(made, 2).log_end_offset == 1


def test_an_oversized_batch_that_the_leader_cuts_off_is_logged():
    made = cluster()
    made.append(1, b"x" * 1_000)
    only(made).maybe_truncate()
    with capture_logs() as logs:
        hand(made, FetchedPartition(data=log(made, 1).batches[0].data[:500], high_watermark=0, log_start_offset=0))
    (logged,) = [entry for entry in logs if entry["event"] == "oversized_batch_cut_off"]
    assert (logged["partition"], logged["offset"], logged["bytes"]) == ("foo-0", 0, 500)
    assert "replica.fetch.max.bytes" in logged["help"]
    made.work(2)
    assert log(made, 2).log_end_offset == 1


def test_batches_of_a_later_leader_epoch_are_not_appended():
    made = cluster()
    partition = made.nodes[2].manager.partition_or_raise(FOO0)
    leader = made.nodes[1].manager.partition_or_raise(FOO0)
    append_records_to_leader(leader, batch(b"a"))
    leader.leader_epoch = 3
    append_records_to_leader(leader, batch(b"b"))
    data = b"".join(b.data for b in log(made, 1).batches)
    assert append_records_to_follower(partition, data, 0).last_offset == 0
    assert append_records_to_follower(partition, log(made, 1).batches[1].data, 3).last_offset == 1


def test_an_empty_log_may_start_within_the_leaders_first_batch():
    made = cluster()
    made.append(1, b"a", b"b", b"c")
    partition = made.nodes[2].manager.partition_or_raise(FOO0)
    log(made, 2).truncate_fully_and_start_at(1)
    info = append_records_to_follower(partition, log(made, 1).batches[0].data, 0)
    assert (info.first_offset, log(made, 2).log_start_offset) == (0, 0)


def test_the_lag_is_the_distance_to_the_leaders_high_watermark():
    made = cluster()
    made.work()
    assert only(made).lags() == {FOO0: 0}
    hand(made, FetchedPartition(data=_placed(b"a"), high_watermark=11))
    assert only(made).lags() == {FOO0: 10}
    assert only(made).bytes > 0


def _placed(*values: bytes) -> bytes:
    from kraftlake.replica_manager.logs.log_batch import log_batches

    (made,) = log_batches(batch(*values))
    return made.placed(0, 0).data


class Quota:
    def __init__(self):
        self.recorded = 0
        self.exceeded = True

    def is_throttled(self, partition):
        return True

    def is_exceeded(self):
        return self.exceeded

    def record(self, size):
        self.recorded += size


def test_a_quota_delays_only_partitions_that_are_not_in_sync():
    made = cluster()
    fetcher = only(made)
    fetcher.maybe_truncate()
    fetcher._quota = Quota()
    assert fetcher.build_fetch() is None
    fetcher._quota.exceeded = False
    made.append(1)
    made.work()
    assert fetcher._quota.recorded == log(made, 2).batches[0].size
    fetcher._quota.exceeded = True
    assert state(made).is_in_sync
    assert fetcher.build_fetch() is not None


def test_another_number_of_fetchers_keeps_the_fetch_offsets():
    made = Cluster()
    made.create(4)
    made.publish()
    made.append(1, number=2)
    made.work(2)
    made.nodes[2].manager.replica_fetchers.resize(3)
    offsets = {name.partition: s.fetch_offset for f in made.nodes[2].fetchers() for name, s in f.states().items()}
    assert offsets == {0: 0, 1: 0, 2: 1, 3: 0}


# sessions


def asked(offset: int) -> FetchPartition:
    return FetchPartition(fetch_offset=offset)


A, B = TopicPartition("a", 0), TopicPartition("b", 0)


def test_the_first_fetch_is_full_and_later_ones_are_incremental():
    session = FetchSession()
    assert session.build({A: asked(0), B: asked(0)}) == ({A: asked(0), B: asked(0)}, ())
    assert session.handle_response(
        FetchResponse(session_id=7, partitions={A: FetchedPartition(), B: FetchedPartition()})
    )
    assert (session.session_id, session.epoch) == (7, 1)
    assert session.build({A: asked(5)}) == ({A: asked(5)}, (B,))
    assert session.handle_response(FetchResponse(session_id=7))
    assert session.build({A: asked(5)}) == ({}, ())


def test_a_session_unknown_to_the_leader_restarts():
    session = FetchSession()
    session.build({A: asked(0)})
    session.handle_response(FetchResponse(session_id=7, partitions={A: FetchedPartition()}))
    assert not session.handle_response(FetchResponse(error=ErrorCode.FETCH_SESSION_ID_NOT_FOUND))
    assert (session.session_id, session.epoch) == (0, 0)
    assert session.build({A: asked(0)}) == ({A: asked(0)}, ())


def test_after_an_error_the_next_fetch_of_the_session_is_full():
    session = FetchSession()
    session.build({A: asked(0)})
    session.handle_response(FetchResponse(session_id=7, partitions={A: FetchedPartition()}))
    session.handle_error()
    assert (session.session_id, session.epoch) == (7, 0)
    assert session.build({A: asked(0)}) == ({A: asked(0)}, ())


def test_a_partition_whose_answer_was_dropped_leaves_and_rejoins_the_session():
    session = FetchSession()
    session.build({A: asked(0), B: asked(0)})
    session.handle_response(FetchResponse(session_id=7, partitions={A: FetchedPartition(), B: FetchedPartition()}))
    session.was_not_heard(A)
    assert session.build({A: asked(0), B: asked(0)}) == ({}, (A,))
    session.handle_response(FetchResponse(session_id=7))
    assert session.build({A: asked(0), B: asked(0)}) == ({A: asked(0)}, ())


def test_a_follower_learns_a_high_watermark_whose_answer_it_has_dropped():
    made = cluster()
    made.append(1)
    made.work(2)
    fetcher = only(made)
    answer = EndPoint(made, made.nodes[2], fetcher.leader).fetch(fetcher.build_fetch())
    assert answer.partitions[FOO0].high_watermark == 1
    fetcher._delay([FOO0])
    fetcher.handle_response(answer)
    assert log(made, 2).high_watermark == 0
    made.advance(made.config.replica_fetch_backoff_ms)
    made.work(2)
    assert log(made, 2).high_watermark == 1


def test_what_has_to_be_heard_again_does_not_wait_for_the_records_of_others():
    made = cluster()
    made.append(1)
    made.work(2)
    fetcher = only(made)
    answer = EndPoint(made, made.nodes[2], fetcher.leader).fetch(request := fetcher.build_fetch())
    assert (request.forgotten, request.params.max_wait_ms) == ((), made.config.replica_fetch_wait_max_ms)
    fetcher._delay([FOO0])
    fetcher.handle_response(answer)
    made.advance(made.config.replica_fetch_backoff_ms)
    request = fetcher.build_fetch()
    assert (request.forgotten, request.params.max_wait_ms) == ((FOO0,), 0)


def test_an_answer_with_other_partitions_is_invalid():
    session = FetchSession()
    session.build({A: asked(0)})
    assert not session.handle_response(FetchResponse(partitions={B: FetchedPartition()}))
    session.build({A: asked(0)})
    session.handle_response(FetchResponse(session_id=7, partitions={A: FetchedPartition()}))
    session.build({A: asked(1)})
    assert not session.handle_response(FetchResponse(session_id=7, partitions={B: FetchedPartition()}))
