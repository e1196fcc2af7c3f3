"""Immutable snapshots of the cluster: `MetadataImage`, its nine parts, and their forms as records and JSON. No I/O.

Except for the parts of an image, names are imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftlake.image.acls_image import AclsImage, StandardAcl
from kraftlake.image.broker_registration import BrokerRegistration
from kraftlake.image.client_quotas_image import ClientQuotaEntity, ClientQuotaImage, ClientQuotasImage
from kraftlake.image.cluster_image import ClusterImage
from kraftlake.image.configurations_image import ConfigResource, ConfigurationImage, ConfigurationsImage
from kraftlake.image.controller_registration import ControllerRegistration
from kraftlake.image.delegation_token_image import DelegationTokenData, DelegationTokenImage
from kraftlake.image.endpoint import Endpoint, VersionRange
from kraftlake.image.features_image import KRAFT_VERSION, METADATA_VERSION, FeaturesImage
from kraftlake.image.metadata_image import MetadataImage, image_to_json
from kraftlake.image.producer_ids_image import ProducerIdsImage
from kraftlake.image.provenance import MetadataProvenance
from kraftlake.image.scram_image import ScramCredentialData, ScramImage
from kraftlake.image.topics.directory_id import LOST, MIGRATING, UNASSIGNED, is_online
from kraftlake.image.topics.partition_registration import LeaderRecoveryState, PartitionRegistration
from kraftlake.image.topics.topic_image import TopicImage
from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.image.writer_options import CollectedLosses, ImageWriterOptions, LossHandler, refuse_loss
from kraftlake.runtime.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from kraftlake.image.broker_partitions import (
        BrokerCounts,
        BrokerPartitions,
        count_partitions_of_brokers,
        min_insync_replicas,
        partitions_of,
    )
    from kraftlake.image.cluster_counts import ClusterCounts, count_cluster
    from kraftlake.image.diff import EntryChange, FieldChange, ImageDiff, diff_images
    from kraftlake.image.json_form import JsonForm, acl_json, broker_json, partition_json
    from kraftlake.image.kafka_names import AclOperation, AclPermissionType, PatternType, ResourceType
    from kraftlake.image.nodes.image_nodes import root_node
    from kraftlake.image.nodes.kafka_text import double_text
    from kraftlake.image.nodes.node import Directory, Leaf, Node, Subject
    from kraftlake.image.nodes.paths import Found, as_literal, matching, part_of, path_of
    from kraftlake.image.partition_health import MIN_ISR, is_under_min_isr
    from kraftlake.image.scram_image import known_mechanism, mechanism_name
    from kraftlake.image.topics.packed_topics import PackedTopics
    from kraftlake.image.topics.partition_registration import NO_LEADER
    from kraftlake.image.topics.topic_names import (
        GROUP_METADATA_TOPIC,
        INTERNAL_TOPICS,
        SHARE_GROUP_STATE_TOPIC,
        TRANSACTION_STATE_TOPIC,
        problem_of_name,
    )

__all__ = [
    "GROUP_METADATA_TOPIC",
    "INTERNAL_TOPICS",
    "KRAFT_VERSION",
    "LOST",
    "METADATA_VERSION",
    "MIGRATING",
    "MIN_ISR",
    "NO_LEADER",
    "SHARE_GROUP_STATE_TOPIC",
    "TRANSACTION_STATE_TOPIC",
    "UNASSIGNED",
    "AclOperation",
    "AclPermissionType",
    "AclsImage",
    "BrokerCounts",
    "BrokerPartitions",
    "BrokerRegistration",
    "ClientQuotaEntity",
    "ClientQuotaImage",
    "ClientQuotasImage",
    "ClusterCounts",
    "ClusterImage",
    "CollectedLosses",
    "ConfigResource",
    "ConfigurationImage",
    "ConfigurationsImage",
    "ControllerRegistration",
    "DelegationTokenData",
    "DelegationTokenImage",
    "Directory",
    "Endpoint",
    "EntryChange",
    "FeaturesImage",
    "FieldChange",
    "Found",
    "ImageDiff",
    "ImageWriterOptions",
    "JsonForm",
    "LeaderRecoveryState",
    "Leaf",
    "LossHandler",
    "MetadataImage",
    "MetadataProvenance",
    "Node",
    "PackedTopics",
    "PartitionRegistration",
    "PatternType",
    "ProducerIdsImage",
    "ResourceType",
    "ScramCredentialData",
    "ScramImage",
    "StandardAcl",
    "Subject",
    "TopicImage",
    "TopicsImage",
    "VersionRange",
    "acl_json",
    "as_literal",
    "broker_json",
    "count_cluster",
    "count_partitions_of_brokers",
    "diff_images",
    "double_text",
    "image_to_json",
    "is_online",
    "is_under_min_isr",
    "known_mechanism",
    "matching",
    "mechanism_name",
    "min_insync_replicas",
    "part_of",
    "partition_json",
    "partitions_of",
    "path_of",
    "problem_of_name",
    "refuse_loss",
    "root_node",
]


__getattr__, __dir__ = lazy_exports(__name__, __all__)
