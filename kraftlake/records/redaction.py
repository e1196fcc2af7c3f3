"""What is secret in metadata, decided in one place for every command that prints it.

Secret are SCRAM salts and keys, everything about delegation tokens, and the values of configs that are passwords or
that Kafka does not define. Sources: org.apache.kafka.metadata.KafkaConfigSchema.isSensitive, RecordRedactor and
MetadataNodeRedactionCriteria. More is shown than by Kafka in one place: group and client metrics configs, none of which
is a password, while Kafka's schema knows broker and topic configs only and hides all others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kraftlake.records.config_names import PUBLIC_CONFIG_NAMES

REDACTED = "(redacted)"

SCRAM_SECRETS = ("salt", "storedKey", "serverKey")


def is_sensitive_config(resource_type: int, name: str) -> bool:
    """Whether the value of a config may be a secret; `resource_type` is the number in a ConfigRecord."""
    return name not in PUBLIC_CONFIG_NAMES.get(resource_type, ())


def redact_config(resource_type: int, name: str, value: str | None) -> str | None:
    """`value`, or `REDACTED` where it may be a secret; a null (the config was removed) stays null."""
    return REDACTED if value is not None and is_sensitive_config(resource_type, name) else value


def redact_scram(credential: Mapping[str, Any]) -> dict[str, Any]:
    """A SCRAM credential in JSON form without its salt and keys; name, mechanism and iterations stay."""
    return {key: REDACTED if key in SCRAM_SECRETS else value for key, value in credential.items()}


def redact_delegation_token(token: Mapping[str, Any]) -> dict[str, Any]:
    """A delegation token in JSON form, of which Kafka hides every field."""
    return dict.fromkeys(token, REDACTED)


def redact_record_json(type: str, data: Any) -> Any:  # noqa: A002 - the word that the JSON has
    """The `data` of a record in JSON form with its secrets redacted; a new dict where something was.

    The whole `data` of an UNKNOWN record is secret: nobody knows what it holds.
    """
    if type == "UNKNOWN":
        return REDACTED
    if type == "USER_SCRAM_CREDENTIAL_RECORD":
        return redact_scram(data)
    if type == "DELEGATION_TOKEN_RECORD":
        return redact_delegation_token(data)
    if type == "CONFIG_RECORD":
        return {**data, "value": redact_config(data["resourceType"], data["name"], data["value"])}
    return data
