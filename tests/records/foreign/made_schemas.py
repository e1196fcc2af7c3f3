"""Random schemas in Kafka's message format with records of them, and their bytes and JSON by an encoder of its own."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from hypothesis import strategies as st

Field: TypeAlias = Mapping[str, Any]

_NUMBERS = {
    "bool": ">?", "int8": ">b", "int16": ">h", "uint16": ">H", "int32": ">i", "uint32": ">I", "int64": ">q",
    "float64": ">d",
}  # fmt: skip
_BITS = {
    "int8": (-7, 7),
    "int16": (-15, 15),
    "uint16": (0, 16),
    "int32": (-31, 31),
    "uint32": (0, 32),
    "int64": (-63, 63),
}
_TEXTS = ("string", "bytes", "records", "uuid")
_NAMES = ("Id", "name", "From", "URLPath", "Time2InMs", "Class", "UnknownTaggedFields", "Offset", "Keys", "x9y")
_ZERO = {"bool": "false", "float64": "0"}


def frame(api_key: int, version: int) -> bytes:
    return b"\x01" + _varint(api_key) + _varint(version)


def encoded(fields: Sequence[Field], values: Mapping[str, Any], version: int, common: Mapping[str, Any]) -> bytes:
    """The fields of a struct in Kafka's flexible form."""
    out, tagged = b"", []
    for field in fields:
        if not _holds(field["versions"], version):
            continue
        value = values[field["name"]]
        if not _holds(field.get("taggedVersions"), version):
            out += _value(field, value, version, common)
        elif value != default_of(field, version, common):
            tagged.append((field["tag"], _value(field, value, version, common)))
    out += _varint(len(tagged))
    for tag, content in sorted(tagged):
        out += _varint(tag) + _varint(len(content)) + content
    return out


def as_json(fields: Sequence[Field], values: Mapping[str, Any], version: int, common: Mapping[str, Any]) -> Any:
    """The fields of a struct as Kafka's dump tool prints them."""
    made = {}
    for field in fields:
        value = values.get(field["name"])
        if not _holds(field["versions"], version):
            continue
        if _holds(field.get("taggedVersions"), version) and value == default_of(field, version, common):
            continue
        name = field["name"][0].lower() + field["name"][1:]
        each = value if isinstance(value, list) else [value]
        shown = [_json_value(field, one, version, common) for one in each]
        made[name] = shown if isinstance(value, list) else shown[0]
    return made


def default_of(field: Field, version: int, common: Mapping[str, Any]) -> Any:
    text, type_ = field.get("default"), field["type"]
    if text == "null":
        return None
    if type_.startswith("[]"):
        return []
    if type_ in ("bytes", "records"):
        return b""
    if type_ == "string":
        return text or ""
    if type_ == "uuid":
        return bytes(16)
    if type_ in _NUMBERS:
        return text == "true" if type_ == "bool" else float(text or 0) if type_ == "float64" else int(text or 0)
    fields = _fields_of(field, common)
    return {one["name"]: default_of(one, version, common) for one in fields if _holds(one["versions"], version)}


def _value(field: Field, value: Any, version: int, common: Mapping[str, Any]) -> bytes:
    type_: str = field["type"]
    if type_.startswith("[]"):
        if value is None:
            return b"\x00"
        one = {**field, "type": type_[2:], "nullableVersions": "none"}
        return _varint(len(value) + 1) + b"".join(_value(one, each, version, common) for each in value)
    if type_ in _NUMBERS:
        return struct.pack(_NUMBERS[type_], value)
    if type_ == "uuid":
        return bytes(value)
    if type_ in _TEXTS:
        if value is None:
            return b"\x00"
        content = value.encode() if type_ == "string" else value
        return _varint(len(content) + 1) + bytes(content)
    can_be_null = _holds(field.get("nullableVersions"), version)
    if value is None:
        return b"\xff"
    return (b"\x01" if can_be_null else b"") + encoded(_fields_of(field, common), value, version, common)


def _json_value(field: Field, value: Any, version: int, common: Mapping[str, Any]) -> Any:
    type_ = field["type"].removeprefix("[]")
    if value is None or type_ in _NUMBERS or type_ == "string":
        return value
    if type_ == "uuid":
        return base64.urlsafe_b64encode(value).decode()[:22]
    if type_ in _TEXTS:
        return base64.b64encode(value).decode()
    return as_json(_fields_of(field, common), value, version, common)


def _fields_of(field: Field, common: Mapping[str, Any]) -> Any:
    return field.get("fields") or common[field["type"].removeprefix("[]")]


