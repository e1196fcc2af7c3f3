"""Who may ask an active controller for what, and what it makes of bytes that are no request."""

from __future__ import annotations

import random
import socket
import struct
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.static.constants import EntityType

from kraftlake.controller.access.acls import create_acls
from kraftlake.image.acls_image import StandardAcl
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.server.controller.envelope_handler import errors_in
from kraftlake.server.requests.dispatcher import Peer
from tests.server.controller import wire_requests as w
from tests.server.controller.controllers import PATIENCE, ControllerThread, new_lake, started_controller
from tests.server.matrix.access_cases import ACL, ACL_FILTER, quota_entry
from tests.server.matrix.wire import entity, made
from tests.waiting import wait_for

pytestmark = pytest.mark.xdist_group("asked_controllers")
WITH_ACLS = {"authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}
DENIED = {ErrorCode.CLUSTER_AUTHORIZATION_FAILED}
REQUESTS: list[Any] = [
    w.registration(1), w.heartbeat(1, 0), w.alter_partition(1, 0, w.LOG_ID, 0, [(1, -1)]),
    w.assign(1, 0, 0, w.LOG_ID, 0), w.producer_ids(1, 0), w.unregister(1), w.reassign(("a", 0, None)),
    w.list_reassignments(("a", [0])), w.elect(0, ("a", [0])), w.controller_registration(7), w.describe_cluster(),
    w.describe_quorum(), w.fetch(1), w.fetch_snapshot(1, 0, 0), w.envelope(w.encoded(w.create_topics([]))),
]  # fmt: skip
OF_ACCESS: list[Any] = [
    made(entity(api, version, EntityType.request), values)
    for api, version, values in (
        ("describe_acls", 3, ACL_FILTER), ("create_acls", 3, {"creations": [ACL]}),
        ("delete_acls", 3, {"filters": [ACL_FILTER]}),
        ("alter_client_quotas", 1, {"entries": [quota_entry([("user", "a")], [("request_percentage", 1.0)])]}),
        ("describe_user_scram_credentials", 0, {"users": [{"name": "a"}]}),
        ("alter_user_scram_credentials", 0, {"deletions": [{"name": "a", "mechanism": 1}]}),
        ("update_features", 2, {"feature_updates": [{"feature": "group.version", "max_version_level": 1}]}),
    )
]  # fmt: skip
OF_TOPICS: list[Any] = [
    w.create_topics([("a", {})]), w.delete_topics(("a", None), (None, w.LOG_ID)), w.create_partitions(("a", 2, None)),
    w.change_configs((2, "a", []), (4, "", []), (32, "g", [])), w.replace_configs((2, "a", {}), (16, "m", {})),
]  # fmt: skip


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControllerThread]:
    """A controller with an authorizer, and no user who may do anything."""
    with started_controller(new_lake(tmp_path_factory.mktemp("closed") / "lake"), **WITH_ACLS) as made:
        made.await_active()
        yield made


@pytest.fixture(scope="module")
def open_(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControllerThread]:
    """A controller without an authorizer."""
    with started_controller(new_lake(tmp_path_factory.mktemp("open") / "lake")) as made:
        made.await_active()
        yield made


@pytest.mark.parametrize("request_", [*REQUESTS, *OF_ACCESS], ids=lambda request: type(request).__name__)
def test_what_is_done_to_the_cluster_needs_an_acl(closed: ControllerThread, request_: Any) -> None:
    rpc = closed.rpc()
    assert {*errors_in(rpc.ask(request_))} - {ErrorCode.NONE} == DENIED


@pytest.mark.parametrize("request_", OF_TOPICS, ids=lambda request: type(request).__name__)
def test_what_is_done_to_topics_and_configs_needs_an_acl(closed: ControllerThread, request_: Any) -> None:
    rpc = closed.rpc()
    denied = {ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.UNKNOWN_TOPIC_ID}
    denied |= {*DENIED, ErrorCode.GROUP_AUTHORIZATION_FAILED}
    found = [*errors_in(rpc.ask(request_))]
    assert found
    assert {*found} <= denied


