from __future__ import annotations

import io
import os
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from kraftlake.protocol.address import Address
from kraftlake.protocol.connection import Connection
from kraftlake.protocol.describe import OtherClusterError
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.protocol.node_client import NodeClient
from kraftlake.protocol.node_connector import NodeConnector
from kraftlake.protocol.node_error import AuthenticationError, NodeError, NoLeaderError
from kraftlake.protocol.observer.observed_log import DivergedLogError, ObservedLog
from kraftlake.protocol.observer.quorum_observer import QuorumObserver, SnapshotGoneError, SnapshotNeededError
from kraftlake.records.offset_and_epoch import OffsetAndEpoch
from tests.protocol.observer.fake_quorum import FakeQuorum
from tests.protocol.observer.model_quorum import ModelQuorum
from tests.waiting import PATIENCE

START = OffsetAndEpoch(offset=0, epoch=0)
NOWHERE = Address("127.0.0.1", 1)
EXAMPLES = 400 if os.environ.get("KRAFTLAKE_TESTS") == "long" else 15


def quorum_of(leader: int = 0, batches: int = 6) -> ModelQuorum:
    model = ModelQuorum()
    model.elect(leader, (leader + 1) % 3)
    for count in range(1, batches):
        model.append(count % 3 + 1)
    model.replicate((leader + 1) % 3, 99)
    return model


@pytest.fixture
def quorum() -> Iterator[FakeQuorum]:
    fake = FakeQuorum(quorum_of(leader=2))
    with fake.serving():
        yield fake


def observing(*addresses: Address, **options: str) -> QuorumObserver:
    return QuorumObserver(addresses, connect=NodeConnector(timeout=PATIENCE), **options)


class Eve(NodeClient):
    """A client that has logged in as eve, as far as messages go."""

    principal = "User:eve"  # type: ignore[assignment]


def observed_by_eve(*addresses: Address) -> QuorumObserver:
    return QuorumObserver(addresses, connect=lambda address: Eve(Connection(address, timeout=PATIENCE)))


def all_of(observer: QuorumObserver, log: ObservedLog, end: int) -> list[object]:
    seen: list[object] = []
    while log.next_offset < end:
        seen += observer.fetch(log, wait_ms=0)
    return seen


@pytest.mark.parametrize("version", [16, 17, 18])
def test_the_leader_is_found_through_any_controller_and_its_committed_log_is_fetched(version: int) -> None:
    fake = FakeQuorum(quorum_of(leader=2), fetch_version=version)
    with fake.serving() as addresses, observing(addresses[0]) as observer:
        log = ObservedLog(START)
        assert all_of(observer, log, fake.model.high_watermark) == fake.model.committed
        assert (observer.leader.id, observer.leader.epoch, observer.leader.address) == (2, 1, addresses[2])
        assert observer.cluster_id == fake.cluster_id
        assert observer.connections == 2, "the first controller, and the leader"


def test_a_new_leader_is_followed_and_an_unreachable_address_passed_over(quorum: FakeQuorum) -> None:
    with observing(NOWHERE, quorum.addresses[1]) as observer:
        log = ObservedLog(START)
        seen = all_of(observer, log, quorum.model.high_watermark)
        assert quorum.model.elect(0, 1)
        quorum.model.append()
        quorum.model.replicate(1, 99)
        seen += all_of(observer, log, quorum.model.high_watermark)
        assert seen == quorum.model.committed
        assert observer.leader.id == 0


def test_a_leader_that_advertises_an_address_out_of_reach_is_asked_by_the_one_that_was_given(
    quorum: FakeQuorum,
) -> None:
    quorum.named = [NOWHERE] * 3
    with observing(*quorum.addresses) as observer:
        assert all_of(observer, ObservedLog(START), quorum.model.high_watermark) == quorum.model.committed


def test_no_leader_is_told_apart_from_no_answer(quorum: FakeQuorum) -> None:
    quorum.refusal = ErrorCode.NOT_LEADER_OR_FOLLOWER
    with observing(*quorum.addresses[:2]) as observer, pytest.raises(NoLeaderError, match="does not lead"):
        observer.fetch(ObservedLog(START))
    with observing(NOWHERE) as observer, pytest.raises(NodeError, match="refuses connections") as fault:
        observer.fetch(ObservedLog(START))
    assert not isinstance(fault.value, NoLeaderError)


