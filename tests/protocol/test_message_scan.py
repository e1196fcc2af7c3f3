from __future__ import annotations

import struct
from dataclasses import fields
from datetime import timedelta
from importlib import import_module
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode
from kio.serial._introspect import EntityField, EntityTupleField, PrimitiveTupleField, classify_field

from kraftlake.protocol import Connection, NodeClient, NodeError
from kraftlake.protocol.message_scan import MessageScan, end_of_message, read_message
from kraftlake.records.varint import MalformedError, uvarint
from tests.protocol.fake_nodes import encoded, frame, receive_frame, serving

RESPONSES = {
    "api_versions": range(3, 4), "sasl_handshake": range(1, 2), "sasl_authenticate": range(1, 3),
    "describe_cluster": range(2), "describe_quorum": range(3), "fetch_snapshot": range(2),
    "offset_for_leader_epoch": range(4, 5), "list_offsets": range(6, 10), "alter_partition": range(3, 4),
    "broker_registration": range(4, 5), "broker_heartbeat": range(1, 2), "assign_replicas_to_dirs": range(1),
}  # fmt: skip


def response_type(name: str, version: int) -> type[Any]:
    module = import_module(f"kio.schema.{name}.v{version}.response")
    found: type[Any] = getattr(module, "".join(map(str.capitalize, name.split("_"))) + "Response")
    return found


TYPES = [response_type(name, version) for name, versions in RESPONSES.items() for version in versions]


def bits(count: int) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (count - 1)), 2 ** (count - 1) - 1)


VALUES = {
    "bool": st.booleans(), "int8": bits(8), "int16": bits(16), "int32": bits(32), "int64": bits(64),
    "uint16": st.integers(0, 65535), "string": st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    "bytes": st.binary(max_size=200), "records": st.binary(max_size=200),
    "error_code": st.sampled_from(list(ErrorCode)),
    "uuid": st.uuids(), "timedelta_i32": st.integers(0, 9999).map(lambda ms: timedelta(milliseconds=ms)),
    "timedelta_i64": st.integers(0, 9999).map(lambda ms: timedelta(milliseconds=ms)),
}  # fmt: skip


def messages(kind: type[Any]) -> st.SearchStrategy[Any]:
    """Messages of a type of kio's, with arrays of up to three elements."""

    def values(field: Any) -> st.SearchStrategy[Any]:
        found = classify_field(field)
        nested = isinstance(found, EntityField | EntityTupleField)
        one = messages(found.type_) if nested else VALUES[field.metadata["kafka_type"]]
        is_array = isinstance(found, EntityTupleField | PrimitiveTupleField)
        return st.lists(one, max_size=3).map(tuple) if is_array else one

    return st.builds(kind, **{field.name: values(field) for field in fields(kind)})


@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: f"{kind.__name__}-{kind.__version__}")
@given(drawn=st.data())
def test_every_response_that_kio_writes_ends_where_it_ends(kind: type[Any], drawn: st.DataObject) -> None:
    data = encoded(drawn.draw(messages(kind)))
    assert end_of_message(kind, b"head" + data, 4, MessageScan()) == len(data) + 4
    cut = drawn.draw(st.integers(0, len(data) - 1))
    with pytest.raises((MalformedError, IndexError, struct.error)):
        end_of_message(kind, data[:cut], 0, MessageScan())


def test_the_elements_of_all_arrays_are_counted() -> None:
    module = import_module("kio.schema.list_partition_reassignments.v0.request")
    kind = module.ListPartitionReassignmentsRequest
    topics = tuple(
        module.ListPartitionReassignmentsTopics(name=name, partition_indexes=(1, 2, 3)) for name in ("foo", "bar")
    )
    data = encoded(kind(topics=topics))
    scan = MessageScan(8)
    end_of_message(kind, data, 0, scan)
    assert scan.elements == 8
    with pytest.raises(MalformedError, match="more than 7 elements"):
        end_of_message(kind, data, 0, MessageScan(7))


@pytest.mark.parametrize("version", [1, 2])
def test_a_string_that_kafka_can_not_read_is_refused_and_bytes_may_be_longer(version: int) -> None:
    kind = response_type("sasl_authenticate", version)

    def made(message: str) -> bytes:
        return encoded(
            kind(
                error_code=ErrorCode.none, error_message=message, auth_bytes=bytes(0x9000),
                session_lifetime=timedelta(0),
            )
        )  # fmt: skip

    data = made("a" * 0x7FFF)
    assert end_of_message(kind, data, 0, MessageScan()) == len(data)
    if version == 2:  # a length of two bytes can't be larger
        with pytest.raises(MalformedError, match="the string error_message has more than 32767 bytes"):
            end_of_message(kind, made("a" * 0x8000), 0, MessageScan())


