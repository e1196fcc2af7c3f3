"""Controllers on a lake: claims, answers, fencing and takeovers."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

import kraftlake
from kraftlake.controller.cluster.brokers import unregister_broker
from kraftlake.controller.config import ControllerConfig
from kraftlake.controller.errors import ControllerApiError
from kraftlake.controller.quorum.periodic_tasks import write_no_op
from kraftlake.controller.quorum.quorum_controller import QuorumController
from kraftlake.controller.replication.topics import CreatableTopic, create_topics
from kraftlake.controller.result import ControllerResult
from kraftlake.controller.state import ControllerState
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch
from kraftlake.records.metadata_version import from_feature_level
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.runtime.clock import Clock, ManualClock
from kraftlake.runtime.errors import LakeError
from tests.controller.controlled_cluster import ALL_FEATURES, CLUSTER_ID, ControlledCluster, directory, incarnation
from tests.waiting import PATIENCE, wait_for

T = TypeVar("T")


@contextmanager
def controller(
    lake: Path, node: int = 1, *, at_once: bool = True, clock: Clock | None = None, **config: Any
) -> Iterator[QuorumController]:
    settings = {"quorum_fetch_timeout_ms": 400, "max_idle_interval_ms": 50} | config
    made = QuorumController(
        MetadataLog.open(lake, durability="os"),
        ControllerConfig(node_id=node, cluster_id=CLUSTER_ID, **settings),
        clock=clock,
        claim_at_once=at_once,
    )
    try:
        yield made
    finally:
        made.close()


def eventually(question: Callable[[], T]) -> T:
    """The first answer that is not NOT_CONTROLLER."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return question()
        except ControllerApiError as refusal:
            if refusal.error is not ErrorCode.NOT_CONTROLLER or time.monotonic() > deadline:
                raise
            threading.Event().wait(0.02)


def register(made: QuorumController, broker: int) -> int:
    from kraftlake.controller.cluster.brokers import register_broker
    from kraftlake.protocol.broker_requests import BrokerRegistrationRequest

    request = BrokerRegistrationRequest(
        broker_id=broker, cluster_id=CLUSTER_ID, incarnation_id=incarnation(broker), features=ALL_FEATURES,
        log_dirs=(directory(broker),),
    )  # fmt: skip
    return made.submit(lambda state: register_broker(state, request)).result(PATIENCE).broker_epoch


def start_broker(made: QuorumController, broker: int) -> None:
    from kraftlake.protocol.broker_requests import BrokerHeartbeatRequest

    epoch = register(made, broker)
    beat = BrokerHeartbeatRequest(broker_id=broker, broker_epoch=epoch, current_metadata_offset=epoch)
    assert not made.heartbeat(beat).result(PATIENCE).is_fenced


def create(made: QuorumController, name: str) -> ErrorCode:
    answer = made.submit(lambda state: create_topics(state, [CreatableTopic(name=name)])).result(PATIENCE)
    return answer[name].error.error


def topic_names(made: QuorumController) -> set[str]:
    return made.read(lambda image: set(image.topics.topics_by_name())).result(PATIENCE)


def image_of(lake: Path) -> MetadataImage:
    return kraftlake.open(lake).replay().image


def test_an_empty_log_begins_with_its_bootstrap_records_in_a_transaction(lake: Path) -> None:
    with controller(lake) as made:
        assert eventually(lambda: topic_names(made)) == set()
        assert made.epoch == 1
    batches = list(MetadataLog.open(lake).batches())
    assert batches[0].control
    messages = [record.message for record in batches[1].messages()]
    assert messages[0] == r.BeginTransactionRecord(name="Bootstrap records")
    assert messages[1] == r.FeatureLevelRecord(name="metadata.version", feature_level=33)
    assert messages[-2:] == [
        r.ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value="1"),
        r.EndTransactionRecord(),
    ]
    assert image_of(lake).features.is_elr_enabled


