"""The histories of everything but partitions: the tables, their columns, and the records that change their rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

import attrs
import pyarrow as pa

from kraftlake.image.client_quotas_image import ClientQuotaEntity
from kraftlake.image.configurations_image import ConfigResource
from kraftlake.image.features_image import METADATA_VERSION
from kraftlake.image.kafka_names import (
    OPERATIONS,
    PATTERN_TYPES,
    PERMISSIONS,
    RESOURCE_TYPES,
    SECURITY_PROTOCOLS,
    name_of,
)
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.scram_image import known_mechanism, mechanism_name
from kraftlake.records import metadata_records as r
from kraftlake.records.redaction import is_public, redact_config
from kraftlake.records.uuid import Uuid
from kraftlake.tables.history.history_columns import VALIDITY, Column

if TYPE_CHECKING:
    from kraftlake.replay.log.delta_chunk import DeltaChunk
    from kraftlake.replay.log.other_records import OtherChange

_TEXTS: Final = pa.list_(pa.string())

Key = Any
State = Any
Changed = tuple[int, int, Mapping[Key, State | None]]
"""An offset with its time (epoch ms, -1 for none), and the states after it of the keys that may have changed there."""


@attrs.frozen(kw_only=True, eq=False)
class EntityTable:
    """A history table of entities that a cluster has few of.

    `keys` returns all keys of an image, `look` the state of one key (None: the image does not have it), and `row` the
    values of all columns but those of VALIDITY. `also_changed` returns keys that a change may change without a record
    of them, in an order that depends on them alone. Equal states are one row, and unequal states are two even where
    their rows show the same: a new password is another state.
    """

    name: str
    comment: str
    key: tuple[str, ...]
    """The columns that identify an entity."""
    key_of_record: Mapping[type, Callable[[Any], Key]]
    """The record types that change a state, each with the key that a record of it may change."""
    own_columns: tuple[Column, ...]
    keys: Callable[[MetadataImage], Iterable[Key]]
    look: Callable[[MetadataImage, Key], State | None]
    row: Callable[[Key, State], tuple[Any, ...]]
    also_changed: Callable[[OtherChange], Iterable[Key]] | None = None

    def changes(self, chunk: DeltaChunk) -> Iterator[Changed]:
        """The states that deltas may have changed, by the offset at which they did."""
        keys_of, also_changed = self.key_of_record, self.also_changed
        for other in chunk.others:
            keys = [keys_of[type(message)](message) for message in other.messages if type(message) in keys_of]
            if also_changed is not None:
                keys += also_changed(other)
            if keys:
                yield other.offset, other.time, {key: self.look(other.image, key) for key in keys}

    @property
    def columns(self) -> tuple[Column, ...]:
        """All columns of the table."""
        return (*self.own_columns, *VALIDITY)

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the columns."""
        return pa.schema([field for field, _ in self.columns])

    def key_of(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        """The values of the key's columns in a row of the table's own columns."""
        names = [field.name for field, _ in self.own_columns]
        return tuple(row[names.index(name)] for name in self.key)


def _column(name: str, kind: pa.DataType, comment: str, *, nullable: bool = False) -> Column:
    return pa.field(name, kind, nullable=nullable), comment


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


BROKERS: Final = EntityTable(
    name="broker_history",
    comment="What each broker was registered as, from when to when",
    key=("broker",),
    key_of_record={
        r.RegisterBrokerRecord: attrgetter("broker_id"),
        r.UnregisterBrokerRecord: attrgetter("broker_id"),
        r.BrokerRegistrationChangeRecord: attrgetter("broker_id"),
        r.FenceBrokerRecord: attrgetter("id"),
        r.UnfenceBrokerRecord: attrgetter("id"),
    },
    own_columns=(
        _column("broker", pa.int32(), "the broker's id"),
        _column("broker_epoch", pa.int64(), "the offset of its registration; each start of the broker has another one"),
        _column("incarnation_id", pa.string(), "the id that the broker's process generated when it started"),
        _column("fenced", pa.bool_(), "whether it is fenced: without heartbeats, it neither leads nor is in sync"),
        _column("in_controlled_shutdown", pa.bool_(), "whether it is in controlled shutdown"),
        _column("rack", pa.string(), "its rack; null where it has none", nullable=True),
        _column("listeners", _TEXTS, "its endpoints: NAME://host:port/SECURITY_PROTOCOL, by name"),
        _column("features", _TEXTS, "the levels of features that it supports: name=min-max, by name"),
        _column("directories", _TEXTS, "the ids of its log directories that are online"),
        _column(
            "cordoned_directories",
            _TEXTS,
            "the ids of directories that get no new partitions; null where the broker never named any",
            nullable=True,
        ),
    ),
    keys=lambda image: image.cluster.brokers.keys(),
    look=lambda image, key: image.cluster.brokers.get(key),
    row=_broker_row,
)

CONFIGS: Final = EntityTable(
    name="config_history",
    comment="The values that dynamic configs were set to, from when to when",
    key=("resource_type", "resource_name", "config"),
    key_of_record={r.ConfigRecord: lambda m: (ConfigResource(m.resource_type, m.resource_name), m.name)},
    own_columns=(
        _column("resource_type", pa.string(), "TOPIC, BROKER, CLIENT_METRICS or GROUP"),
        _column(
            "resource_name", pa.string(), "the topic's name, the broker's id, …; empty for the default of the type"
        ),
        _column("config", pa.string(), "the config's name"),
        _column("value", pa.string(), "its value; (redacted) where it may be a secret, as in `kraftlake image`"),
    ),
    keys=lambda image: [
        (resource, name) for resource, configs in image.configs.resource_data.items() for name in configs.data
    ],
    look=lambda image, key: image.configs.config_map(key[0]).get(key[1]),
    row=lambda key, state: (key[0].type_name, key[0].name, key[1], redact_config(key[0].type, key[1], state)),
    also_changed=lambda other: [
        (resource, config)
        for resource, delta in (other.change.configs_delta.changes.items() if other.change.configs_delta else ())
        for config in sorted(delta.changes)
    ],
)


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


ACLS: Final = EntityTable(
    name="acl_history",
    comment="The access control rules, from when to when",
    key=("acl_id",),
    key_of_record={
        r.AccessControlEntryRecord: attrgetter("id"),
        r.RemoveAccessControlEntryRecord: attrgetter("id"),
    },
    own_columns=(
        _column("acl_id", pa.string(), "the rule's id"),
        _column("resource_type", pa.string(), "TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID, DELEGATION_TOKEN or USER"),
        _column("resource_name", pa.string(), "the resource's name, * for all of its type"),
        _column("pattern_type", pa.string(), "LITERAL: that name; PREFIXED: all names that begin with it"),
        _column("principal", pa.string(), "the principal, as Type:name"),
        _column("host", pa.string(), "the client's address, * for any"),
        _column("operation", pa.string(), "READ, WRITE, CREATE, …, ALL: the name of Kafka's AclOperation"),
        _column("permission_type", pa.string(), "DENY or ALLOW"),
    ),
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
    shown = [names[kind] or "<default>" if kind in names else None for kind in ("user", "client-id", "ip")]
    return (entity.text, *shown, quota, state)


QUOTAS: Final = EntityTable(
    name="quota_history",
    comment="The quotas of users, client ids and addresses, from when to when",
    key=("entity", "quota"),
    key_of_record={r.ClientQuotaRecord: lambda m: (ClientQuotaEntity.from_record(m.entity), m.key)},
    own_columns=(
        _column("entity", pa.string(), "the entity as JSON; a null name is the default of its type"),
        _column("user", pa.string(), "the user, <default> for the default; null: any user", nullable=True),
        _column("client_id", pa.string(), "the client id, <default> for the default; null: any", nullable=True),
        _column("ip", pa.string(), "the address, <default> for the default; null: any", nullable=True),
        _column("quota", pa.string(), "producer_byte_rate, consumer_byte_rate, request_percentage, …"),
        _column("value", pa.float64(), "the quota's value"),
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


FEATURES: Final = EntityTable(
    name="feature_history",
    comment="The levels of the cluster's features, metadata.version among them, from when to when",
    key=("feature",),
    key_of_record={r.FeatureLevelRecord: attrgetter("name")},
    own_columns=(
        _column("feature", pa.string(), "the feature's name"),
        _column("level", pa.int32(), "the level that is finalized"),
    ),
    keys=lambda image: [
        *image.features.finalized_versions,
        *([METADATA_VERSION] if image.features.metadata_version is not None else []),
    ],
    look=_level,
    row=lambda key, state: (key, state),
)


def _credential(record: r.UserScramCredentialRecord | r.RemoveUserScramCredentialRecord) -> Key:
    return known_mechanism(record.mechanism), record.name


_OF_CREDENTIALS: Final = tuple(name for name in ("iterations",) if is_public(r.UserScramCredentialRecord, name))

SCRAM: Final = EntityTable(
    name="scram_history",
    comment="Which users have SCRAM credentials, from when to when; the credentials themselves are not in it",
    key=("user", "mechanism"),
    key_of_record={
        r.UserScramCredentialRecord: _credential,
        r.RemoveUserScramCredentialRecord: _credential,
    },
    own_columns=(
        _column("user", pa.string(), "the user's name"),
        _column("mechanism", pa.string(), "SCRAM-SHA-256 or SCRAM-SHA-512"),
        *(
            _column(name, pa.int32(), f"the number of hash {name}; a new row with the same number is a new password")
            for name in _OF_CREDENTIALS
        ),
    ),
    keys=lambda image: [(mechanism, user) for mechanism, users in image.scram.mechanisms.items() for user in users],
    look=lambda image, key: (image.scram.mechanisms.get(key[0]) or {}).get(key[1]),
    row=lambda key, state: (key[1], mechanism_name(key[0]), *(getattr(state, name) for name in _OF_CREDENTIALS)),
)


def _topic_name(image: MetadataImage, key: Key) -> State | None:
    topic = image.topics.get_topic_by_id(Uuid.from_string(key))
    return None if topic is None else topic.name


class _TopicTable(EntityTable):
    """The table of topics, which are changed by the records of partitions' topics alone."""

    def changes(self, chunk: DeltaChunk) -> Iterator[Changed]:
        """The names of topics that were created, None for removed ones."""
        records, of = chunk.records, chunk.partitions
        made = (records.kinds == r.TopicRecord.API_KEY).nonzero()[0].tolist()
        steps = [(record, topic, True) for record, (_, topic) in zip(made, of.created.tolist(), strict=True)]
        steps = sorted([*steps, *((record, topic, False) for _, topic, record in of.removed.tolist())])
        numbers = pa.array([topic for _, topic, _ in steps], pa.int64())
        names, ids = (texts.take(numbers).to_pylist() for texts in (of.names.topics, of.names.ids))
        effective = [(int(records.effective[record]), int(records.times[record])) for record, _, _ in steps]
        for (offset, time), group in groupby(range(len(steps)), effective.__getitem__):
            yield offset, time, {ids[step]: names[step] if steps[step][2] else None for step in group}


TOPICS: Final = _TopicTable(
    name="topic_history",
    comment="Each topic, from when to when it existed",
    key=("topic_id",),
    key_of_record={r.TopicRecord: attrgetter("topic_id"), r.RemoveTopicRecord: attrgetter("topic_id")},
    own_columns=(
        _column("topic", pa.string(), "the topic's name"),
        _column("topic_id", pa.string(), "its id in Kafka's 22-character base64; each creation gives another id"),
    ),
    keys=lambda image: map(str, image.topics.topics_by_id()),
    look=_topic_name,
    row=lambda key, state: (state, key),
)

SMALL_TABLES: Final = (TOPICS, BROKERS, CONFIGS, ACLS, QUOTAS, FEATURES, SCRAM)
