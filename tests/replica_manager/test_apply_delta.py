"""The effect of a metadata delta on a broker: one test for each rule of ReplicaManager.applyDelta."""

from __future__ import annotations

import pytest

from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.image.provenance import MetadataProvenance
from kraftlake.image.topics.directory_id import UNASSIGNED
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.records import metadata_records as r
from kraftlake.replica_manager.delta_application import apply_delta
from kraftlake.replica_manager.errors import (
    InconsistentTopicIdError,
    KafkaStorageError,
    NotLeaderOrFollowerError,
    UnknownTopicOrPartitionError,
)
from kraftlake.replica_manager.logs.memory_log import MemoryLogManager
from kraftlake.replica_manager.partition.partition import OfflinePartition
from kraftlake.replica_manager.requests.log_dir_moves import alter_replica_log_dirs
from kraftlake.replica_manager.transitions import TransitionKind
from tests.replica_manager.brokers import (
    BAR,
    D1,
    D2,
    FOO,
    Broker,
    broker,
    change,
    feature,
    kinds,
    partition,
    started,
    topic,
    tp,
)

K = TransitionKind


def test_a_new_leader_creates_its_log_in_the_assigned_directory():
    me = started(topic(), partition(leader=1, directories=(D2, D1, D1)))
    assert kinds(me.transitions) == [K.LOG_CREATED, K.BECAME_LEADER]
    assert me.partition().is_leader
    assert me.partition().local_log.directory == "d2"
    assert me.partition().leader_epoch_start_offset == 0
    assert me.fetched() == {}


def test_a_new_follower_fetches_from_its_leader():
    me = started(topic(), partition(leader=2))
    assert kinds(me.transitions) == [K.LOG_CREATED, K.BECAME_FOLLOWER, K.FETCHER_STARTED, K.FETCHING_STARTED]
    assert me.fetched() == {tp(): (2, 0, 0)}
    assert me.controller.given_up == [tp()]


def test_a_partition_without_a_leader_has_a_log_and_is_not_fetched():
    me = started(
        topic(),
        partition(leader=-1, isr=(2,)),
    )
    assert me.partition().log is not None
    assert me.fetched() == {}
    assert K.NOT_FETCHING in kinds(me.transitions)
    (follower,) = [t for t in me.transitions if t.kind is K.BECAME_FOLLOWER]
    assert follower.reason == "no replica in sync can lead: broker 2 was not elected"


def test_a_new_leader_stops_fetching():
    me = started(topic(), partition(leader=2))
    transitions = me.hear(change(leader=1))
    assert me.fetched() == {}
    assert kinds(transitions) == [K.FETCHING_STOPPED, K.BECAME_LEADER, K.FETCHER_STOPPED]


def test_a_change_of_the_isr_alone_restarts_no_fetching():
    me = started(topic(), partition(leader=2))
    transitions = me.hear(change(isr=(1, 2)))
    assert kinds(transitions) == [K.FOLLOWER_UPDATED]
    assert me.controller.given_up == [tp()]


def test_a_new_leader_epoch_of_the_same_leader_restarts_fetching():
    me = started(topic(), partition(leader=2))
    transitions = me.hear(change(leader=2))
    assert kinds(transitions) == [K.BECAME_FOLLOWER, K.FETCHING_STOPPED, K.FETCHING_STARTED]
    assert me.fetched() == {tp(): (2, 0, 1)}
    assert me.controller.given_up == [tp(), tp()]


def test_deletes_come_first_so_that_a_new_topic_can_have_the_same_name():
    me = started(topic(), partition(leader=1))
    transitions = me.hear(r.RemoveTopicRecord(topic_id=FOO), topic(topic_id=BAR), partition(leader=2, topic_id=BAR))
    assert kinds(transitions) == [
        K.LOG_DELETED, K.LOG_CREATED, K.BECAME_FOLLOWER, K.FETCHER_STARTED, K.FETCHING_STARTED,
    ]  # fmt: skip
    assert transitions[0].reason == "the topic was deleted"
    assert me.partition().topic_id == BAR


def test_a_removed_replica_is_deleted_and_its_waiting_requests_are_answered():
    me = started(topic(), partition(leader=1))
    (deleted,) = me.hear(change(replicas=(2, 3), isr=(2, 3), leader=2, directories=(D1, D1)))
    assert (deleted.kind, deleted.reason) == (K.LOG_DELETED, "broker 1 is no longer one of its replicas")
    assert me.manager.hosted(tp()) is None
    assert me.logs.get_log(tp()) is None
    assert me.controller.given_up == [tp()]


