"""`kraftlake controller` as processes: take-over, the stale controller, a clean end, what it can't start with."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from kraftlake.metadata_log.log import MetadataLog
from kraftlake.protocol.address import Address, parse_addresses
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.protocol.node_connector import NodeConnector
from kraftlake.protocol.node_error import NodeError
from kraftlake.protocol.observer.observed_log import ObservedLog
from kraftlake.protocol.observer.quorum_observer import QuorumObserver, SnapshotNeededError
from kraftlake.records.control_records import LeaderChangeMessage
from kraftlake.records.offset_and_epoch import OffsetAndEpoch
from kraftlake.replay.live.open_quorum import decoded
from tests.cli.running import fault
from tests.controller.kafka_rpc import KafkaRpc
from tests.metadata_log.object_store import BUCKET
from tests.server.controller import wire_requests as w
from tests.server.controller.controllers import PATIENCE, controller_process, new_lake
from tests.waiting import wait_for

pytestmark = pytest.mark.xdist_group("controller_processes")
LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"
KILLS = 20 if LONG else 1
"""How often the active controller is killed."""


class Controllers:
    """Controllers 100 and 101 of one lake."""

    def __init__(self, folder: Path, lake: str | Path | None = None) -> None:
        self.lake = new_lake(lake or folder / "lake")
        self.nodes = {id_: controller_process(self.lake, folder, id_) for id_ in (100, 101)}

    @property
    def addresses(self) -> tuple[Address, ...]:
        return parse_addresses(",".join(node.address for node in self.nodes.values()))

    def observer(self) -> QuorumObserver:
        """A client that finds whichever leads."""
        return QuorumObserver(self.addresses, connect=NodeConnector())

    def leader(self) -> int:
        """The node id of the active controller, by an answer that only an active one gives."""

        def described() -> int:
            with self.observer() as observer:
                try:
                    return observer.describe().leader.id
                except NodeError:
                    return 0

        id_: int = wait_for(described, "a controller leads")
        return id_

    def create(self, name: str) -> ErrorCode:
        """Create a topic by whichever leads, as a broker passes it on."""
        request = w.create_topics([(name, {"assignments": [[1]]})])

        def ask() -> Any:
            with self.observer() as observer:
                try:
                    wrapped = w.envelope(w.encoded(request))
                    return [observer.ask_controller("envelope", range(1), lambda _: wrapped)]
                except NodeError:
                    return None

        (answer,) = wait_for(ask, f"topic {name} is created")
        assert answer.error_code == ErrorCode.NONE
        error: ErrorCode = w.inside(request, answer).topics[0].error_code
        return error


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controllers]:
    made = Controllers(tmp_path_factory.mktemp("controllers"))
    with ExitStack() as stack:
        for node in made.nodes.values():
            stack.callback(node.kill)
        yield made
        for node in made.nodes.values():
            node.check_sound()


@pytest.fixture
def controllers(both: Controllers) -> Controllers:
    """Both run, and one of them leads."""
    for node in both.nodes.values():
        if not node.is_running:
            node.start()
    both.leader()
    for node in both.nodes.values():
        node.await_event("registered")
    return both


def epochs_of(lake: str | Path) -> list[tuple[int, int]]:
    """The leaders of the log with their epochs, each once."""
    batches = [batch for batch in MetadataLog.open(lake).batches() if batch.control]
    found = [(batch.epoch, batch.messages()[0].message) for batch in batches]
    return [(epoch, one.leader_id) for epoch, one in found if isinstance(one, LeaderChangeMessage)]


def test_a_standby_takes_over_from_a_killed_controller_and_brokers_find_it(controllers: Controllers) -> None:
    kill_in_turn(controllers, KILLS)


@pytest.mark.skipif(not LONG, reason="make test-long: a process on a store takes seconds to start")
@pytest.mark.xdist_group("object_store")
@pytest.mark.usefixtures("server")
def test_a_standby_takes_over_on_a_lake_in_an_object_store(tmp_path: Path) -> None:
    made = Controllers(tmp_path, f"s3://{BUCKET}/taken-over")
    with ExitStack() as stack:
        for node in made.nodes.values():
            stack.callback(node.kill)
            node.start()
        made.leader()
        for node in made.nodes.values():
            node.await_event("registered")
        kill_in_turn(made, KILLS // 10)


def kill_in_turn(controllers: Controllers, kills: int) -> None:
    """Kill the active controller again and again: brokers find the other one, and no epoch has two leaders."""
    with StandInBroker(controllers) as broker:
        for round_ in range(kills):
            first = controllers.leader()
            other = 201 - first
            assert broker.heartbeat() == ErrorCode.NONE
            controllers.nodes[first].kill()
            began = time.monotonic()
            assert broker.heartbeat() == ErrorCode.NONE
            assert controllers.leader() == other
            assert time.monotonic() - began < PATIENCE / 2
            controllers.nodes[first].start()
            controllers.nodes[first].await_event("registered")
            controllers.nodes[first].await_event("standby")
            assert controllers.nodes[first].events("standby")[-1]["leader"] == other, round_
    for node in controllers.nodes.values():
        assert node.stop() == 0
    epochs = epochs_of(controllers.lake)
    assert [epoch for epoch, _ in epochs] == sorted({epoch for epoch, _ in epochs}), "one controller an epoch"


class StandInBroker:
    """A broker that is registered, and sends heartbeats to whichever controller leads."""

    def __init__(self, controllers: Controllers) -> None:
        self._observer = controllers.observer()
        answer = self._ask("broker_registration", 4, w.registration(1))
        assert answer.error_code == ErrorCode.NONE
        self.epoch = int(answer.broker_epoch)
        assert self.heartbeat() == ErrorCode.NONE

    def __enter__(self) -> StandInBroker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._observer.close()

    def heartbeat(self) -> ErrorCode:
        error: ErrorCode = self._ask("broker_heartbeat", 1, w.heartbeat(1, self.epoch)).error_code
        return error

    def _ask(self, name: str, version: int, request: Any) -> Any:
        def ask() -> Any:
            try:
                answer = self._observer.ask_controller(name, range(version, version + 1), lambda _: request)
            except NodeError:
                return None
            return None if answer.error_code == ErrorCode.REQUEST_TIMED_OUT else [answer]

        return wait_for(ask, f"{name} is answered")[0]


def test_a_stale_controller_commits_nothing_and_never_answers_as_the_active_one(controllers: Controllers) -> None:
    stale = controllers.leader()
    node, other = controllers.nodes[stale], controllers.nodes[201 - stale]
    epoch, claims = node.events("active")[-1]["epoch"], len(other.events("active"))
    with StandInBroker(controllers) as broker:
        rpcs = [KafkaRpc(node.address) for _ in range(4)]
        node.signal(signal.SIGSTOP)
        try:
            other.await_event("active", times=claims + 1)
            assert controllers.create("of-the-new-one") == ErrorCode.NONE
            # all of it waits in the sockets of the stale one when it goes on
            requests = [
                w.create_topics([("of-the-stale-one", {"assignments": [[1]]})]), w.describe_quorum(),
                w.heartbeat(1, broker.epoch), w.fetch(epoch),
            ]  # fmt: skip
            answers: list[Any] = [None] * len(requests)

            def ask(number: int) -> None:
                answers[number] = rpcs[number].ask(requests[number])

            threads = [threading.Thread(target=ask, args=(number,)) for number in range(len(requests))]
            for thread in threads:
                thread.start()
        finally:
            node.signal(signal.SIGCONT)
        for thread, rpc in zip(threads, rpcs, strict=True):
            thread.join(PATIENCE)
            rpc.close()
        created, quorum, beat, fetched = answers
        assert created.topics[0].error_code == ErrorCode.NOT_CONTROLLER
        assert quorum.topics[0].partitions[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert beat.error_code == ErrorCode.NOT_CONTROLLER
        error = fetched.responses[0].partitions[0].error_code
        assert error in (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        standby = {"leader": other.id, "epoch": other.events("active")[-1]["epoch"]}
        wait_for(lambda: any(standby.items() <= event.items() for event in node.events("standby")), "it knows that")
        assert controllers.leader() == other.id
    for batch in MetadataLog.open(controllers.lake).batches():
        assert b"of-the-stale-one" not in b"".join(batch.values)


def test_a_signal_ends_it_cleanly_and_its_last_records_are_there(controllers: Controllers) -> None:
    leader = controllers.nodes[controllers.leader()]
    StandInBroker(controllers).close()
    assert controllers.create("last") == ErrorCode.NONE
    assert leader.stop() == 0
    assert leader.events("resigned")
    assert any(b"last" in b"".join(batch.values) for batch in MetadataLog.open(controllers.lake).batches())
    assert controllers.create("next") == ErrorCode.NONE


def test_a_follower_gets_the_whole_log_of_an_active_controller_and_of_the_next_one(controllers: Controllers) -> None:
    followed: list[Any] = []
    log = ObservedLog(OffsetAndEpoch(offset=0, epoch=0))
    with controllers.observer() as observer:

        def follow_to(name: bytes) -> None:
            def is_there() -> bool:
                try:
                    followed.extend(decoded(observer.fetch(log, wait_ms=200)))
                except SnapshotNeededError:
                    raise
                except NodeError:
                    return False
                return any(name in value for batch in followed for value in batch.values)

            wait_for(is_there, "the topic is followed")

        StandInBroker(controllers).close()
        assert controllers.create("first") == ErrorCode.NONE
        follow_to(b"first")
        controllers.nodes[controllers.leader()].kill()
        assert controllers.create("second") == ErrorCode.NONE
        follow_to(b"second")
    expected = list(MetadataLog.open(controllers.lake).batches(0, followed[-1].last_offset))
    assert [(one.base_offset, one.epoch, one.values) for one in followed] == [
        (one.base_offset, one.epoch, one.values) for one in expected
    ]


def refused(*words: str, code: int = 2) -> str:
    """The sentence with which the command ends at once."""
    return fault("controller", *words, code=code)


def test_what_it_can_not_start_with_is_one_sentence(tmp_path: Path) -> None:
    lake = str(new_lake(tmp_path / "lake"))
    imported = str(MetadataLog.create(tmp_path / "imported", "clusterclusterclusterA").path)
    (tmp_path / "bad.properties").write_text("num.partitions=many\n")
    (tmp_path / "broker.properties").write_text("process.roles=broker\nnode.id=4\n")
    listener = ("--listener", "CONTROLLER://127.0.0.1:0")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        used = ("--listener", f"CONTROLLER://127.0.0.1:{taken.getsockname()[1]}")
        assert "can't be listened on: Address already in use" in refused("--lake", lake, "--id", "1", *used, code=1)
    nowhere = str(tmp_path / "nowhere")
    assert refused("--lake", nowhere, "--id", "1", *listener, code=1) == (
        f"There is no lake at {nowhere}; `kraftlake format {nowhere}` makes one."
    )
    no_controller = "is an imported lake, whose cluster lives elsewhere"
    assert no_controller in refused("--lake", imported, "--id", "1", *listener, code=1)
    assert "A controller needs an id" in refused("--lake", lake, *listener)
    assert "A controller needs a listener" in refused("--lake", lake, "--id", "1")
    assert "--insecure-listeners" in refused("--lake", lake, "--id", "1", "--listener", "C://0.0.0.0:0")
    assert "is no listener" in refused("--lake", lake, "--id", "1", "--listener", "localhost")
    for name, reason in (("bad", "it is no whole number"), ("broker", "without controller"), ("none", "can't be read")):
        file = str(tmp_path / f"{name}.properties")
        assert reason in refused("--lake", lake, "--id", "1", *listener, "--config", file)


def test_the_id_of_a_controller_that_lives_is_refused(controllers: Controllers) -> None:
    leader = controllers.leader()
    words = ("--lake", str(controllers.lake), "--id", str(leader), "--listener", "CONTROLLER://127.0.0.1:0")
    assert f"Controller {leader} is active" in refused(*words, code=1)
    assert controllers.leader() == leader
