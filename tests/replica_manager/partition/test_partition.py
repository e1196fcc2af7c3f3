"""A partition that this broker leads: high watermark, ISR and proposals, one test for each rule."""

from __future__ import annotations

import pytest

from kraftlake.image.topics.partition_registration import LeaderRecoveryState
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.records.offset_and_epoch import OffsetAndEpoch
from kraftlake.replica_manager.controller_channel import LeaderAndIsr
from kraftlake.replica_manager.errors import (
    FencedLeaderEpochError,
    NotEnoughReplicasError,
    NotLeaderOrFollowerError,
    OffsetNotAvailableError,
    OffsetOutOfRangeError,
    PolicyViolationError,
    UnknownLeaderEpochError,
)
from kraftlake.replica_manager.logs.log_config import LogConfig
from kraftlake.replica_manager.logs.log_values import FetchIsolation
from kraftlake.replica_manager.logs.memory_log import MemoryLogManager
from kraftlake.replica_manager.logs.timestamps import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from kraftlake.replica_manager.partition.leader import (
    FetchParams,
    FetchPartition,
    append_records_to_leader,
    check_enough_replicas_reach_offset,
    delete_records_on_leader,
    fetch_records,
    last_offset_for_leader_epoch,
    offset_for_timestamp,
)
from kraftlake.replica_manager.partition.partition_state import CommittedIsr, PendingExpandIsr, PendingShrinkIsr
from simulator.data_batches import batch
from tests.replica_manager.brokers import D1, D2, broker, change, partition, started, topic, tp

LAG = 30_000


def leading(isr=(1, 2, 3), min_isr: int = 1, epoch: int = 0, replicas=(1, 2, 3), **config):
    made = LogConfig(min_insync_replicas=min_isr, **config)
    logs = MemoryLogManager({"d1": D1, "d2": D2}, made)
    return started(
        topic(), partition(leader=1, isr=isr, replicas=replicas, epoch=epoch), log_manager=logs
    )  # fmt: skip


def fetch(me, follower: int, offset: int, *, broker_epoch: int | None = None, epoch: int | None = None, **more):
    """A follower's fetch, with the registered broker epoch."""
    params = FetchParams(
        replica_id=follower,
        replica_epoch=100 + follower if broker_epoch is None else broker_epoch,
        isolation=FetchIsolation.LOG_END,
    )
    return fetch_records(
        me.partition(), params, FetchPartition(fetch_offset=offset, current_leader_epoch=epoch, **more)
    )


def hw(me) -> int:
    return me.partition().local_log.high_watermark


def append(me, *values: bytes, acks: int = -1):
    return append_records_to_leader(me.partition(), batch(*(values or (b"x",))), required_acks=acks)


def answer(me, result=None, place: int = -1) -> None:
    """Answer a proposal, by default with the proposed state."""
    _, sent, on_answer = me.controller.proposals[place]
    if result is None:
        result = LeaderAndIsr(
            leader=1, leader_epoch=sent.leader_epoch, isr=sent.isr, partition_epoch=sent.partition_epoch + 1
        )
    on_answer(result)


# high watermark


def test_the_high_watermark_is_the_lowest_end_of_the_isr():
    me = leading()
    append(me, b"a", b"b", b"c")
    assert hw(me) == 0
    fetch(me, 2, 3)
    assert hw(me) == 0
    fetch(me, 3, 2)
    assert hw(me) == 2


def test_the_high_watermark_of_a_leader_alone_in_the_isr_moves_with_its_appends():
    me = leading(isr=(1,))
    assert append(me).leader_hw_incremented
    assert hw(me) == 1


def test_the_high_watermark_waits_for_a_replica_that_is_caught_up_and_may_join():
    me = leading(isr=(1,))
    fetch(me, 2, 0)
    answer(me, ErrorCode.INELIGIBLE_REPLICA)
    append(me)
    assert hw(me) == 0
    me.clock.advance(LAG + 1)
    append(me)
    assert hw(me) == 2


def test_the_high_watermark_does_not_wait_for_a_fenced_replica():
    me = leading(isr=(1,))
    fetch(me, 2, 0)
    answer(me, ErrorCode.INELIGIBLE_REPLICA)
    me.hear(broker(2, fenced=True))
    append(me)
    assert hw(me) == 1


def test_the_high_watermark_does_not_wait_for_a_replica_that_the_controller_takes_out_of_the_isr():
    """Its directory has failed, say: its broker is alive, and may fetch no more."""
    me = leading()
    append(me)
    fetch(me, 2, 0)
    fetch(me, 3, 1)
    assert hw(me) == 0
    me.hear(change(isr=(1, 3)))
    assert hw(me) == 1