def test_a_broker_and_a_refused_client_are_reported_in_a_sentence(quorum: FakeQuorum) -> None:
    quorum.cluster_error = ErrorCode.MISMATCHED_ENDPOINT_TYPE
    with observing(quorum.addresses[0]) as observer, pytest.raises(NodeError, match=r"is a broker, .* of controllers"):
        observer.fetch(ObservedLog(START))
    quorum.cluster_error = ErrorCode.NONE
    quorum.refusal = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    with (
        observed_by_eve(*quorum.addresses) as observer,
        pytest.raises(NodeError, match="an ACL is missing that allows CLUSTER_ACTION on the cluster for User:eve"),
    ):
        observer.fetch(ObservedLog(START))
    assert quorum.fetches == 1, "no other controller is asked"


def test_a_node_that_refuses_the_login_hides_no_other(quorum: FakeQuorum) -> None:
    refusing = {quorum.addresses[0]}

    def connect(address: Address) -> NodeClient:
        if address in refusing:
            raise AuthenticationError(f"{address} refuses it.")
        return NodeConnector(timeout=PATIENCE)(address)

    with QuorumObserver([*quorum.addresses], connect=connect) as observer:
        assert all_of(observer, ObservedLog(START), quorum.model.high_watermark) == quorum.model.committed
    refusing.update(quorum.addresses)
    with QuorumObserver([*quorum.addresses], connect=connect) as observer:
        with pytest.raises(AuthenticationError, match=r"^(\S+ refuses it; ){2}\S+ refuses it\.$"):
            observer.fetch(ObservedLog(START))
        refusing.remove(quorum.addresses[1])
        with pytest.raises(NoLeaderError, match="refuses it"):  # one names the leader, which refuses
            observer.fetch(ObservedLog(START))


def test_a_controller_that_names_its_cluster_to_administrators_alone_needs_the_id(quorum: FakeQuorum) -> None:
    quorum.cluster_error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    with (
        observed_by_eve(*quorum.addresses) as observer,
        pytest.raises(NodeError, match="does not tell its cluster's id for User:eve: give it with --cluster-id"),
    ):
        observer.fetch(ObservedLog(START))
    with observing(*quorum.addresses, cluster_id=quorum.cluster_id) as observer:
        assert all_of(observer, ObservedLog(START), quorum.model.high_watermark) == quorum.model.committed


def test_another_cluster_is_refused_before_anything_is_fetched(quorum: FakeQuorum) -> None:
    with observing(*quorum.addresses, cluster_id="another") as observer, pytest.raises(OtherClusterError):
        observer.fetch(ObservedLog(START))
    assert quorum.fetches == 0


def test_a_snapshot_comes_in_parts_and_one_that_was_deleted_is_an_error(quorum: FakeQuorum) -> None:
    quorum.model.snapshot, quorum.model.log_start_offset = OffsetAndEpoch(offset=5, epoch=1), 4
    quorum.snapshot_file, quorum.part_bytes = random.Random(1).randbytes(1000), 300
    with observing(*quorum.addresses) as observer:
        with pytest.raises(SnapshotNeededError) as needed:
            observer.fetch(ObservedLog(START))
        assert (needed.value.snapshot, needed.value.log_start_offset) == (OffsetAndEpoch(offset=5, epoch=1), 4)
        file, progress = io.BytesIO(), []
        observer.fetch_snapshot(needed.value.snapshot, file.write, lambda done, of: progress.append((done, of)))
        assert file.getvalue() == quorum.snapshot_file
        assert progress == [(300, 1000), (600, 1000), (900, 1000), (1000, 1000)]
        quorum.snapshot_error = ErrorCode.SNAPSHOT_NOT_FOUND
        with pytest.raises(NodeError, match="has deleted the snapshot"):
            observer.fetch_snapshot(needed.value.snapshot, file.write)


