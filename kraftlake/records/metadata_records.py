"""The 27 metadata record types of Kafka 4.4, each declared once.

A test compares these declarations with the JSON schemas in Kafka's kafka-metadata jar. Field meanings are those of the
records of the same name in org.apache.kafka.common.metadata.
"""

from __future__ import annotations

import attrs

from kraftlake.records.schema import Message, Names, Primitive, Struct, Versions, array, message_types, scalar
from kraftlake.records.uuid import Uuid


@attrs.frozen(kw_only=True, eq=False, repr=False)
class BrokerEndpoint(Struct):
    """A listener of a broker."""

    name: str = scalar(Primitive.STRING, names=Names.KAFKA)
    host: str = scalar(Primitive.STRING, names=Names.HOST)
    port: int = scalar(Primitive.UINT16)
    security_protocol: int = scalar(Primitive.INT16)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class BrokerFeature(Struct):
    """A feature and its levels that a broker supports."""

    name: str = scalar(Primitive.STRING, names=Names.KAFKA)
    min_supported_version: int = scalar(Primitive.INT16)
    max_supported_version: int = scalar(Primitive.INT16)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class RegisterBrokerRecord(Message):
    """A broker process has registered: its incarnation, epoch, listeners, features, rack and log directories."""

    API_KEY = 0
    VERSIONS = Versions.parse("0-4")

    broker_id: int = scalar(Primitive.INT32)
    is_migrating_zk_broker: bool = scalar(Primitive.BOOL, False, versions="2+")
    incarnation_id: Uuid = scalar(Primitive.UUID)
    broker_epoch: int = scalar(Primitive.INT64)
    end_points: tuple[BrokerEndpoint, ...] = array(BrokerEndpoint)
    features: tuple[BrokerFeature, ...] = array(BrokerFeature)
    rack: str | None = scalar(Primitive.STRING, nullable="0+", names=Names.RACK)
    fenced: bool = scalar(Primitive.BOOL, True)
    in_controlled_shutdown: bool = scalar(Primitive.BOOL, False, versions="1+")
    log_dirs: tuple[Uuid, ...] = array(Primitive.UUID, versions="3+", tag=0)
    cordoned_log_dirs: tuple[Uuid, ...] | None = array(Primitive.UUID, None, versions="4+", nullable="4+", tag=1)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class UnregisterBrokerRecord(Message):
    """A broker has been removed from the cluster."""

    API_KEY = 1
    VERSIONS = Versions.parse("0")

    broker_id: int = scalar(Primitive.INT32)
    broker_epoch: int = scalar(Primitive.INT64)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class TopicRecord(Message):
    """A topic has been created."""

    API_KEY = 2
    VERSIONS = Versions.parse("0")

    name: str = scalar(Primitive.STRING, names=Names.TOPIC)
    topic_id: Uuid = scalar(Primitive.UUID)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class PartitionRecord(Message):
    """The whole state of a partition: on creation, and in snapshots."""

    API_KEY = 3
    VERSIONS = Versions.parse("0-2")

    partition_id: int = scalar(Primitive.INT32, -1)
    topic_id: Uuid = scalar(Primitive.UUID)
    replicas: tuple[int, ...] = array(Primitive.INT32)
    isr: tuple[int, ...] = array(Primitive.INT32)
    removing_replicas: tuple[int, ...] = array(Primitive.INT32)
    adding_replicas: tuple[int, ...] = array(Primitive.INT32)
    leader: int = scalar(Primitive.INT32, -1)
    leader_recovery_state: int = scalar(Primitive.INT8, 0, tag=0)
    leader_epoch: int = scalar(Primitive.INT32, -1)
    partition_epoch: int = scalar(Primitive.INT32, -1)
    directories: tuple[Uuid, ...] = array(Primitive.UUID, versions="1+")
    eligible_leader_replicas: tuple[int, ...] | None = array(Primitive.INT32, None, versions="2+", nullable="2+", tag=1)
    last_known_elr: tuple[int, ...] | None = array(Primitive.INT32, None, versions="2+", nullable="2+", tag=2)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class ConfigRecord(Message):
    """A dynamic config of a resource has been set, or removed (value null)."""

    API_KEY = 4
    VERSIONS = Versions.parse("0")

    resource_type: int = scalar(Primitive.INT8)
    resource_name: str = scalar(Primitive.STRING, names=Names.RESOURCE)
    name: str = scalar(Primitive.STRING, names=Names.CONFIG)
    value: str | None = scalar(Primitive.STRING, nullable="0+", secret=True)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class PartitionChangeRecord(Message):
    """A change of a partition; a field left out (null, leader -2, recovery state -1) is unchanged."""

    API_KEY = 5
    VERSIONS = Versions.parse("0-2")

    partition_id: int = scalar(Primitive.INT32, -1)
    topic_id: Uuid = scalar(Primitive.UUID)
    isr: tuple[int, ...] | None = array(Primitive.INT32, None, nullable="0+", tag=0)
    leader: int = scalar(Primitive.INT32, -2, tag=1)
    replicas: tuple[int, ...] | None = array(Primitive.INT32, None, nullable="0+", tag=2)
    removing_replicas: tuple[int, ...] | None = array(Primitive.INT32, None, nullable="0+", tag=3)
    adding_replicas: tuple[int, ...] | None = array(Primitive.INT32, None, nullable="0+", tag=4)
    leader_recovery_state: int = scalar(Primitive.INT8, -1, tag=5)
    directories: tuple[Uuid, ...] | None = array(Primitive.UUID, None, versions="1+", nullable="1+", tag=8)
    eligible_leader_replicas: tuple[int, ...] | None = array(Primitive.INT32, None, versions="2+", nullable="2+", tag=6)
    last_known_elr: tuple[int, ...] | None = array(Primitive.INT32, None, versions="2+", nullable="2+", tag=7)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class FenceBrokerRecord(Message):
    """A broker has been fenced (before metadata.version 3.3-IV2)."""

    API_KEY = 7
    VERSIONS = Versions.parse("0")

    id: int = scalar(Primitive.INT32)
    epoch: int = scalar(Primitive.INT64)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class UnfenceBrokerRecord(Message):
    """A broker has been unfenced (before metadata.version 3.3-IV2)."""

    API_KEY = 8
    VERSIONS = Versions.parse("0")

    id: int = scalar(Primitive.INT32)
    epoch: int = scalar(Primitive.INT64)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class RemoveTopicRecord(Message):
    """A topic has been deleted, with its partitions and configs."""

    API_KEY = 9
    VERSIONS = Versions.parse("0")

    topic_id: Uuid = scalar(Primitive.UUID)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class DelegationTokenRecord(Message):
    """A delegation token has been created or renewed."""

    API_KEY = 10
    VERSIONS = Versions.parse("0")

    owner: str = scalar(Primitive.STRING, secret=True, names=Names.PRINCIPAL)
    requester: str = scalar(Primitive.STRING, secret=True, names=Names.PRINCIPAL)
    renewers: tuple[str, ...] = array(Primitive.STRING, secret=True, names=Names.PRINCIPAL)
    issue_timestamp: int = scalar(Primitive.INT64, secret=True)
    max_timestamp: int = scalar(Primitive.INT64, secret=True)
    expiration_timestamp: int = scalar(Primitive.INT64, secret=True)
    token_id: str = scalar(Primitive.STRING, names=Names.TOKEN)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class UserScramCredentialRecord(Message):
    """A SCRAM credential of a user has been set."""

    API_KEY = 11
    VERSIONS = Versions.parse("0")

    name: str = scalar(Primitive.STRING, names=Names.USER)
    mechanism: int = scalar(Primitive.INT8)
    salt: bytes = scalar(Primitive.BYTES, secret=True)
    stored_key: bytes = scalar(Primitive.BYTES, secret=True)
    server_key: bytes = scalar(Primitive.BYTES, secret=True)
    iterations: int = scalar(Primitive.INT32)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class FeatureLevelRecord(Message):
    """The finalized level of a feature (metadata.version among them); 0 removes it."""

    API_KEY = 12
    VERSIONS = Versions.parse("0")

    name: str = scalar(Primitive.STRING, names=Names.KAFKA)
    feature_level: int = scalar(Primitive.INT16)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class EntityData(Struct):
    """One part of a quota entity: a type (user, client-id, ip) and a name, null for the default."""

    entity_type: str = scalar(Primitive.STRING, names=Names.KAFKA)
    entity_name: str | None = scalar(Primitive.STRING, nullable="0+", names=Names.ENTITY)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class ClientQuotaRecord(Message):
    """A quota of an entity has been set or removed."""

    API_KEY = 14
    VERSIONS = Versions.parse("0")

    entity: tuple[EntityData, ...] = array(EntityData)
    key: str = scalar(Primitive.STRING, names=Names.KAFKA)
    value: float = scalar(Primitive.FLOAT64)
    remove: bool = scalar(Primitive.BOOL)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class ProducerIdsRecord(Message):
    """A block of producer ids has been handed out."""

    API_KEY = 15
    VERSIONS = Versions.parse("0")

    broker_id: int = scalar(Primitive.INT32)
    broker_epoch: int = scalar(Primitive.INT64, -1)
    next_producer_id: int = scalar(Primitive.INT64)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class BrokerRegistrationChangeRecord(Message):
    """A change of a broker registration: fenced and in_controlled_shutdown are 1, 0 (no change) or -1."""

    API_KEY = 17
    VERSIONS = Versions.parse("0-3")

    broker_id: int = scalar(Primitive.INT32)
    broker_epoch: int = scalar(Primitive.INT64)
    fenced: int = scalar(Primitive.INT8, tag=0)
    in_controlled_shutdown: int = scalar(Primitive.INT8, versions="1+", tag=1)
    log_dirs: tuple[Uuid, ...] = array(Primitive.UUID, versions="2+", tag=2)
    cordoned_log_dirs: tuple[Uuid, ...] | None = array(Primitive.UUID, None, versions="3+", nullable="3+", tag=3)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class AccessControlEntryRecord(Message):
    """An ACL has been added."""

    API_KEY = 18
    VERSIONS = Versions.parse("0")

    id: Uuid = scalar(Primitive.UUID)
    resource_type: int = scalar(Primitive.INT8)
    resource_name: str = scalar(Primitive.STRING, names=Names.RESOURCE)
    pattern_type: int = scalar(Primitive.INT8)
    principal: str = scalar(Primitive.STRING, names=Names.PRINCIPAL)
    host: str = scalar(Primitive.STRING, names=Names.HOST)
    operation: int = scalar(Primitive.INT8)
    permission_type: int = scalar(Primitive.INT8)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class RemoveAccessControlEntryRecord(Message):
    """An ACL has been removed."""

    API_KEY = 19
    VERSIONS = Versions.parse("0")

    id: Uuid = scalar(Primitive.UUID)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class NoOpRecord(Message):
    """A record without content; written when the controller is idle, so that the end offset moves."""

    API_KEY = 20
    VERSIONS = Versions.parse("0")