def test_a_fetch_moves_a_high_watermark_that_waited_for_a_replica_that_is_fenced_since():
    me = leading(isr=(1, 3))
    fetch(me, 2, 0)
    answer(me, ErrorCode.INELIGIBLE_REPLICA)
    append(me)
    fetch(me, 3, 1)
    assert hw(me) == 0
    me.hear(broker(2, fenced=True))
    fetch(me, 3, 1)
    assert hw(me) == 1


def test_the_high_watermark_does_not_move_while_the_isr_is_below_its_minimum():
    me = leading(isr=(1,), min_isr=2)
    assert me.partition().in_sync.is_under_min_isr(me.partition().local_log)
    assert append(me, acks=1).leader_hw_incremented is False
    assert hw(me) == 0


def test_the_minimum_isr_is_limited_to_the_number_of_replicas():
    me = leading(isr=(1,), min_isr=3, replicas=(1,))
    assert not me.partition().in_sync.is_under_min_isr(me.partition().local_log)
    assert append(me).leader_hw_incremented


def test_the_high_watermark_never_falls():
    me = leading()
    append(me, b"a", b"b")
    fetch(me, 2, 2)
    fetch(me, 3, 2)
    fetch(me, 3, 0)
    append(me)
    assert hw(me) == 2


def test_a_new_leader_epoch_starts_at_the_end_of_the_log_and_is_noted():
    me = leading()
    append(me, b"a", b"b")
    me.hear(change(leader=1))
    assert me.partition().leader_epoch_start_offset == 2
    assert me.partition().local_log.end_offset_for_epoch(0) == OffsetAndEpoch(2, 0)


def test_the_same_leader_epoch_changes_the_isr_and_keeps_epoch_start_and_followers():
    me = leading()
    append(me)
    fetch(me, 2, 1)
    me.hear(change(isr=(1, 2)))
    assert me.partition().leader_epoch_start_offset == 0
    assert me.partition().replica(2).state.log_end_offset == 1
    assert hw(me) == 1
    assert me.controller.completed[-1:] == [tp()]


def test_a_new_leader_knows_no_follower_ends_and_a_reelected_one_keeps_them():
    me = leading()
    append(me)
    fetch(me, 2, 1)
    me.hear(change(leader=1))
    assert me.partition().replica(2).state.log_end_offset == 1
    me.hear(change(leader=2))
    me.hear(change(leader=1))
    assert me.partition().replica(2).state.log_end_offset == -1


def test_a_leader_that_has_missed_an_epoch_knows_no_follower_ends_until_they_fetch():
    """The leader in between may have cut them: with the old ends the high watermark would count what is gone."""
    me = leading()
    append(me)
    fetch(me, 2, 1)
    fetch(me, 3, 0)
    assert me.partition().local_log.high_watermark == 0
    me.hear(change(leader=2), change(leader=1, isr=(1, 2)))
    assert [me.partition().replica(id_).state.log_end_offset for id_ in (2, 3)] == [-1, -1]
    assert me.partition().local_log.high_watermark == 0
    fetch(me, 2, 0)
    assert me.partition().local_log.high_watermark == 0
    fetch(me, 2, 1)
    assert me.partition().local_log.high_watermark == 1


def test_replicas_of_the_isr_count_as_caught_up_at_a_new_epoch_and_others_as_never():
    me = leading(isr=(1, 2))
    assert me.partition().replica(2).state.last_caught_up_time_ms == me.clock.milliseconds()
    assert me.partition().replica(3).state.last_caught_up_time_ms == 0


def test_an_uncleanly_elected_leader_has_recovered():
    me = started(topic(), partition(leader=1, isr=(1,), leader_recovery_state=1))
    assert me.partition().in_sync.state.leader_recovery_state is LeaderRecoveryState.RECOVERED
    fetch(me, 2, 0)
    assert me.controller.proposals[0][1].leader_recovery_state is LeaderRecoveryState.RECOVERED


# who joins


def test_a_follower_at_the_high_watermark_and_in_this_epoch_is_proposed_with_broker_epochs():
    me = leading(isr=(1, 3))
    fetch(me, 2, 0)
    ((name, sent, _),) = me.controller.proposals
    assert name.topic_partition == tp()
    assert (sent.leader, sent.leader_epoch, sent.partition_epoch) == (1, 0, 0)
    assert [tuple(state) for state in sent.isr] == [(1, 101), (2, 102), (3, -1)]
    state = me.partition().in_sync.state
    assert isinstance(state, PendingExpandIsr)
    assert (state.isr, state.maximal_isr) == ({1, 3}, {1, 2, 3})


