from __future__ import annotations

import struct
from dataclasses import fields
from datetime import timedelta
from importlib import import_module
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode
from kio.serial._introspect import EntityField, EntityTupleField, PrimitiveTupleField, classify_field

from kraftlake.protocol.connection import Connection
from kraftlake.protocol.message_scan import MessageScan, end_of_message, read_message
from kraftlake.protocol.node_client import NodeClient
from kraftlake.protocol.node_error import NodeError
from kraftlake.records.varint import MalformedError, uvarint
from tests.few_examples import few_examples
from tests.memory import peak_memory
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
@few_examples
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
    with pytest.raises(MalformedError, match="more than 7 elements and tagged fields"):
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
@few_examples
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


FETCH = import_module("kio.schema.fetch.v17.request")


def fetch_of(*partition_tags: bytes) -> bytes:
    """The body of a Fetch of one partition, the only tagged fields in which are these."""
    partition = FETCH.FetchPartition(partition=3, fetch_offset=9, partition_max_bytes=1)
    topic = FETCH.FetchTopic(topic_id=UUID(int=7), partitions=(partition,))
    data = encoded(
        FETCH.FetchRequest(
            max_wait=timedelta(0), min_bytes=0, max_bytes=0, isolation_level=0, session_id=0, session_epoch=0,
            topics=(topic,), forgotten_topics_data=(), rack_id="",
        )
    )  # fmt: skip
    own = encoded(partition)
    assert data.count(own) == 1
    tags = uvarint(len(partition_tags)) + b"".join(partition_tags)
    return data.replace(own, own[:-1] + tags)


def directory(number: int, size: int = 16) -> bytes:
    """A known tagged field of a partition, that announces a size."""
    return b"\0" + uvarint(size) + UUID(int=number).bytes


def partition_in(data: bytes) -> Any:
    made, end = read_message(FETCH.FetchRequest, data, 0)
    assert end == len(data)
    return made.topics[0].partitions[0]


@pytest.mark.parametrize("size", [0, 1, 15, 17, 10_000, 2**32 - 1])
def test_a_known_tagged_field_is_read_by_its_content_whatever_size_it_announces(size: int) -> None:
    """Else kio would read other bytes than were passed over, and reserve what they claim."""
    assert partition_in(fetch_of(directory(5, size))).replica_directory_id == UUID(int=5)


def test_of_tagged_fields_in_any_order_the_last_of_a_tag_counts() -> None:
    data = fetch_of(b"\x63\x01x", directory(5), b"\x07\x00", b"\x63\x00", directory(6), b"\x0c\x02yz")
    assert partition_in(data).replica_directory_id == UUID(int=6)


def test_a_section_has_10_000_tagged_fields_at_most() -> None:
    assert partition_in(fetch_of(*[b"\x63\x00"] * 10_000)).partition == 3
    with pytest.raises(MalformedError, match="it has 10001 tagged fields, and 10000 is the most"):
        end_of_message(FETCH.FetchRequest, fetch_of(*[b"\x63\x00"] * 10_001), 0, MessageScan())
    with pytest.raises(MalformedError, match="it has 4294967295 tagged fields"):
        end_of_message(FETCH.FetchRequest, fetch_of()[:-1] + uvarint(2**32 - 1), 0, MessageScan())


def test_tagged_fields_count_beside_elements_and_cost_little_before_they_are_refused() -> None:
    kind = import_module("kio.schema.metadata.v12.request").MetadataRequest
    topic = bytes(16) + b"\x02a" + uvarint(2_000) + b"\x63\x00" * 2_000
    data = uvarint(1_001) + topic * 1_000 + b"\0\0\0"

    def refused() -> None:
        with pytest.raises(MalformedError, match="more than 1000000 elements and tagged fields"):
            read_message(kind, data, 0)

    assert peak_memory(refused) < 1024 * 1024


@pytest.mark.parametrize("number", [-1, -2, -(2**31)])
def test_any_length_below_zero_is_null(number: int) -> None:
    kind = import_module("kio.schema.metadata.v1.request").MetadataRequest
    data = struct.pack(">i", number)
    assert read_message(kind, data, 0) == (kind(topics=None), 4)
    names = import_module("kio.schema.metadata.v0.request").MetadataRequest
    with pytest.raises(MalformedError, match="the array topics is null"):
        read_message(names, data, 0)


def test_a_number_counts_not_how_many_bytes_it_takes() -> None:
    kind = import_module("kio.schema.metadata.v12.request").MetadataRequest
    rest = b"\x01\x00\x00"
    for null in (b"\x00", b"\x80\x00", b"\x80\x80\x80\x80\x00"):
        made, end = read_message(kind, null + rest, 0)
        assert (made.topics, end) == (None, len(null + rest))
    topics = import_module("kio.schema.create_topics.v7.request").CreateTopicsRequest
    for null in (b"\x00", b"\x80\x00"):
        with pytest.raises(MalformedError, match="the array topics is null"):
            read_message(topics, null + bytes(6), 0)
    with pytest.raises(MalformedError, match="longer than 32 bits"):
        read_message(kind, b"\x80\x80\x80\x80\x80\x00" + rest, 0)


@pytest.mark.parametrize(
    ("ms", "seen"), [(2**63 - 1, 10**15), (-(2**63), -(10**15)), (-1, -1), (86_400_000, 86_400_000)]
)
def test_a_period_that_kio_can_not_hold_becomes_the_longest_that_it_can(ms: int, seen: int) -> None:
    request = import_module("kio.schema.renew_delegation_token.v2.request").RenewDelegationTokenRequest
    found, end = read_message(request, b"\x02h" + struct.pack(">q", ms) + b"\0", 0)
    assert (found.hmac, found.renew_period // timedelta(milliseconds=1), end) == (b"h", seen, 11)


@pytest.mark.parametrize(("ms", "seen"), [(-1, 0), (2**63 - 1, 253_402_300_799_000), (1_700_000_000_000,) * 2])
def test_a_moment_that_kio_can_not_hold_becomes_the_nearest_that_it_can(ms: int, seen: int) -> None:
    kind = import_module("kio.schema.renew_delegation_token.v2.response").RenewDelegationTokenResponse
    found, end = read_message(kind, b"\0\0" + struct.pack(">q", ms) + b"\0\0\0\0\0", 0)
    assert (round(found.expiry_timestamp.timestamp() * 1000), end) == (seen, 15)
