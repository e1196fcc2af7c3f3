"""The names of Kafka's enum numbers, as its tools print them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any, Final


class ResourceType(IntEnum):
    """The type of resource that an ACL protects. Source: org.apache.kafka.common.resource.ResourceType."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


CLUSTER_NAME: Final = "kafka-cluster"
"""The name of the cluster as the resource of an ACL."""


class PatternType(IntEnum):
    """The matching of an ACL's resource name. Source: org.apache.kafka.common.resource.PatternType."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class AclOperation(IntEnum):
    """The operation that an ACL allows or denies. Source: org.apache.kafka.common.acl.AclOperation."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


SUPPORTED_OPERATIONS: Final[Mapping[ResourceType, tuple[AclOperation, ...]]] = {
    ResourceType.TOPIC: (
        AclOperation.READ, AclOperation.WRITE, AclOperation.CREATE, AclOperation.DESCRIBE, AclOperation.DELETE,
        AclOperation.ALTER, AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (
        AclOperation.READ, AclOperation.DESCRIBE, AclOperation.DELETE, AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        AclOperation.CREATE, AclOperation.CLUSTER_ACTION, AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS,
        AclOperation.IDEMPOTENT_WRITE, AclOperation.ALTER, AclOperation.DESCRIBE,
    ),
    ResourceType.TRANSACTIONAL_ID: (AclOperation.DESCRIBE, AclOperation.WRITE, AclOperation.TWO_PHASE_COMMIT),
    ResourceType.DELEGATION_TOKEN: (AclOperation.DESCRIBE,),
    ResourceType.USER: (AclOperation.CREATE_TOKENS, AclOperation.DESCRIBE_TOKENS),
}  # fmt: skip
"""The operations on a type of resource. Source: org.apache.kafka.security.authorizer.AclEntry.supportedOperations."""


class AclPermissionType(IntEnum):
    """Whether an ACL allows or denies. Source: org.apache.kafka.common.acl.AclPermissionType."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


RESOURCE_TYPES, PATTERN_TYPES, OPERATIONS, PERMISSIONS = (
    {number.value: number.name for number in numbers}
    for numbers in (ResourceType, PatternType, AclOperation, AclPermissionType)
)
"""The names of these enums, by number."""

SECURITY_PROTOCOLS = {0: "PLAINTEXT", 1: "SSL", 2: "SASL_PLAINTEXT", 3: "SASL_SSL"}
"""org.apache.kafka.common.security.auth.SecurityProtocol."""

CONFIG_RESOURCES = {0: "UNKNOWN", 2: "TOPIC", 4: "BROKER", 8: "BROKER_LOGGER", 16: "CLIENT_METRICS", 32: "GROUP"}
"""org.apache.kafka.common.config.ConfigResource.Type."""

SCRAM_MECHANISMS = {0: "UNKNOWN", 1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
"""org.apache.kafka.clients.admin.ScramMechanism."""

SCRAM_NUMBERS: Final = {name: number for number, name in SCRAM_MECHANISMS.items() if number}
"""The numbers of the mechanisms by name."""


def name_of(names: Mapping[int, str], number: int) -> str:
    """The name of `number`, or the number as text if Kafka 4.4 has no name for it."""
    return names.get(number, str(number))


def known_number(names: Mapping[int, str], number: int) -> int:
    """`number`, or 0, UNKNOWN, which Kafka 4.4 reads where it has no name for it."""
    return number if number in names else 0


def acl_words(acl: Mapping[str, Any]) -> str:
    """An ACL as a phrase: `allow User:alice read on topic foo (prefixed) from *`."""
    pattern = name_of(PATTERN_TYPES, acl["patternType"]).lower()
    return (
        f"{name_of(PERMISSIONS, acl['permissionType']).lower()} {acl['principal']} "
        f"{name_of(OPERATIONS, acl['operation']).lower()} on {name_of(RESOURCE_TYPES, acl['resourceType']).lower()} "
        f"{acl['resourceName']}{'' if pattern == 'literal' else f' ({pattern})'} from {acl['host']}"
    )


def quota_entity_words(entity: Mapping[str, str | None]) -> str:
    """A quota entity as a phrase: `client-id c1, user (default)`."""
    return ", ".join(f"{kind} {'(default)' if name is None else name}" for kind, name in sorted(entity.items()))
