"""The publishers of brokers and controllers, which act on each new image, and the state that they keep for requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftlake.runtime.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from kraftlake.publisher.acl_cache import AclCache
    from kraftlake.publisher.authorizer import (
        Action,
        AuthorizerConfig,
        AuthorizerNotReadyError,
        Decision,
        StandardAuthorizer,
    )
    from kraftlake.publisher.broker_metadata_publisher import BrokerMetadataPublisher, BrokerParts
    from kraftlake.publisher.client_quotas import ClientQuotas
    from kraftlake.publisher.cluster_view import Cluster, PartitionInfo
    from kraftlake.publisher.controller_metrics import ControllerMetadataMetrics
    from kraftlake.publisher.coordinator_recorder import CoordinatorRecorder
    from kraftlake.publisher.credentials import CredentialProvider, DelegationTokenCache
    from kraftlake.publisher.driven import (
        Coordinator,
        DynamicConfigHandler,
        GroupCoordinator,
        LogManager,
        ReplicaManager,
        ShareCoordinator,
    )
    from kraftlake.publisher.dynamic_configs import (
        ConfigType,
        DynamicConfigPublisher,
        DynamicConfigs,
    )
    from kraftlake.publisher.features import FeaturesPublisher
    from kraftlake.publisher.ignored_configs import (
        IgnoredConfig,
        IgnoredConfigs,
        IgnoredConfigsPublisher,
        configs_without_effect,
    )
    from kraftlake.publisher.metadata_cache import MetadataCache
    from kraftlake.publisher.metadata_responses import (
        Cursor,
        DescribedTopics,
        FinalizedFeatures,
        LeaderAndIsr,
        Node,
        PartitionMetadata,
        TopicMetadata,
    )
    from kraftlake.publisher.quota_filter import FilterComponent, Match, QuotaFilter
    from kraftlake.publisher.snapshot_generator import (
        Emitter,
        LakeSnapshotEmitter,
        SnapshotEmitterMetrics,
        SnapshotGenerator,
    )
    from kraftlake.publisher.topic_cluster_quotas import ClientQuotaCallback, DynamicTopicClusterQuotaPublisher
    from kraftlake.publisher.under_min_isr import UnderMinIsrCounter


__all__ = [
    "AclCache",
    "Action",
    "AuthorizerConfig",
    "AuthorizerNotReadyError",
    "BrokerMetadataPublisher",
    "BrokerParts",
    "ClientQuotaCallback",
    "ClientQuotas",
    "Cluster",
    "ConfigType",
    "ControllerMetadataMetrics",
    "Coordinator",
    "CoordinatorRecorder",
    "CredentialProvider",
    "Cursor",
    "Decision",
    "DelegationTokenCache",
    "DescribedTopics",
    "DynamicConfigHandler",
    "DynamicConfigPublisher",
    "DynamicConfigs",
    "DynamicTopicClusterQuotaPublisher",
    "Emitter",
    "FeaturesPublisher",
    "FilterComponent",
    "FinalizedFeatures",
    "GroupCoordinator",
    "IgnoredConfig",
    "IgnoredConfigs",
    "IgnoredConfigsPublisher",
    "LakeSnapshotEmitter",
    "LeaderAndIsr",
    "LogManager",
    "Match",
    "MetadataCache",
    "Node",
    "PartitionInfo",
    "PartitionMetadata",
    "QuotaFilter",
    "ReplicaManager",
    "ShareCoordinator",
    "SnapshotEmitterMetrics",
    "SnapshotGenerator",
    "StandardAuthorizer",
    "TopicMetadata",
    "UnderMinIsrCounter",
    "configs_without_effect",
]

__getattr__, __dir__ = lazy_exports(__name__, __all__)
