"""A replica that moves to another directory of its broker: one test for each rule."""

from __future__ import annotations

import pytest

from kraftlake.delta.topics.local_replica_changes import TopicIdPartition
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.records import metadata_records as r
from kraftlake.replica_manager.delta_application import apply_delta
from kraftlake.replica_manager.errors import KafkaStorageError
from kraftlake.replica_manager.fetch.log_dir_fetcher import LogDirFetcher, Promotion
from kraftlake.replica_manager.logs.log_batch import log_batches
from kraftlake.replica_manager.logs.memory_log import MemoryLogManager
from kraftlake.replica_manager.partition.follower import append_records_to_follower, truncate_to
from kraftlake.replica_manager.partition.leader import append_records_to_leader, delete_records_on_leader
from kraftlake.replica_manager.partition.partition import OfflinePartition
from kraftlake.replica_manager.replay.replayed_broker import hosted_delta
from kraftlake.replica_manager.replication_quota import ReplicationQuota
from kraftlake.replica_manager.requests.log_dir_moves import alter_replica_log_dirs
from kraftlake.replica_manager.transitions import TransitionKind
from simulator.data_batches import batch
from tests.histories import uuid_of
from tests.replica_manager.brokers import D1, D2, FOO, Broker, change, kinds, partition, started, topic, tp
from tests.replica_manager.cluster import Cluster

HERE = TopicIdPartition(FOO, tp())


def leading(*values: bytes, partitions: int = 1) -> Broker:
    """A leader of partitions with these records, alone in the ISR."""
    made = [partition(number, leader=1, isr=(1,)) for number in range(partitions)]
    me = started(topic(), *made, moving=True)
    for number in range(partitions):
        for value in values:
            append(me, value, number)
    return me


def append(me: Broker, value: bytes = b"x", number: int = 0) -> None:
    append_records_to_leader(me.partition(number), batch(value))


def move(me: Broker, directory: str = "d2", number: int = 0) -> ErrorCode:
    return alter_replica_log_dirs(me.manager, {tp(number): directory})[tp(number)]


def fetcher(me: Broker) -> LogDirFetcher:
    (only,) = me.manager.log_dir_fetchers.fetchers().values()
    assert isinstance(only, LogDirFetcher)
    return only


def copied(me: Broker, number: int = 0) -> int:
    future = me.partition(number).future_log
    assert future is not None
    return future.log_end_offset


def work(me: Broker, rounds: int = 3) -> None:
    for _ in range(rounds):
        fetcher(me).do_work()


def test_a_future_log_is_copied_reported_and_promoted_once_the_controller_has_accepted():
    me = leading(b"a", b"b")
    before = me.partition().local_log
    assert move(me) is ErrorCode.NONE
    work(me)
    assert copied(me) == 2
    assert me.controller.assignments == [(HERE, D2)]
    assert fetcher(me).moves() == {tp(): Promotion.QUEUED}
    assert me.partition().log is before
    me.controller.on_accepted()
    work(me)
    after = me.partition().local_log
    assert after is me.logs.get_log(tp())
    assert (after.directory, after.log_end_offset, after.high_watermark) == ("d2", 2, 2)
    assert after.batches == before.batches
    assert (me.partition().future_log, me.logs.get_log(tp(), is_future=True)) == (None, None)
    assert (fetcher(me).moves(), fetcher(me).partition_count) == ({}, 0)
    assert me.controller.assignments == [(HERE, D2)]


def test_the_thread_is_named_by_its_number():
    me = leading()
    move(me)
    assert fetcher(me).name == "ReplicaAlterLogDirsThread-0"


def test_a_moved_leader_without_appends_knows_the_start_of_its_epoch():
    me = leading(b"a")
    me.hear(change(leader=1))
    assert me.partition().local_log.latest_epoch == 1
    move(me)
    work(me)
    me.controller.on_accepted()
    work(me)
    log = me.partition().local_log
    assert (log.directory, log.epochs) == ("d2", [(0, 0), (1, 1)])


def test_an_empty_replica_is_moved_too():
    me = leading()
    move(me)
    work(me)
    me.controller.on_accepted()
    work(me)
    assert me.partition().local_log.directory == "d2"


def test_records_appended_during_the_report_are_copied_before_the_promotion():
    me = leading(b"a")
    move(me)
    work(me)
    append(me)
    me.controller.on_accepted()
    fetcher(me).do_work()
    assert me.partition().local_log.directory == "d2"
    assert me.partition().local_log.log_end_offset == 2


def test_a_lagging_future_log_is_copied_further_after_the_controllers_acceptance():
    me = leading(b"a")
    move(me)
    work(me)
    me.controller.on_accepted()
    append(me)
    request = fetcher(me).build_fetch()
    response = fetcher(me)._end_point.fetch(request)
    append(me)
    fetcher(me).handle_response(response)
    assert (copied(me), me.partition().local_log.directory) == (2, "d1")
    work(me)
    assert me.partition().local_log.directory == "d2"


