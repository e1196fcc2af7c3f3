"""A typed row as the line of `kraftlake log --json` that it must be."""

from __future__ import annotations

import base64
from typing import Any

from kraftlake.records.codec_source import default_of
from kraftlake.records.redaction import REDACTED
from kraftlake.records.schema import FieldSpec, Message, Primitive, Struct, field_specs, json_name
from kraftlake.records.typed_rows import record_types


def json_of_row(row: dict[str, Any], fields: dict[str, Any] | None, *, redacted: bool) -> dict[str, Any]:
    """The line; `fields` are the typed columns of the row's type, None where it has none."""
    time = row["timestamp"]
    line = {
        "offset": row["offset"],
        "epoch": row["epoch"],
        "timestamp": -1 if time is None else round(time.timestamp() * 1000),
        "type": row["type"],
        "version": row["version"],
    }
    if row["type"] == "UNKNOWN":
        data = REDACTED if row["payload"] is None else base64.b64encode(row["payload"]).decode()
        return {**line, "apiKey": row["api_key"], "data": data}
    kind = record_types()[row["type"]]
    values = dict(fields or {})
    if kind.control:
        values["version"] = row["version"]
    return {**line, "data": _json_of(kind.cls, values, row["version"], redacted)}


def _json_of(cls: type[Struct], values: dict[str, Any], version: int, redacted: bool) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for name, spec in field_specs(cls):
        value, default = values[name], default_of(cls, name)
        plain = _json_value(spec, value, version)
        if version not in spec.versions or spec.tag is not None:
            unset = _json_value(spec, _plain_default(default), version)
            if plain == unset or (redacted and value is None):
                continue
            assert version in spec.versions, f"{name} of {cls.__name__} version {version}"
        data[json_name(name)] = plain
    return data


def _plain_default(default: Any) -> Any:
    return list(default) if isinstance(default, tuple) else default


def _json_value(spec: FieldSpec, value: Any, version: int) -> Any:
    if value is None:
        return None
    if spec.array:
        return [_json_value(FieldSpec(type=spec.type, versions=spec.versions), item, version) for item in value]
    if not isinstance(spec.type, Primitive):
        return _json_of(spec.type, value, version, False)
    if spec.type is Primitive.BYTES and isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return str(value) if spec.type is Primitive.UUID else value


def expected_line(line: dict[str, Any], message: Message | None) -> dict[str, Any]:
    """A redacted line of `log --json` with what typed columns can't say "(redacted)" in: there it is null."""
    if line["type"] not in ("USER_SCRAM_CREDENTIAL_RECORD", "DELEGATION_TOKEN_RECORD"):
        return line
    kinds = {json_name(name): spec for name, spec in field_specs(record_types()[line["type"]].cls)}
    data = {
        key: None if value == REDACTED and (kinds[key].array or kinds[key].type is not Primitive.STRING) else value
        for key, value in line["data"].items()
    }
    return {**line, "data": data}
