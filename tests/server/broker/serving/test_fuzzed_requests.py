"""Requests that no client of good will sends: each is answered or ends its connection, and none is a fault of ours."""

from __future__ import annotations

import io
import queue
import random
import threading
from collections.abc import Iterator
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kio.serial import entity_writer
from kio.static.primitive import Records, i32Timedelta

from kraftlake.protocol.error_code import ErrorCode
from kraftlake.protocol.node_client import REQUEST_HEADER
from kraftlake.records.varint import uvarint
from kraftlake.server.requests.dispatcher import Peer
from kraftlake.server.requests.messages import request_type, response_in, versions_of
from tests.memory import peak_memory
from tests.server.broker.lake_cluster import LakeCluster, lake_cluster
from tests.server.requests.test_dispatcher import frame_of

# threads of the cluster draw from the generator that hypothesis looks after
pytestmark = [
    pytest.mark.filterwarnings("ignore::hypothesis.errors.HypothesisDeprecationWarning"),
    pytest.mark.xdist_group("fuzzed_cluster"),
]
FEWER = settings(
    max_examples=max(20, settings.default.max_examples // 3),  # type: ignore[union-attr]
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    deadline=None,
)
"""An example takes a tenth of a second."""
PEER = Peer(listener="PLAINTEXT", host="127.0.0.1")
SERVED = (
    "produce", "fetch", "list_offsets", "offset_for_leader_epoch", "delete_records", "init_producer_id", "metadata",
    "describe_topic_partitions", "describe_cluster", "describe_configs", "create_topics", "delete_topics",
    "create_partitions", "incremental_alter_configs", "alter_configs", "alter_partition_reassignments",
    "list_partition_reassignments", "elect_leaders", "describe_quorum", "describe_acls", "create_acls", "delete_acls",
    "describe_client_quotas", "alter_client_quotas", "describe_user_scram_credentials",
    "alter_user_scram_credentials", "update_features", "create_delegation_token", "renew_delegation_token",
    "expire_delegation_token", "describe_delegation_token",
)  # fmt: skip
OF_CONTROLLERS = (
    "envelope", "broker_registration", "broker_heartbeat", "alter_partition", "assign_replicas_to_dirs",
    "allocate_producer_ids", "controller_registration", "fetch_snapshot",
)  # fmt: skip
MOST_BYTES = 64 * 1024 * 1024
"""What one frame of a kilobyte may make the node allocate, far more than any does."""

st.register_type_strategy(Records, st.binary(max_size=200).map(Records))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LakeCluster]:
    folder: Path = tmp_path_factory.mktemp("fuzzed")
    with lake_cluster(folder, brokers=(1,)) as made:
        yield made


@st.composite
def frames(draw: st.DrawFn, names: tuple[str, ...]) -> bytes:
    """A request of any kind and version, as a rule with a few wrong bytes."""
    name = draw(st.sampled_from(names))
    kind = request_type(name, draw(st.sampled_from(versions_of(name))))
    made = io.BytesIO()
    entity_writer(kind)(made, draw(st.from_type(kind)))
    body = bytearray(made.getvalue())
    damage = draw(st.sampled_from(["none", "flip", "cut", "insert", "noise"]))
    chance = random.Random(draw(st.integers(0, 2**32)))
    if damage == "flip" and body:
        for _ in range(chance.randint(1, 4)):
            body[chance.randrange(len(body))] = chance.randrange(256)
    elif damage == "cut":
        del body[chance.randint(0, len(body)) :]
    elif damage == "insert":
        at = chance.randint(0, len(body))
        body[at:at] = chance.randbytes(chance.randint(1, 8))
    elif damage == "noise":
        body = bytearray(chance.randbytes(chance.randint(0, 60)))
    header = REQUEST_HEADER.pack(kind.__api_key__, kind.__version__, 7, -1) + (b"\0" if kind.__flexible__ else b"")
    return header + bytes(body)


def handled(server: Any, frame: bytes) -> None:
    """Give a frame to a node's dispatcher, which must have no fault of its own with it."""
    dispatcher, logged = server.dispatcher, []
    dispatcher._on_fault = lambda event, fault: logged.append((event, repr(fault)))
    size = peak_memory(lambda: dispatcher.handle(frame, PEER, lambda _: None))
    assert [one for one in logged if one[0] == "request_failed"] == []
    assert size < MOST_BYTES