def test_the_parts_of_a_snapshot_are_of_one_leader(quorum: FakeQuorum) -> None:
    quorum.snapshot_file, quorum.part_bytes = b"x" * 1000, 300
    changes = [lambda: quorum.model.elect(0, 1), lambda: setattr(quorum, "snapshot_file", b"x" * 1100)]
    for change in changes:
        with observing(*quorum.addresses) as observer:
            observer.fetch(ObservedLog(START))

            def write(_: bytes, change: Callable[[], object] = change) -> None:
                change()

            with pytest.raises(SnapshotGoneError, match="Another node leads than"):
                observer.fetch_snapshot(OffsetAndEpoch(offset=5, epoch=1), write)


def heartbeat(observer: QuorumObserver) -> object:
    def make(module: Any) -> Any:
        return module.BrokerHeartbeatRequest(
            broker_id=7, current_metadata_offset=0, want_fence=False, want_shut_down=False
        )

    return observer.ask_controller("broker_heartbeat", range(2), make).error_code


def test_a_request_reaches_the_active_controller_through_any_other_and_follows_it(quorum: FakeQuorum) -> None:
    with observing(quorum.addresses[1]) as observer:
        assert heartbeat(observer) == ErrorCode.NONE
        assert observer.leader.address == quorum.addresses[2]
        assert quorum.model.elect(0, 1)
        assert heartbeat(observer) == ErrorCode.NONE
        assert observer.leader.address == quorum.addresses[0]
        assert heartbeat(observer) == ErrorCode.NONE
    assert quorum.heartbeats[-2:] == [(0, 7)] * 2, "the connection to the active controller is kept"


def test_an_error_of_the_active_controller_is_the_askers_affair(quorum: FakeQuorum) -> None:
    quorum.heartbeat_error = ErrorCode.STALE_BROKER_EPOCH
    with observing(*quorum.addresses) as observer:
        assert heartbeat(observer) == ErrorCode.STALE_BROKER_EPOCH


def test_controllers_without_an_active_one_are_told_apart_from_no_answer(quorum: FakeQuorum) -> None:
    quorum.heartbeat_error = ErrorCode.NOT_CONTROLLER
    with observing(*quorum.addresses) as observer, pytest.raises(NoLeaderError, match="does not lead"):
        heartbeat(observer)


def test_a_new_leader_is_found_at_an_address_that_only_controllers_gave(quorum: FakeQuorum) -> None:
    quorum.lists_controllers = True
    with observing(quorum.addresses[2]) as observer:
        assert heartbeat(observer) == ErrorCode.NONE
        quorum.down.add(2)
        assert quorum.model.elect(0, 1)
        assert heartbeat(observer) == ErrorCode.NONE
    assert quorum.heartbeats == [(2, 7), (0, 7)]


@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), kind=st.sampled_from(["flip", "cut", "noise", "repeat", "empty"]))
@example(seed=839780112, kind="flip")  # the list of controllers is null
def test_broken_answers_are_node_errors_and_never_wrong_records(
    quorum: FakeQuorum, monkeypatch: pytest.MonkeyPatch, seed: int, kind: str
) -> None:
    # where a length is broken, the rest of an answer is waited for
    monkeypatch.setattr("kraftlake.protocol.observer.requests._ANSWER_SECONDS", 0.02)
    chance = random.Random(seed)

    def spoil(data: bytes) -> bytes:
        if chance.random() < 0.5:
            return data
        if kind == "flip":
            at = chance.randrange(len(data))
            return data[:at] + bytes([data[at] ^ (1 << chance.randrange(8))]) + data[at + 1 :]
        if kind == "cut":
            return data[:4] + data[4 : chance.randrange(4, len(data) + 1)]
        return {"noise": chance.randbytes(chance.randrange(200)), "repeat": data + data, "empty": b"\0\0\0\0"}[kind]

    quorum.spoil = spoil
    log, seen = ObservedLog(START), []
    observer = QuorumObserver(quorum.addresses, connect=NodeConnector(timeout=0.02))
    with observer:
        for _ in range(6):
            try:
                seen += observer.fetch(log, wait_ms=0)
            except (NodeError, SnapshotNeededError, OtherClusterError):
                pass
            except DivergedLogError:  # a flipped bit may make a sound answer that says something else
                assert kind == "flip"
                break
        for batch in seen:
            # No CRC covers a batch's offset and epoch; the next Fetch has the leader compare those.
            assert batch in quorum.model.committed or kind == "flip"
    quorum.spoil = lambda data: data