def test_a_snapshot_ends_replicas_that_were_reassigned_while_it_was_not_heard():
    me = started(topic(), partition(leader=1), partition(1, leader=2), partition(2, leader=1))
    moved = {"replicas": (2, 3), "isr": (2, 3), "leader": 2, "directories": (D1, D1), "epoch": 7}
    delta = MetadataDelta(me.view.image)
    for record in (
        feature(), broker(1), broker(2), broker(3),
        topic(), partition(0, **moved), partition(1, **moved), partition(2, leader=1),
    ):  # fmt: skip
        delta.replay(record)
    delta.finish_snapshot()
    image = delta.apply(MetadataProvenance(offset=100, epoch=1))
    assert not delta.topics_delta.local_changes(1).deletes, "to a snapshot's delta all partitions are new, as in Kafka"
    del me.transitions[:]
    me.view.image = image
    me.manager.stop_reassigned(image)
    apply_delta(me.manager, delta.topics_delta, image)
    assert [t.kind for t in me.transitions if t.partition == tp(0)] == [K.LOG_DELETED]
    assert set(me.manager.hosted_partitions()) == {tp(2)}
    assert me.fetched() == {}
    assert set(me.logs.logs()) == {tp(2)}


def test_a_log_in_an_offline_directory_is_not_deleted_and_the_reason_is_reported():
    me = started(topic(), partition(0, leader=1), partition(1, leader=1, directories=(D2, D1, D1)))
    me.manager.handle_log_dir_failure("d2")
    transitions = me.hear(r.RemoveTopicRecord(topic_id=FOO))
    assert kinds(transitions) == [K.LOG_DELETED, K.LOG_DELETE_FAILED]
    assert transitions[1].reason == "its log directory is offline"


def test_any_other_failure_of_a_delete_is_reported_with_its_type():
    class Stubborn(MemoryLogManager):
        def delete_logs(self, partitions, on_error):
            for name in partitions:
                on_error(name, PermissionError("read-only"))

    me = started(topic(), partition(leader=1), log_manager=Stubborn({"d1": D1}))
    (failed,) = me.hear(r.RemoveTopicRecord(topic_id=FOO))
    assert (failed.kind, failed.reason) == (K.LOG_DELETE_FAILED, "PermissionError: read-only")


def test_an_older_partition_epoch_is_ignored():
    me = started(topic(), partition(leader=1, epoch=5))
    me.partition().partition_epoch = 9
    (transition,) = me.hear(change(leader=2))
    assert transition.kind is K.STALE_EPOCH_IGNORED
    assert transition.reason == "partition epoch 6 is older than 9"
    assert me.partition().is_leader


def test_an_equal_partition_epoch_is_applied():
    me = started(topic(), partition(leader=1, epoch=5))
    me.partition().partition_epoch = 6
    assert kinds(me.hear(change(isr=(1, 2)))) == [K.LEADER_UPDATED]


def test_a_fetcher_is_reused_only_at_the_same_address():
    me = started(topic(), partition(0, leader=2), partition(1, leader=2))
    first = me.manager.replica_fetchers.fetchers()[2, 0]
    me.hear(change(0, leader=2))
    assert me.manager.replica_fetchers.fetchers()[2, 0] is first
    transitions = me.hear(broker(2, epoch=500, port=7777), change(0, leader=2))
    assert me.manager.replica_fetchers.fetchers()[2, 0] is not first
    assert K.FETCHER_STOPPED in kinds(transitions)


def test_idle_fetchers_are_shut_down():
    me = started(topic(), partition(leader=2))
    assert K.FETCHER_STOPPED in kinds(me.hear(change(leader=3)))
    assert list(me.manager.replica_fetchers.fetchers()) == [(3, 0)]


@pytest.mark.parametrize(
    ("leader", "record", "reason"),
    [
        (3, r.UnregisterBrokerRecord(broker_id=3, broker_epoch=103), "its leader, broker 3, is not registered"),
        (3, broker(3, epoch=400, name="OTHER"), "its leader, broker 3, has no listener PLAINTEXT"),
    ],
)
def test_a_leader_that_cannot_be_reached_is_not_fetched_from(leader, record, reason):
    me = started(topic(), partition(leader=2))
    transitions = me.hear(record, change(leader=leader))
    assert [t.reason for t in transitions if t.kind is K.NOT_FETCHING] == [reason]
    assert me.fetched() == {}


def test_in_controlled_shutdown_followers_without_a_leader_or_out_of_the_isr_are_stopped():
    me = started(topic(), *(partition(number, leader=2) for number in range(3)))
    me.manager.begin_controlled_shutdown()
    transitions = me.hear(change(0, leader=-1), change(1, isr=(2, 3), leader=3), change(2, leader=3))
    assert [(str(t.partition), t.reason) for t in transitions if t.kind is K.REPLICA_STOPPED] == [
        ("foo-0", "the broker is shutting down and the partition has no leader"),
        ("foo-1", "the broker is shutting down and is not in the ISR"),
    ]
    assert me.fetched() == {tp(2): (3, 0, 1)}
    assert me.logs.get_log(tp(0)) is not None


def test_the_directory_of_a_replica_is_reported_when_the_metadata_has_another_one():
    me = started(topic(), partition(leader=1, directories=(UNASSIGNED, D1, D1)))
    ((reported, directory),) = me.controller.assignments
    assert (reported.topic_id, reported.topic_partition, directory) == (FOO, tp(), D1)
    me.hear(change(directories=(D1, D1, D1)))
    assert len(me.controller.assignments) == 1


def test_no_directory_is_reported_at_a_metadata_version_without_directories():
    me = Broker()
    me.hear(feature(16), broker(1), broker(2), broker(3), topic(), partition(leader=1, directories=()))
    assert me.controller.assignments == []


