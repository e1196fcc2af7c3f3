"""The change between two images: `MetadataDelta`, its nine parts, and the local changes of each broker. No I/O.

Exported names are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftlake.runtime.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from kraftlake.delta.acls_delta import AclsDelta
    from kraftlake.delta.client_quotas_delta import ClientQuotaDelta, ClientQuotasDelta
    from kraftlake.delta.cluster_delta import ClusterDelta
    from kraftlake.delta.configurations_delta import ConfigurationDelta, ConfigurationsDelta
    from kraftlake.delta.delegation_token_delta import DelegationTokenDelta
    from kraftlake.delta.features_delta import FeaturesDelta
    from kraftlake.delta.from_empty import delta_from_empty
    from kraftlake.delta.metadata_delta import MetadataDelta
    from kraftlake.delta.producer_ids_delta import ProducerIdsDelta
    from kraftlake.delta.scram_delta import ScramDelta
    from kraftlake.delta.topics.local_replica_changes import (
        LocalReplicaChanges,
        PartitionInfo,
        TopicIdPartition,
        TopicPartition,
        local_changes_to_json,
    )
    from kraftlake.delta.topics.topic_delta import TopicDelta
    from kraftlake.delta.topics.topics_delta import TopicsDelta


__all__ = [
    "AclsDelta",
    "ClientQuotaDelta",
    "ClientQuotasDelta",
    "ClusterDelta",
    "ConfigurationDelta",
    "ConfigurationsDelta",
    "DelegationTokenDelta",
    "FeaturesDelta",
    "LocalReplicaChanges",
    "MetadataDelta",
    "PartitionInfo",
    "ProducerIdsDelta",
    "ScramDelta",
    "TopicDelta",
    "TopicIdPartition",
    "TopicPartition",
    "TopicsDelta",
    "delta_from_empty",
    "local_changes_to_json",
]

__getattr__, __dir__ = lazy_exports(__name__, __all__)
