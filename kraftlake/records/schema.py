"""Declaration of a message: an attrs class whose fields carry type, versions, tag and nullability.

Codec, Arrow form and JSON form are derived from these declarations (`codec`, `typed_columns`, `json_form`), so each
type is written down once. Source: Kafka's message schemas (JSON files in the kafka-metadata and kafka-clients jars).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from enum import Enum
from functools import cache
from operator import attrgetter
from typing import Any, ClassVar, TypeVar

import attrs

from kraftlake.records.uuid import Uuid

SPEC = "kraftlake.spec"

LONGEST_STRING = 0x7FFF
"""The maximum size of a string in UTF-8 bytes: Kafka refuses to read a longer one, even if its length is a varint."""

MOST_TAGGED_FIELDS = 10_000
"""The maximum number of tagged fields of a struct that Kafka reads."""

F = TypeVar("F", bound=Callable[..., Any])


def memoized(function: F) -> F:
    """Apply `functools.cache` and keep the signature, which otherwise requires hashable arguments for mypy."""
    return cache(function)  # type: ignore[return-value]


class Primitive(Enum):
    """The field types of Kafka's message format; its `records` are bytes."""

    BOOL = "bool"
    INT8 = "int8"
    INT16 = "int16"
    UINT16 = "uint16"
    INT32 = "int32"
    UINT32 = "uint32"
    INT64 = "int64"
    FLOAT64 = "float64"
    STRING = "string"
    BYTES = "bytes"
    UUID = "uuid"


ZERO: dict[Primitive, Any] = {
    Primitive.BOOL: False,
    Primitive.FLOAT64: 0.0,
    Primitive.STRING: "",
    Primitive.BYTES: b"",
    Primitive.UUID: Uuid.ZERO,
}


@attrs.frozen
class Versions:
    """An inclusive range of versions; `high` None is open-ended."""

    low: int
    high: int | None

    @classmethod
    @memoized
    def parse(cls, text: str) -> Versions:
        """Parse Kafka's notation: "0", "0-4" or "1+"."""
        if text.endswith("+"):
            return cls(int(text[:-1]), None)
        low, _, high = text.partition("-")
        return cls(int(low), int(high or low))

    def __contains__(self, version: int) -> bool:
        return version >= self.low and (self.high is None or version <= self.high)


class Names(Enum):
    """What the strings of a field name, so that a log can be passed on under other names."""

    KAFKA = "kafka"
    """Words of Kafka, of its settings, and names of listeners: they say nothing about who runs the cluster."""
    TOPIC = "topic"
    PRINCIPAL = "principal"
    """TYPE:NAME, as `User:alice`."""
    USER = "user"
    HOST = "host"
    RACK = "rack"
    CLIENT = "client"
    GROUP = "group"
    TRANSACTION = "transaction"
    TOKEN = "token"  # noqa: S105 - a kind of name
    SUBSCRIPTION = "subscription"
    RESOURCE = "resource"
    """The resource of a config or of an ACL; the record's `resource_type` says of which kind."""
    ENTITY = "entity"
    """A part of a quota's entity; its `entity_type` says of which kind."""
    CONFIG = "config"
    """A config, which may be a plugin's; the record's `resource_type` says of which kind of resource."""
    TEXT = "text"
    """Any text, which may have names in it."""


@attrs.frozen(kw_only=True)
class FieldSpec:
    """The declaration of one field.

    `type` is a `Primitive` or the class of a struct; `nullable` the versions in which null may be written; a field with
    a `tag` is a tagged field in the versions `tagged`, None for all. A `secret` field is hidden wherever a record is
    shown. `names` matters for strings.
    """

    type: Primitive | type[Struct]
    array: bool = False
    versions: Versions
    nullable: Versions | None = None
    tag: int | None = None
    tagged: Versions | None = None
    secret: bool = False
    names: Names = Names.TEXT

    def tag_at(self, version: int) -> int | None:
        """The tag of the field at a version; None where it is not a tagged field."""
        return self.tag if self.tagged is None or version in self.tagged else None