def test_a_failed_directory_takes_its_partitions_offline():
    me = started(topic(), partition(0, leader=1), partition(1, leader=2, directories=(D2, D1, D1)))
    me.manager.handle_log_dir_failure("d2")
    assert isinstance(me.manager.hosted(tp(1)), OfflinePartition)
    assert me.fetched() == {}
    assert me.controller.failures == [D2]
    with pytest.raises(KafkaStorageError):
        me.manager.partition_or_raise(tp(1))
    me.manager.handle_log_dir_failure("d2")
    assert me.controller.failures == [D2]


def test_a_directory_that_the_log_manager_has_taken_offline_takes_its_partitions_offline():
    me = started(topic(), partition(0, leader=1), partition(1, leader=2, directories=(D2, D1, D1)))
    me.logs.handle_log_dir_failure("d2")
    for _ in range(2):
        me.manager.handle_log_dir_failure("d2")
    assert isinstance(me.manager.hosted(tp(1)), OfflinePartition)
    assert me.controller.failures == [D2]


def test_an_offline_partition_stays_offline():
    me = started(topic(), partition(0, leader=2))
    me.manager.handle_log_dir_failure("d1")
    transition, *_ = me.hear(change(0, leader=1))
    assert (transition.kind, transition.reason) == (K.PARTITION_OFFLINE, "it lies in a log directory that is offline")


@pytest.mark.parametrize("deltas", [1, 2])
def test_a_new_topic_with_the_name_of_an_offline_one_is_hosted(deltas):
    me = started(topic(), partition(0, leader=1, directories=(D2, D1, D1)))
    me.manager.handle_log_dir_failure("d2")
    deleted, created = r.RemoveTopicRecord(topic_id=FOO), (topic(topic_id=BAR), partition(leader=1, topic_id=BAR))
    transitions = me.hear(deleted, *created) if deltas == 1 else [*me.hear(deleted), *me.hear(*created)]
    assert [t.kind for t in transitions][:2] == [K.LOG_DELETE_FAILED, K.LOG_CREATED]
    assert (me.partition().topic_id, me.partition().local_log.directory) == (BAR, "d1")


def test_a_failed_creation_of_a_log_takes_only_its_partition_offline():
    class Full(MemoryLogManager):
        def get_or_create_log(self, topic_partition, **how):
            if topic_partition.partition in (0, 1):
                raise KafkaStorageError("no space")
            return super().get_or_create_log(topic_partition, **how)

    me = started(
        topic(), partition(0, leader=1), partition(1, leader=2), partition(2, leader=1), log_manager=Full({"d1": D1})
    )
    assert [str(t.partition) for t in me.transitions if t.kind is K.PARTITION_OFFLINE] == ["foo-0", "foo-1"]
    assert me.manager.replica_fetchers.failed_partitions == {tp(1)}
    assert me.partition(2).is_leader


def test_a_log_that_may_lie_in_an_offline_directory_is_not_created_elsewhere():
    me = started(topic("other", BAR), partition(leader=1, topic_id=BAR))
    me.manager.handle_log_dir_failure("d2")
    transitions = me.hear(topic(), partition(0, leader=1, directories=(D2, D1, D1)), partition(1, leader=1))
    assert [(str(t.partition), t.kind) for t in transitions if t.kind is K.REPLICA_FAILED] == [
        ("foo-0", K.REPLICA_FAILED)
    ]
    assert me.partition(1).is_leader
    assert me.logs.get_log(tp(0)) is None


def test_moves_to_another_directory_continue_after_a_delta():
    me = started(topic(), partition(leader=2))
    assert alter_replica_log_dirs(me.manager, {tp(): "d2"}) == {tp(): ErrorCode.NONE}
    me.hear(change(leader=3))
    assert me.partition().future_log is not None
    assert list(me.manager.log_dir_fetchers.fetchers()) == [(1, 0)]
    me.manager.handle_log_dir_failure("d2")
    assert me.partition().future_log is None
    assert me.manager.log_dir_fetchers.fetchers()[1, 0].partition_count == 0


def test_a_partition_hosted_for_another_topic_is_refused():
    me = started(topic(), partition(leader=1))
    with pytest.raises(InconsistentTopicIdError):
        me.manager.get_or_create_partition(tp(), BAR)


def test_errors_distinguish_other_brokers_partitions_from_unknown_ones():
    me = started(topic(), partition(leader=2, replicas=(2, 3)))
    with pytest.raises(NotLeaderOrFollowerError):
        me.manager.partition_or_raise(tp())
    with pytest.raises(UnknownTopicOrPartitionError):
        me.manager.partition_or_raise(tp(7))


def test_high_watermarks_are_checkpointed_and_read_again_within_the_log():
    me = started(topic(), partition(leader=1, replicas=(1,)))
    me.manager.shutdown()
    assert me.logs.checkpointed_high_watermark("d1", tp()) == 0
    me.logs.write_high_watermarks("d1", {tp(): 77})
    again = started(topic(), partition(leader=2), log_manager=me.logs)
    assert again.partition().local_log.high_watermark == 0
