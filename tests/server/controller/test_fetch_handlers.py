"""Fetches of the log from an active controller: at once, after a wait, from another log, from a snapshot."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import kraftlake
from kraftlake.controller.quorum.embedded import EMBEDDED_NODE_ID, EmbeddedController
from kraftlake.controller.quorum.followed_log import FollowedLog
from kraftlake.controller.quorum.quorum_controller import QuorumController
from kraftlake.controller.result import ControllerResult
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.kafka_files.snapshots.snapshot import read_snapshot
from kraftlake.kafka_files.stored_file import DiskFile
from kraftlake.metadata_log.append.group_commit import GroupCommit
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.maintenance.upkeep import Upkeep
from kraftlake.protocol.address import Address
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.protocol.node_connector import NodeConnector
from kraftlake.protocol.observer.observed_log import ObservedLog
from kraftlake.protocol.observer.quorum_observer import QuorumObserver, SnapshotNeededError
from kraftlake.records.batch import read_batches
from kraftlake.records.metadata_records import NoOpRecord
from kraftlake.records.offset_and_epoch import OffsetAndEpoch
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.replay.imports.kept_snapshot import keep_snapshot
from kraftlake.replay.loader.manifest import LeaderAndEpoch
from kraftlake.server.controller import controller_server
from tests.controller.kafka_rpc import KafkaRpc
from tests.server.controller import wire_requests as w
from tests.server.controller.controllers import PATIENCE, ControllerThread, new_lake, started_controller
from tests.waiting import wait_for

pytestmark = pytest.mark.xdist_group("fetched_controller")
PATIENT = {"metadata_max_idle_interval_ms": "0", "controller_quorum_fetch_timeout_ms": "600000"}
"""Without no-op records the log grows by commands alone."""


@contextmanager
def claiming(lake: Path) -> Iterator[ControllerThread]:
    """A controller that claims a lake at once, though it is patient."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(controller_server, "QuorumController", partial(QuorumController, claim_at_once=True))
        with started_controller(lake, **PATIENT) as made:
            patched.undo()
            yield made


@pytest.fixture(scope="module")
def controller(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControllerThread]:
    with claiming(new_lake(tmp_path_factory.mktemp("fetch") / "lake")) as made:
        made.await_active()
        yield made


@pytest.fixture
def rpc(controller: ControllerThread) -> Iterator[KafkaRpc]:
    made = controller.rpc()
    yield made
    made.close()


def end_of(controller: ControllerThread) -> OffsetAndEpoch:
    """The end of the log, when nothing is being appended."""
    return OffsetAndEpoch(
        offset=controller.node.controller.read(lambda image: image.offset).result(PATIENCE) + 1, epoch=1
    )


def append(controller: ControllerThread, records: int = 1) -> None:
    """Records that say nothing."""
    batch = (ApiMessageAndVersion(NoOpRecord(), 0),) * records
    controller.node.controller.submit(lambda _: ControllerResult(batch, None)).result(PATIENCE)


def partition_of(answer: Any) -> Any:
    assert answer.error_code == ErrorCode.NONE
    return answer.responses[0].partitions[0]


def offsets_in(records: bytes) -> list[int]:
    """The base offsets of the batches."""
    return [batch.base_offset for batch in read_batches(records, file="the answer")]


def test_a_fetch_at_the_end_is_answered_as_soon_as_there_is_more(controller: ControllerThread, rpc: KafkaRpc) -> None:
    end = end_of(controller)
    answers: list[Any] = []
    asking = threading.Thread(target=lambda: answers.append(rpc.ask(w.fetch(1, end.offset, 1, wait=PATIENCE))))
    asking.start()
    append(controller)
    asking.join(PATIENCE)
    assert offsets_in(partition_of(answers[0]).records) == [end.offset]
    assert partition_of(answers[0]).high_watermark == end.offset + 1


def test_a_fetch_at_the_end_is_answered_with_nothing_when_its_time_is_over(
    controller: ControllerThread, rpc: KafkaRpc
) -> None:
    def with_nothing() -> bool:
        end, began = end_of(controller), time.monotonic()
        partition = partition_of(rpc.ask(w.fetch(1, end.offset, 1, wait=0.3)))
        assert partition.error_code == ErrorCode.NONE
        if partition.records:  # the controller had to show by a record that it leads: it had written none for long
            return False
        assert time.monotonic() - began >= 0.3
        assert partition.high_watermark == end.offset
        return True

    wait_for(with_nothing, "nothing was appended meanwhile")


def test_a_client_that_does_not_know_the_high_watermark_is_answered_at_once(
    controller: ControllerThread, rpc: KafkaRpc
) -> None:
    def at_once() -> bool:
        end, began = end_of(controller), time.monotonic()
        partition = partition_of(rpc.ask(w.fetch(1, end.offset, 1, wait=PATIENCE, version=18, high_watermark=0)))
        assert time.monotonic() - began < PATIENCE / 2
        return (partition.records, partition.high_watermark) == (b"", end.offset)

    wait_for(at_once, "nothing was appended meanwhile")


