"""Moves replicas to other log directories (AlterReplicaLogDirs). Source: ReplicaManager.alterReplicaLogDirs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.replica_manager.delta_application import future_fetch_state
from kraftlake.replica_manager.errors import (
    InvalidTopicError,
    KafkaStorageError,
    NotLeaderOrFollowerError,
    ReplicationError,
)
from kraftlake.replica_manager.logs.partition_folder import FUTURE, LONGEST_NAME, marked_name
from kraftlake.replica_manager.partition.partition import OfflinePartition
from kraftlake.runtime.log import get_logger

if TYPE_CHECKING:
    from kraftlake.replica_manager.replica_manager import ReplicaManager

_log = get_logger(__name__)

_ANY_ID = "0" * 32


def alter_replica_log_dirs(
    manager: ReplicaManager, wanted: Mapping[TopicPartition, str]
) -> dict[TopicPartition, ErrorCode]:
    """Start to move replicas to log directories, given by path; returns the error code of each.

    A replica that only other brokers host is answered REPLICA_NOT_AVAILABLE, and created in the directory once this
    broker hosts it. A partition that does not exist is answered UNKNOWN_TOPIC_OR_PARTITION. A replica that is moving to
    another directory moves to the new one instead.
    """
    answers: dict[TopicPartition, ErrorCode] = {}
    with manager.lock:
        for name, directory in wanted.items():
            try:
                _move(manager, name, directory)
                answers[name] = ErrorCode.NONE
            except NotLeaderOrFollowerError:
                answers[name] = ErrorCode.REPLICA_NOT_AVAILABLE
            except ReplicationError as error:
                _log.warning("log_dir_not_altered", partition=str(name), directory=directory, error=str(error))
                answers[name] = error.code
    return answers


def _move(manager: ReplicaManager, name: TopicPartition, directory: str) -> None:
    logs = manager.context.log_manager
    if len(marked_name(name, _ANY_ID, FUTURE)) > LONGEST_NAME:
        raise InvalidTopicError(f"The name of {name} is too long for the folder of a copy.")
    if not logs.is_log_dir_online(directory):
        raise KafkaStorageError(f"The log directory {directory} is offline.")
    hosted = manager.hosted(name)
    if isinstance(hosted, OfflinePartition):
        raise KafkaStorageError(f"{name} lies in a log directory that is offline.")
    if hosted is not None:
        future = hosted.future_log
        if future is not None and future.directory != directory:
            manager.log_dir_fetchers.remove_fetcher_for_partitions([name])
            hosted.remove_future_log()
    logs.prefer_directory(name, directory)
    partition = manager.partition_or_raise(name)
    if partition.maybe_create_future_log(directory):
        assert partition.future_log is not None
        manager.log_dir_fetchers.add_fetcher_for_partitions({name: future_fetch_state(partition, partition.future_log)})
