"""A broker's states, and the moments at which it sends the controller what; the clock is a number."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.image.endpoint import VersionRange, feature_levels_of
from kraftlake.protocol.broker_requests import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.records.metadata_records import BrokerEndpoint, BrokerFeature
from kraftlake.records.uuid import Uuid
from kraftlake.replica_manager.lifecycle.broker_lifecycle import BrokerLifecycle, LifecycleConfig, LifecycleState

MS = 1_000_000
A, B = Uuid(b"a" * 16), Uuid(b"b" * 16)
REGISTRATION = BrokerRegistrationRequest(
    broker_id=7, cluster_id="c", incarnation_id=Uuid(b"i" * 16),
    listeners=(BrokerEndpoint(name="PLAINTEXT", host="h", port=9092, security_protocol=0),),
    features=feature_levels_of({"metadata.version": VersionRange(7, 30)}, BrokerFeature), log_dirs=(B, A),
)  # fmt: skip
REGISTERED = BrokerRegistrationResponse(broker_epoch=40)
FENCED = BrokerHeartbeatResponse(is_caught_up=True)
UNFENCED = BrokerHeartbeatResponse(is_caught_up=True, is_fenced=False)


class Driven:
    """A lifecycle, the requests that it made with the ms at which it made them, and the time."""

    def __init__(self, **config: int) -> None:
        self.metadata_offset = 100
        self.lifecycle = BrokerLifecycle(
            REGISTRATION, lambda: self.metadata_offset, LifecycleConfig(**config), cordoned=[A]
        )
        self.now_ns = 0
        self.sent: list[tuple[int, Any]] = []

    def __call__(self, event: str, *arguments: Any) -> None:
        getattr(self.lifecycle, event)(*arguments, self.now_ns)
        self._send()

    def answer(self, response: Any) -> None:
        self("answered", response)

    def pass_ms(self, ms: int) -> list[tuple[int, Any]]:
        """Let time pass; returns what was sent, with the ms since the start."""
        before, end = len(self.sent), self.now_ns + ms * MS
        while (due := self.lifecycle.due_ns) is not None and due <= end:
            self.now_ns = max(due, self.now_ns)
            self._send()
        self.now_ns = end
        return self.sent[before:]

    def _send(self) -> None:
        request = self.lifecycle.next_request(self.now_ns)
        if request is not None:
            self.sent.append((self.now_ns // MS, request))

    @property
    def last(self) -> Any:
        return self.sent[-1][1]

    @property
    def state(self) -> LifecycleState:
        return self.lifecycle.state


def running(**config: int) -> Driven:
    """A broker that runs, its next heartbeat due after the interval."""
    driven = Driven(**config)
    driven("start")
    driven.answer(REGISTERED)
    driven.answer(FENCED)
    driven("set_ready_to_unfence")
    driven.answer(UNFENCED)
    assert driven.state is LifecycleState.RUNNING
    driven.sent.clear()
    return driven


def test_a_broker_registers_catches_up_and_is_unfenced_when_it_is_ready() -> None:
    driven = Driven()
    assert (driven.state, driven.lifecycle.due_ns) == (LifecycleState.NOT_RUNNING, None)
    driven("start")
    assert driven.state is LifecycleState.STARTING
    assert driven.last == attrs.evolve(REGISTRATION, log_dirs=(A, B)), "the directories are sorted"
    assert driven.lifecycle.broker_epoch == -1
    driven.answer(REGISTERED)
    assert driven.lifecycle.broker_epoch == 40
    first = BrokerHeartbeatRequest(
        broker_id=7, broker_epoch=40, current_metadata_offset=100, want_fence=True, want_shut_down=False
    )
    assert driven.last == first, "at once"
    driven.metadata_offset = 120
    driven.answer(BrokerHeartbeatResponse())
    assert driven.state is LifecycleState.STARTING
    assert driven.pass_ms(10) == [(10, attrs.evolve(first, current_metadata_offset=120))]
    driven.answer(FENCED)
    assert driven.state is LifecycleState.RECOVERY
    assert driven.last.cordoned_log_dirs is None
    ((_, beat),) = driven.pass_ms(10)
    assert beat.cordoned_log_dirs == (A,)
    driven.answer(FENCED)
    assert driven.state is LifecycleState.RECOVERY
    assert not driven.pass_ms(1999)
    driven("set_ready_to_unfence")
    assert not driven.last.want_fence, "at once"
    driven.answer(UNFENCED)
    assert driven.state is LifecycleState.RUNNING
    for _ in range(2):
        assert not driven.pass_ms(1999)
        assert len(driven.pass_ms(1)) == 1, "after the interval"
        driven.answer(UNFENCED)


def test_a_broker_that_is_fenced_again_runs_on() -> None:
    driven = running()
    driven.pass_ms(2000)
    driven.answer(FENCED)
    assert driven.state is LifecycleState.RUNNING


@pytest.mark.parametrize("error", [ErrorCode.STALE_BROKER_EPOCH, ErrorCode.BROKER_ID_NOT_REGISTERED, None])
def test_after_any_failure_the_same_is_tried_again_after_the_interval(error: ErrorCode | None) -> None:
    driven = Driven()
    driven("start")
    driven.answer(None if error is None else BrokerRegistrationResponse(error=error))
    assert not driven.pass_ms(1999)
    assert [type(one) for _, one in driven.pass_ms(1)] == [BrokerRegistrationRequest]
    driven = running()
    for _ in range(3):
        (request,) = (one for _, one in driven.pass_ms(2000))
        assert (type(request), request.broker_epoch) == (BrokerHeartbeatRequest, 40)
        driven.answer(None if error is None else BrokerHeartbeatResponse(error=error))
    assert driven.state is LifecycleState.RUNNING, "as Kafka's broker, which goes on and asks again"


def test_a_broker_that_registers_again_has_a_new_epoch() -> None:
    driven = running()
    driven("resend_registration")
    assert type(driven.last) is BrokerRegistrationRequest
    assert driven.last.incarnation_id == REGISTRATION.incarnation_id
    assert driven.lifecycle.broker_epoch == 40
    driven.answer(BrokerRegistrationResponse(broker_epoch=90))
    assert (driven.last.broker_epoch, driven.state) == (90, LifecycleState.RUNNING)


def test_what_comes_during_a_request_is_sent_at_once_after_its_answer_but_not_after_a_failure() -> None:
    for answer, wait in ((UNFENCED, 0), (None, 2000), (BrokerHeartbeatResponse(error=ErrorCode.NOT_CONTROLLER), 2000)):
        driven = running()
        driven.pass_ms(2000)
        driven("directory_failed", A)
        driven("begin_controlled_shutdown")
        assert len(driven.sent) == 1, "one request at a time"
        driven.answer(answer)
        later = driven.pass_ms(wait)
        assert [ms for ms, _ in later] == ([2000 + wait] if wait else [])
        assert (driven.last.want_shut_down, driven.last.offline_log_dirs) == (True, (A,))


def test_controlled_shutdown_lasts_until_the_controller_lets_the_broker_go() -> None:
    driven = running()
    driven("begin_controlled_shutdown")
    assert driven.state is LifecycleState.PENDING_CONTROLLED_SHUTDOWN
    assert driven.last.want_shut_down
    driven.answer(UNFENCED)
    driven("begin_controlled_shutdown")
    assert len(driven.sent) == 1, "again is nothing new"
    assert [ms for ms, _ in driven.pass_ms(50)] == [50], "soon, the first time"
    driven.answer(UNFENCED)
    assert [ms for ms, _ in driven.pass_ms(2000)] == [2050]
    driven.answer(attrs.evolve(UNFENCED, should_shut_down=True))
    assert driven.state is LifecycleState.SHUTTING_DOWN
    assert not driven.pass_ms(100_000)
    assert driven.lifecycle.fault is None


def test_an_answer_to_a_heartbeat_from_before_is_none_to_the_request_for_a_controlled_shutdown() -> None:
    driven = running()
    driven.pass_ms(2000)
    driven("begin_controlled_shutdown")
    assert not driven.last.want_shut_down
    driven.answer(UNFENCED)
    assert driven.last.want_shut_down
    assert not driven.lifecycle.got_shutdown_answer
    driven.answer(UNFENCED)
    assert driven.lifecycle.got_shutdown_answer


@pytest.mark.parametrize("answers", [[], [REGISTERED], [REGISTERED, FENCED]])
def test_a_broker_that_does_not_run_shuts_down_without_the_controllers_leave(answers: list[Any]) -> None:
    driven = Driven()
    driven("start")
    for answer in answers:
        driven.answer(answer)
        driven.pass_ms(10)
    before = len(driven.sent)
    driven("begin_controlled_shutdown")
    assert driven.state is LifecycleState.SHUTTING_DOWN
    driven.answer(REGISTERED if not answers else UNFENCED)
    assert (driven.state, driven.lifecycle.due_ns) == (LifecycleState.SHUTTING_DOWN, None)
    assert len(driven.sent) == before


def test_a_broker_that_no_controller_registers_in_time_shuts_down() -> None:
    driven = Driven(initial_broker_registration_timeout_ms=5000)
    driven("start")
    for _ in range(2):
        driven.answer(None)
        driven.pass_ms(2000)
    assert driven.state is LifecycleState.STARTING
    driven.pass_ms(1000)
    assert driven.state is LifecycleState.SHUTTING_DOWN
    assert driven.lifecycle.fault == "no controller has registered the broker within 5000 ms"
    refused = Driven(initial_broker_registration_timeout_ms=5000)
    refused("start")
    refused.answer(BrokerRegistrationResponse(error=ErrorCode.DUPLICATE_BROKER_REGISTRATION))
    refused.pass_ms(5000)
    assert str(refused.lifecycle.fault).endswith("within 5000 ms; the last answer was DUPLICATE_BROKER_REGISTRATION")
    registered = running(initial_broker_registration_timeout_ms=5000)
    registered.pass_ms(10_000)
    assert registered.state is LifecycleState.RUNNING, "in time"


def test_a_failed_directory_is_reported_at_once_and_in_each_heartbeat_after() -> None:
    driven = running()
    driven("directory_failed", B)
    assert driven.last.offline_log_dirs == (B,)
    driven("directory_failed", B)
    driven.answer(UNFENCED)
    assert len(driven.sent) == 1, "it failed once"
    driven("directory_failed", A)
    driven.answer(UNFENCED)
    assert driven.last.offline_log_dirs == (B, A)
    driven.pass_ms(100_000)
    assert driven.state is LifecycleState.RUNNING, "the controller knows"


def test_a_directory_that_failed_before_the_registration_is_reported_after_it() -> None:
    driven = Driven()
    driven("start")
    driven("directory_failed", A)
    assert len(driven.sent) == 1
    driven.answer(REGISTERED)
    assert driven.last.offline_log_dirs == (A,)


def test_a_broker_that_cannot_report_a_failed_directory_shuts_down() -> None:
    driven = running()
    driven.pass_ms(2000)
    driven("directory_failed", A)  # the request in flight does not have it
    driven.pass_ms(29_999)
    assert driven.state is LifecycleState.RUNNING
    driven.answer(None)
    driven.pass_ms(1)
    assert driven.state is LifecycleState.SHUTTING_DOWN
    assert driven.lifecycle.fault == (f"no controller could be told within 30000 ms that log directory {A} is offline")


EVENTS = st.sampled_from(
    [
        ("set_ready_to_unfence",), ("directory_failed", A), ("directory_failed", B), ("resend_registration",),
        ("begin_controlled_shutdown",), "answer", "answer", "answer", "fail", 1, 10, 500, 2000, 9000,
    ]
)  # fmt: skip


@given(events=st.lists(EVENTS, max_size=40), seed=st.randoms(use_true_random=False))
def test_whatever_comes_one_request_is_in_flight_states_go_forward_and_a_living_broker_sends_on(
    events: list[Any], seed: Any
) -> None:
    driven, states = Driven(), [LifecycleState.STARTING]
    driven("start")
    in_flight = True
    for event in events:
        before = len(driven.sent)
        if isinstance(event, int):
            driven.pass_ms(event)
        elif event not in ("answer", "fail"):
            driven(*event)
        elif in_flight:
            in_flight, request = False, driven.last
            if event == "fail":
                driven.answer(None)
            elif isinstance(request, BrokerRegistrationRequest):
                driven.answer(attrs.evolve(REGISTERED, broker_epoch=seed.randrange(100)))
            else:
                flags = [seed.random() < 0.5 for _ in range(3)]
                driven.answer(
                    BrokerHeartbeatResponse(is_caught_up=flags[0], is_fenced=flags[1], should_shut_down=flags[2])
                )
        sent = len(driven.sent) - before
        assert sent <= (0 if in_flight else 1), "one at a time"
        in_flight = in_flight or sent == 1
        states.append(driven.state)
    assert states == sorted(states)
    if driven.state is not LifecycleState.SHUTTING_DOWN and not in_flight:
        assert driven.pass_ms(2000), "a heartbeat or a registration comes within the interval"
    assert (driven.lifecycle.broker_epoch == -1) <= (
        driven.state in (LifecycleState.STARTING, LifecycleState.SHUTTING_DOWN)
    )
