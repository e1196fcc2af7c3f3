"""The foreign types that a process knows: which declarations are taken together, and which contradict each other."""

from __future__ import annotations

from typing import Any

import pytest

from kraftlake.records.foreign.registered import FOREIGN_RECORDS, DeclaredType, register, registered
from kraftlake.runtime.errors import UsageError
from tests.records.foreign.test_message_format import STREAM, declared

TOPIC: dict[str, Any] = {
    "apiKey": 2, "type": "metadata", "name": "TopicRecord", "validVersions": "0", "flexibleVersions": "0+",
    "fields": [
        {"name": "Name", "type": "string", "versions": "0+", "entityType": "topicName"},
        {"name": "TopicId", "type": "uuid", "versions": "0+"},
    ],
}  # fmt: skip


def of(file: str, schema: dict[str, Any], **changes: Any) -> DeclaredType:
    return DeclaredType(declared({**schema, **changes}).cls, file)


def test_a_type_of_kafka_as_it_is_is_no_foreign_one() -> None:
    later = {"name": "TieredEpoch", "type": "int32", "versions": "1+"}
    with registered([of("a", TOPIC), of("b", TOPIC, validVersions="0-1", fields=[*TOPIC["fields"], later])]):
        assert not FOREIGN_RECORDS


def test_one_type_in_two_files_is_one_type() -> None:
    with registered([of("a", STREAM), of("b", STREAM)]):
        assert [*FOREIGN_RECORDS] == [501]
        register([of("c", STREAM)])
    assert not FOREIGN_RECORDS


SHORT: dict[str, Any] = {"fields": STREAM["fields"][:1]}
REFUSED: dict[str, tuple[DeclaredType, ...]] = {
    "a: StreamRecord is of the apiKey 2, and by Kafka 4.4 TopicRecord is of the apiKey 2: a name and a number belong "
    "together once.": (of("a", STREAM, apiKey=2),),
    "a: TopicRecord is of the apiKey 501, and by Kafka 4.4 TopicRecord is of the apiKey 2: a name and a number belong "
    "together once.": (of("a", TOPIC, apiKey=501),),
    "a: TopicRecord version 0 has other fields than Kafka 4.4 says: topicId.": (
        of("a", TOPIC, fields=TOPIC["fields"][:1]),
    ),
    "a: TopicRecord version 0 has other fields than Kafka 4.4 says: name.": (
        of("a", TOPIC, fields=[{**TOPIC["fields"][0], "type": "bytes"}, TOPIC["fields"][1]]),
    ),
    "b: StreamRecord version 1 has other fields than a says: tags.": (of("a", STREAM), of("b", STREAM, **SHORT)),
    "b and a differ in the versions of StreamRecord.": (of("a", STREAM), of("b", STREAM, validVersions="0-2")),
    "b: StreamRecord is of the apiKey 502, and by a StreamRecord is of the apiKey 501: a name and a number belong "
    "together once.": (of("a", STREAM), of("b", STREAM, apiKey=502)),
    "b: OtherRecord is of the apiKey 501, and by a StreamRecord is of the apiKey 501: a name and a number belong "
    "together once.": (of("a", STREAM), of("b", STREAM, name="OtherRecord")),
    "a: LeaderChange has the name of another kind of record.": (of("a", STREAM, name="LeaderChange"),),
    "a: Unknown has the name of another kind of record.": (of("a", STREAM, name="Unknown"),),
}


@pytest.mark.parametrize(("words", "types"), REFUSED.items(), ids=range(len(REFUSED)))
def test_types_that_contradict_each_other_are_refused_and_none_is_known(
    words: str, types: tuple[DeclaredType, ...]
) -> None:
    with pytest.raises(UsageError) as refused:
        register([of("x", STREAM, apiKey=77, name="FirstRecord"), *types])
    assert str(refused.value) == words
    assert not FOREIGN_RECORDS


def test_what_contradicts_a_type_given_before_is_refused() -> None:
    with registered([of("a", STREAM)]), pytest.raises(UsageError, match="other fields than a schema given before says"):
        register([of("b", STREAM, **SHORT)])