def test_a_follower_is_moved_as_a_leader_is():
    me = started(topic(), partition(leader=2), moving=True)
    (made,) = log_batches(batch(b"a"))
    append_records_to_follower(me.partition(), made.placed(0, 0).data, 0)
    move(me)
    work(me)
    me.controller.on_accepted()
    work(me)
    assert me.partition().local_log.directory == "d2"
    assert me.partition().local_log.log_end_offset == 1


def test_one_replica_at_a_time_is_copied_in_the_order_of_their_names():
    me = leading(b"a", partitions=3)
    for number in (2, 0, 1):
        move(me, number=number)
    order = []
    for _ in range(3):
        request = fetcher(me).build_fetch() or (fetcher(me).maybe_truncate(), fetcher(me).build_fetch())[1]
        assert (request.params.max_wait_ms, request.params.min_bytes, request.session_id) == (0, 0, 0)
        (name,) = request.partitions
        order.append(name.partition)
        fetcher(me).handle_response(fetcher(me)._end_point.fetch(request))
        me.controller.on_accepted()
        work(me, 1)
    assert order == [0, 1, 2]


def test_a_round_without_copied_bytes_lets_the_driver_wait():
    me = leading(b"a")
    move(me)
    assert [fetcher(me).do_work() for _ in range(3)] == [True, False, False]


def test_cancelling_a_reported_move_reports_the_present_directory():
    me = leading(b"a")
    move(me)
    work(me)
    me.manager.log_dir_fetchers.remove_fetcher_for_partitions([tp()])
    assert me.controller.assignments == [(HERE, D2), (HERE, D1)]


def test_cancelling_an_unreported_move_reports_nothing():
    me = leading(b"a")
    move(me)
    me.manager.log_dir_fetchers.remove_fetcher_for_partitions([tp()])
    assert me.controller.assignments == []


def test_the_answer_to_an_earlier_move_promotes_no_later_one():
    me = leading(b"a")
    move(me)
    work(me)
    late = me.controller.on_accepted
    assert move(me, "d1") is ErrorCode.NONE
    assert move(me, "d2") is ErrorCode.NONE
    late()
    assert fetcher(me).moves() == {tp(): Promotion.COPYING}


def test_metadata_with_the_new_directory_before_the_promotion_is_not_reported():
    me = leading(b"a")
    move(me)
    work(me)
    me.hear(change(directories=(D2, D1, D1)))
    assert me.controller.assignments == [(HERE, D2)]
    me.controller.on_accepted()
    work(me)
    assert me.partition().local_log.directory == "d2"


def test_metadata_with_another_directory_is_corrected_and_the_move_is_reported_again():
    me = leading(b"a")
    move(me)
    work(me)
    overtaken = me.controller.on_accepted
    me.hear(change(directories=(uuid_of(999), D1, D1)))
    assert me.controller.assignments[1:] == [(HERE, D1), (HERE, D1)]
    overtaken()
    assert fetcher(me).moves() == {tp(): Promotion.COPYING}
    work(me)
    assert me.controller.assignments[3:] == [(HERE, D2)]
    me.controller.on_accepted()
    work(me)
    assert me.partition().local_log.directory == "d2"


def test_a_truncated_replica_truncates_its_future_log():
    me = leading(b"a", b"b", b"c")
    move(me)
    work(me)
    truncate_to(me.partition(), 1)
    me.manager.mark_future_for_truncation(tp(), 1)
    work(me, 1)
    assert copied(me) == 1


def test_a_future_log_that_missed_a_truncation_finds_the_divergence_by_epochs():
    me = leading(b"a", b"b")
    move(me)
    work(me)
    truncate_to(me.partition(), 1)
    me.hear(change(leader=2), change(leader=1))
    append(me, b"other")
    work(me)
    future = me.partition().future_log
    assert future is not None
    assert future.batches == me.partition().local_log.batches


def test_a_copy_that_diverges_over_two_epochs_is_truncated_step_by_step():
    me = leading(b"a")
    move(me)
    work(me)
    me.hear(*(change(leader=leader) for leader in (2, 3, 2, 3)))
    replica, copy = me.partition().local_log, me.partition().future_log
    assert copy is not None
    for epoch in (1, 1, 1, 3):
        copy.append_as_leader(batch(b"lost"), epoch)
    for _ in range(6):
        replica.append_as_leader(batch(b"kept"), 2)
    work(me, 4)
    assert copy.batches == replica.batches


