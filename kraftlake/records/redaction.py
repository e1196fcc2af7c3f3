"""Decides which metadata is secret, in one place for every command that prints metadata.

Secret are the fields that the record types declare so (SCRAM salts and keys, the fields of delegation tokens except
their ids) and the values of configs that are passwords or that Kafka does not define. The id of a token is its name:
Kafka's shell lists tokens by it, and authentication needs the token's HMAC, which no record holds. Sources:
AbstractKafkaConfig.loggableValue and configType, RecordRedactor, DelegationTokenImageNode,
MetadataNodeRedactionCriteria.
"""

from __future__ import annotations

import builtins
from typing import Any

from kraftlake.records.foreign.registered import FOREIGN_RECORDS
from kraftlake.records.metadata_records import METADATA_RECORDS, ConfigRecord
from kraftlake.records.schema import Message, Struct, field_specs, json_name, memoized, secret_fields, type_name
from kraftlake.records.serde import UNKNOWN
from kraftlake.settings.tables import key_of

REDACTED = "(redacted)"


@memoized
def secret_names(cls: type[Message]) -> tuple[str, ...]:
    """The JSON names of the secret fields of a record type, in wire order."""
    return tuple(map(json_name, secret_fields(cls)))


@memoized
def _public_names(cls: type[Message]) -> frozenset[str]:
    return frozenset(json_name(name) for name, _ in field_specs(cls)) - {*secret_names(cls)}


def is_public(cls: type[Message], name: str) -> bool:
    """Whether the image entry of a record type may show a field, by its JSON name.

    A field that the record type does not declare is hidden, too.
    """
    return name in _public_names(cls)


def is_sensitive_config(resource_type: int, name: str) -> bool:
    """Whether the value of a config may be a secret; `resource_type` is the number in a ConfigRecord."""
    key = key_of(resource_type, name)
    return key is None or key.is_sensitive


def redact_config(resource_type: int, name: str, value: str | None) -> str | None:
    """Return `value`, or `REDACTED` if it may be a secret; a null (the config was removed) stays null."""
    return REDACTED if value is not None and is_sensitive_config(resource_type, name) else value


def redact_record_json(type: str, data: Any) -> Any:  # noqa: A002 - the word that the JSON has
    """Redact the secrets in the `data` of a record in JSON form; returns a new dict if any were found.

    The whole `data` of an UNKNOWN record is secret, since its content is unknown. A foreign record's schema does not
    say what is secret: each text that does not name a topic, group or transaction is, and all bytes.
    """
    if type == UNKNOWN:
        return REDACTED
    cls = _with_secrets().get(type)
    if cls is None:
        foreign = next((one for one in FOREIGN_RECORDS.values() if type_name(one) == type), None)
        return data if foreign is None else _redacted_struct(foreign, data)
    hidden: dict[str, str | None] = {name: REDACTED for name in secret_names(cls) if data.get(name) is not None}
    if cls is ConfigRecord and "value" in hidden:
        hidden["value"] = redact_config(data["resourceType"], data["name"], data["value"])
    return {**data, **hidden}


def _redacted_struct(cls: builtins.type[Struct], data: Any) -> dict[str, Any]:
    """The JSON form of a struct with its secret values hidden one by one."""
    shown = dict(data)
    for name, spec in field_specs(cls):
        value = shown.get(key := json_name(name))
        if value is None or not (spec.secret or isinstance(spec.type, builtins.type)):
            continue
        each = value if spec.array else [value]
        hidden = [
            _redacted_struct(spec.type, one) if isinstance(spec.type, builtins.type) else REDACTED for one in each
        ]
        shown[key] = hidden if spec.array else hidden[0]
    return shown


@memoized
def _with_secrets() -> dict[str, type[Message]]:
    """The record types with secret fields, by name."""
    return {type_name(cls): cls for cls in METADATA_RECORDS.values() if secret_fields(cls)}
