"""An image as one JSON object, in the form that `kraftlake image --json` prints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from kraftlake.image.acls_image import StandardAcl
from kraftlake.image.broker_registration import BrokerRegistration
from kraftlake.image.client_quotas_image import ClientQuotaEntity, ClientQuotaImage
from kraftlake.image.configurations_image import ConfigResource, ConfigurationImage
from kraftlake.image.controller_registration import ControllerRegistration
from kraftlake.image.delegation_token_image import DelegationTokenData
from kraftlake.image.endpoint import Endpoint, VersionRange
from kraftlake.image.features_image import FeaturesImage
from kraftlake.image.scram_image import ScramCredentialData, mechanism_name
from kraftlake.image.topics.partition_registration import PartitionRegistration
from kraftlake.image.topics.topic_image import TopicImage
from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.records.redaction import redact_config, redact_delegation_token, redact_scram

if TYPE_CHECKING:
    from kraftlake.image.metadata_image import MetadataImage

Json = dict[str, Any]


def image_to_json(
    image: MetadataImage, show_secrets: bool = False, *, only_topics: Iterable[str] | None = None
) -> Json:
    """The image as plain dicts, lists, strings and numbers; numbers that are keys are strings.

    Secrets (see `records.redaction`) are `(redacted)` unless `show_secrets`. `only_topics`, if given, has the
    names of the topics to show; configs of all topics are shown.
    """
    scram, token = (scram_json, delegation_token_json) if show_secrets else (_redacted_scram, _redacted_token)
    return {
        "offset": image.provenance.offset,
        "epoch": image.provenance.epoch,
        "metadataVersion": metadata_version_json(image.features),
        "features": dict(sorted(image.features.finalized_versions.items())),
        "elrEnabled": image.features.is_elr_enabled,
        "brokers": {str(id_): broker_json(broker) for id_, broker in sorted(image.cluster.brokers.items())},
        "controllers": {str(id_): controller_json(c) for id_, c in sorted(image.cluster.controllers.items())},
        "topics": {
            name: {
                "id": str(topic.id),
                "partitions": {str(id_): partition_json(p) for id_, p in sorted(topic.partitions.items())},
            }
            for name, topic in _topics(image.topics, only_topics)
        },
        "configs": _configs_json(image.configs.resource_data, show_secrets),
        "clientQuotas": [client_quota_json(entity, quota) for entity, quota in image.client_quotas.in_order()],
        "nextProducerId": image.producer_ids.next_producer_id,
        "acls": {str(id_): acl_json(image.acls.acls[id_]) for id_ in sorted(image.acls.acls, key=str)},
        "scram": {
            mechanism_name(mechanism): {user: scram(users[user]) for user in sorted(users)}
            for mechanism, users in sorted(image.scram.mechanisms.items(), key=lambda item: item[0])
        },
        "delegationTokens": {
            id_: token(image.delegation_tokens.tokens[id_]) for id_ in sorted(image.delegation_tokens.tokens)
        },
    }


def _topics(topics: TopicsImage, only: Iterable[str] | None) -> Iterator[tuple[str, TopicImage]]:
    """The topics by name."""
    if only is None:
        yield from sorted(topics.topics_by_name().items())
        return
    for name in sorted(only):
        topic = topics.get_topic(name)
        if topic is not None:
            yield name, topic


def metadata_version_json(features: FeaturesImage) -> Json | None:
    """Level and name of the metadata.version; None if there is none."""
    version = features.metadata_version
    return None if version is None else {"level": version.level, "name": version.name}


def partition_json(partition: PartitionRegistration) -> Json:
    """One partition's state."""
    return {
        "replicas": list(partition.replicas),
        "isr": list(partition.isr),
        "elr": list(partition.elr),
        "lastKnownElr": list(partition.last_known_elr),
        "removingReplicas": list(partition.removing_replicas),
        "addingReplicas": list(partition.adding_replicas),
        "leader": partition.leader,
        "leaderEpoch": partition.leader_epoch,
        "partitionEpoch": partition.partition_epoch,
        "leaderRecoveryState": int(partition.leader_recovery_state),
        "directories": [str(directory) for directory in partition.directories],
    }


def broker_json(broker: BrokerRegistration) -> Json:
    """One broker's registration."""
    cordoned = broker.cordoned_directories
    return {
        "epoch": broker.epoch,
        "incarnationId": str(broker.incarnation_id),
        "listeners": _listeners_json(broker.listeners),
        "features": _features_json(broker.supported_features),
        "rack": broker.rack,
        "fenced": broker.fenced,
        "inControlledShutdown": broker.in_controlled_shutdown,
        "directories": [str(directory) for directory in broker.directories],
        "cordonedDirectories": None if cordoned is None else [str(directory) for directory in cordoned],
    }


def controller_json(controller: ControllerRegistration) -> Json:
    """One controller's registration."""
    return {
        "incarnationId": str(controller.incarnation_id),
        "zkMigrationReady": controller.zk_migration_ready,
        "listeners": _listeners_json(controller.listeners),
        "features": _features_json(controller.supported_features),
    }


def client_quota_json(entity: ClientQuotaEntity, image: ClientQuotaImage) -> Json:
    """The quotas of one entity."""
    return {"entity": dict(entity.entries), "quotas": dict(sorted(image.quotas.items()))}


def acl_json(acl: StandardAcl) -> Json:
    """One rule, enums as Kafka's codes."""
    return {
        "resourceType": acl.resource_type,
        "resourceName": acl.resource_name,
        "patternType": acl.pattern_type,
        "principal": acl.principal,
        "host": acl.host,
        "operation": acl.operation,
        "permissionType": acl.permission_type,
    }


def scram_json(credential: ScramCredentialData) -> Json:
    """One credential, salt and keys in hex."""
    return {
        "salt": credential.salt.hex(),
        "storedKey": credential.stored_key.hex(),
        "serverKey": credential.server_key.hex(),
        "iterations": credential.iterations,
    }


def delegation_token_json(token: DelegationTokenData) -> Json:
    """One token."""
    return {
        "tokenId": token.token_id,
        "owner": token.owner,
        "requester": token.requester,
        "renewers": list(token.renewers),
        "issueTimestamp": token.issue_timestamp,
        "maxTimestamp": token.max_timestamp,
        "expiryTimestamp": token.expiry_timestamp,
    }


def _redacted_scram(credential: ScramCredentialData) -> Json:
    return redact_scram(scram_json(credential))


def _redacted_token(token: DelegationTokenData) -> Json:
    return redact_delegation_token(delegation_token_json(token))


def _configs_json(resource_data: Mapping[ConfigResource, ConfigurationImage], show_secrets: bool) -> Json:
    by_type: dict[str, Json] = {}
    for resource, image in sorted(resource_data.items(), key=lambda item: item[0]):
        by_type.setdefault(resource.type_name, {})[resource.name] = {
            name: value if show_secrets else redact_config(resource.type, name, value)
            for name, value in sorted(image.data.items())
        }
    return by_type


def _listeners_json(listeners: Mapping[str, Endpoint]) -> Json:
    return {
        name: {"host": e.host, "port": e.port, "securityProtocol": e.security_protocol}
        for name, e in sorted(listeners.items())
    }


def _features_json(features: Mapping[str, VersionRange]) -> Json:
    return {name: [levels.min, levels.max] for name, levels in sorted(features.items())}
