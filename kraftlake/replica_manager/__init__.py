"""One broker: its partitions as leader and follower, the metadata deltas that change them, and their replay from a log.

The exported names are imported on first use, so that an import of the room costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftlake.runtime.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from kraftlake.replica_manager.alter_partition_manager import BatchingAlterPartitionManager
    from kraftlake.replica_manager.assignments_manager import AssignmentsManager
    from kraftlake.replica_manager.broker_context import BrokerContext
    from kraftlake.replica_manager.config import ReplicaManagerConfig
    from kraftlake.replica_manager.errors import CorruptRecordError
    from kraftlake.replica_manager.fetch.fetcher_thread import ReplicaFetcherThread
    from kraftlake.replica_manager.fetch.fetcher_threads import FetcherThreads
    from kraftlake.replica_manager.fetch.leader_end_point import FetchedPartition, FetchRequest, FetchResponse
    from kraftlake.replica_manager.fetch.remote_end_point import RemoteLeaderEndPoint
    from kraftlake.replica_manager.lifecycle.broker_lifecycle import BrokerLifecycle, LifecycleConfig, LifecycleState
    from kraftlake.replica_manager.lifecycle.broker_lifecycle_manager import BrokerLifecycleManager
    from kraftlake.replica_manager.logs.disk.disk_log_manager import DiskLogManager
    from kraftlake.replica_manager.logs.log_config import LogConfig
    from kraftlake.replica_manager.logs.log_dirs import LogDirReport, check_log_dirs, compare_log_dirs
    from kraftlake.replica_manager.logs.memory_log import MemoryPartitionLog
    from kraftlake.replica_manager.logs.memory_log_manager import MemoryLogManager
    from kraftlake.replica_manager.logs.partition_log import FetchIsolation
    from kraftlake.replica_manager.metadata_view import MetadataView
    from kraftlake.replica_manager.node_to_controller_channel import NodeToControllerChannel
    from kraftlake.replica_manager.partition.leader import FetchParams, FetchPartition
    from kraftlake.replica_manager.replay.broker_replay import BrokerReplay, ReplayStep
    from kraftlake.replica_manager.replay.causes import Cause
    from kraftlake.replica_manager.replay.replayed_broker import ReplayedBroker
    from kraftlake.replica_manager.replay.transition_json import summary_to_json, transition_to_json
    from kraftlake.replica_manager.replica_manager import ReplicaManager
    from kraftlake.replica_manager.replication_quota import ReplicationQuota
    from kraftlake.replica_manager.requests.delayed_delete_records import DeleteRecordsAnswer
    from kraftlake.replica_manager.requests.delayed_produce import ProduceAnswer
    from kraftlake.replica_manager.requests.delayed_requests import DelayedRequests
    from kraftlake.replica_manager.requests.expiration_reaper import ExpirationReaper
    from kraftlake.replica_manager.requests.fetch_contexts import FetchManager
    from kraftlake.replica_manager.requests.fetch_serving import serve_fetch
    from kraftlake.replica_manager.requests.fetch_session_cache import FetchSessionCache
    from kraftlake.replica_manager.requests.request_server import ListedOffset, RequestServer
    from kraftlake.replica_manager.topic_config_handler import TopicConfigHandler
    from kraftlake.replica_manager.transitions import FetcherName, Transition, TransitionKind


__all__ = [
    "AssignmentsManager",
    "BatchingAlterPartitionManager",
    "BrokerContext",
    "BrokerLifecycle",
    "BrokerLifecycleManager",
    "BrokerReplay",
    "Cause",
    "CorruptRecordError",
    "DelayedRequests",
    "DeleteRecordsAnswer",
    "DiskLogManager",
    "ExpirationReaper",
    "FetchIsolation",
    "FetchManager",
    "FetchParams",
    "FetchPartition",
    "FetchRequest",
    "FetchResponse",
    "FetchSessionCache",
    "FetchedPartition",
    "FetcherName",
    "FetcherThreads",
    "LifecycleConfig",
    "LifecycleState",
    "ListedOffset",
    "LogConfig",
    "LogDirReport",
    "MemoryLogManager",
    "MemoryPartitionLog",
    "MetadataView",
    "NodeToControllerChannel",
    "ProduceAnswer",
    "RemoteLeaderEndPoint",
    "ReplayStep",
    "ReplayedBroker",
    "ReplicaFetcherThread",
    "ReplicaManager",
    "ReplicaManagerConfig",
    "ReplicationQuota",
    "RequestServer",
    "TopicConfigHandler",
    "Transition",
    "TransitionKind",
    "check_log_dirs",
    "compare_log_dirs",
    "serve_fetch",
    "summary_to_json",
    "transition_to_json",
]

__getattr__, __dir__ = lazy_exports(__name__, __all__)
