"""Requests that no client of good will sends: each is answered or ends its connection, and none is a fault of ours."""

from __future__ import annotations

import io
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kio.serial import entity_writer
from kio.static.constants import EntityType
from kio.static.primitive import Records

from kraftlake.protocol import REQUEST_HEADER
from kraftlake.server.requests.dispatcher import Peer
from kraftlake.server.requests.messages import entity, versions_of
from tests.memory import peak_memory
from tests.server.broker.lake_cluster import LakeCluster, lake_cluster

# threads of the cluster draw from the generator that hypothesis looks after
pytestmark = pytest.mark.filterwarnings("ignore::hypothesis.errors.HypothesisDeprecationWarning")
PEER = Peer(listener="PLAINTEXT", host="127.0.0.1")
SERVED = (
    "produce", "fetch", "list_offsets", "offset_for_leader_epoch", "delete_records", "init_producer_id", "metadata",
    "describe_topic_partitions", "describe_cluster", "describe_configs", "create_topics", "delete_topics",
    "create_partitions", "incremental_alter_configs", "alter_configs", "alter_partition_reassignments",
    "list_partition_reassignments", "elect_leaders", "describe_quorum",
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
    kind = entity(name, draw(st.sampled_from(versions_of(name))), EntityType.request)
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
    dispatcher, told = server.dispatcher, []
    dispatcher._tell = lambda event, fault: told.append((event, repr(fault)))
    size = peak_memory(lambda: dispatcher.handle(frame, PEER, lambda _: None))
    assert [one for one in told if one[0] == "request_failed"] == []
    assert size < MOST_BYTES


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture], deadline=None)
@given(frames(SERVED))
def test_a_broker_answers_whatever_it_is_sent(cluster: LakeCluster, frame: bytes) -> None:
    handled(cluster.members[1].server, frame)


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture], deadline=None)
@given(frames((*SERVED, *OF_CONTROLLERS)))
def test_a_controller_answers_whatever_it_is_sent(cluster: LakeCluster, frame: bytes) -> None:
    handled(cluster.members[101].server, frame)


def test_both_go_on_serving(cluster: LakeCluster) -> None:
    admin = cluster.admin()
    assert set(admin.list_topics(timeout=10).brokers) == {1}