def test_every_answered_command_is_in_the_log(lake: Path) -> None:
    with controller(lake) as made:
        eventually(lambda: start_broker(made, 1))
        assert [create(made, name) for name in ("a", "b", "a")] == [
            ErrorCode.NONE, ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS,
        ]  # fmt: skip
        assert set(image_of(lake).topics.topics_by_name()) == {"a", "b"} == topic_names(made)
        with pytest.raises(ControllerApiError) as refused:
            made.submit(lambda state: unregister_broker(state, 9)).result(PATIENCE)
        assert refused.value.error is ErrorCode.BROKER_ID_NOT_REGISTERED


def test_many_commands_are_committed_together_and_answered_in_order(lake: Path) -> None:
    with controller(lake) as made:
        eventually(lambda: start_broker(made, 1))
        before = MetadataLog.open(lake).version
        names = [f"topic-{number}" for number in range(200)]
        futures = [
            made.submit(lambda state, name=name: create_topics(state, [CreatableTopic(name=name)])) for name in names
        ]
        for name, future in zip(names, futures, strict=True):
            assert future.result(PATIENCE)[name].error.error is ErrorCode.NONE
        assert MetadataLog.open(lake).version - before < 150
    assert set(image_of(lake).topics.topics_by_name()) == set(names)


def test_a_standby_takes_over_when_the_active_controller_stops(lake: Path) -> None:
    with controller(lake, 1) as first:
        eventually(lambda: start_broker(first, 1))
        with controller(lake, 2, at_once=False, quorum_fetch_timeout_ms=3_600_000) as second:
            assert create(first, "a") is ErrorCode.NONE
            with pytest.raises(ControllerApiError) as refused:
                create(second, "b")
            assert refused.value.error is ErrorCode.NOT_CONTROLLER
            assert first.is_active
            first.close()
            second.expect_vacancy(1, ended=True)
            assert eventually(lambda: create(second, "b")) is ErrorCode.NONE
            assert second.epoch == 2
            assert topic_names(second) == {"a", "b"}
    assert set(image_of(lake).topics.topics_by_name()) == {"a", "b"}


def test_a_fenced_controller_becomes_a_standby_at_once(lake: Path) -> None:
    with controller(lake, max_idle_interval_ms=None, quorum_fetch_timeout_ms=60_000) as made:
        eventually(lambda: start_broker(made, 1))
        MetadataLog.open(lake).claim(7)
        with pytest.raises(ControllerApiError) as refused:
            create(made, "late")
        assert refused.value.error is ErrorCode.NOT_CONTROLLER
        with pytest.raises(ControllerApiError) as refused:
            topic_names(made)
        assert refused.value.error is ErrorCode.NOT_CONTROLLER
        assert made.epoch == -1
    assert image_of(lake).topics.is_empty()


def test_a_failed_append_fails_all_waiting_commands_and_drops_the_pending_records(lake: Path) -> None:
    with controller(lake, max_idle_interval_ms=None, quorum_fetch_timeout_ms=60_000) as made:
        eventually(lambda: start_broker(made, 1))
        MetadataLog.open(lake).claim(7)
        commands = [
            made.submit(lambda state, number=number: create_topics(state, [CreatableTopic(name=f"t{number}")]))
            for number in range(20)
        ]
        for command in commands:
            with pytest.raises(ControllerApiError) as refused:
                command.result(PATIENCE)
            assert refused.value.error is ErrorCode.NOT_CONTROLLER
    assert image_of(lake).topics.is_empty()