def test_a_copy_finds_where_it_diverges_though_the_replica_is_truncated_below_its_last_epoch_between_two_steps():
    me = leading(b"a")
    move(me)
    work(me)
    me.hear(*(change(leader=leader) for leader in (2, 3, 2, 3)))
    replica, copy = me.partition().local_log, me.partition().future_log
    assert copy is not None
    for log, epochs in ((replica, (0, 2, 4)), (copy, (1, 3))):
        for epoch in epochs:
            log.append_as_leader(batch(b"of epoch %d" % epoch), epoch)
    fetcher(me).maybe_truncate()
    assert (copy.epochs, fetcher(me).states()[tp()].is_truncating) == ([(0, 0), (1, 1)], True)
    truncate_to(me.partition(), 2)
    me.manager.mark_future_for_truncation(tp(), 2)
    work(me, 4)
    assert copy.batches == replica.batches


def test_a_copy_finds_where_it_diverges_below_its_high_watermark_after_an_unclean_election():
    me = leading(b"a")
    me.hear(change(leader=2), change(leader=1))
    for _ in range(3):
        append(me, b"of epoch 2")
    move(me)
    work(me)
    replica, copy = me.partition().local_log, me.partition().future_log
    assert copy is not None
    assert (copy.epochs, copy.high_watermark) == ([(0, 0), (2, 1)], 4)
    truncate_to(me.partition(), 1)
    me.manager.mark_future_for_truncation(tp(), 1)
    me.hear(change(leader=3))  # the copy is to begin at its high watermark again
    for _ in range(4):
        replica.append_as_leader(batch(b"of epoch 1"), 1)
    work(me, 4)
    assert copy.batches == replica.batches


def test_a_copy_is_truncated_with_its_replica_though_one_more_step_might_follow():
    made = Cluster()
    made.create()
    for _ in range(4):
        made.elect(0, 2)
    made.publish()
    replica, leader = made.nodes[1].log(tp()), made.nodes[2].log(tp())
    for log, epochs in ((replica, (0, 2, 4)), (leader, (0, 2, 3))):
        for epoch in epochs:
            log.append_as_leader(batch(b"of epoch %d" % epoch), epoch)
    made.elect(0, 2)
    made.publish()
    made.append(2, b"of epoch 5")
    node = made.nodes[1]
    alter_replica_log_dirs(node.manager, {tp(): "e"})
    (copying,) = node.log_dir_fetchers()
    copying.do_work()
    copy = node.manager.online_partition(tp()).future_log
    assert copy.batches == replica.batches
    (following,) = node.fetchers()
    for _ in range(3):
        following.do_work()
    assert [one.leader_epoch for one in replica.batches] == [0, 2, 3, 5]
    for _ in range(3):
        copying.do_work()
    assert node.log(tp()) is copy
    assert copy.batches == leader.batches


def test_a_truncation_of_the_replica_while_the_copy_asks_for_epochs_is_not_forgotten(monkeypatch):
    me = leading(b"a", b"b")
    move(me)
    work(me)
    me.hear(change(leader=2))
    end_point = fetcher(me)._end_point
    ask = end_point.epoch_end_offsets

    def truncate_meanwhile(epochs):
        answers = ask(epochs)
        truncate_to(me.partition(), 1)
        me.manager.mark_future_for_truncation(tp(), 1)
        monkeypatch.undo()
        return answers

    monkeypatch.setattr(end_point, "epoch_end_offsets", truncate_meanwhile)
    fetcher(me).maybe_truncate()
    me.partition().local_log.append_as_leader(batch(b"other"), 1)
    work(me)
    copy = me.partition().future_log
    assert copy is not None
    assert copy.batches == me.partition().local_log.batches


def test_a_replica_with_a_later_start_restarts_its_future_log_there():
    me = leading(b"a", b"b", b"c")
    move(me)
    fetcher(me).maybe_truncate()
    delete_records_on_leader(me.partition(), 2)
    work(me)
    future = me.partition().future_log
    assert future is not None
    assert (future.log_start_offset, future.log_end_offset) == (2, 3)


def test_a_new_leader_epoch_continues_the_copy():
    me = leading(b"a")
    move(me)
    work(me)
    me.hear(change(leader=3))
    assert fetcher(me).states()[tp()].current_leader_epoch == 1
    work(me)
    assert me.controller.assignments == [(HERE, D2), (HERE, D2)]


def test_a_deleted_topic_deletes_its_future_logs():
    me = leading(b"a")
    move(me)
    work(me)
    transitions = me.hear(r.RemoveTopicRecord(topic_id=FOO))
    assert TransitionKind.LOG_DELETED in kinds(transitions)
    assert me.logs.get_log(tp(), is_future=True) is None
    assert fetcher(me).partition_count == 0


def test_a_failed_target_directory_ends_the_move_and_the_replica_stays():
    me = leading(b"a")
    move(me)
    me.manager.handle_log_dir_failure("d2")
    assert me.partition().local_log.directory == "d1"
    assert me.partition().future_log is None
    assert fetcher(me).partition_count == 0