def _varint(number: int) -> bytes:
    out = b""
    while number >= 128:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def _holds(versions: str | None, version: int) -> bool:
    if versions is None or versions == "none":
        return False
    low, _, high = versions.partition("-")
    if low.endswith("+"):
        return version >= int(low[:-1])
    return int(low) <= version <= int(high or low)


@st.composite
def schemas(draw: st.DrawFn) -> dict[str, Any]:
    """A schema of a metadata record."""
    newest = draw(st.integers(0, 3))
    common = draw(st.booleans())
    structs = [{"name": "Shared", "versions": "0+", "fields": draw(_fields(newest, 2, False))}] if common else []
    schema = {
        "apiKey": draw(st.integers(40, 0x7FFF)), "type": "metadata", "name": "MadeUpRecord",
        "validVersions": f"0-{newest}" if newest else "0", "flexibleVersions": "0+",
        "fields": draw(_fields(newest, 0, common)),
    }  # fmt: skip
    return schema | ({"commonStructs": structs} if structs else {})


@st.composite
def _fields(draw: st.DrawFn, newest: int, depth: int, common: bool) -> list[dict[str, Any]]:
    names = draw(st.lists(st.sampled_from(_NAMES), min_size=1, max_size=5, unique=True))
    return [draw(_field(name, tag, newest, depth, common)) for tag, name in enumerate(names)]


@st.composite
def _field(draw: st.DrawFn, name: str, tag: int, newest: int, depth: int, common: bool) -> Any:  # noqa: PLR0917
    kinds = [*_NUMBERS, *_TEXTS] + (["struct"] * 4 if depth < 2 else []) + (["Shared"] * 2 if common else [])
    type_, is_array = draw(st.sampled_from(kinds)), draw(st.booleans())
    field: dict[str, Any] = {"name": name, "about": "Any // text /* of */ a field."}
    if type_ == "struct":
        type_ = f"Struct{name.capitalize()}{depth}"
        field["fields"] = draw(_fields(newest, depth + 1, common))
    low = draw(st.integers(0, newest))
    is_tagged = draw(st.booleans())
    is_open = is_tagged or draw(st.booleans())
    field["type"] = f"[]{type_}" if is_array else type_
    field["versions"] = f"{low}+" if is_open else f"{low}-{draw(st.integers(low, newest))}"
    can_be_null = is_array or type_ not in (*_NUMBERS, "uuid")
    if can_be_null and draw(st.booleans()):
        field["nullableVersions"] = field["versions"]
        if draw(st.booleans()):
            field["default"] = "null"
    elif type_ in _BITS and not is_array and draw(st.booleans()):
        field["default"] = str(draw(_numbers(type_)))
    if is_tagged:
        field |= {"tag": draw(st.sampled_from([tag, 200 + tag])), "taggedVersions": f"{draw(st.integers(low, 3))}+"}
    return field


def _numbers(type_: str) -> st.SearchStrategy[int]:
    low, high = _BITS[type_]
    return st.integers(-(2**-low) if low else 0, 2**high - 1)


def values_of(schema: Mapping[str, Any], version: int) -> st.SearchStrategy[dict[str, Any]]:
    """The values of a record's fields at a version, by name."""
    common = {one["name"]: one["fields"] for one in schema.get("commonStructs", ())}
    return _struct_values(schema["fields"], version, common)


def _struct_values(fields: Sequence[Field], version: int, common: Mapping[str, Any]) -> st.SearchStrategy[Any]:
    present = [field for field in fields if _holds(field["versions"], version)]
    return st.fixed_dictionaries({field["name"]: _values(field, version, common) for field in present})


def _values(field: Field, version: int, common: Mapping[str, Any]) -> st.SearchStrategy[Any]:
    type_ = field["type"].removeprefix("[]")
    one: st.SearchStrategy[Any]
    if type_ in _BITS:
        one = _numbers(type_)
    elif type_ == "bool":
        one = st.booleans()
    elif type_ == "float64":
        one = st.floats(allow_nan=False)
    elif type_ == "string":
        one = st.text(max_size=200)
    elif type_ == "uuid":
        one = st.binary(min_size=16, max_size=16)
    elif type_ in _TEXTS:
        one = st.binary(max_size=200)
    else:
        one = _struct_values(_fields_of(field, common), version, common)
    value = st.lists(one, max_size=4) if field["type"].startswith("[]") else one
    return st.none() | value if _holds(field.get("nullableVersions"), version) else value


def commented(schema: Mapping[str, Any]) -> str:
    """A schema as a file with comments, as Kafka's have."""
    lines = json.dumps(schema, indent=2).splitlines()
    return "// A licence.\n/* and\nmore */\n" + "\n".join(f'{line} // a "comment" {{' for line in lines)
