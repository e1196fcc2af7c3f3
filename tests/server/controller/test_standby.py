"""What an active controller and a standby answer: who leads, and that a standby does nothing else."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.maintenance.upkeep import Upkeep, UpkeepThread
from kraftlake.protocol.address import Address
from kraftlake.protocol.broker_requests import BrokerRegistrationRequest
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.protocol.node_connector import NodeConnector
from kraftlake.protocol.observer.observed_log import ObservedLog
from kraftlake.protocol.observer.quorum_observer import QuorumObserver
from kraftlake.publisher.snapshot_generator import LakeSnapshotEmitter
from kraftlake.records.metadata_records import BrokerEndpoint
from kraftlake.records.offset_and_epoch import OffsetAndEpoch
from kraftlake.records.uuid import Uuid
from kraftlake.replay.loader.manifest import LeaderAndEpoch
from kraftlake.replay.loader.quorum_state import QuorumState
from kraftlake.replica_manager.node_to_controller_channel import NodeToControllerChannel
from kraftlake.runtime.clock import SystemClock
from kraftlake.server.controller import controller_server
from kraftlake.server.controller.envelope_handler import errors_in
from tests.controller.controlled_cluster import ALL_FEATURES, CLUSTER_ID
from tests.server.controller import wire_requests as w
from tests.server.controller.controllers import PATIENCE, ControllerThread, new_lake, started_controller
from tests.waiting import wait_for

pytestmark = pytest.mark.xdist_group("standby")
ACTIVE, STANDBY = 100, 101


@contextmanager
def pair(lake: Path) -> Iterator[tuple[ControllerThread, ControllerThread]]:
    """An active controller, and a registered standby that waits long before it claims."""
    patient = {"controller_quorum_fetch_timeout_ms": "20000"}
    with started_controller(new_lake(lake), ACTIVE) as active:
        active.await_active()
        with started_controller(lake, STANDBY, **patient) as standby:
            registered = lambda: {ACTIVE, STANDBY} <= {*standby.node.view.image.cluster.controllers}  # noqa: E731
            wait_for(registered, "the standby is registered")
            yield active, standby


@pytest.fixture(scope="module")
def controllers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ControllerThread, ControllerThread]]:
    with pair(tmp_path_factory.mktemp("standby") / "lake") as made:
        yield made


def errors_of(answer: Any) -> set[ErrorCode]:
    """All errors in an answer."""
    return {*errors_in(answer)} - {ErrorCode.NONE}


ZERO = w.LOG_ID
COMMANDS = [
    w.registration(1), w.heartbeat(1, 0), w.alter_partition(1, 0, ZERO, 0, [(1, -1)]), w.assign(1, 0, 0, ZERO, 0),
    w.producer_ids(1, 0), w.unregister(1), w.create_topics([("a", {})]), w.delete_topics(("a", None)),
    w.create_partitions(("a", 2, None)), w.change_configs((2, "a", [("retention.ms", 0, "1")])),
    w.replace_configs((2, "a", {})), w.reassign(("a", 0, None)), w.list_reassignments(("a", [0])),
    w.elect(0, ("a", [0])), w.controller_registration(7),
]  # fmt: skip


@pytest.mark.parametrize("request_", COMMANDS, ids=lambda request: type(request).__name__)
def test_a_standby_refuses_every_command(controllers: tuple[ControllerThread, ControllerThread], request_: Any) -> None:
    rpc = controllers[1].rpc()
    assert errors_of(rpc.ask(request_)) == {ErrorCode.NOT_CONTROLLER}


def test_a_standby_says_who_leads_and_where(controllers: tuple[ControllerThread, ControllerThread]) -> None:
    active, standby = controllers
    epoch, port = active.node.controller.epoch, active.server.listeners[0].port
    rpc = standby.rpc()
    for asked, error in (
        (epoch, ErrorCode.NOT_LEADER_OR_FOLLOWER), (epoch - 1, ErrorCode.FENCED_LEADER_EPOCH),
        (epoch + 1, ErrorCode.UNKNOWN_LEADER_EPOCH), (-1, ErrorCode.INVALID_REQUEST),
    ):  # fmt: skip
        answer = rpc.ask(w.fetch(asked))
        partition = answer.responses[0].partitions[0]
        assert partition.error_code == error
        assert (partition.current_leader.leader_id, partition.current_leader.leader_epoch) == (ACTIVE, epoch)
        assert [(one.node_id, one.host, one.port) for one in answer.node_endpoints] == [(ACTIVE, "127.0.0.1", port)]
    described = rpc.ask(w.describe_quorum()).topics[0].partitions[0]
    assert described.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (described.leader_id, described.leader_epoch) == (ACTIVE, epoch)
    snapshot = rpc.ask(w.fetch_snapshot(epoch, 1, 1))
    assert snapshot.topics[0].partitions[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert [one.node_id for one in snapshot.node_endpoints] == [ACTIVE]
    for each in (rpc, active.rpc()):
        cluster = each.ask(w.describe_cluster())
        assert cluster.controller_id == ACTIVE
        assert {one.broker_id: one.port for one in cluster.brokers} == {
            ACTIVE: port, STANDBY: standby.server.listeners[0].port,
        }  # fmt: skip
    envelope = rpc.ask(w.envelope(w.encoded(w.create_topics([("a", {})]))))
    assert (envelope.error_code, envelope.response_data) == (ErrorCode.NOT_CONTROLLER, None)


def test_a_broker_that_knows_the_standby_alone_finds_the_active_controller(
    controllers: tuple[ControllerThread, ControllerThread],
) -> None:
    address = Address("127.0.0.1", controllers[1].server.listeners[0].port)
    channel = NodeToControllerChannel("heartbeat", [address], NodeConnector(), cluster_id=CLUSTER_ID)
    answered = threading.Event()
    answers: list[Any] = []

    def take(answer: Any) -> None:
        answers.append(answer)
        answered.set()

    request = BrokerRegistrationRequest(
        broker_id=9, cluster_id=CLUSTER_ID, incarnation_id=Uuid.random(), features=ALL_FEATURES,
        log_dirs=(Uuid.random(),),
        listeners=(BrokerEndpoint(name="PLAINTEXT", host="127.0.0.1", port=9092, security_protocol=0),),
    )  # fmt: skip
    channel.send(request, take)
    assert answered.wait(PATIENCE)
    assert answers[0].error.name == "NONE"
    wait_for(lambda: 9 in controllers[1].node.view.image.cluster.brokers, "the standby has it, too")
    channel.close()


def test_a_follower_that_knows_the_standby_alone_follows_the_log(
    controllers: tuple[ControllerThread, ControllerThread],
) -> None:
    address = Address("127.0.0.1", controllers[1].server.listeners[0].port)
    log = ObservedLog(OffsetAndEpoch(offset=0, epoch=0))
    with QuorumObserver([address], connect=NodeConnector()) as observer:
        batches = observer.fetch(log, wait_ms=0)
        assert batches[0].base_offset == 0
        end = batches[-1].last_offset
        while not (more := observer.fetch(log, wait_ms=5_000)):  # a no-op record comes each 100 ms
            pass
        assert more[0].base_offset == end + 1
        description = observer.describe()
    assert {one.id for one in description.voters} == {ACTIVE, STANDBY}


def test_a_standby_takes_over_with_what_it_has_followed(tmp_path: Path) -> None:
    patient = {"controller_quorum_fetch_timeout_ms": "10000"}  # a tenth of that after a resignation
    with (
        started_controller(new_lake(tmp_path / "lake"), ACTIVE) as active,
        started_controller(tmp_path / "lake", STANDBY, **patient) as next_,
    ):
        active.await_active()
        rpc = active.rpc()
        assert rpc.ask(w.registration(1)).error_code == ErrorCode.NONE
        epoch = active.node.controller.epoch
        active.end()
        next_.await_active()
        assert next_.node.controller.epoch > epoch
        assert 1 in next_.node.view.image.cluster.brokers
        assert active.faults == []


def test_a_standby_that_starts_behind_a_snapshot_knows_who_leads_and_registers(tmp_path: Path) -> None:
    with started_controller(new_lake(tmp_path / "lake"), ACTIVE) as active:
        active.await_active()
        LakeSnapshotEmitter(tmp_path / "lake", SystemClock()).maybe_emit(active.node.view.image, QuorumState())
        with started_controller(tmp_path / "lake", STANDBY, controller_quorum_fetch_timeout_ms="20000") as standby:
            wait_for(standby.node.view.published.is_set, "the standby has an image")
            wait_for(lambda: standby.node.view.leader == active.node.view.leader, "the standby knows who leads")
            wait_for(lambda: STANDBY in standby.node.view.image.cluster.controllers, "the standby is registered")


def test_a_standby_registers_where_the_log_was_trimmed_past_the_claim_of_the_active_controller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(controller_server, "UpkeepThread", partial(UpkeepThread, interval=3_600))
    lake = tmp_path / "lake"
    with started_controller(new_lake(lake), ACTIVE) as active:
        active.await_active()
        with started_controller(lake, 102, controller_quorum_fetch_timeout_ms="20000") as other:
            wait_for(lambda: other.server.node is not None, "another standby")
            wait_for(lambda: 102 in other.node.view.image.cluster.controllers, "another standby is registered")
        LakeSnapshotEmitter(lake, SystemClock()).maybe_emit(active.node.view.image, QuorumState())
        wait_for(lambda: MetadataLog.open(lake).end_offset > MetadataLog.open(lake).snapshots()[-1].end_offset, "more")
        Upkeep(lake).trim(MetadataLog.open(lake).snapshots()[-1].end_offset, stream_lag_ms=0)
        with started_controller(lake, STANDBY, controller_quorum_fetch_timeout_ms="20000") as standby:
            wait_for(lambda: standby.server.node is not None, "the standby has started")
            wait_for(lambda: STANDBY in standby.node.view.image.cluster.controllers, "the standby is registered")
            assert standby.node.view.leader == LeaderAndEpoch(leader_id=None, epoch=active.node.controller.epoch)


def test_who_registers_with_the_id_of_a_standby_ends_it(tmp_path: Path) -> None:
    with pair(tmp_path / "lake") as (active, standby):
        rpc = active.rpc()
        assert rpc.ask(w.controller_registration(STANDBY)).error_code == ErrorCode.NONE
        standby.thread.join(PATIENCE)
        assert [str(fault) for fault in standby.faults] == [
            "Controller 101 has ended: another process has registered as controller 101."
        ]


def test_the_active_controller_knows_how_far_a_standby_is(
    controllers: tuple[ControllerThread, ControllerThread],
) -> None:
    rpc = controllers[0].rpc()

    def is_caught_up() -> bool:
        partition = rpc.ask(w.describe_quorum()).topics[0].partitions[0]
        standby = {one.replica_id: one for one in partition.current_voters}[STANDBY]
        return standby.last_caught_up_timestamp > 0 and partition.high_watermark - standby.log_end_offset <= 2

    wait_for(is_caught_up, "the standby has reported where it is")


def test_a_standby_whose_image_is_behind_does_not_ask_all_the_time(tmp_path: Path) -> None:
    with pair(tmp_path / "lake") as (active, standby):
        goes_on, is_behind, asked = threading.Event(), threading.Event(), list[bytes]()
        handle = active.server.dispatcher.handle

        def counted(frame: bytes, *more: Any) -> None:
            asked.append(frame)
            handle(frame, *more)

        def wait() -> None:
            is_behind.set()
            goes_on.wait(PATIENCE)

        standby.node.view.listeners.append(wait)  # called by the thread that makes images
        try:
            assert is_behind.wait(PATIENCE)
            active.server.dispatcher.handle = counted
            began = time.monotonic()
            wait_for(lambda: len(asked) > 2, "the standby goes on asking")
            time.sleep(1)  # the leader writes a record each 0.1 s meanwhile
            assert len(asked) < 13 * (time.monotonic() - began)
        finally:
            active.server.dispatcher.handle = handle
            goes_on.set()


def test_a_standby_claims_at_once_when_the_active_controller_resigns(tmp_path: Path) -> None:
    with pair(tmp_path / "lake") as (active, standby):
        began = time.monotonic()
        active.end()
        wait_for(lambda: standby.node.controller.is_active, "the standby leads")
        assert time.monotonic() - began < 19  # without word from the other it would have waited 20 s at least
