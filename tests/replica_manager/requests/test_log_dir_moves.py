"""The answers to requests for another log directory (AlterReplicaLogDirs)."""

from __future__ import annotations

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.replica_manager.requests.log_dir_moves import alter_replica_log_dirs
from tests.replica_manager.brokers import D1, D2, Broker, change, partition, started, topic, tp


def asked(me: Broker, directory: str, name: TopicPartition | None = None) -> ErrorCode:
    (answer,) = alter_replica_log_dirs(me.manager, {name or tp(): directory}).values()
    return answer


def test_a_move_starts_in_the_requested_directory():
    me = started(topic(), partition(leader=1), moving=True)
    assert asked(me, "d2") is ErrorCode.NONE
    assert me.partition().future_log is me.logs.get_log(tp(), is_future=True)
    assert me.partition().future_log.directory == "d2"
    assert [f.partition_count for f in me.manager.log_dir_fetchers.fetchers().values()] == [1]


def test_a_repeated_request_for_a_move_changes_nothing():
    me = started(topic(), partition(leader=1), moving=True)
    asked(me, "d2")
    begun = me.partition().future_log
    assert asked(me, "d2") is ErrorCode.NONE
    assert me.partition().future_log is begun


def test_a_replica_in_the_requested_directory_stays():
    me = started(topic(), partition(leader=1), moving=True)
    assert asked(me, "d1") is ErrorCode.NONE
    assert me.partition().future_log is None
    assert me.manager.log_dir_fetchers.fetchers() == {}


def test_a_request_for_the_present_directory_cancels_a_move():
    me = started(topic(), partition(leader=1), moving=True)
    asked(me, "d2")
    assert asked(me, "d1") is ErrorCode.NONE
    assert (me.partition().future_log, me.logs.get_log(tp(), is_future=True)) == (None, None)
    assert [f.partition_count for f in me.manager.log_dir_fetchers.fetchers().values()] == [0]


def test_a_future_replica_is_created_in_the_requested_directory():
    me = started(topic(), partition(leader=2, replicas=(2, 3)))
    assert asked(me, "d2") is ErrorCode.REPLICA_NOT_AVAILABLE
    me.hear(change(replicas=(1, 2, 3), directories=(D1, D1, D1)))
    assert me.partition().local_log.directory == "d2"


def test_offline_and_unknown_directories_have_different_errors():
    me = started(topic(), partition(leader=1), partition(1, leader=1, directories=(D2, D1, D1)))
    me.manager.handle_log_dir_failure("d2")
    assert asked(me, "d2") is ErrorCode.KAFKA_STORAGE_ERROR
    assert asked(me, "d3") is ErrorCode.LOG_DIR_NOT_FOUND
    assert asked(me, "d1", tp(1)) is ErrorCode.KAFKA_STORAGE_ERROR


def test_a_topic_name_too_long_for_a_future_folder_is_refused():
    me = started()
    assert asked(me, "d2", TopicPartition("x" * 213, 0)) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert asked(me, "d2", TopicPartition("x" * 214, 0)) is ErrorCode.INVALID_TOPIC_EXCEPTION