@FEWER
@given(frames(SERVED))
def test_a_broker_answers_whatever_it_is_sent(cluster: LakeCluster, frame: bytes) -> None:
    handled(cluster.members[1].server, frame)


@FEWER
@given(frames((*SERVED, *OF_CONTROLLERS)))
def test_a_controller_answers_whatever_it_is_sent(cluster: LakeCluster, frame: bytes) -> None:
    handled(cluster.members[101].server, frame)


HEAD = {
    "metadata": (3, 0, b""), "delete_topics": (20, 1, b""), "create_topics": (19, 7, b"\0"),
    "create_partitions": (37, 3, b"\0"), "list_offsets": (2, 1, b"\xff\xff\xff\xff"),
}  # fmt: skip
"""APIs by key and version, and what comes before their lists."""
SMALLEST = {
    "metadata": (b"\0\0", b""),
    "delete_topics": (b"\0\0", b"\0\0\0\0"),
    "create_topics": (b"\1" + b"\0\0\0\1\0\1\1\1\0", b"\0\0\0\0\0\0"),
    "create_partitions": (b"\1" + b"\0\0\0\1\1\0", b"\0\0\0\0\0\0"),
    "list_offsets": (b"\0\0" + b"\0\0\0\0", b""),
}
"""The smallest element of each list, and what comes behind it."""
OF_ONE_ELEMENT = 1024
"""The bytes that an element may take from the reading of its request to the answer."""


@pytest.mark.parametrize("node", [1, 101])
@pytest.mark.parametrize("name", HEAD)
def test_an_element_of_a_list_takes_little_memory_however_small_it_is(
    cluster: LakeCluster, name: str, node: int
) -> None:
    key, version, head = HEAD[name]
    element, tail = SMALLEST[name]
    count = 2_000
    size = uvarint(count + 1) if head == b"\0" else count.to_bytes(4, "big")
    frame = REQUEST_HEADER.pack(key, version, 7, -1) + head + size + element * count + tail
    dispatcher, answered = cluster.members[node].server.dispatcher, threading.Event()

    def ask() -> None:
        dispatcher.handle(frame, PEER, lambda _: answered.set())
        assert answered.wait(60)

    assert peak_memory(ask) < count * OF_ONE_ELEMENT


def answer_of(server: Any, frame: bytes) -> Any:
    answers: queue.Queue[bytes | None] = queue.Queue()
    server.dispatcher.handle(frame, PEER, answers.put)
    answer = answers.get(timeout=60)
    assert answer is not None
    return response_in(frame, answer)


def test_thousands_of_topics_are_created_by_one_request(cluster: LakeCluster) -> None:
    kind = request_type("create_topics", 7)
    module = import_module(kind.__module__)
    topics = tuple(
        module.CreatableTopic(name=f"{number:0240}", num_partitions=1, replication_factor=1, assignments=(), configs=())
        for number in range(4_900)
    )
    frame = frame_of(kind(topics=topics, timeout=i32Timedelta.parse(timedelta(seconds=60)), validate_only=True))
    assert len(frame) > 1024 * 1024
    response = answer_of(cluster.members[1].server, frame)
    assert {(one.error_code, len(response.topics)) for one in response.topics} == {(ErrorCode.NONE, 4_900)}


def test_a_fetch_of_20_000_partitions_is_answered(cluster: LakeCluster) -> None:
    kind = request_type("fetch", 12)
    module = import_module(kind.__module__)
    partitions = tuple(
        module.FetchPartition(partition=number, fetch_offset=0, partition_max_bytes=1) for number in range(20)
    )
    topics = tuple(module.FetchTopic(topic=f"{number:0200}", partitions=partitions) for number in range(1_000))
    wait = i32Timedelta.parse(timedelta(0))
    asked = kind(replica_id=-1, max_wait=wait, min_bytes=1, topics=topics, forgotten_topics_data=(), rack_id="")
    response = answer_of(cluster.members[1].server, frame_of(asked))
    errors = [one.error_code for topic in response.responses for one in topic.partitions]
    assert errors == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 20_000


def test_both_go_on_serving(cluster: LakeCluster) -> None:
    admin = cluster.admin()
    assert set(admin.list_topics(timeout=120).brokers) == {1}
