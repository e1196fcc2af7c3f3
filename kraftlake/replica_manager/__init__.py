"""One broker: its partitions as leader and follower, what metadata deltas make of them, and their replay from a log.

What is re-exported here is imported when it is first asked for, so that naming the room costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftlake.runtime.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from kraftlake.replica_manager.alter_partition_manager import BatchingAlterPartitionManager, ControllerChannel
    from kraftlake.replica_manager.assignments_manager import AssignmentsManager, DirectoriesChannel
    from kraftlake.replica_manager.config import ReplicaManagerConfig
    from kraftlake.replica_manager.controller_channel import AlterPartitionManager, DirectoryEventHandler, LeaderAndIsr
    from kraftlake.replica_manager.fetch.fetcher import (
        BrokerEndPoint,
        Fetcher,
        FetcherFactory,
        FetcherFigures,
        InitialFetchState,
    )
    from kraftlake.replica_manager.fetch.fetcher_thread import ReplicaFetcherThread
    from kraftlake.replica_manager.fetch.leader_end_point import FetchRequest, FetchResponse, LeaderEndPoint
    from kraftlake.replica_manager.fetch.log_dir_fetcher import LogDirFetcher
    from kraftlake.replica_manager.fetch.replica_fetcher import ReplicaFetcher
    from kraftlake.replica_manager.logs.log_config import LogConfig
    from kraftlake.replica_manager.logs.log_dirs import LogDirReport, check_log_dirs, compare_log_dirs
    from kraftlake.replica_manager.logs.log_manager import LogManager
    from kraftlake.replica_manager.logs.memory_log import MemoryPartitionLog
    from kraftlake.replica_manager.logs.memory_log_manager import MemoryLogManager
    from kraftlake.replica_manager.logs.partition_log import PartitionLog
    from kraftlake.replica_manager.metadata_view import ImageView, MetadataView
    from kraftlake.replica_manager.partition.partition import Partition
    from kraftlake.replica_manager.replay.broker_replay import BrokerReplay, ReplayStep
    from kraftlake.replica_manager.replay.causes import Cause
    from kraftlake.replica_manager.replay.replayed_broker import ReplayedBroker
    from kraftlake.replica_manager.replay.transition_json import summary_to_json, transition_to_json
    from kraftlake.replica_manager.replica_manager import ReplicaManager
    from kraftlake.replica_manager.replication_metrics import gauges, register_metrics
    from kraftlake.replica_manager.replication_quota import ReplicationQuota
    from kraftlake.replica_manager.requests.delayed_requests import DelayedRequests
    from kraftlake.replica_manager.requests.expiration_reaper import ExpirationReaper
    from kraftlake.replica_manager.requests.fetch_contexts import FetchManager
    from kraftlake.replica_manager.requests.fetch_serving import serve_fetch
    from kraftlake.replica_manager.requests.fetch_session_cache import FetchSessionCache
    from kraftlake.replica_manager.requests.log_dir_moves import alter_replica_log_dirs
    from kraftlake.replica_manager.requests.request_server import RequestServer
    from kraftlake.replica_manager.topic_config_handler import TopicConfigHandler
    from kraftlake.replica_manager.transitions import FetcherName, Transition, TransitionKind


__all__ = [
    "AlterPartitionManager",
    "AssignmentsManager",
    "BatchingAlterPartitionManager",
    "BrokerEndPoint",
    "BrokerReplay",
    "Cause",
    "ControllerChannel",
    "DelayedRequests",
    "DirectoriesChannel",
    "DirectoryEventHandler",
    "ExpirationReaper",
    "FetchManager",
    "FetchRequest",
    "FetchResponse",
    "FetchSessionCache",
    "Fetcher",
    "FetcherFactory",
    "FetcherFigures",
    "FetcherName",
    "ImageView",
    "InitialFetchState",
    "LeaderAndIsr",
    "LeaderEndPoint",
    "LogConfig",
    "LogDirFetcher",
    "LogDirReport",
    "LogManager",
    "MemoryLogManager",
    "MemoryPartitionLog",
    "MetadataView",
    "Partition",
    "PartitionLog",
    "ReplayStep",
    "ReplayedBroker",
    "ReplicaFetcher",
    "ReplicaFetcherThread",
    "ReplicaManager",
    "ReplicaManagerConfig",
    "ReplicationQuota",
    "RequestServer",
    "TopicConfigHandler",
    "Transition",
    "TransitionKind",
    "alter_replica_log_dirs",
    "check_log_dirs",
    "compare_log_dirs",
    "gauges",
    "register_metrics",
    "serve_fetch",
    "summary_to_json",
    "transition_to_json",
]

__getattr__, __dir__ = lazy_exports(__name__, __all__)
