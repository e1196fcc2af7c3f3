"""The names of Kafka's enum numbers, as its tools print them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

RESOURCE_TYPES = {0: "UNKNOWN", 1: "ANY", 2: "TOPIC", 3: "GROUP", 4: "CLUSTER", 5: "TRANSACTIONAL_ID",
                  6: "DELEGATION_TOKEN", 7: "USER"}  # fmt: skip
"""org.apache.kafka.common.resource.ResourceType, of ACLs."""

PATTERN_TYPES = {0: "UNKNOWN", 1: "ANY", 2: "MATCH", 3: "LITERAL", 4: "PREFIXED"}
"""org.apache.kafka.common.resource.PatternType."""

OPERATIONS = {0: "UNKNOWN", 1: "ANY", 2: "ALL", 3: "READ", 4: "WRITE", 5: "CREATE", 6: "DELETE", 7: "ALTER",
              8: "DESCRIBE", 9: "CLUSTER_ACTION", 10: "DESCRIBE_CONFIGS", 11: "ALTER_CONFIGS", 12: "IDEMPOTENT_WRITE",
              13: "CREATE_TOKENS", 14: "DESCRIBE_TOKENS", 15: "TWO_PHASE_COMMIT"}  # fmt: skip
"""org.apache.kafka.common.acl.AclOperation."""

PERMISSIONS = {0: "UNKNOWN", 1: "ANY", 2: "DENY", 3: "ALLOW"}
"""org.apache.kafka.common.acl.AclPermissionType."""

SECURITY_PROTOCOLS = {0: "PLAINTEXT", 1: "SSL", 2: "SASL_PLAINTEXT", 3: "SASL_SSL"}
"""org.apache.kafka.common.security.auth.SecurityProtocol."""

CONFIG_RESOURCES = {0: "UNKNOWN", 2: "TOPIC", 4: "BROKER", 8: "BROKER_LOGGER", 16: "CLIENT_METRICS", 32: "GROUP"}
"""org.apache.kafka.common.config.ConfigResource.Type."""

SCRAM_MECHANISMS = {0: "UNKNOWN", 1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
"""org.apache.kafka.clients.admin.ScramMechanism."""


def name_of(names: Mapping[int, str], number: int) -> str:
    """The name of `number`, or the number as text if Kafka 4.4 has no name for it."""
    return names.get(number, str(number))


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
