from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.records.metadata_records import BrokerEndpoint, PartitionChangeRecord, RegisterBrokerRecord, TopicRecord
from kraftlake.records.serde import decode_value, encode_value
from kraftlake.records.typed_columns import _compiled, columns_of_messages, decode_columns, typed_fields
from kraftlake.records.uuid import Uuid
from kraftlake.runtime.errors import CorruptDataError
from tests.strategies import METADATA_TYPES, messages_of, versions_of

Payloads = list[tuple[bytes, int]]


def names_of(cls: Any) -> tuple[str, ...]:
    return tuple(field.name for field in typed_fields(cls))


def arrow_of(payloads: Payloads) -> tuple[pa.Array, Any]:
    values = pa.array([value for value, _ in payloads], pa.binary())
    return values, np.array([version for _, version in payloads], np.int16)


def payloads_of(cls: Any, *, unknown_tags: bool = True) -> st.SearchStrategy[Payloads]:
    def encoded(version: int) -> st.SearchStrategy[tuple[bytes, int]]:
        made = messages_of(cls, version, unknown_tags=unknown_tags)
        return made.map(lambda message: (encode_value(message, version), version))

    return st.lists(st.sampled_from(versions_of(cls)).flatmap(encoded), max_size=4)


@pytest.mark.parametrize("cls", METADATA_TYPES, ids=lambda cls: cls.__name__)
@given(data=st.data())
def test_compiled_code_gives_the_columns_that_objects_give(cls: Any, data: st.DataObject) -> None:
    unknown_tags = data.draw(st.booleans())  # one of more than 28 bits is left to the objects
    payloads = data.draw(payloads_of(cls, unknown_tags=unknown_tags))
    fields = tuple(data.draw(st.permutations(names_of(cls)).map(lambda names: names[: len(names) // 2 + 1])))
    values, versions = arrow_of(payloads)
    slow = columns_of_messages(cls, [decode_value(value).message for value, _ in payloads], fields)
    fast = _compiled(cls, values, versions, fields)
    if fast is None:
        assert unknown_tags
        return
    for name, one, other in zip(fields, fast, slow, strict=True):
        one.validate(full=True)
        assert one.equals(other), name
        assert one.type == dict(zip(names_of(cls), typed_fields(cls), strict=True))[name].type


@given(data=st.data())
def test_bytes_that_are_no_record_are_never_columns(data: st.DataObject) -> None:
    cls = data.draw(st.sampled_from(METADATA_TYPES))
    damaged = bytearray(data.draw(payloads_of(cls).filter(bool))[0][0])
    version = damaged[2]
    if data.draw(st.booleans()):
        damaged[data.draw(st.integers(3, len(damaged) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    else:
        del damaged[data.draw(st.integers(3, len(damaged) - 1)) :]
    values, versions = arrow_of([(bytes(damaged), version)])
    columns = _compiled(cls, values, versions, names_of(cls)) if names_of(cls) else None
    try:
        message = decode_value(bytes(damaged)).message
    except CorruptDataError:
        assert columns is None
    else:
        if columns is not None:  # as text, for a NaN equals nothing
            slow = columns_of_messages(cls, [message], names_of(cls))
            assert [str(column) for column in columns] == [str(column) for column in slow]


def test_a_tagged_field_of_another_length_than_it_says_is_never_a_column() -> None:
    change = encode_value(PartitionChangeRecord(isr=(1,), leader=2), 0)
    tag = bytes((0, 5, 2, 0, 0, 0, 1))  # isr: tag 0 of 5 bytes, a length and one element
    assert change.count(tag) == 1
    for said in (4, 6):
        values, versions = arrow_of([(change.replace(tag, bytes((0, said)) + tag[2:]), 0)])
        assert _compiled(PartitionChangeRecord, values, versions, ("leader", "isr")) is None
    values, versions = arrow_of([(change, 0)])
    assert _compiled(PartitionChangeRecord, values, versions, ("leader", "isr")) is not None


def test_many_records_are_decoded_in_pieces_of_bounded_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kraftlake.records.typed_columns._BYTES_AT_ONCE", 100)
    topics = [TopicRecord(name="t" * (number % 150), topic_id=Uuid(number.to_bytes(16, "big"))) for number in range(99)]
    values, versions = arrow_of([(encode_value(topic, 0), 0) for topic in topics])
    # a slice, as Spark and filters give them
    names, ids = decode_columns(TopicRecord, values.slice(7), versions[7:], ("name", "topic_id"), str)
    assert names.to_pylist() == [topic.name for topic in topics[7:]]
    assert ids.to_pylist() == [str(topic.topic_id) for topic in topics[7:]]


def test_columns_have_plain_types_and_defaults() -> None:
    change = encode_value(PartitionChangeRecord(partition_id=3), 0)
    broker = RegisterBrokerRecord(broker_id=1, end_points=(BrokerEndpoint(name="A", host="h", port=65535),))
    values, versions = arrow_of([(change, 0)])
    leader, isr, elr = decode_columns(
        PartitionChangeRecord, values, versions, ("leader", "isr", "eligible_leader_replicas"), str
    )
    assert (leader.to_pylist(), isr.to_pylist(), elr.to_pylist()) == ([-2], [None], [None])
    values, versions = arrow_of([(encode_value(broker, 0), 0)])
    (end_points,) = decode_columns(RegisterBrokerRecord, values, versions, ("end_points",), str)
    assert end_points.to_pylist() == [[{"name": "A", "host": "h", "port": 65535, "security_protocol": 0}]]


def test_the_first_broken_record_is_named() -> None:
    sound = encode_value(TopicRecord(name="a"), 0)
    values, versions = arrow_of([(sound, 0), (sound[:-1], 0), (sound[:5], 0)])
    with pytest.raises(CorruptDataError, match=r"^record 1: The bytes of a TopicRecord version 0 can't be read"):
        decode_columns(TopicRecord, values, versions, ("name",), lambda index: f"record {index}")


def test_text_that_is_no_utf8_is_a_broken_record() -> None:
    broken = encode_value(TopicRecord(name="abc"), 0).replace(b"abc", b"a\xff\xfe")
    values, versions = arrow_of([(broken, 0)])
    with pytest.raises(CorruptDataError, match="record 0"):
        decode_columns(TopicRecord, values, versions, ("name",), lambda index: f"record {index}")