@attrs.frozen(kw_only=True, eq=False, repr=False)
class ZkMigrationStateRecord(Message):
    """The state of a migration from ZooKeeper (before Kafka 4.0)."""

    API_KEY = 21
    VERSIONS = Versions.parse("0")

    zk_migration_state: int = scalar(Primitive.INT8)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class RemoveUserScramCredentialRecord(Message):
    """A SCRAM credential of a user has been removed."""

    API_KEY = 22
    VERSIONS = Versions.parse("0")

    name: str = scalar(Primitive.STRING, names=Names.USER)
    mechanism: int = scalar(Primitive.INT8)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class BeginTransactionRecord(Message):
    """A metadata transaction begins (KIP-868)."""

    API_KEY = 23
    VERSIONS = Versions.parse("0")

    name: str | None = scalar(Primitive.STRING, None, nullable="0+", tag=0)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class EndTransactionRecord(Message):
    """The metadata transaction takes effect here."""

    API_KEY = 24
    VERSIONS = Versions.parse("0")


@attrs.frozen(kw_only=True, eq=False, repr=False)
class AbortTransactionRecord(Message):
    """The metadata transaction is dropped."""

    API_KEY = 25
    VERSIONS = Versions.parse("0")

    reason: str | None = scalar(Primitive.STRING, None, nullable="0+", tag=0)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class RemoveDelegationTokenRecord(Message):
    """A delegation token has been removed."""

    API_KEY = 26
    VERSIONS = Versions.parse("0")

    token_id: str = scalar(Primitive.STRING, names=Names.TOKEN)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class ControllerEndpoint(Struct):
    """A listener of a controller."""

    name: str = scalar(Primitive.STRING, names=Names.KAFKA)
    host: str = scalar(Primitive.STRING, names=Names.HOST)
    port: int = scalar(Primitive.UINT16)
    security_protocol: int = scalar(Primitive.INT16)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class ControllerFeature(Struct):
    """A feature and its levels that a controller supports."""

    name: str = scalar(Primitive.STRING, names=Names.KAFKA)
    min_supported_version: int = scalar(Primitive.INT16)
    max_supported_version: int = scalar(Primitive.INT16)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class RegisterControllerRecord(Message):
    """A controller has registered (KIP-919)."""

    API_KEY = 27
    VERSIONS = Versions.parse("0")

    controller_id: int = scalar(Primitive.INT32)
    incarnation_id: Uuid = scalar(Primitive.UUID)
    zk_migration_ready: bool = scalar(Primitive.BOOL)
    end_points: tuple[ControllerEndpoint, ...] = array(ControllerEndpoint)
    features: tuple[ControllerFeature, ...] = array(ControllerFeature)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class ClearElrRecord(Message):
    """The eligible leader replicas of a topic (all topics: an empty name) are cleared (KIP-966)."""

    API_KEY = 28
    VERSIONS = Versions.parse("0")

    topic_name: str = scalar(Primitive.STRING, names=Names.TOPIC)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class UnregisterControllerRecord(Message):
    """A controller has been removed from the cluster."""

    API_KEY = 29
    VERSIONS = Versions.parse("0")

    controller_id: int = scalar(Primitive.INT32)


METADATA_RECORDS: dict[int, type[Message]] = message_types(vars().values())
"""Every metadata record type by its api key."""
