"""Replicas that are to lie in another directory (AlterReplicaLogDirs). Source: ReplicaManager.alterReplicaLogDirs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kraftlake.delta import TopicPartition
from kraftlake.replica_manager.errors import (
    ErrorCode,
    InvalidTopicError,
    KafkaStorageError,
    NotLeaderOrFollowerError,
    ReplicationError,
)
from kraftlake.replica_manager.fetch.fetcher import BrokerEndPoint, InitialFetchState
from kraftlake.replica_manager.partition.hosted_partition import OfflinePartition, OnlinePartition
from kraftlake.runtime.log import get_logger

if TYPE_CHECKING:
    from kraftlake.replica_manager.replica_manager import ReplicaManager

_log = get_logger(__name__)

_LONGEST_NAME = 255
_MARK_OF_A_COPY = "." + "0" * 32 + "-future"


def alter_replica_log_dirs(
    manager: ReplicaManager, wanted: Mapping[TopicPartition, str]
) -> dict[TopicPartition, ErrorCode]:
    """Move replicas to directories, and give what came of each request; the copying goes on afterwards.

    A replica that other brokers have is made there when it comes, and answered REPLICA_NOT_AVAILABLE until then; one of
    no known partition is answered UNKNOWN_TOPIC_OR_PARTITION. One that is on its way to yet another directory turns
    round.
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
    logs = manager.log_manager
    if len(f"{name}{_MARK_OF_A_COPY}") > _LONGEST_NAME:
        raise InvalidTopicError(f"The name of {name} is too long for the folder of a copy.")
    if not logs.is_log_dir_online(directory):
        raise KafkaStorageError(f"The log directory {directory} is offline.")
    hosted = manager.hosted(name)
    if isinstance(hosted, OfflinePartition):
        raise KafkaStorageError(f"{name} lies in a log directory that is offline.")
    if isinstance(hosted, OnlinePartition):
        future = hosted.partition.future_log
        if future is not None and future.directory != directory:
            manager.log_dir_fetchers.remove_fetcher_for_partitions([name])
            hosted.partition.remove_future_log()
    logs.prefer_directory(name, directory)
    partition = manager.partition_or_raise(name)
    if partition.maybe_create_future_log(directory):
        assert partition.future_log is not None
        manager.log_dir_fetchers.add_fetcher_for_partitions(
            {
                name: InitialFetchState(
                    topic_id=partition.topic_id,
                    leader=BrokerEndPoint(manager.broker_id, "localhost", -1),
                    current_leader_epoch=partition.leader_epoch,
                    offset=partition.future_log.high_watermark,
                )
            }
        )
