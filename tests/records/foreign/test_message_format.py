"""Schemas in Kafka's message format: the records of the types that they declare, and schemas that are refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.records.foreign.message_format import parse_schema, record_type_of
from kraftlake.records.foreign.registered import DeclaredType, registered
from kraftlake.records.json_form import from_json, to_json
from kraftlake.records.serde import UnknownRecord, decode_value, encode_value
from kraftlake.runtime.errors import UsageError
from tests.records.foreign.made_schemas import as_json, commented, encoded, frame, schemas, values_of

STREAM: dict[str, Any] = {
    "apiKey": 501, "type": "metadata", "name": "StreamRecord", "validVersions": "0-1", "flexibleVersions": "0+",
    "fields": [
        {"name": "StreamId", "type": "int64", "versions": "0+"},
        {"name": "Tags", "type": "[]Tag", "versions": "1+", "fields": [
            {"name": "Key", "type": "string", "versions": "1+"},
        ]},
    ],
}  # fmt: skip


def declared(schema: Mapping[str, Any]) -> DeclaredType:
    cls = record_type_of(parse_schema(commented(schema), "a.json"), "a.json")
    assert cls is not None
    return DeclaredType(cls, "a.json")


@given(st.data())
def test_a_record_has_the_fields_that_its_schema_says_at_each_version(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    one = declared(schema)
    common = {struct["name"]: struct["fields"] for struct in schema.get("commonStructs", ())}
    assert one.cls.VERSIONS.high is not None
    with registered([one]):
        for version in range(one.cls.VERSIONS.high + 1):
            values = data.draw(values_of(schema, version))
            payload = frame(schema["apiKey"], version) + encoded(schema["fields"], values, version, common)
            found = decode_value(payload)
            assert type(found.message) is one.cls
            assert found.version == version
            form = to_json(found.message, version)
            assert form == as_json(schema["fields"], values, version, common)
            assert encode_value(found.message, version) == payload
            assert from_json(one.cls, form, version) == found.message
    assert isinstance(decode_value(payload).message, UnknownRecord)


@pytest.mark.parametrize(
    ("type_", "content", "value"),
    [
        ("uint32", b"\xff\xff\xff\xff", 2**32 - 1),
        ("uint16", b"\xff\xff", 2**16 - 1),
        ("int32", b"\xff\xff\xff\xff", -1),
        ("[]uint32", b"\x02\xff\xff\xff\xfe", [2**32 - 2]),
        ("[]bool", b"\x03\x01\x00", [True, False]),
    ],
)
def test_a_number_has_the_bits_and_the_sign_of_its_type(type_: str, content: bytes, value: Any) -> None:
    one = declared({**STREAM, "fields": [{"name": "A", "type": type_, "versions": "0+"}]})
    payload = frame(501, 1) + content + b"\x00"
    with registered([one]):
        message = decode_value(payload).message
        assert to_json(message, 1) == {"a": value}  # type: ignore[arg-type]
        assert encode_value(message, 1) == payload


def test_a_version_that_the_schema_lacks_stays_unknown() -> None:
    payload = frame(501, 2) + bytes(8) + b"\x01\x00"
    with registered([declared(STREAM)]):
        assert decode_value(payload).message == UnknownRecord(501, 2, payload)


def test_a_schema_without_versions_declares_nothing() -> None:
    removed = {"apiKey": 501, "type": "metadata", "name": "StreamRecord", "validVersions": "none"}
    assert record_type_of(parse_schema(json.dumps(removed), "a.json"), "a.json") is None


FIELD = {"name": "A", "type": "int32", "versions": "0+"}
REFUSED = {
    "the message has the key 'sinceRelease', which is not of Kafka 4.4's message format": {"sinceRelease": "5.0"},
    "a field of StreamRecord has the key 'indexed', which is not of Kafka 4.4's message format": {
        "fields": [{**FIELD, "indexed": True}]
    },
    "StreamRecord.A is of the type 'int128', which is not of Kafka 4.4's message format": {
        "fields": [{**FIELD, "type": "int128"}]
    },
    "StreamRecord.A is of the type Tag, which is declared nowhere": {"fields": [{**FIELD, "type": "[]Tag"}]},
    "the struct Tag contains itself": {
        "fields": [{**FIELD, "type": "Tag"}],
        "commonStructs": [{"name": "Tag", "versions": "0+", "fields": [{**FIELD, "type": "[]Tag"}]}],
    },
    "the struct Tag is declared twice": {"commonStructs": [{"name": "Tag", "fields": []}] * 2},
    "StreamRecord.A declares the struct Tag, which is a common one": {
        "fields": [{**FIELD, "type": "Tag", "fields": [FIELD]}],
        "commonStructs": [{"name": "Tag", "versions": "0+", "fields": [FIELD]}],
    },
    "the apiKey of StreamRecord is -1, which is no number from 0 to 32767": {"apiKey": -1},
    "the apiKey of StreamRecord is True, which is no number from 0 to 32767": {"apiKey": True},
    "the validVersions of StreamRecord are open-ended": {"validVersions": "0+"},
    "the validVersions of StreamRecord are 'new': they are such as 0, 0-4 or 1+": {"validVersions": "new"},
    "the validVersions of StreamRecord are '4-1', which run backwards or too far": {"validVersions": "4-1"},
    "StreamRecord has versions that are not flexible (flexibleVersions), and metadata records are flexible in all": {
        "flexibleVersions": "1+"
    },
    "the message streamRecord does not begin with a capital": {"name": "streamRecord"},
    "'a b' is no name: it is of letters and digits and begins with a letter": {"name": "a b"},
    "StreamRecord has two fields A": {"fields": [FIELD, FIELD]},
    "StreamRecord has two fields of the tag 1": {
        "fields": [
            {**FIELD, "tag": 1, "taggedVersions": "0+"},
            {**FIELD, "name": "B", "tag": 1, "taggedVersions": "0+"},
        ]
    },
    "StreamRecord.A has the tag 1 and the taggedVersions None": {"fields": [{**FIELD, "tag": 1}]},
    "StreamRecord.A has the tag None and the taggedVersions '0+'": {"fields": [{**FIELD, "taggedVersions": "0+"}]},
    "StreamRecord.A is of the type int32, which can't be null": {"fields": [{**FIELD, "nullableVersions": "0+"}]},
    "StreamRecord.A has no versions": {"fields": [{"name": "A", "type": "int8"}]},
    "StreamRecord.A has no type": {"fields": [{"name": "A", "versions": "0"}]},
    "StreamRecord.A has flexibleVersions of its own, which metadata records do not have": {
        "fields": [{**FIELD, "type": "string", "flexibleVersions": "none"}]
    },
    "the default of StreamRecord.A is 'many', which is no int32": {"fields": [{**FIELD, "default": "many"}]},
    "the default of StreamRecord.A is 0x80000000, which is beyond int32": {
        "fields": [{**FIELD, "default": "0x80000000"}]
    },
    "the default of StreamRecord.A is null, but the field can't be null in each of its versions": {
        "fields": [{**FIELD, "type": "string", "nullableVersions": "1+", "default": "null"}]
    },
    "the default of StreamRecord.A is 'x'; such a field is empty or null": {
        "fields": [{**FIELD, "type": "bytes", "default": "x"}]
    },
    "the fields of StreamRecord are not a JSON array": {"fields": {"A": "int32"}},
    "the commonStructs are not a JSON array": {"commonStructs": {}},
    "a field of StreamRecord is not a JSON object": {"fields": ["A"]},
}


@pytest.mark.parametrize(("words", "change"), REFUSED.items(), ids=REFUSED)
def test_a_schema_that_is_not_understood_is_refused(words: str, change: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as refused:
        record_type_of(parse_schema(json.dumps({**STREAM, **change}), "x/a.json"), "x/a.json")
    assert str(refused.value) == f"x/a.json: {words}."


@pytest.mark.parametrize("text", ["", "{", "[]", '{"a": 1, "a": 2}', '{"type": "metadata"}', "[" * 100_000])
def test_a_file_that_is_no_schema_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"x/a\.json is not a schema in Kafka's message format: "):
        parse_schema(text, "x/a.json")
