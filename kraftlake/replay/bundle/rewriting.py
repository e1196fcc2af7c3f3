"""Rewrites records without their secrets, and with other names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs

from kraftlake.image.kafka_names import ResourceType
from kraftlake.records.batch import RecordBatch
from kraftlake.records.log_record import LogRecord, log_records
from kraftlake.records.metadata_records import (
    AccessControlEntryRecord,
    ConfigRecord,
    DelegationTokenRecord,
    NoOpRecord,
)
from kraftlake.records.redaction import REDACTED, redact_config
from kraftlake.records.schema import FieldSpec, Names, Primitive, Struct, field_specs, memoized, type_name
from kraftlake.records.serde import UnknownRecord, encode_control, encode_value
from kraftlake.runtime.errors import UnknownRecordError
from kraftlake.settings.config_key import ConfigKey
from kraftlake.settings.tables import CLIENT_METRICS, GROUP, TOPIC, key_of

Rename = Callable[[Names, str], str]
"""Returns what a record has in place of a name of a kind."""

_OF_CONFIGS: Final = {TOPIC: Names.TOPIC, CLIENT_METRICS: Names.SUBSCRIPTION, GROUP: Names.GROUP}
_OF_ACLS: Final[Mapping[int, Names]] = {
    ResourceType.TOPIC: Names.TOPIC, ResourceType.GROUP: Names.GROUP, ResourceType.CLUSTER: Names.KAFKA,
    ResourceType.TRANSACTIONAL_ID: Names.TRANSACTION, ResourceType.DELEGATION_TOKEN: Names.TOKEN,
    ResourceType.USER: Names.PRINCIPAL,
}  # fmt: skip
_OF_ENTITIES: Final = {"user": Names.USER, "client-id": Names.CLIENT, "ip": Names.HOST}
_LOGGER: Final = 8
"""The resource type of a broker's loggers, whose names are those of classes."""
_NUMBERS: Final = frozenset({"BOOLEAN", "SHORT", "INT", "LONG", "DOUBLE"})
_PRINCIPAL: Final = re.compile(r"([A-Za-z]{1,32}):(.+)", re.DOTALL)
_THROTTLED: Final = re.compile(r"\*|[0-9]+:[0-9]+(?:,[0-9]+:[0-9]+)*")
_PLAIN_WORDS: Final = re.compile(r"[A-Za-z0-9_.,\s-]*")
_NO_WORD: Final = "no.word.of-Kafka"
"""A value that settings refuse if only certain words are theirs."""