def test_a_follower_below_the_high_watermark_does_not_join():
    me = leading(isr=(1,))
    append(me, b"a", b"b")
    fetch(me, 2, 1)
    assert me.controller.proposals == []


def test_a_follower_that_has_not_reached_this_leader_epoch_does_not_join():
    me = leading(isr=(1, 3))
    append(me, b"a", b"b")
    me.hear(change(leader=1, isr=(1, 3)))
    fetch(me, 2, 1)
    assert me.controller.proposals == []
    fetch(me, 2, 2)
    assert len(me.controller.proposals) == 1


@pytest.mark.parametrize(
    "record",
    [broker(2, fenced=True), broker(2, shutdown=True), broker(2, epoch=500)],
    ids=["fenced", "shutdown", "newer"],
)
def test_a_follower_that_is_not_eligible_does_not_join(record):
    me = leading(isr=(1,))
    me.hear(record)
    if record.broker_epoch > 400:
        with pytest.raises(NotLeaderOrFollowerError):
            fetch(me, 2, 0)
    else:
        fetch(me, 2, 0)
    assert me.controller.proposals == []


def test_a_follower_that_does_not_state_its_broker_epoch_joins():
    me = leading(isr=(1,))
    fetch(me, 2, 0, broker_epoch=-1)
    assert len(me.controller.proposals) == 1


def test_a_proposed_follower_counts_before_the_controller_agrees():
    me = leading(isr=(1,))
    fetch(me, 2, 0)
    me.clock.advance(LAG * 3)
    append(me)
    assert hw(me) == 0
    fetch(me, 2, 1)
    assert hw(me) == 1


def test_at_most_one_proposal_is_in_flight():
    me = leading(isr=(1,))
    fetch(me, 2, 0)
    fetch(me, 3, 0)
    assert len(me.controller.proposals) == 1
    me.clock.advance(LAG * 3)
    me.manager.maybe_shrink_isr()
    assert len(me.controller.proposals) == 1


def test_a_committed_proposal_sets_the_isr_and_the_partition_epoch():
    me = leading(isr=(1,))
    fetch(me, 2, 0)
    answer(me)
    assert me.partition().in_sync.state == CommittedIsr(isr=frozenset({1, 2}))
    assert me.partition().partition_epoch == 1
    assert me.manager.context.metrics.isr_expands == 1


# who leaves


def lagging():
    """Follower 3 has not fetched for longer than the lag; follower 2 has the whole log."""
    me = leading()
    append(me)
    me.clock.advance(LAG + 1)
    fetch(me, 2, 1)
    me.manager.maybe_shrink_isr()
    return me


def test_the_removal_of_a_lagging_follower_is_proposed_and_it_counts_until_then():
    me = lagging()
    state = me.partition().in_sync.state
    assert isinstance(state, PendingShrinkIsr)
    assert state.out_of_sync_replicas == {3}
    assert state.maximal_isr == {1, 2, 3}
    assert hw(me) == 0
    answer(me)
    assert hw(me) == 1
    assert me.controller.completed[-1:] == [tp()]
    assert me.manager.context.metrics.isr_shrinks == 1


def test_a_follower_at_the_end_of_the_log_is_in_sync_however_long_it_is_silent():
    me = leading()
    fetch(me, 2, 0)
    fetch(me, 3, 0)
    me.clock.advance(LAG * 100)
    me.manager.maybe_shrink_isr()
    assert me.controller.proposals == []


def test_a_follower_that_reaches_the_end_of_its_last_fetch_was_caught_up_then():
    me = leading(isr=(1, 2), replicas=(1, 2))
    append(me)
    then = me.clock.milliseconds()
    fetch(me, 2, 0)
    me.clock.advance(1000)
    append(me)
    fetch(me, 2, 1)
    assert me.partition().replica(2).state.last_caught_up_time_ms == then


# answers


@pytest.mark.parametrize("error", [ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA])
def test_a_proposal_that_was_not_applied_is_withdrawn(error):
    me = leading(isr=(1,))
    fetch(me, 2, 0)
    answer(me, error)
    assert me.partition().in_sync.state == CommittedIsr(isr=frozenset({1}))
    assert me.manager.context.metrics.failed_isr_updates == 1


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION, ErrorCode.INVALID_REQUEST, ErrorCode.NEW_LEADER_ELECTED,
    ],
)  # fmt: skip
def test_a_proposal_on_outdated_metadata_stays_until_newer_metadata_arrives(error):
    me = leading(isr=(1,))
    fetch(me, 2, 0)
    answer(me, error)
    assert isinstance(me.partition().in_sync.state, PendingExpandIsr)
    assert len(me.controller.proposals) == 1
    me.hear(change(isr=(1, 3)))
    assert me.partition().in_sync.state == CommittedIsr(isr=frozenset({1, 3}))


