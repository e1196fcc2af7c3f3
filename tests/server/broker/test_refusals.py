"""What a broker that serves nobody answers: in each version of each API, under the names that it was asked for."""

from __future__ import annotations

import io
import struct
import uuid
from datetime import timedelta
from importlib import import_module
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.index import api_key_map
from kio.serial import entity_reader, entity_writer
from kio.static.primitive import i8, i32, i32Timedelta

from kraftlake.protocol.error_code import ErrorCode
from kraftlake.server.broker.broker_listener import UNREADABLE
from kraftlake.server.broker.refusals import api_versions, changes_configs_of, is_of_any_broker, refusal
from kraftlake.server.requests.messages import of_version, request_type, response_type, versions_of

DATA = ("produce", "fetch", "list_offsets", "offset_for_leader_epoch", "delete_records")
KEYS = {name: key for key, name in api_key_map.items()}
TOPIC_ID = uuid.UUID(int=77)
TOPICS = {
    "produce": ("TopicProduceData", "PartitionProduceData"),
    "fetch": ("FetchTopic", "FetchPartition"),
    "list_offsets": ("ListOffsetsTopic", "ListOffsetsPartition"),
    "offset_for_leader_epoch": ("OffsetForLeaderTopic", "OffsetForLeaderPartition"),
    "delete_records": ("DeleteRecordsTopic", "DeleteRecordsPartition"),
}
ALL_VERSIONS = [(name, version) for name in DATA for version in versions_of(name)]


def framed(name: str, version: int, body: bytes, *, flexible: bool, correlation: int = 9) -> bytes:
    header = struct.pack(">hhih", KEYS[name], version, correlation, 2) + b"me"
    return header + (b"\0" if flexible else b"") + body


def request(name: str, version: int, *, acks: int = 1) -> bytes:
    """A request for partitions 3 and 5 of one topic."""
    kind = request_type(name, version)
    module = import_module(kind.__module__)
    topic_type, partition_type = (getattr(module, each) for each in TOPICS[name])
    partitions = tuple(
        of_version(
            partition_type,
            index=number, partition=number, partition_index=number, records=None, fetch_offset=1, offset=2, timestamp=3,
            partition_max_bytes=4, leader_epoch=5, max_num_offsets=1, current_leader_epoch=1,
        )
        for number in (3, 5)
    )  # fmt: skip
    topic = of_version(
        topic_type,
        name="foo", topic="foo", topic_id=TOPIC_ID, partitions=partitions, partition_data=partitions,
    )  # fmt: skip
    wait = i32Timedelta.parse(timedelta(milliseconds=5))
    asked = of_version(
        kind,
        topics=(topic,), topic_data=(topic,), acks=acks, timeout=wait, max_wait=wait, min_bytes=1, replica_id=i32(-1),
        isolation_level=0, forgotten_topics_data=(),
    )  # fmt: skip
    buffer = io.BytesIO()
    entity_writer(kind)(buffer, asked)
    return framed(name, version, buffer.getvalue(), flexible=kind.__flexible__)


def read(name: str, version: int, answer: bytes) -> Any:
    kind = response_type(name, version)
    assert struct.unpack_from(">i", answer) == (9,)
    position = 4 + (kind.__flexible__ and name != "api_versions")
    response, size = entity_reader(kind)(answer, position)
    assert position + size == len(answer)
    return response


@pytest.mark.parametrize(("name", "version"), ALL_VERSIONS)
def test_requests_for_data_are_refused_for_each_partition(name: str, version: int) -> None:
    answer = refusal(request(name, version))
    assert answer is not None
    response = read(name, version, answer)
    (topic,) = response.responses if name in ("produce", "fetch") else response.topics
    named = {getattr(topic, field) for field in ("name", "topic", "topic_id") if hasattr(topic, field)}
    assert named & {"foo", TOPIC_ID}
    partitions = topic.partition_responses if name == "produce" else topic.partitions
    numbers = [
        getattr(one, "index", getattr(one, "partition_index", getattr(one, "partition", None))) for one in partitions
    ]
    assert numbers == [3, 5]
    assert {one.error_code for one in partitions} == {ErrorCode.NOT_LEADER_OR_FOLLOWER}
    assert not is_of_any_broker(request(name, version))