def tag_sections(kind: type[Any], data: bytes, tags: list[bytes]) -> bytes:
    """The data with tagged fields that its types do not know, wherever there are none and not within another."""
    places: dict[int, int] = {}
    seen = MessageScan.end_of_tags

    def noted(scan: MessageScan, tagged: Any, data: bytes, begin: int) -> int:
        end = seen(scan, tagged, data, begin)
        for place in [place for place in places if begin < place < end]:
            del places[place]
        places[begin] = end
        return end

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MessageScan, "end_of_tags", noted)
        end_of_message(kind, data, 0, MessageScan())
    for place in sorted(places, reverse=True):
        if data[place] == 0:
            data = data[:place] + uvarint(len(tags)) + b"".join(tags) + data[place + 1 :]
    return data


@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: f"{kind.__name__}-{kind.__version__}")
@given(drawn=st.data())
def test_tagged_fields_that_are_not_known_are_passed_over(kind: type[Any], drawn: st.DataObject) -> None:
    made = drawn.draw(messages(kind))
    contents = drawn.draw(st.lists(st.binary(max_size=200), max_size=3))
    tags = [uvarint(99 + number) + uvarint(len(one)) + one for number, one in enumerate(contents)]
    data = tag_sections(kind, encoded(made), tags)
    assert read_message(kind, b"head" + data + b"more", 4) == (made, len(data) + 4)


def test_an_unknown_tagged_field_within_a_known_one_is_passed_over() -> None:
    module = import_module("kio.schema.fetch.v17.request")
    replica = module.ReplicaState(replica_id=3, replica_epoch=4)
    made = module.FetchRequest(
        cluster_id=None, replica_state=replica, max_wait=timedelta(0), min_bytes=0, max_bytes=0, isolation_level=0,
        session_id=0, session_epoch=0, topics=(), forgotten_topics_data=(), rack_id="",
    )  # fmt: skip
    data = encoded(made)
    state = encoded(replica)
    before, known, behind = data.partition(uvarint(1) + uvarint(len(state)) + state)
    assert known
    longer = state[:-1] + b"\x01\x63\x02xy"
    unknown = before + uvarint(1) + uvarint(len(longer)) + longer + behind
    assert read_message(module.FetchRequest, unknown, 0) == (made, len(unknown))


def test_a_message_within_another_may_be_null() -> None:
    module = import_module("kio.schema.describe_topic_partitions.v0.request")
    kind = module.DescribeTopicPartitionsRequest
    for cursor in (None, module.Cursor(topic_name="t", partition_index=3)):
        data = encoded(kind(topics=(module.TopicRequest(name="t"),), response_partition_limit=9, cursor=cursor))
        assert end_of_message(kind, data, 0, MessageScan()) == len(data)


@pytest.mark.parametrize("count", [2**31 - 1, 2**32 - 2, 100])
def test_an_answer_that_claims_a_longer_array_than_it_holds_is_one_error(count: int) -> None:
    def talk(connection: Any) -> None:
        while True:
            request = receive_frame(connection)
            versions = struct.pack(">h", 0) + uvarint(count + 1) + bytes(20)
            connection.sendall(frame(request[4:8] + versions))

    with (
        serving(talk) as address,
        NodeClient(Connection(address, timeout=30.0)) as node,
        pytest.raises(NodeError, match=f"an array of {count} elements does not fit into 20 bytes"),
    ):
        node.versions_of(1)


def test_an_array_that_can_not_be_null_is_not() -> None:
    kind = response_type("describe_cluster", 1)
    made = kind(
        throttle_time=timedelta(0), error_code=ErrorCode.none, error_message=None, endpoint_type=1, cluster_id="c",
        controller_id=1, brokers=(), cluster_authorized_operations=0,
    )  # fmt: skip
    data = encoded(made)
    assert end_of_message(kind, data, 0, MessageScan()) == len(data)
    at = len(data) - 6  # behind it: four bytes of operations, and no tags
    assert data[at] == 1
    with pytest.raises(MalformedError, match="the array brokers is null"):
        end_of_message(kind, data[:at] + b"\0" + data[at + 1 :], 0, MessageScan())