def test_any_other_error_sends_the_proposal_again():
    me = leading(isr=(1,))
    fetch(me, 2, 0)
    answer(me, ErrorCode.NETWORK_EXCEPTION)
    assert [sent for _, sent, _ in me.controller.proposals] == [me.controller.proposals[0][1]] * 2
    answer(me)
    assert me.partition().in_sync.state.isr == {1, 2}


def test_an_answer_overtaken_by_metadata_is_ignored():
    me = leading(isr=(1,))
    fetch(me, 2, 0)
    me.hear(change(isr=(1, 3)))
    answer(me, place=0)
    assert me.partition().in_sync.state.isr == {1, 3}


def test_a_proposal_outlives_the_metadata_that_it_was_made_on():
    """Kafka 4.4 drops it, and loses records committed before the next metadata if the follower is elected."""
    me = leading(isr=(1,))
    fetch(me, 2, 0)
    answer(me)
    fetch(me, 3, 0)
    assert me.partition().in_sync.state.maximal_isr == {1, 2, 3}
    me.hear(change(isr=(1, 2)))
    assert me.partition().in_sync.state.maximal_isr == {1, 2, 3}
    append(me)
    fetch(me, 2, 1)
    assert hw(me) == 0
    answer(me)
    assert me.partition().in_sync.state == CommittedIsr(isr=frozenset({1, 2, 3}))


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.NEW_LEADER_ELECTED,
    ],
)  # fmt: skip
def test_a_refusal_that_may_answer_a_repeated_request_does_not_end_a_proposal(error):
    me = leading(isr=(1,))
    fetch(me, 2, 0)
    answer(me)
    fetch(me, 3, 0)
    answer(me, error)
    me.hear(change(isr=(1, 2)))
    append(me)
    fetch(me, 2, 1)
    me.clock.advance(LAG * 3)
    fetch(me, 2, 1)
    assert (me.partition().partition_epoch, hw(me)) == (1, 0)
    me.hear(change(isr=(1, 2, 3)))
    assert me.partition().in_sync.state == CommittedIsr(isr=frozenset({1, 2, 3}))
    me.manager.maybe_shrink_isr()
    assert me.controller.proposals[-1][1].isr_ids == {1, 2}


def test_a_refused_proposal_does_not_outlive_the_metadata():
    me = leading(isr=(1,))
    fetch(me, 2, 0)
    answer(me)
    fetch(me, 3, 0)
    answer(me, ErrorCode.INVALID_REQUEST)
    me.hear(change(isr=(1, 2)))
    assert me.partition().in_sync.state == CommittedIsr(isr=frozenset({1, 2}))


def test_an_answer_of_an_older_epoch_is_ignored():
    me = leading(isr=(1,), epoch=4)
    fetch(me, 2, 0)
    answer(me, LeaderAndIsr(leader=1, leader_epoch=3, isr=(), partition_epoch=9))
    assert me.partition().in_sync.state.isr == {1}
    answer(me, LeaderAndIsr(leader=1, leader_epoch=4, isr=(), partition_epoch=3))
    assert me.partition().in_sync.state.isr == {1}
    assert me.manager.context.metrics.failed_isr_updates == 2


# appends and reads


def test_acks_all_needs_the_minimum_in_sync_and_other_acks_do_not():
    me = leading(isr=(1,), min_isr=2)
    with pytest.raises(NotEnoughReplicasError):
        append(me)
    assert append(me, acks=1).first_offset == 0


def test_only_the_leader_takes_appends():
    me = started(topic(), partition(leader=2))
    with pytest.raises(NotLeaderOrFollowerError):
        append(me)


def test_an_append_is_committed_when_the_high_watermark_passes_it():
    me = leading()
    append(me, b"a", b"b")
    assert check_enough_replicas_reach_offset(me.partition(), 2) == (False, ErrorCode.NONE)
    fetch(me, 2, 2)
    fetch(me, 3, 2)
    assert check_enough_replicas_reach_offset(me.partition(), 2) == (True, ErrorCode.NONE)
    me.hear(change(leader=2))
    assert check_enough_replicas_reach_offset(me.partition(), 2) == (False, ErrorCode.NOT_LEADER_OR_FOLLOWER)


def test_an_append_is_done_with_an_error_when_the_isr_has_fallen_under_its_minimum():
    me = leading(min_isr=2)
    append(me)
    fetch(me, 2, 1)
    fetch(me, 3, 1)
    me.hear(change(isr=(1,)))
    assert check_enough_replicas_reach_offset(me.partition(), 1) == (True, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)


