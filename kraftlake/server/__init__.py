"""Puts the rooms together into processes that run until they are told to end: followers, controllers, brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftlake.runtime.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from kraftlake.server.broker.broker_config import BrokerConfig
    from kraftlake.server.broker.broker_server import BrokerServer
    from kraftlake.server.broker.replica_server import ReplicaServer
    from kraftlake.server.cluster_up.cluster_plan import ClusterPlan, NodeKind
    from kraftlake.server.cluster_up.cluster_state import ClusterState, NodeState, NodeView
    from kraftlake.server.cluster_up.cluster_up import ClusterUp
    from kraftlake.server.cluster_up.node_process import NodeProcess
    from kraftlake.server.controller.controller_config import ControllerServerConfig
    from kraftlake.server.controller.controller_server import ControllerServer
    from kraftlake.server.follow_config import ClusterConfig, FollowConfig, MetricsConfig, read_follow_config
    from kraftlake.server.follow_service import FollowService
    from kraftlake.server.node_config import ListenerAddress, NodeSettings, parse_listener

__all__ = [
    "BrokerConfig",
    "BrokerServer",
    "ClusterConfig",
    "ClusterPlan",
    "ClusterState",
    "ClusterUp",
    "ControllerServer",
    "ControllerServerConfig",
    "FollowConfig",
    "FollowService",
    "ListenerAddress",
    "MetricsConfig",
    "NodeKind",
    "NodeProcess",
    "NodeSettings",
    "NodeState",
    "NodeView",
    "ReplicaServer",
    "parse_listener",
    "read_follow_config",
]

__getattr__, __dir__ = lazy_exports(__name__, __all__)
