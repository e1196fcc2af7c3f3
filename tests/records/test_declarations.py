"""The declarations, held against the schemas inside Kafka's own jars."""

from __future__ import annotations

import json
import re
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from kraftlake.records.codec_source import default_of
from kraftlake.records.control_records import CONTROL_RECORDS
from kraftlake.records.metadata_records import METADATA_RECORDS
from kraftlake.records.schema import FieldSpec, Message, Primitive, Struct, Versions, field_specs, json_name
from tests.interop.jars import kafka_jars

CONTROLS = ("LeaderChangeMessage", "SnapshotHeaderRecord", "SnapshotFooterRecord", "KRaftVersionRecord", "VotersRecord")

pytestmark = pytest.mark.spark


@cache
def _schemas(jar: str, folder: str) -> dict[str, dict[str, Any]]:
    """The schemas in a jar's folder by name; their comments run from // to the end of the line."""
    schemas = {}
    with zipfile.ZipFile(kafka_jars()[jar]) as file:
        for name in file.namelist():
            if Path(name).parent.as_posix() == folder and name.endswith(".json"):
                text = re.sub(r'("(?:[^"\\\n]|\\.)*")|//[^\n]*', lambda m: m[1] or "", file.read(name).decode("utf-8"))
                schema = json.loads(text)
                schemas[schema["name"]] = schema
    return schemas


def _control_schemas() -> dict[str, dict[str, Any]]:
    return _schemas("kafka-clients", "common/message")


def _metadata_schemas() -> dict[str, dict[str, Any]]:
    return _schemas("kafka-metadata", "common/metadata")


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def _default(field: dict[str, Any], spec: FieldSpec) -> Any:
    text = field.get("default")
    if text == "null":
        return None
    if spec.array:
        assert text is None
        return ()
    if not isinstance(spec.type, Primitive):
        return spec.type()
    if spec.type is Primitive.BOOL:
        return text == "true"
    if spec.type is Primitive.STRING:
        return text or ""
    if spec.type is Primitive.BYTES:
        return b""
    if spec.type is Primitive.UUID:
        return bytes(16)
    return float(text or 0) if spec.type is Primitive.FLOAT64 else int(text or 0)


def _check_fields(cls: type[Struct], fields: list[dict[str, Any]], common: dict[str, Any]) -> None:
    declared = dict(field_specs(cls))
    assert [json_name(name) for name in declared] == [f["name"][0].lower() + f["name"][1:] for f in fields]
    for (name, spec), field in zip(declared.items(), fields, strict=True):
        where = f"{cls.__name__}.{name}"
        assert _snake(field["name"]) == name, where
        assert spec.versions == Versions.parse(field["versions"]), where
        nullable = field.get("nullableVersions")
        assert spec.nullable == (None if nullable is None else Versions.parse(nullable)), where
        assert spec.tag == field.get("tag"), where
        if spec.tag is not None:
            assert field["taggedVersions"] == field["versions"], where
        assert not field.get("ignorable"), f"{where}: the codec refuses what a version lacks"
        type_ = field["type"].removeprefix("[]")
        assert spec.array == field["type"].startswith("[]"), where
        if isinstance(spec.type, Primitive):
            assert spec.type.value == type_, where
        else:
            _check_fields(spec.type, field.get("fields") or common[type_]["fields"], common)
        default = default_of(cls, name)
        assert default == _default(field, spec), where
        assert type(default) is type(_default(field, spec)) or spec.type is Primitive.UUID, where


def _check(cls: type[Message], schema: dict[str, Any]) -> None:
    assert schema["flexibleVersions"] == "0+"
    assert Versions.parse(schema["validVersions"]) == cls.VERSIONS
    common = {struct["name"]: struct for struct in schema.get("commonStructs", ())}
    _check_fields(cls, schema["fields"], common)


def test_every_record_type_of_kafka_is_declared_and_no_other() -> None:
    keys = {schema["apiKey"]: name for name, schema in _metadata_schemas().items()}
    assert len(keys) == 27
    assert keys == {key: cls.__name__ for key, cls in METADATA_RECORDS.items()}


@pytest.mark.parametrize("cls", METADATA_RECORDS.values(), ids=lambda cls: cls.__name__)
def test_a_metadata_record_is_declared_as_in_kafkas_schema(cls: type[Message]) -> None:
    _check(cls, _metadata_schemas()[cls.__name__])


@pytest.mark.parametrize("cls", CONTROL_RECORDS.values(), ids=lambda cls: cls.__name__)
def test_a_control_record_is_declared_as_in_kafkas_schema(cls: type[Message]) -> None:
    _check(cls, _control_schemas()[cls.__name__])


def test_the_five_control_records_are_declared() -> None:
    assert tuple(cls.__name__ for cls in CONTROL_RECORDS.values()) == CONTROLS