def test_a_directory_that_fails_when_a_replica_has_left_it_does_not_take_the_replica_offline():
    class Failing(MemoryLogManager):
        def _discard(self, log):
            self.handle_log_dir_failure(log.directory)
            raise KafkaStorageError("Read-only file system")

    me = started(topic(), partition(leader=1, isr=(1,)), log_manager=Failing({"d1": D1, "d2": D2}), moving=True)
    append(me)
    move(me)
    work(me)
    me.controller.on_accepted()
    work(me)
    me.manager.handle_log_dir_failure("d1")
    assert (me.partition().local_log.directory, me.partition().future_log) == ("d2", None)
    assert me.controller.failures == [D1]


@pytest.mark.parametrize("failing", ["d1", "d2"])
def test_a_copy_may_replace_its_log_while_the_failure_of_a_directory_is_handled(failing, monkeypatch):
    me = started(topic(), partition(leader=2), moving=True)
    move(me)
    work(me)
    me.controller.on_accepted()
    fetchers = me.manager.log_dir_fetchers
    remove = fetchers.remove_fetcher_for_partitions

    def at_last(partitions):
        work(me)  # the fetcher holds its lock meanwhile, so that its partitions are removed afterwards
        return remove(partitions)

    monkeypatch.setattr(fetchers, "remove_fetcher_for_partitions", at_last)
    me.manager.handle_log_dir_failure(failing)
    if failing == "d1":
        assert me.partition().local_log.directory == "d2"
        assert me.fetched() == {tp(): (2, 0, 0)}
    else:
        assert isinstance(me.manager.hosted(tp()), OfflinePartition)
        assert me.fetched() == {}


def test_metadata_may_come_between_the_failure_of_a_target_directory_and_its_handling():
    me = leading(b"a")
    move(me)
    me.logs.handle_log_dir_failure("d2")
    me.hear(change(leader=1, isr=(1,)))
    me.manager.handle_log_dir_failure("d2")
    assert me.partition().local_log.directory == "d1"
    assert me.partition().future_log is None
    assert me.controller.failures == [D2]


def test_the_quota_delays_and_counts_moves():
    me = leading(b"a" * 100)
    move(me)
    quota = ReplicationQuota(me.clock)
    quota.bytes_per_second = 1
    fetcher(me)._quota = quota
    work(me, 1)
    assert copied(me) == 1
    assert quota.is_exceeded()
    append(me)
    work(me)
    assert copied(me) == 1
    me.clock.advance(1_000_000)
    work(me)
    assert copied(me) == 2


@pytest.mark.parametrize("accepted", [True, False])
def test_a_restart_promotes_accepted_future_logs_and_continues_the_others(accepted):
    me = leading(b"a", b"b")
    move(me)
    work(me)
    me.partition().local_log.maybe_increment_log_start_offset(1)
    if accepted:
        me.hear(change(directories=(D2, D1, D1)))
    again = Broker(log_manager=me.logs, moving=True)
    me.logs.startup({"foo"}, lambda topic_id, number: topic_id != FOO)
    me.logs.recover_abandoned_future_logs(1, me.view.image.topics)
    again.view.image = me.view.image
    apply_delta(again.manager, hosted_delta(me.view.image, 1), me.view.image)
    log = again.partition().local_log
    assert (log.directory, log.log_start_offset) == ("d2" if accepted else "d1", 1)
    assert (again.partition().future_log is None) == accepted
    assert len(again.manager.log_dir_fetchers.fetchers()) == (0 if accepted else 1)


@pytest.mark.parametrize("kept", [2, 1])
def test_a_restart_does_not_promote_a_copy_with_other_records(kept):
    me = leading(b"a", b"b")
    move(me)
    work(me)
    log = me.partition().local_log
    log.truncate_to(kept)
    log.append_as_leader(batch(b"c"), 5)
    me.hear(change(directories=(D2, D1, D1)))
    again = Broker(log_manager=me.logs, moving=True)
    me.logs.recover_abandoned_future_logs(1, me.view.image.topics)
    again.view.image = me.view.image
    apply_delta(again.manager, hosted_delta(me.view.image, 1), me.view.image)
    assert again.partition().local_log.batches == log.batches
    assert again.partition().future_log is not None
    assert len(again.manager.log_dir_fetchers.fetchers()) == 1


def test_stray_logs_are_set_aside_when_a_broker_starts():
    logs = MemoryLogManager({"d1": D1, "d2": D2})
    me = started(topic(), partition(leader=1), log_manager=logs)
    move(me)
    logs.startup({"foo"}, lambda topic_id, number: (topic_id, number) == (FOO, 0))
    assert (logs.get_log(tp()), logs.get_log(tp(), is_future=True)) == (None, None)
    assert list(logs.stray_logs) == [tp()]