def test_an_answer_has_whole_batches_and_one_at_least(controller: ControllerThread, rpc: KafkaRpc) -> None:
    for _ in range(5):
        append(controller, 30)
    whole = offsets_in(partition_of(rpc.ask(w.fetch(1))).records)
    assert len(whole) > 5
    assert offsets_in(partition_of(rpc.ask(w.fetch(1, max_bytes=1))).records) == whole[:1]
    some = offsets_in(partition_of(rpc.ask(w.fetch(1, max_bytes=900))).records)
    assert some == whole[: len(some)]
    assert 1 < len(some) < len(whole)


def test_another_log_learns_where_it_differs(controller: ControllerThread, rpc: KafkaRpc) -> None:
    end = end_of(controller)
    beyond = partition_of(rpc.ask(w.fetch(1, end.offset + 5, 1)))
    assert (beyond.diverging_epoch.epoch, beyond.diverging_epoch.end_offset) == (1, end.offset)
    unknown = partition_of(rpc.ask(w.fetch(1, 3, 0)))
    assert (unknown.diverging_epoch.epoch, unknown.diverging_epoch.end_offset) == (0, 0)


def test_replicas_that_say_who_they_are_are_observers(controller: ControllerThread, rpc: KafkaRpc) -> None:
    end = end_of(controller)
    rpc.ask(w.fetch(1, end.offset, 1, replica=55))
    rpc.ask(w.fetch(1, 3, 1, replica=56))
    observers = {one.replica_id: one for one in rpc.ask(w.describe_quorum()).topics[0].partitions[0].observers}
    assert observers[55].log_end_offset == end.offset
    assert observers[55].last_caught_up_timestamp == observers[55].last_fetch_timestamp > 0
    assert (observers[56].log_end_offset, observers[56].last_caught_up_timestamp) == (3, -1)


def test_fetches_that_wait_are_answered_when_the_controller_ends(tmp_path: Path) -> None:
    with claiming(new_lake(tmp_path / "lake")) as made:
        made.await_active()
        rpc = made.rpc()
        answers: list[Any] = []
        end = end_of(made)
        asking = threading.Thread(target=lambda: answers.append(rpc.ask(w.fetch(1, end.offset, 1, wait=PATIENCE))))
        asking.start()
        wait_for(lambda: made.server.fetches.waiting, "the fetch waits")
        made.end()
        asking.join(PATIENCE)
        assert partition_of(answers[0]).error_code in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.BROKER_NOT_AVAILABLE)


@pytest.fixture
def sure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ControllerThread]:
    """A controller that takes itself for the active one for long after another has claimed the log.

    It has a store that shows the commits of others late.
    """
    monkeypatch.setattr(GroupCommit, "is_newest", lambda _: True)
    with claiming(new_lake(tmp_path / "lake")) as made:
        made.await_active()
        yield made


def error_and_leader(answer: Any) -> tuple[ErrorCode, int, int]:
    """The error of an answer's partition, and who leads by it."""
    partition = answer.responses[0].partitions[0] if hasattr(answer, "responses") else answer.topics[0].partitions[0]
    return partition.error_code, partition.current_leader.leader_id, partition.current_leader.leader_epoch


def test_a_controller_that_was_deposed_does_not_lead_in_the_epoch_of_the_next_one(
    sure: ControllerThread, tmp_path: Path
) -> None:
    with started_controller(tmp_path / "lake", 101, **PATIENT) as next_:
        wait_for(lambda: 101 in sure.node.view.image.cluster.controllers, "the standby is registered")
        assert MetadataLog.open(tmp_path / "lake").claim(101) == 2
        wait_for(lambda: sure.node.view.leader.epoch == 2, "the log shows the claim")
        assert sure.node.controller.epoch == 1
        rpc, port = sure.rpc(), next_.server.listeners[0].port
        for request in (w.fetch(2), w.fetch_snapshot(2, 1, 1)):
            answer = rpc.ask(request)
            assert error_and_leader(answer) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, 101, 2)
            assert [(one.node_id, one.port) for one in answer.node_endpoints] == [(101, port)]
        assert error_and_leader(rpc.ask(w.fetch(1))) == (ErrorCode.FENCED_LEADER_EPOCH, 101, 2)


