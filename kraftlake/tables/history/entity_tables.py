"""The histories of everything but partitions: the tables, their columns, and the records that change their rows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from kraftlake.image.client_quotas_image import ClientQuotaEntity
from kraftlake.image.configurations_image import ConfigResource
from kraftlake.image.features_image import METADATA_VERSION
from kraftlake.image.kafka_names import OPERATIONS, PATTERN_TYPES, PERMISSIONS, RESOURCE_TYPES, name_of
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.scram_image import known_mechanism, mechanism_name
from kraftlake.records import metadata_records as r
from kraftlake.records.redaction import is_public, redact_config
from kraftlake.records.uuid import Uuid
from kraftlake.tables.history.directory_table import DIRECTORIES
from kraftlake.tables.history.entity_table import Changed, EntityTable, Key, Known, State, column
from kraftlake.tables.history.node_tables import BROKERS, CONTROLLERS
from kraftlake.tables.history.quorum_tables import QUORUM, VOTERS

if TYPE_CHECKING:
    from kraftlake.replay.log.delta_chunk import DeltaChunk

CONFIGS: Final = EntityTable(
    name="config_history",
    comment="The values that dynamic configs were set to, from when to when",
    key=("resource_type", "resource_name", "config"),
    key_of_record={r.ConfigRecord: lambda m: (ConfigResource(m.resource_type, m.resource_name), m.name)},
    own_columns=(
        column("resource_type", pa.string(), "TOPIC, BROKER, CLIENT_METRICS or GROUP"),
        column("resource_name", pa.string(), "the topic's name, the broker's id, …; empty for the default of the type"),
        column("config", pa.string(), "the config's name"),
        column("value", pa.string(), "its value; (redacted) where it may be a secret, as in `kraftlake image`"),
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
        column("acl_id", pa.string(), "the rule's id"),
        column("resource_type", pa.string(), "TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID, DELEGATION_TOKEN or USER"),
        column("resource_name", pa.string(), "the resource's name, * for all of its type"),
        column("pattern_type", pa.string(), "LITERAL: that name; PREFIXED: all names that begin with it"),
        column("principal", pa.string(), "the principal, as Type:name"),
        column("host", pa.string(), "the client's address, * for any"),
        column("operation", pa.string(), "READ, WRITE, CREATE, …, ALL: the name of Kafka's AclOperation"),
        column("permission_type", pa.string(), "DENY or ALLOW"),
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
        column("entity", pa.string(), "the entity as JSON; a null name is the default of its type"),
        column("user", pa.string(), "the user, <default> for the default; null: any user", nullable=True),
        column("client_id", pa.string(), "the client id, <default> for the default; null: any", nullable=True),
        column("ip", pa.string(), "the address, <default> for the default; null: any", nullable=True),
        column("quota", pa.string(), "producer_byte_rate, consumer_byte_rate, request_percentage, …"),
        column("value", pa.float64(), "the quota's value"),
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
        column("feature", pa.string(), "the feature's name"),
        column("level", pa.int32(), "the level that is finalized"),
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
        column("user", pa.string(), "the user's name"),
        column("mechanism", pa.string(), "SCRAM-SHA-256 or SCRAM-SHA-512"),
        *(
            column(name, pa.int32(), f"the number of hash {name}; a new row with the same number is a new password")
            for name in _OF_CREDENTIALS
        ),
    ),
    keys=lambda image: [(mechanism, user) for mechanism, users in image.scram.mechanisms.items() for user in users],
    look=lambda image, key: (image.scram.mechanisms.get(key[0]) or {}).get(key[1]),
    row=lambda key, state: (key[1], mechanism_name(key[0]), *(getattr(state, name) for name in _OF_CREDENTIALS)),
)


TOKENS: Final = EntityTable(
    name="token_history",
    comment="Which delegation tokens there were, from when to when; what a token is for is not in it",
    key=("token_id",),
    key_of_record={
        r.DelegationTokenRecord: attrgetter("token_id"),
        r.RemoveDelegationTokenRecord: attrgetter("token_id"),
    },
    own_columns=(column("token_id", pa.string(), "the token's id; a new row with the same id: it was renewed"),),
    keys=lambda image: image.delegation_tokens.tokens.keys(),
    look=lambda image, key: image.delegation_tokens.tokens.get(key),
    row=lambda key, _: (key,),
)


def _topic_name(image: MetadataImage, key: Key) -> State | None:
    topic = image.topics.get_topic_by_id(Uuid.from_string(key))
    return None if topic is None else topic.name


class _TopicTable(EntityTable):
    """The table of topics, which are changed by the records of partitions' topics alone."""

    def changes(self, chunk: DeltaChunk, known: Known) -> Iterator[Changed]:  # noqa: ARG002 - of quorums
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
        column("topic", pa.string(), "the topic's name"),
        column("topic_id", pa.string(), "its id in Kafka's 22-character base64; each creation gives another id"),
    ),
    keys=lambda image: map(str, image.topics.topics_by_id()),
    look=_topic_name,
    row=lambda key, state: (state, key),
)

SMALL_TABLES: Final = (
    TOPICS,
    BROKERS,
    CONFIGS,
    ACLS,
    QUOTAS,
    FEATURES,
    SCRAM,
    CONTROLLERS,
    TOKENS,
    QUORUM,
    VOTERS,
    DIRECTORIES,
)