def test_a_controller_recovers_when_its_lake_cannot_be_claimed_for_a_while(
    lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with controller(lake) as made:
        eventually(lambda: start_broker(made, 1))
        epoch = made.epoch
        claim = MetadataLog.claim
        refused = threading.Semaphore(3)

        def failing(*args: Any, **options: Any) -> int:
            if refused.acquire(blocking=False):
                raise LakeError("the disk does not answer")
            return claim(*args, **options)

        monkeypatch.setattr(MetadataLog, "claim", failing)
        made.resign().result(PATIENCE)
        assert eventually(lambda: create(made, "foo")) is ErrorCode.NONE
        assert made.epoch > epoch
        assert not refused.acquire(blocking=False)


def test_a_fault_while_answers_are_given_leaves_no_command_without_an_answer(
    lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with controller(lake) as made:
        eventually(lambda: start_broker(made, 1))
        answer, begun, release = made._answer, threading.Event(), threading.Event()

        def slow(state: ControllerState) -> ControllerResult[None]:
            begun.set()
            assert release.wait(PATIENCE)
            return ControllerResult((), None)

        def faulty(active: Any, at: int, answer_: Any) -> None:
            if answer_.records and at <= active.durable_offset and not faults:
                faults.append(at)
                raise RuntimeError("nobody foresaw this")
            answer(active, at, answer_)

        faults: list[int] = []
        made.submit(slow)
        assert begun.wait(PATIENCE)
        commands = [
            made.submit(lambda state, n=number: create_topics(state, [CreatableTopic(name=f"t{n}")]))
            for number in range(5)
        ]
        monkeypatch.setattr(made, "_answer", faulty)
        release.set()
        ends = [command.exception(PATIENCE) for command in commands]
        assert len(faults) == 1
        assert sum(end is not None for end in ends) <= 1


def test_a_silent_broker_is_fenced_by_the_controller_itself(lake: Path) -> None:
    with controller(lake, broker_session_timeout_ms=100) as made:
        eventually(lambda: start_broker(made, 1))
        deadline = time.monotonic() + PATIENCE
        while not made.read(lambda image: image.cluster.brokers[1].fenced).result(PATIENCE):
            assert time.monotonic() < deadline
            threading.Event().wait(0.02)


def test_the_first_controller_of_a_lake_waits_for_nobody(lake: Path) -> None:
    settings = {"quorum_fetch_timeout_ms": 3_600_000}
    with controller(lake, 1, at_once=False, **settings) as one, controller(lake, 2, at_once=False, **settings) as two:
        (active,) = wait_for(lambda: [made for made in (one, two) if made.is_active])
        assert eventually(lambda: topic_names(active)) == set()
        assert MetadataLog.open(lake).epoch == 1, "and the second one for it"


def test_a_request_that_waits_too_long_times_out(lake: Path) -> None:
    with controller(lake) as made:
        eventually(lambda: topic_names(made))
        begun, release = threading.Event(), threading.Event()

        def slow(state: ControllerState) -> ControllerResult[None]:
            begun.set()
            assert release.wait(PATIENCE)
            return ControllerResult((), None)

        first = made.submit(slow)
        assert begun.wait(PATIENCE)
        late = made.submit(write_no_op, timeout_ms=0)
        release.set()
        first.result(PATIENCE)
        with pytest.raises(ControllerApiError) as refused:
            late.result(PATIENCE)
        assert refused.value.error is ErrorCode.REQUEST_TIMED_OUT
        assert (made.metrics.operations_timed_out, made.metrics.timed_out_heartbeats) == (1, 0)


def test_a_response_without_records_needs_a_commit_within_the_fetch_timeout(lake: Path) -> None:
    """Nobody has claimed, so the commit that it waits for is made; had somebody, it would not be."""
    clock = ManualClock(1_700_000_000_000)
    with controller(lake, clock=clock, max_idle_interval_ms=None, quorum_fetch_timeout_ms=1_000) as made:
        eventually(lambda: topic_names(made))
        made._queue.cancel_deferred("writeNoOpRecord")  # its timer is late
        end = MetadataLog.open(lake).end_offset
        assert topic_names(made) == set()
        assert MetadataLog.open(lake).end_offset == end
        clock.advance(1_000)
        assert topic_names(made) == set()
        assert MetadataLog.open(lake).end_offset == end + 1, "one no-op record"
        MetadataLog.open(lake).claim(7)
        clock.advance(1_000)
        with pytest.raises(ControllerApiError) as refused:
            topic_names(made)
        assert refused.value.error is ErrorCode.NOT_CONTROLLER


def test_a_resigned_controller_follows_and_can_become_active_again(lake: Path) -> None:
    with controller(lake) as made:
        eventually(lambda: start_broker(made, 1))
        made.resign().result(PATIENCE)
        assert eventually(lambda: create(made, "a")) is ErrorCode.NONE
        assert made.epoch == 2


def test_of_two_concurrent_claims_the_later_one_wins(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, others = MetadataLog.open(lake, durability="os"), MetadataLog.open(lake, durability="os")
    claim = MetadataLog.claim

    def overtaken(log: MetadataLog, node_id: int, **options: Any) -> int:
        epoch = claim(log, node_id, **options)
        claim(others, 2)
        return epoch

    monkeypatch.setattr(MetadataLog, "claim", overtaken)
    config = ControllerConfig(node_id=1, cluster_id=CLUSTER_ID, quorum_fetch_timeout_ms=60_000)
    made = QuorumController(log, config, claim_at_once=True)
    try:
        with pytest.raises(ControllerApiError) as refused:
            topic_names(made)
        assert refused.value.error is ErrorCode.NOT_CONTROLLER
        assert not made.is_active
    finally:
        made.close()
    assert [batch.epoch for batch in MetadataLog.open(lake).batches()] == [1, 2], "and nothing else was written"


def test_a_transaction_that_an_earlier_controller_left_open_is_aborted(lake: Path) -> None:
    with controller(lake) as made:
        eventually(lambda: topic_names(made))
    log = MetadataLog.open(lake)
    epoch = log.claim(5)
    half = [
        ApiMessageAndVersion(r.BeginTransactionRecord(name="half"), 0),
        ApiMessageAndVersion(r.TopicRecord(name="never", topic_id=directory(1)), 0),
    ]
    log.append([RecordBatch.of(log.end_offset, epoch, 0, half)], epoch=epoch)
    with controller(lake) as made:
        assert eventually(lambda: topic_names(made)) == set()
    types = [record.type for record in kraftlake.open(lake).records(from_offset=log.end_offset)]
    assert "ABORT_TRANSACTION_RECORD" in types
    assert image_of(lake).topics.is_empty()


def test_an_imported_lake_has_no_controller(tmp_path: Path) -> None:
    log = MetadataLog.create(tmp_path / "lake", CLUSTER_ID, "imported")
    with pytest.raises(LakeError, match="imported"):
        QuorumController(log, ControllerConfig(node_id=1, cluster_id=CLUSTER_ID))


def test_with_an_old_metadata_version_the_bootstrap_records_are_in_no_transaction() -> None:
    cluster = ControlledCluster(version=from_feature_level(7))
    (begin,) = [batch for batch in cluster.log if not batch.control]
    assert [record.message for record in begin.messages()] == [
        r.FeatureLevelRecord(name="metadata.version", feature_level=7)
    ]


_PAUSED = """
import json, sys
from pathlib import Path
import structlog
from tests.controller.quorum import test_quorum_controller as t

structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
with t.controller(Path(sys.argv[1]), 1) as made:
    t.eventually(lambda: t.start_broker(made, 1))
    for number in range(100_000):
        try:
            t.create(made, f"topic-{number}")
            names = sorted(t.topic_names(made))
        except t.ControllerApiError as refusal:
            print(json.dumps({"refused": refusal.error.name}), flush=True)
            break
        print(json.dumps({"created": f"topic-{number}", "seen": len(names), "epoch": made.epoch}), flush=True)
"""


def test_a_controller_that_sleeps_through_another_claim_commits_and_answers_nothing_afterwards(lake: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", _PAUSED, str(lake)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert process.stdout is not None
        answers = [json.loads(process.stdout.readline()) for _ in range(5)]
        process.send_signal(signal.SIGSTOP)
        with controller(lake, 2, at_once=False) as second:
            eventually(lambda: create(second, "of-the-second"))
            claimed_at = next(b.base_offset for b in MetadataLog.open(lake).batches() if b.control and b.epoch == 2)
            process.send_signal(signal.SIGCONT)
            answers += [json.loads(line) for line in process.stdout]
            assert process.wait(PATIENCE) == 0
            assert second.is_active
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
    assert answers[-1] == {"refused": "NOT_CONTROLLER"}
    log = MetadataLog.open(lake)
    assert all(batch.epoch == 2 for batch in log.batches(claimed_at))
    image = image_of(lake)
    for answer in answers[:-1]:
        assert answer["created"] in image.topics.topics_by_name(), "what was answered is in the log"
        assert answer["epoch"] == 1
    made_by_the_first = [name for name in image.topics.topics_by_name() if name != "of-the-second"]
    assert len(answers) - 1 <= len(made_by_the_first) <= len(answers), "and at most the last went unanswered"
