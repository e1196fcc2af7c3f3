"""Messages that Kafka's own schemas declare at run time, as the classes read them that Kafka makes of these schemas."""

from __future__ import annotations

import atexit
import base64
import json
import re
import zipfile
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.cli.output.formats import json_text
from kraftlake.records.codec import decode_message, encode_message
from kraftlake.records.foreign.message_format import parse_schema, record_type_of
from kraftlake.records.json_form import from_json, to_json
from kraftlake.records.schema import Versions
from tests.interop.jars import kafka_jars
from tests.interop.kafka_classes import KafkaClasses
from tests.records.foreign.made_schemas import encoded, values_of

pytestmark = pytest.mark.spark


@cache
def classes() -> KafkaClasses:
    made = KafkaClasses(Path(__file__).with_name("KafkaMessages.java"))
    atexit.register(made.close)
    return made


@cache
def schemas() -> dict[str, dict[str, Any]]:
    """The schemas of all messages whose form our reader takes, by the names of their classes, as if of records."""
    return dict(_schemas())


def _schemas() -> Iterator[tuple[str, dict[str, Any]]]:
    with zipfile.ZipFile(kafka_jars()["kafka-clients"]) as jar:
        for name in sorted(jar.namelist()):
            if not re.fullmatch(r"common/message/\w+\.json", name):
                continue
            schema = parse_schema(jar.read(name).decode(), name)
            valid, flexible = (_versions(schema.get(key, "none")) for key in ("validVersions", "flexibleVersions"))
            if valid is None or flexible is None or flexible.low > (valid.high or 0) or _has_records(schema):
                continue
            suffix = "Data" if schema["type"] != "data" else ""
            versions = f"{max(valid.low, flexible.low)}-{valid.high}"
            yield (
                f"org.apache.kafka.common.message.{schema['name']}{suffix}",
                {**schema, "type": "metadata", "apiKey": 600, "validVersions": versions},
            )


def _versions(text: str) -> Versions | None:
    return None if text == "none" else Versions.parse(text)


def _has_records(schema: Mapping[str, Any]) -> bool:
    """Whether it has what only Kafka's network has: batches of records, or texts that are not flexible."""
    text = str(schema)
    return "'records'" in text or "'flexibleVersions'" in text.replace("'flexibleVersions'", "", 1)


def test_there_are_messages_with_everything_that_the_format_has() -> None:
    text = str(schemas())
    assert len(schemas()) > 100
    for word in ("uint16", "float64", "'tag'", "nullableVersions", "commonStructs", "taggedVersions"):
        assert word in text, word


@given(st.data())
def test_a_message_is_what_kafkas_own_class_reads(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(schemas())))
    schema = schemas()[name]
    cls = record_type_of(schema, name)
    assert cls is not None
    assert cls.VERSIONS.high is not None
    version = data.draw(st.integers(cls.VERSIONS.low, cls.VERSIONS.high))
    common = {struct["name"]: struct["fields"] for struct in schema.get("commonStructs", ())}
    content = encoded(schema["fields"], data.draw(values_of(schema, version)), version, common)
    message = decode_message(cls, version, content)
    kafkas = classes().ask(name, version, base64.b64encode(content).decode())
    form = to_json(message, version)
    assert json.loads(json_text(form)) == kafkas["json"]
    assert kafkas["left"] == 0
    assert base64.b64decode(kafkas["bytes"]) == encode_message(message, version) == content
    assert from_json(cls, form, version) == message
