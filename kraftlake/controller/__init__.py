"""The controller: turns commands into validated records, appends them, and answers when they are durable.

The logic is pure: a command is a function of `ControllerState`, and `ActiveController` runs the commands of one epoch
against the pending image. `QuorumController` adds threads and an election; `EmbeddedController` runs a few commands in
a tool. The exported names are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftlake.runtime.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from kraftlake.controller.cluster.brokers import (
        BrokerHeartbeatReply,
        process_heartbeat,
        register_broker,
        unregister_broker,
    )
    from kraftlake.controller.cluster.controllers import ControllerRegistrationRequest, register_controller
    from kraftlake.controller.cluster.producer_ids import allocate_producer_ids
    from kraftlake.controller.cluster.supported_features import SUPPORTED
    from kraftlake.controller.config import ControllerConfig
    from kraftlake.controller.configs.alter_configs import (
        ConfigOperation,
        OpType,
        altered_value,
        incremental_alter_configs,
        legacy_alter_configs,
    )
    from kraftlake.controller.configs.config_schema import fallback_sources, in_milliseconds
    from kraftlake.controller.errors import ApiError, ControllerApiError
    from kraftlake.controller.quorum.active_controller import ActiveController, Executed
    from kraftlake.controller.quorum.bootstrap import BootstrapMetadata, BootstrapSnapshot, format_lake, open_controlled
    from kraftlake.controller.quorum.embedded import EmbeddedController
    from kraftlake.controller.quorum.quorum_controller import QuorumController
    from kraftlake.controller.quorum.trial_controller import TrialController
    from kraftlake.controller.replication.alter_partition import IsrChange, alter_partition
    from kraftlake.controller.replication.directories import assign_replicas_to_dirs
    from kraftlake.controller.replication.elections import ElectionType, elect_leaders
    from kraftlake.controller.replication.reassignments import (
        alter_partition_reassignments,
        list_partition_reassignments,
    )
    from kraftlake.controller.replication.topics import (
        CLUSTER_METADATA_TOPIC,
        CreatableTopic,
        CreatedTopic,
        NewPartitions,
        create_partitions,
        create_topics,
        delete_topics,
    )
    from kraftlake.controller.result import ControllerResult
    from kraftlake.controller.state import Command, ControllerState


__all__ = [
    "CLUSTER_METADATA_TOPIC",
    "SUPPORTED",
    "ActiveController",
    "ApiError",
    "BootstrapMetadata",
    "BootstrapSnapshot",
    "BrokerHeartbeatReply",
    "Command",
    "ConfigOperation",
    "ControllerApiError",
    "ControllerConfig",
    "ControllerRegistrationRequest",
    "ControllerResult",
    "ControllerState",
    "CreatableTopic",
    "CreatedTopic",
    "ElectionType",
    "EmbeddedController",
    "Executed",
    "IsrChange",
    "NewPartitions",
    "OpType",
    "QuorumController",
    "TrialController",
    "allocate_producer_ids",
    "alter_partition",
    "alter_partition_reassignments",
    "altered_value",
    "assign_replicas_to_dirs",
    "create_partitions",
    "create_topics",
    "delete_topics",
    "elect_leaders",
    "fallback_sources",
    "format_lake",
    "in_milliseconds",
    "incremental_alter_configs",
    "legacy_alter_configs",
    "list_partition_reassignments",
    "open_controlled",
    "process_heartbeat",
    "register_broker",
    "register_controller",
    "unregister_broker",
]

__getattr__, __dir__ = lazy_exports(__name__, __all__)
