"""Messages as JSON, exactly as Kafka's dump tool prints them, from their declarations.

Lower camel names; UUIDs in Kafka's 22 characters; bytes in standard base64; tagged fields with their default, and
fields that the version lacks, omitted; a null as null. Unknown tagged fields have no JSON form. Source: the
JsonConverter classes that Kafka generates from its message schemas.
"""

from __future__ import annotations

import base64
import binascii
import functools
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from kraftlake.records.codec_source import default_of, unwritable
from kraftlake.records.schema import FieldSpec, Message, Primitive, Struct, field_specs, json_name, memoized
from kraftlake.records.uuid import Uuid
from kraftlake.runtime.errors import CorruptDataError

S = TypeVar("S", bound=Struct)

RANGES: dict[Primitive, tuple[int, int]] = {
    Primitive.INT8: (-(1 << 7), (1 << 7) - 1),
    Primitive.INT16: (-(1 << 15), (1 << 15) - 1),
    Primitive.UINT16: (0, (1 << 16) - 1),
    Primitive.INT32: (-(1 << 31), (1 << 31) - 1),
    Primitive.UINT32: (0, (1 << 32) - 1),
    Primitive.INT64: (-(1 << 63), (1 << 63) - 1),
}


def to_json(message: Struct, version: int) -> dict[str, Any]:
    """Convert the fields of `message` at `version` to JSON values.

    Raises UnwritableMetadataError if a field that the version lacks has a value, as in Kafka.
    """
    cls = type(message)
    data: dict[str, Any] = {}
    for key, name, is_known, is_tagged, default, convert in _plan_at(cls, version):
        value = getattr(message, name)
        if not is_known:
            if value != default:
                raise unwritable(cls, version, name)
        elif is_tagged and (value is default or value == default):
            continue
        else:
            data[key] = value if convert is None or value is None else convert(value)
    return data


_FieldAt = tuple[str, str, bool, bool, Any, Callable[[Any], Any] | None]


@memoized
def _plan_at(cls: type[Struct], version: int) -> tuple[_FieldAt, ...]:
    """The plan of each field: key, name, presence in the version, whether it is tagged, default and conversion."""
    return tuple(
        (
            key,
            name,
            version in spec.versions,
            spec.tag_at(version) is not None,
            default,
            _conversion(spec, convert, version),
        )
        for name, key, spec, default, convert in _plan(cls)
    )


def _conversion(spec: FieldSpec, convert: Callable[[Any], Any] | None, version: int) -> Callable[[Any], Any] | None:
    if not isinstance(spec.type, Primitive):
        convert = functools.partial(to_json, version=version)
    if not spec.array:
        return convert
    if convert is None:
        return list
    return functools.partial(_converted, convert)


def _converted(convert: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    return [convert(item) for item in items]


def from_json(cls: type[S], data: Any, version: int) -> S:
    """Build the message from `data`, its JSON form at `version`.

    Raises CorruptDataError naming a field that is missing, unknown, or has an invalid value.
    """
    if issubclass(cls, Message) and version not in cls.VERSIONS:
        raise CorruptDataError(f"{cls.__name__} has no version {version}.")
    if not isinstance(data, dict):
        raise CorruptDataError(f"The data of a {cls.__name__} is not a JSON object.")
    left = dict(data)
    fields: dict[str, Any] = {}
    for name, key, spec, _, _ in _plan(cls):
        if version not in spec.versions:
            continue
        if key in left:
            fields[name] = _parse(spec, left.pop(key), version, f"{key} of a {cls.__name__}")
        elif spec.tag_at(version) is None:
            raise CorruptDataError(f"The data of a {cls.__name__} version {version} lacks {key}.")
    if left:
        raise CorruptDataError(f"A {cls.__name__} version {version} has no field {sorted(map(str, left))[0]}.")
    return cls(**fields)


_Plan = tuple[tuple[str, str, FieldSpec, Any, Callable[[Any], Any] | None], ...]


@memoized
def _plan(cls: type[Struct]) -> _Plan:
    converts: dict[Any, Callable[[Any], Any]] = {
        Primitive.UUID: str,
        Primitive.BYTES: lambda value: base64.b64encode(value).decode("ascii"),
    }
    return tuple(
        (name, json_name(name), spec, default_of(cls, name), converts.get(spec.type)) for name, spec in field_specs(cls)
    )


def _parse(spec: FieldSpec, value: Any, version: int, where: str) -> Any:
    if value is None:
        if spec.nullable is None or version not in spec.nullable:
            raise CorruptDataError(f"The field {where} can't be null.")
        return None
    if not spec.array:
        return _parse_one(spec.type, value, version, where)
    if not isinstance(value, list):
        raise CorruptDataError(f"The field {where} is not a JSON array.")
    return tuple([_parse_one(spec.type, item, version, where) for item in value])


def _parse_one(type_: Primitive | type[Struct], value: Any, version: int, where: str) -> Any:
    if not isinstance(type_, Primitive):
        return from_json(type_, value, version)
    parsed: Any = None
    if type_ is Primitive.BOOL:
        parsed = value if isinstance(value, bool) else None
    elif type_ in RANGES:
        low, high = RANGES[type_]
        parsed = value if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high else None
    elif type_ is Primitive.FLOAT64:
        parsed = _parse_float(value)
    elif isinstance(value, str):
        parsed = _parse_text(type_, value)
    if parsed is None:
        raise CorruptDataError(f"The field {where} is no {type_.value}: {str(value)[:80]!r}.")
    return parsed


def _parse_float(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def _parse_text(type_: Primitive, value: str) -> str | bytes | None:
    try:
        if type_ is Primitive.UUID:
            return Uuid.from_string(value)
        if type_ is Primitive.BYTES:
            return base64.b64decode(value, validate=True)
        value.encode("utf-8")  # a lone surrogate can't be written
    except (ValueError, binascii.Error):
        return None
    return value
