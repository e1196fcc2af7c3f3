"""What is secret in metadata, decided in one place for every command that prints it.

Secret are SCRAM salts and keys, the fields of delegation tokens but their ids, and the values of configs that are
passwords or that Kafka does not define. The id of a token is its name: Kafka's shell lists tokens by it, and what
authenticates is the token's HMAC, which no record holds. Sources: AbstractKafkaConfig.loggableValue and configType,
RecordRedactor, DelegationTokenImageNode, MetadataNodeRedactionCriteria.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kraftlake.settings import key_of

REDACTED = "(redacted)"

SCRAM_SECRETS = ("salt", "storedKey", "serverKey")
TOKEN_ID = "tokenId"  # noqa: S105 - the name of a field

_WITH_SECRETS: Final = {"UNKNOWN", "USER_SCRAM_CREDENTIAL_RECORD", "DELEGATION_TOKEN_RECORD", "CONFIG_RECORD"}


def is_sensitive_config(resource_type: int, name: str) -> bool:
    """Whether the value of a config may be a secret; `resource_type` is the number in a ConfigRecord."""
    key = key_of(resource_type, name)
    return key is None or key.is_sensitive


def redact_config(resource_type: int, name: str, value: str | None) -> str | None:
    """`value`, or `REDACTED` where it may be a secret; a null (the config was removed) stays null."""
    return REDACTED if value is not None and is_sensitive_config(resource_type, name) else value


def redact_scram(credential: Mapping[str, Any]) -> dict[str, Any]:
    """A SCRAM credential in JSON form without its salt and keys; name, mechanism and iterations stay."""
    return {key: REDACTED if key in SCRAM_SECRETS else value for key, value in credential.items()}


def redact_delegation_token(token: Mapping[str, Any]) -> dict[str, Any]:
    """A delegation token in JSON form, of which its id stays."""
    return {key: value if key == TOKEN_ID else REDACTED for key, value in token.items()}


def redact_record_json(type: str, data: Any) -> Any:  # noqa: A002 - the word that the JSON has
    """The `data` of a record in JSON form with its secrets redacted; a new dict where something was.

    The whole `data` of an UNKNOWN record is secret, since its content is not known.
    """
    if type not in _WITH_SECRETS:
        return data
    if type == "UNKNOWN":
        return REDACTED
    if type == "USER_SCRAM_CREDENTIAL_RECORD":
        return redact_scram(data)
    if type == "DELEGATION_TOKEN_RECORD":
        return redact_delegation_token(data)
    return {**data, "value": redact_config(data["resourceType"], data["name"], data["value"])}