def test_a_produce_that_wants_no_answer_gets_none() -> None:
    assert refusal(request("produce", 9, acks=0)) is None


@pytest.mark.parametrize("version", range(5))
def test_the_versions_that_a_broker_offers_are_listed(version: int) -> None:
    answer = api_versions(framed("api_versions", version, b"", flexible=version >= 3))
    assert answer is not None
    response = read("api_versions", version, answer)
    offered = {one.api_key: (one.min_version, one.max_version) for one in response.api_keys}
    assert response.error_code == ErrorCode.NONE
    assert offered[KEYS["fetch"]] == (4, 18)
    assert {KEYS["metadata"], KEYS["create_topics"], KEYS["api_versions"]} <= offered.keys()
    assert not {KEYS["vote"], KEYS["broker_heartbeat"]} & offered.keys()


def test_a_version_from_the_future_gets_the_oldest_answer() -> None:
    answer = api_versions(framed("api_versions", 99, b"", flexible=True))
    assert answer is not None
    assert read("api_versions", 0, answer).error_code == ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize("name", ["metadata", "create_topics", "find_coordinator", "init_producer_id", "api_versions"])
def test_what_every_broker_answers_alike_is_not_refused(name: str) -> None:
    frame = framed(name, versions_of(name)[-1], b"", flexible=True)
    assert is_of_any_broker(frame)
    assert refusal(frame) is None


@pytest.mark.parametrize("name", ["describe_log_dirs", "alter_replica_log_dirs"])
def test_what_is_about_this_broker_is_asked_of_no_other(name: str) -> None:
    assert not is_of_any_broker(framed(name, versions_of(name)[-1], b"", flexible=True))


@given(st.sampled_from(ALL_VERSIONS), st.data())
def test_a_broken_request_is_answered_or_refused_in_order(which: tuple[str, int], data: st.DataObject) -> None:
    whole = bytearray(request(*which))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(4, len(whole) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(whole[: data.draw(st.integers(0, len(whole)))])
    try:
        answer = refusal(cut)
    except UNREADABLE:
        return
    assert answer is None or len(answer) >= 4


KEYS = {name: key for key, name in api_key_map.items()}
TOPIC, BROKER = 2, 4


def changes(name: str, version: int, *resources: tuple[int, str]) -> bytes:
    module: Any = import_module(f"kio.schema.{name}.v{version}.request")
    kind = getattr(module, "".join(word.title() for word in name.split("_")) + "Request")
    made = kind(
        resources=tuple(
            module.AlterConfigsResource(resource_type=i8(type_), resource_name=about, configs=())
            for type_, about in resources
        ),
        validate_only=False,
    )
    body = io.BytesIO()
    entity_writer(kind)(body, made)
    tags = b"\0" if kind.__flexible__ else b""
    return struct.pack(">hhih", KEYS[name], version, 9, 2) + b"me" + tags + body.getvalue()


@pytest.mark.parametrize(
    ("name", "version"), [(f"{how}alter_configs", at) for how in ("", "incremental_") for at in (0, 1)]
)
def test_a_change_of_its_configs_is_distinguished_from_one_of_another_resource(name: str, version: int) -> None:
    if (name, version) == ("alter_configs", 0):
        version = 2
    assert changes_configs_of(changes(name, version, (TOPIC, "7"), (BROKER, "7")), 7)
    assert not changes_configs_of(changes(name, version, (TOPIC, "7"), (BROKER, ""), (BROKER, "8")), 7)


def test_other_requests_change_no_configs() -> None:
    assert not changes_configs_of(struct.pack(">hhih", KEYS["metadata"], 9, 9, 0), 7)
    assert not changes_configs_of(struct.pack(">hhih", KEYS["incremental_alter_configs"], 99, 9, 0), 7)
    with pytest.raises(IndexError):
        changes_configs_of(changes("incremental_alter_configs", 1, (BROKER, "7"))[:-4], 7)
