"""What comes of asking for another directory (AlterReplicaLogDirs)."""

from __future__ import annotations

from kraftlake.delta import TopicPartition
from kraftlake.replica_manager.errors import ErrorCode
from kraftlake.replica_manager.requests.log_dir_moves import alter_replica_log_dirs
from tests.replica_manager.brokers import D1, D2, Broker, change, partition, started, topic, tp


def asked(me: Broker, directory: str, name: TopicPartition | None = None) -> ErrorCode:
    (answer,) = alter_replica_log_dirs(me.manager, {name or tp(): directory}).values()
    return answer


def test_a_copy_begins_in_the_directory_asked_for():
    me = started(topic(), partition(leader=1), moving=True)
    assert asked(me, "d2") is ErrorCode.NONE
    assert me.partition().future_log is me.logs.get_log(tp(), is_future=True)
    assert me.partition().future_log.directory == "d2"
    assert [f.partition_count for f in me.manager.log_dir_fetchers.fetchers().values()] == [1]


def test_asking_twice_is_asking_once():
    me = started(topic(), partition(leader=1), moving=True)
    asked(me, "d2")
    begun = me.partition().future_log
    assert asked(me, "d2") is ErrorCode.NONE
    assert me.partition().future_log is begun


def test_a_replica_that_lies_there_stays():
    me = started(topic(), partition(leader=1), moving=True)
    assert asked(me, "d1") is ErrorCode.NONE
    assert me.partition().future_log is None
    assert me.manager.log_dir_fetchers.fetchers() == {}


def test_asking_for_where_it_lies_gives_a_move_up():
    me = started(topic(), partition(leader=1), moving=True)
    asked(me, "d2")
    assert asked(me, "d1") is ErrorCode.NONE
    assert (me.partition().future_log, me.logs.get_log(tp(), is_future=True)) == (None, None)
    assert [f.partition_count for f in me.manager.log_dir_fetchers.fetchers().values()] == [0]


def test_a_replica_that_is_not_here_yet_is_made_there_when_it_comes():
    me = started(topic(), partition(leader=2, replicas=(2, 3)))
    assert asked(me, "d2") is ErrorCode.REPLICA_NOT_AVAILABLE
    me.hear(change(replicas=(1, 2, 3), directories=(D1, D1, D1)))
    assert me.partition().local_log.directory == "d2"


def test_directories_that_are_offline_or_unknown_are_told_apart():
    me = started(topic(), partition(leader=1), partition(1, leader=1, directories=(D2, D1, D1)))
    me.manager.handle_log_dir_failure("d2")
    assert asked(me, "d2") is ErrorCode.KAFKA_STORAGE_ERROR
    assert asked(me, "d3") is ErrorCode.LOG_DIR_NOT_FOUND
    assert asked(me, "d1", tp(1)) is ErrorCode.KAFKA_STORAGE_ERROR


def test_a_topic_whose_name_leaves_no_room_for_a_copys_folder_is_refused():
    me = started()
    assert asked(me, "d2", TopicPartition("x" * 213, 0)) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert asked(me, "d2", TopicPartition("x" * 214, 0)) is ErrorCode.INVALID_TOPIC_EXCEPTION