def test_the_leader_epoch_of_a_request_is_compared_with_the_brokers():
    me = leading(epoch=4)
    with pytest.raises(FencedLeaderEpochError):
        fetch(me, 2, 0, epoch=3)
    with pytest.raises(UnknownLeaderEpochError):
        fetch(me, 2, 0, epoch=5)
    fetch(me, 2, 0, epoch=4)
    assert last_offset_for_leader_epoch(me.partition(), 4, 4) == OffsetAndEpoch(0, 4)


def test_a_follower_that_is_not_a_replica_yet_gets_a_retriable_error():
    me = leading()
    with pytest.raises(UnknownLeaderEpochError):
        fetch(me, 9, 0, epoch=0)
    with pytest.raises(NotLeaderOrFollowerError):
        fetch(me, 9, 0)


def test_a_follower_reads_to_the_end_and_a_consumer_to_the_high_watermark():
    me = leading()
    append(me)
    assert [b.base_offset for b in fetch(me, 2, 0).data.batches] == [0]
    read = fetch_records(me.partition(), FetchParams(), FetchPartition(fetch_offset=0))
    assert read.data.batches == ()
    with pytest.raises(OffsetOutOfRangeError):
        fetch(me, 2, 2)


def test_a_diverging_reader_gets_the_epochs_end_and_its_fetch_does_not_count():
    me = leading()
    append(me, b"a", b"b")
    me.hear(change(leader=1))
    append(me)
    read = fetch(me, 2, 3, last_fetched_epoch=0)
    assert read.diverging_epoch == OffsetAndEpoch(2, 0)
    assert read.data.batches == ()
    assert me.partition().replica(2).state.log_end_offset == -1
    with pytest.raises(OffsetOutOfRangeError):
        fetch(me, 2, 1, last_fetched_epoch=7)


def test_only_a_consumer_that_names_its_rack_may_read_from_a_follower():
    me = started(topic(), partition(leader=2))
    with pytest.raises(NotLeaderOrFollowerError):
        fetch_records(me.partition(), FetchParams(), FetchPartition(fetch_offset=0))
    fetch_records(me.partition(), FetchParams(rack="a"), FetchPartition(fetch_offset=0))


def test_records_are_deleted_up_to_the_high_watermark_and_the_low_watermark_waits_for_live_followers():
    me = leading()
    append(me, b"a")
    append(me, b"b")
    for follower in (2, 3):
        fetch(me, follower, 2, log_start_offset=0)
    result = delete_records_on_leader(me.partition(), -1)
    assert (result.requested_offset, result.low_watermark) == (2, 0)
    me.hear(broker(3, fenced=True))
    fetch(me, 2, 2, log_start_offset=2)
    assert delete_records_on_leader(me.partition(), 2).low_watermark == 2
    with pytest.raises(OffsetOutOfRangeError):
        delete_records_on_leader(me.partition(), 3)
    with pytest.raises(OffsetOutOfRangeError):
        delete_records_on_leader(me.partition(), -7)


def test_records_of_a_topic_that_is_compacted_only_are_not_deleted():
    me = leading(cleanup_policy=("compact",))
    with pytest.raises(PolicyViolationError):
        delete_records_on_leader(me.partition(), 0)


def test_the_latest_offset_is_not_available_before_the_high_watermark_reaches_the_epoch():
    me = leading()
    append(me)
    me.hear(change(leader=1))
    with pytest.raises(OffsetNotAvailableError):
        offset_for_timestamp(me.partition(), LATEST_TIMESTAMP)
    with pytest.raises(OffsetNotAvailableError):
        offset_for_timestamp(me.partition(), 5)
    with pytest.raises(OffsetNotAvailableError):
        offset_for_timestamp(me.partition(), 5000)
    with pytest.raises(OffsetNotAvailableError):
        offset_for_timestamp(me.partition(), 5000, isolation=FetchIsolation.TXN_COMMITTED)
    assert offset_for_timestamp(me.partition(), EARLIEST_TIMESTAMP).offset == 0
    assert offset_for_timestamp(me.partition(), LATEST_TIMESTAMP, isolation=FetchIsolation.LOG_END).offset == 1
    for follower in (2, 3):
        fetch(me, follower, 1)
    assert offset_for_timestamp(me.partition(), LATEST_TIMESTAMP).offset == 1
    assert offset_for_timestamp(me.partition(), 5).offset == 0
    assert offset_for_timestamp(me.partition(), 5000) is None