def test_a_controller_that_begins_to_lead_does_not_say_that_nobody_leads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    claimed, goes_on, take_over = threading.Event(), threading.Event(), FollowedLog.take_over

    def slow(*args: Any, **options: Any) -> Any:
        claimed.set()
        goes_on.wait(PATIENCE)
        return take_over(*args, **options)

    lake = new_lake(tmp_path / "lake")
    EmbeddedController(MetadataLog.open(lake))
    monkeypatch.setattr(FollowedLog, "take_over", slow)
    with claiming(lake) as made:
        try:
            assert claimed.wait(PATIENCE)
            wait_for(lambda: made.node.view.leader.epoch == 2, "the log shows the claim")
            rpc = made.rpc()
            assert error_and_leader(rpc.ask(w.fetch(2))) == (ErrorCode.BROKER_NOT_AVAILABLE, 100, 2)
        finally:
            goes_on.set()
        wait_for(lambda: made.node.controller.is_active, "it leads")
        assert error_and_leader(rpc.ask(w.fetch(2))) == (ErrorCode.NONE, 100, 2)
        made.node.controller.resign().result(PATIENCE)
        assert error_and_leader(rpc.ask(w.fetch(2))) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, 100, 2)


@pytest.mark.parametrize("node_id", [7, EMBEDDED_NODE_ID])
def test_a_leader_that_nobody_can_reach_is_not_named(sure: ControllerThread, tmp_path: Path, node_id: int) -> None:
    assert MetadataLog.open(tmp_path / "lake").claim(node_id) == 2
    wait_for(lambda: sure.node.view.leader.epoch == 2, "the log shows the claim")
    rpc = sure.rpc()
    for request in (w.fetch(2), w.fetch_snapshot(2, 1, 1)):
        answer = rpc.ask(request)
        assert error_and_leader(answer) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1, 2)
        assert answer.node_endpoints == ()


def test_a_controller_that_leads_names_itself_before_it_is_registered(sure: ControllerThread) -> None:
    sure.node.view.image = MetadataImage.EMPTY
    answer = sure.rpc().ask(w.fetch(0))
    assert error_and_leader(answer) == (ErrorCode.FENCED_LEADER_EPOCH, 100, 1)
    assert [(one.node_id, one.port) for one in answer.node_endpoints] == [(100, sure.server.listeners[0].port)]


def test_a_controller_that_does_not_know_of_a_later_claim_sends_nothing_of_that_epoch(
    sure: ControllerThread, tmp_path: Path
) -> None:
    is_behind, goes_on = threading.Event(), threading.Event()

    def wait() -> None:
        is_behind.set()
        goes_on.wait(PATIENCE)

    sure.node.view.listeners.append(wait)  # called by the thread that makes images
    try:
        append(sure)
        assert is_behind.wait(PATIENCE)
        assert MetadataLog.open(tmp_path / "lake").claim(7) == 2
        assert sure.node.leader == LeaderAndEpoch(leader_id=100, epoch=1)
        answer = sure.rpc().ask(w.fetch(1))
        assert error_and_leader(answer) == (ErrorCode.FENCED_LEADER_EPOCH, -1, 2)
        assert not partition_of(answer).records
    finally:
        goes_on.set()


def test_who_is_behind_a_trimmed_log_gets_a_snapshot(tmp_path: Path) -> None:
    lake = new_lake(tmp_path / "lake")
    with claiming(lake) as made:
        made.await_active()
        for _ in range(70):
            append(made)
        end = end_of(made)
        replay = kraftlake.open(lake).replay(end.offset - 20)
        assert keep_snapshot(MetadataLog.open(lake), replay.image, replay.quorum)
        Upkeep(lake).trim(end.offset - 19, stream_lag_ms=0)
        address = Address("127.0.0.1", made.server.listeners[0].port)
        with QuorumObserver([address], connect=NodeConnector()) as observer:
            with pytest.raises(SnapshotNeededError) as needed:
                observer.fetch(ObservedLog(OffsetAndEpoch(offset=0, epoch=0)), wait_ms=0)
            id_ = needed.value.snapshot
            assert id_ == OffsetAndEpoch(offset=end.offset - 19, epoch=1)
            path = tmp_path / f"{id_.offset:020}-{id_.epoch:010}.checkpoint"
            with path.open("wb") as file:
                observer.fetch_snapshot(id_, file.write)
            assert observer.fetch(ObservedLog(id_), wait_ms=0)[0].base_offset == id_.offset
        assert read_snapshot(DiskFile.at(path)).damage() is None
        assert kraftlake.open(path).image() == replay.image
        rpc = made.rpc()
        for asked, error in (((5, 1), ErrorCode.SNAPSHOT_NOT_FOUND), ((0, 0), ErrorCode.SNAPSHOT_NOT_FOUND)):
            part = rpc.ask(w.fetch_snapshot(1, *asked)).topics[0].partitions[0]
            assert part.error_code == error
        part = rpc.ask(w.fetch_snapshot(1, id_.offset, 1, position=10**6)).topics[0].partitions[0]
        assert part.error_code == ErrorCode.POSITION_OUT_OF_RANGE


def test_our_own_tools_read_the_cluster_of_a_running_controller(controller: ControllerThread) -> None:
    image = kraftlake.open(controller.address).image()
    wait_for(lambda: image == controller.node.view.image, "the controller has the same image")