@attrs.define(kw_only=True)
class Rewriter:
    """Rewrites batches, and counts what it blanks and drops.

    `rename` replaces names; without it they stay, but in delegation tokens, where they are secrets. A record of an
    unknown type or version may have any secret: it becomes a NoOpRecord if `lenient`, else it raises
    UnknownRecordError. Tagged fields that the declarations do not know are dropped.
    """

    rename: Rename | None = None
    lenient: bool = False
    blanked: Counter[str] = attrs.field(factory=Counter)
    """The number of records with secrets by type."""
    unknown_records: int = 0
    unknown_tagged_fields: int = 0

    def batch(self, batch: RecordBatch) -> RecordBatch:
        """The batch as it is handed over: the same offsets, times and types, but for unknown ones."""
        records = zip(batch.values, log_records(batch), strict=True)
        return attrs.evolve(batch, values=tuple([self._value(value, record) for value, record in records]))

    def message(self, record: LogRecord) -> Any:
        """The message of a record as it is handed over; the same object where nothing is to be replaced."""
        message = record.message
        if not isinstance(message, UnknownRecord):
            return self._struct(message)
        if record.control or not self.lenient:
            raise UnknownRecordError(
                f"Offset {record.offset}: a record of type {message.api_key} and version {message.version} is unknown, "
                "and so are its secrets: --lenient leaves a NoOpRecord in its place, but for a control record.",
                offset=record.offset,
            )
        self.unknown_records += 1
        return NoOpRecord()

    def _value(self, value: bytes, record: LogRecord) -> bytes:
        made = self.message(record)
        if made is record.message:
            return value
        if record.control:
            return encode_control(made)[1]
        return encode_value(made, 0 if isinstance(record.message, UnknownRecord) else record.version)

    def _struct(self, struct: Any) -> Any:
        changed: dict[str, Any] = {}
        secret = False
        for name, spec in _touched(type(struct)):
            value = getattr(struct, name)
            made = self._field(struct, spec, value)
            if made != value:
                changed[name] = made
                secret = secret or spec.secret
        if secret and self._hides(struct):
            self.blanked[type_name(type(struct))] += 1
        if struct.unknown_tagged_fields:
            self.unknown_tagged_fields += len(struct.unknown_tagged_fields)
            changed["unknown_tagged_fields"] = ()
        return attrs.evolve(struct, **changed) if changed else struct

    @staticmethod
    def _hides(struct: Struct) -> bool:
        return not isinstance(struct, ConfigRecord) or _redacted(struct) != struct.value

    def _field(self, struct: Any, spec: FieldSpec, value: Any) -> Any:
        if value is None:
            return None
        if isinstance(spec.type, type) and issubclass(spec.type, Struct):
            return tuple(map(self._struct, value)) if spec.array else self._struct(value)
        if isinstance(struct, ConfigRecord) and spec.secret:
            return self._config_value(struct)
        if spec.type is Primitive.STRING:
            one = self._hidden if spec.secret else self._name
            kind = _kind(struct, spec)
            return tuple(one(kind, each) for each in value) if spec.array else one(kind, value)
        if spec.type is Primitive.BYTES:
            return tuple(bytes(len(each)) for each in value) if spec.array else bytes(len(value))
        # The times of tokens are no keys, and events show changes of tokens by them.
        return value if isinstance(struct, DelegationTokenRecord) else 0

    def _name(self, kind: Names, value: str) -> str:
        if self.rename is None or kind is Names.KAFKA:
            return value
        if kind is not Names.PRINCIPAL:
            return self.rename(kind, value)
        found = _PRINCIPAL.fullmatch(value)
        return self.rename(Names.USER, value) if found is None else f"{found[1]}:{self.rename(Names.USER, found[2])}"

    def _hidden(self, kind: Names, value: str) -> str:
        """A secret text; of a principal its type stays, without which Kafka does not read a token."""
        if kind is not Names.PRINCIPAL:
            return REDACTED
        if self.rename is not None:
            return self._name(kind, value)
        found = _PRINCIPAL.fullmatch(value)
        return REDACTED if found is None else f"{found[1]}:{REDACTED}"

    def _config_value(self, record: ConfigRecord) -> str | None:
        value = _redacted(record)
        if self.rename is None or value is None or value == REDACTED:
            return value
        key = key_of(record.resource_type, record.name)
        return value if key is not None and _has_no_names(key, value) else self.rename(Names.TEXT, value)


def kind_of_resource(acl: AccessControlEntryRecord) -> Names:
    """What the resource of an ACL names."""
    return _OF_ACLS.get(acl.resource_type, Names.TEXT)


def _redacted(record: ConfigRecord) -> str | None:
    return redact_config(record.resource_type, record.name, record.value)


@memoized
def _touched(cls: type[Struct]) -> tuple[tuple[str, FieldSpec], ...]:
    """The fields of a struct that are secret, are text, or hold such structs."""
    return tuple((name, spec) for name, spec in field_specs(cls) if _is_touched(spec))


def _is_touched(spec: FieldSpec) -> bool:
    if isinstance(spec.type, type) and issubclass(spec.type, Struct):
        return True  # it may have unknown tagged fields
    return spec.secret or (spec.type is Primitive.STRING and spec.names is not Names.KAFKA)


def _kind(struct: Any, spec: FieldSpec) -> Names:
    """What a string of a record names."""
    match spec.names:
        case Names.RESOURCE if isinstance(struct, ConfigRecord):
            is_number = struct.resource_type not in _OF_CONFIGS and struct.resource_name.isdecimal()
            return Names.KAFKA if is_number else _OF_CONFIGS.get(struct.resource_type, Names.TEXT)
        case Names.RESOURCE:
            return kind_of_resource(struct)
        case Names.CONFIG:
            is_kafkas = struct.resource_type == _LOGGER or key_of(struct.resource_type, struct.name) is not None
            return Names.KAFKA if is_kafkas else Names.TEXT
        case Names.ENTITY:
            return _OF_ENTITIES.get(struct.entity_type, Names.TEXT)
        case kind:
            return kind


def _has_no_names(key: ConfigKey, value: str) -> bool:
    """Whether a config's value is a number, or of words that Kafka prescribes."""
    try:
        key.parse(value)
    except ValueError:
        return False
    if key.type in _NUMBERS or _THROTTLED.fullmatch(value):
        return True
    if key.check is None or not _PLAIN_WORDS.fullmatch(value):
        return False
    return key.check([_NO_WORD] if key.type == "LIST" else _NO_WORD) is not None
