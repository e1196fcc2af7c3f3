"""The histories of everything but partitions: which tables there are, what is in a row, and which records touch it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import attrs
import pyarrow as pa

from kraftlake.image import MetadataImage
from kraftlake.image.client_quotas_image import ClientQuotaEntity
from kraftlake.image.configurations_image import TOPIC_RESOURCE, ConfigResource
from kraftlake.image.features_image import METADATA_VERSION
from kraftlake.image.kafka_names import (
    OPERATIONS,
    PATTERN_TYPES,
    PERMISSIONS,
    RESOURCE_TYPES,
    SECURITY_PROTOCOLS,
    name_of,
)
from kraftlake.image.scram_image import mechanism_name
from kraftlake.records import metadata_records as r
from kraftlake.records.redaction import redact_config
from kraftlake.records.schema import Message
from kraftlake.tables.history.columns import VALIDITY, Column

_TEXTS: Final = pa.list_(pa.string())

Key = Any
State = Any


@attrs.frozen(kw_only=True, eq=False)
class SmallTable:
    """A history table of things that there are few of.

    `touched` gives the keys that a record may change, or None where it is of other things; `removed_topic` those that
    go with a topic of that name. `keys` are all keys of an image, `look` is the state of one of them (None: it isn't
    there), and `row` the values of all columns but those of VALIDITY. Two states are one where they are equal, whatever
    their rows show: a password that was changed is another state.
    """

    name: str
    comment: str
    key: tuple[str, ...]
    """The columns that tell things apart."""
    kinds: tuple[int, ...]
    """The api keys of the records that it is made of."""
    own_columns: tuple[Column, ...]
    touched: Callable[[Any], Iterable[Key] | None]
    keys: Callable[[MetadataImage], Iterable[Key]]
    look: Callable[[MetadataImage, Key], State | None]
    row: Callable[[Key, State], tuple[Any, ...]]
    removed_topic: Callable[[MetadataImage, str], Iterable[Key]] = lambda _, __: ()

    @property
    def columns(self) -> tuple[Column, ...]:
        """All columns of the table."""
        return (*self.own_columns, *VALIDITY)

    @property
    def schema(self) -> pa.Schema:
        """The columns as Arrow has them."""
        return pa.schema([field for field, _ in self.columns])

    def key_of(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        """The values of the key's columns in a row of the table's own columns."""
        names = [field.name for field, _ in self.own_columns]
        return tuple(row[names.index(name)] for name in self.key)


def _column(name: str, kind: pa.DataType, comment: str, *, nullable: bool = False) -> Column:
    return pa.field(name, kind, nullable=nullable), comment


def _kinds(*types: type[Message]) -> tuple[int, ...]:
    return tuple(type_.API_KEY for type_ in types)


def _broker_touched(message: Any) -> Iterable[Key] | None:
    match message:
        case r.RegisterBrokerRecord() | r.UnregisterBrokerRecord() | r.BrokerRegistrationChangeRecord():
            return (message.broker_id,)
        case r.FenceBrokerRecord() | r.UnfenceBrokerRecord():
            return (message.id,)
    return None


def _broker_row(broker: int, state: State) -> tuple[Any, ...]:
    listeners = [
        f"{name}://{e.host}:{e.port}/{name_of(SECURITY_PROTOCOLS, e.security_protocol)}"
        for name, e in sorted(state.listeners.items())
    ]
    features = [f"{name}={levels.min}-{levels.max}" for name, levels in sorted(state.supported_features.items())]
    cordoned = state.cordoned_directories
    return (
        broker,
        state.epoch,
        str(state.incarnation_id),
        state.fenced,
        state.in_controlled_shutdown,
        state.rack,
        listeners,
        features,
        [str(directory) for directory in state.directories],
        None if cordoned is None else [str(directory) for directory in cordoned],
    )


BROKERS: Final = SmallTable(
    name="broker_history",
    comment="What each broker was registered as, from when to when",
    key=("broker",),
    kinds=_kinds(
        r.RegisterBrokerRecord,
        r.UnregisterBrokerRecord,
        r.BrokerRegistrationChangeRecord,
        r.FenceBrokerRecord,
        r.UnfenceBrokerRecord,
    ),
    own_columns=(
        _column("broker", pa.int32(), "the broker's id"),
        _column("broker_epoch", pa.int64(), "the offset of its registration: another one is another start of it"),
        _column("incarnation_id", pa.string(), "the id that the broker's process has given itself"),
        _column("fenced", pa.bool_(), "whether it may neither lead nor be in sync: it does not send heartbeats"),
        _column("in_controlled_shutdown", pa.bool_(), "whether it is being shut down in an orderly way"),
        _column("rack", pa.string(), "where it stands; null where it doesn't say", nullable=True),
        _column("listeners", _TEXTS, "where it is reached: NAME://host:port/SECURITY_PROTOCOL, by name"),
        _column("features", _TEXTS, "the levels of features that it supports: name=min-max, by name"),
        _column("directories", _TEXTS, "the ids of its log directories that are online"),
        _column(
            "cordoned_directories",
            _TEXTS,
            "the ids of those that get no new partitions; null where it never said",
            nullable=True,
        ),
    ),
    touched=_broker_touched,
    keys=lambda image: image.cluster.brokers.keys(),
    look=lambda image, key: image.cluster.brokers.get(key),
    row=_broker_row,
)

CONFIGS: Final = SmallTable(
    name="config_history",
    comment="The values that dynamic configs were set to, from when to when",
    key=("resource_type", "resource_name", "config"),
    kinds=_kinds(r.ConfigRecord, r.TopicRecord, r.RemoveTopicRecord),
    own_columns=(
        _column("resource_type", pa.string(), "TOPIC, BROKER, CLIENT_METRICS or GROUP"),
        _column(
            "resource_name", pa.string(), "the topic's name, the broker's id, …; empty for the default of the type"
        ),
        _column("config", pa.string(), "the config's name"),
        _column("value", pa.string(), "its value; (redacted) where it may be a secret, as in `kraftlake image`"),
    ),
    touched=lambda m: (
        ((ConfigResource(m.resource_type, m.resource_name), m.name),) if isinstance(m, r.ConfigRecord) else None
    ),
    keys=lambda image: [
        (resource, name) for resource, configs in image.configs.resource_data.items() for name in configs.data
    ],
    look=lambda image, key: image.configs.config_map(key[0]).get(key[1]),
    row=lambda key, state: (key[0].type_name, key[0].name, key[1], redact_config(key[0].type, key[1], state)),
    removed_topic=lambda image, name: [
        (ConfigResource(TOPIC_RESOURCE, name), config)
        for config in image.configs.config_map(ConfigResource(TOPIC_RESOURCE, name))
    ],
)


def _acl_touched(message: Any) -> Iterable[Key] | None:
    if isinstance(message, r.AccessControlEntryRecord | r.RemoveAccessControlEntryRecord):
        return (message.id,)
    return None


def _acl_row(key: Key, acl: State) -> tuple[Any, ...]:
    return (
        str(key),
        name_of(RESOURCE_TYPES, acl.resource_type),
        acl.resource_name,
        name_of(PATTERN_TYPES, acl.pattern_type),
        acl.principal,
        acl.host,
        name_of(OPERATIONS, acl.operation),
        name_of(PERMISSIONS, acl.permission_type),
    )


ACLS: Final = SmallTable(
    name="acl_history",
    comment="The access control rules, from when to when",
    key=("acl_id",),
    kinds=_kinds(r.AccessControlEntryRecord, r.RemoveAccessControlEntryRecord),
    own_columns=(
        _column("acl_id", pa.string(), "the rule's id"),
        _column("resource_type", pa.string(), "TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID, DELEGATION_TOKEN or USER"),
        _column("resource_name", pa.string(), "what it is about, * for all of that type"),
        _column("pattern_type", pa.string(), "LITERAL: the name itself; PREFIXED: whatever begins with it"),
        _column("principal", pa.string(), "whom it is about: Type:name"),
        _column("host", pa.string(), "from which address, * for any"),
        _column("operation", pa.string(), "READ, WRITE, CREATE, …, ALL: the name of Kafka's AclOperation"),
        _column("permission_type", pa.string(), "DENY or ALLOW"),
    ),
    touched=_acl_touched,
    keys=lambda image: image.acls.acls.keys(),
    look=lambda image, key: image.acls.acls.get(key),
    row=_acl_row,
)


def _quota(image: MetadataImage, key: Key) -> State | None:
    entity = image.client_quotas.entities.get(key[0])
    return None if entity is None else entity.quotas.get(key[1])


def _quota_row(key: Key, state: State) -> tuple[Any, ...]:
    entity, quota = key
    names = dict(entity.entries)
    parts = [names[kind] or "<default>" if kind in names else None for kind in ("user", "client-id", "ip")]
    return (entity.text, *parts, quota, state)


QUOTAS: Final = SmallTable(
    name="quota_history",
    comment="The quotas of users, client ids and addresses, from when to when",
    key=("entity", "quota"),
    kinds=_kinds(
        r.ClientQuotaRecord,
    ),
    own_columns=(
        _column("entity", pa.string(), "whom it is about, as JSON: a null name is the default of its type"),
        _column("user", pa.string(), "the user, <default> for the default; null: any user", nullable=True),
        _column("client_id", pa.string(), "the client id, <default> for the default; null: any", nullable=True),
        _column("ip", pa.string(), "the address, <default> for the default; null: any", nullable=True),
        _column("quota", pa.string(), "producer_byte_rate, consumer_byte_rate, request_percentage, …"),
        _column("value", pa.float64(), "how much it is"),
    ),
    touched=lambda m: (
        ((ClientQuotaEntity.from_record(m.entity), m.key),) if isinstance(m, r.ClientQuotaRecord) else None
    ),
    keys=lambda image: [
        (entity, quota) for entity, quotas in image.client_quotas.entities.items() for quota in quotas.quotas
    ],
    look=_quota,
    row=_quota_row,
)


def _level(image: MetadataImage, name: str) -> State | None:
    if name == METADATA_VERSION:
        version = image.features.metadata_version
        return None if version is None else version.level
    return image.features.finalized_versions.get(name)


FEATURES: Final = SmallTable(
    name="feature_history",
    comment="The levels of the cluster's features, metadata.version among them, from when to when",
    key=("feature",),
    kinds=_kinds(
        r.FeatureLevelRecord,
    ),
    own_columns=(
        _column("feature", pa.string(), "the feature's name"),
        _column("level", pa.int32(), "the level that is finalized"),
    ),
    touched=lambda m: (m.name,) if isinstance(m, r.FeatureLevelRecord) else None,
    keys=lambda image: [
        *image.features.finalized_versions,
        *([METADATA_VERSION] if image.features.metadata_version is not None else []),
    ],
    look=_level,
    row=lambda key, state: (key, state),
)

SCRAM: Final = SmallTable(
    name="scram_history",
    comment="Which users have SCRAM credentials, from when to when; the credentials themselves are not in it",
    key=("user", "mechanism"),
    kinds=_kinds(r.UserScramCredentialRecord, r.RemoveUserScramCredentialRecord),
    own_columns=(
        _column("user", pa.string(), "the user's name"),
        _column("mechanism", pa.string(), "SCRAM-SHA-256 or SCRAM-SHA-512"),
        _column(
            "iterations", pa.int32(), "how often the password was hashed; a new row with the same: another password"
        ),
    ),
    touched=lambda m: (
        ((m.mechanism, m.name),)
        if isinstance(m, r.UserScramCredentialRecord | r.RemoveUserScramCredentialRecord)
        else None
    ),
    keys=lambda image: [(mechanism, user) for mechanism, users in image.scram.mechanisms.items() for user in users],
    look=lambda image, key: (image.scram.mechanisms.get(key[0]) or {}).get(key[1]),
    row=lambda key, state: (key[1], mechanism_name(key[0]), state.iterations),
)

TOPICS: Final = SmallTable(
    name="topic_history",
    comment="The topics that there were, from when to when",
    key=("topic_id",),
    kinds=_kinds(r.TopicRecord, r.RemoveTopicRecord),
    own_columns=(
        _column("topic", pa.string(), "the topic's name"),
        _column("topic_id", pa.string(), "its id in Kafka's 22-character base64: another one each time it is created"),
    ),
    touched=lambda m: (m.topic_id,) if isinstance(m, r.TopicRecord | r.RemoveTopicRecord) else None,
    keys=lambda image: image.topics.topics_by_id().keys(),
    look=lambda image, key: None if (topic := image.topics.get_topic_by_id(key)) is None else topic.name,
    row=lambda key, state: (state, str(key)),
)

SMALL_TABLES: Final = (TOPICS, BROKERS, CONFIGS, ACLS, QUOTAS, FEATURES, SCRAM)