def scalar(
    type_: Primitive, default: Any = ..., *, versions: str = "0+", nullable: str | None = None, tag: int | None = None,
    secret: bool = False, names: Names = Names.TEXT,
) -> Any:  # fmt: skip
    """Declare a field of one value; without `default` it is zero, empty or false, as in Kafka."""
    spec = FieldSpec(
        type=type_, versions=Versions.parse(versions), nullable=_parse(nullable), tag=tag, secret=secret, names=names
    )
    value = ZERO.get(type_, 0) if default is ... else default
    return attrs.field(default=value, repr=not secret, metadata={SPEC: spec})


def array(
    type_: Primitive | type[Struct], default: Any = (), *, versions: str = "0+", nullable: str | None = None,
    tag: int | None = None, secret: bool = False, names: Names = Names.TEXT,
) -> Any:  # fmt: skip
    """Declare a field of many values, held as a tuple."""
    spec = FieldSpec(
        type=type_, array=True, versions=Versions.parse(versions), nullable=_parse(nullable), tag=tag, secret=secret,
        names=names,
    )  # fmt: skip
    return attrs.field(default=default, repr=not secret, metadata={SPEC: spec})


def struct(type_: type[Struct], *, versions: str = "0+") -> Any:
    """Declare a field that is one nested struct."""
    spec = FieldSpec(type=type_, versions=Versions.parse(versions))
    return attrs.field(factory=type_, metadata={SPEC: spec})


def _parse(versions: str | None) -> Versions | None:
    return None if versions is None else Versions.parse(versions)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Struct:
    """Anything with declared fields. Tagged fields that the declaration does not know are kept, in tag order.

    Equality, hash and repr are those that attrs would compile for each class at import, which takes 10 ms of each
    command for all records.
    """

    unknown_tagged_fields: tuple[tuple[int, bytes], ...] = attrs.field(default=(), repr=False)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        values = _values_of(type(self))
        return bool(values(self) == values(other))

    def __hash__(self) -> int:
        return hash((type(self), _values_of(type(self))(self)))

    def __repr__(self) -> str:
        shown = (f"{field.name}={getattr(self, field.name)!r}" for field in attrs.fields(type(self)) if field.repr)
        return f"{type(self).__qualname__}({', '.join(shown)})"


@memoized
def _values_of(cls: type[Struct]) -> Callable[[Struct], Any]:
    """The values of all fields of a struct of a class, which has two at least."""
    return attrgetter(*(field.name for field in attrs.fields(cls)))


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Message(Struct):
    """A record type: a struct with an api key (metadata records) or control type (control records) and versions."""

    API_KEY: ClassVar[int]
    VERSIONS: ClassVar[Versions]


@attrs.frozen(kw_only=True, eq=False, repr=False)
class ForeignRecord(Message):
    """A metadata record of a type that Kafka does not have, declared by a schema at run time: it changes no image."""


def message_types(declared: Iterable[object]) -> dict[int, type[Message]]:
    """Return the record types among the names of a module by api key, in the order of their declaration."""
    types = [one for one in declared if isinstance(one, type) and issubclass(one, Message) and one is not Message]
    return {one.API_KEY: one for one in types}


@memoized
def field_specs(cls: type[Struct]) -> tuple[tuple[str, FieldSpec], ...]:
    """Return the declared fields of a struct in wire order, as (python name, spec)."""
    return tuple((f.name, f.metadata[SPEC]) for f in attrs.fields(cls) if SPEC in f.metadata)


@memoized
def secret_fields(cls: type[Struct]) -> tuple[str, ...]:
    """The python names of the fields that are secret, or hold a struct with a secret, in wire order."""
    return tuple(name for name, spec in field_specs(cls) if _is_secret(spec))


def _is_secret(spec: FieldSpec) -> bool:
    nested = spec.type if isinstance(spec.type, type) and issubclass(spec.type, Struct) else None
    return spec.secret or (nested is not None and bool(secret_fields(nested)))


@memoized
def json_name(python_name: str) -> str:
    """Convert `leader_epoch` to `leaderEpoch`, the name in Kafka's JSON."""
    head, *rest = python_name.split("_")
    return head + "".join(part.capitalize() for part in rest)


@memoized
def type_name(cls: type[Struct]) -> str:
    """Convert `PartitionChangeRecord` to `PARTITION_CHANGE_RECORD`, the name in Kafka's dump tool."""
    return re.sub(r"(?<=[^A-Z])(?=[A-Z])", "_", cls.__name__).upper()