def test_an_acl_opens_what_it_names_and_takes_effect_at_once(closed: ControllerThread) -> None:
    rpc = closed.rpc()
    acl = StandardAcl(
        resource_type=2, resource_name="opened", pattern_type=3, principal="User:ANONYMOUS", host="127.0.0.1",
        operation=5, permission_type=3,
    )  # fmt: skip
    closed.node.controller.submit(lambda state: create_acls(state, [acl])).result(PATIENCE)
    end = closed.node.controller.read(lambda image: image.offset).result(PATIENCE)
    wait_for(lambda: closed.node.view.image.offset >= end, "the authorizer has it")
    answered = {one.name: one.error_code for one in rpc.ask(w.create_topics([("opened", {}), ("shut", {})])).topics}
    # no broker is there, so that no replica can be placed
    assert answered == {
        "opened": ErrorCode.INVALID_REPLICATION_FACTOR, "shut": ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    }  # fmt: skip


def frames() -> list[bytes]:
    """Whole requests of each kind."""
    return [w.encoded(request) for request in (*REQUESTS, *OF_ACCESS, *OF_TOPICS)]


@given(st.randoms(use_true_random=False))
@settings(max_examples=settings.default.max_examples * 4)  # type: ignore[union-attr]
def test_no_frame_is_left_without_an_answer_or_ends_the_controller(
    open_: ControllerThread, draws: random.Random
) -> None:
    frame = bytearray(draws.choice(frames()))
    for _ in range(draws.randint(1, 4)):
        at = draws.randrange(len(frame))
        match draws.randrange(4):
            case 0:
                frame[at] = draws.randrange(256)
            case 1:
                del frame[at:]
            case 2:
                frame[at:at] = draws.randbytes(draws.randint(1, 9))
            case 3:
                frame[at : at + 4] = struct.pack(">i", draws.choice([-1, -2, 2**31 - 1, 0, 127]))
        if not frame:
            break
    answers: list[bytes | None] = []
    asked = threading.Event()

    def respond(answer: bytes | None) -> None:
        answers.append(answer)
        asked.set()

    assert open_.server.dispatcher is not None
    open_.server.dispatcher.handle(bytes(frame), Peer(listener="CONTROLLER", host="127.0.0.1"), respond)
    assert asked.wait(PATIENCE), bytes(frame)
    assert len(answers) == 1
    assert open_.node.controller.is_active


def test_a_directory_may_be_named_twice(open_: ControllerThread) -> None:
    rpc = open_.rpc()
    epoch = rpc.ask(w.registration(77)).broker_epoch
    first, second = (w.assign(77, epoch, 0, w.LOG_ID, index) for index in (0, 1))
    answer = rpc.ask(replace(first, directories=(*first.directories, *second.directories)))
    assert answer.error_code == ErrorCode.NONE
    results = [(topic.topic_id, *topic.partitions) for one in answer.directories for topic in one.topics]
    assert [(id_, one.partition_index, one.error_code) for id_, one in results] == [
        (w.LOG_ID, index, ErrorCode.UNKNOWN_TOPIC_ID) for index in (0, 1)
    ]


def test_noise_on_a_connection_closes_it_and_others_are_served(open_: ControllerThread) -> None:
    rpc, draws = open_.rpc(), random.Random(5)
    host, _, port = open_.address.rpartition(":")
    for length in (0, 3, 10, 200, 2**31 - 1, -5):
        with socket.create_connection((host, int(port)), timeout=PATIENCE) as noisy:
            noisy.sendall(struct.pack(">i", length) + draws.randbytes(min(max(length, 0), 200)))
            noisy.shutdown(socket.SHUT_WR)
            assert noisy.recv(1) == b""
    assert rpc.ask(w.describe_quorum()).error_code == ErrorCode.NONE


def test_a_hundred_clients_at_once_are_all_answered(open_: ControllerThread) -> None:
    rpcs = [open_.rpc() for _ in range(100)]
    for rpc in rpcs:
        assert rpc.ask(w.describe_cluster()).controller_id == 100
